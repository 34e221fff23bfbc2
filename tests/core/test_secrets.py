"""Masking: what must go, what must stay, and that no text takes long."""

from __future__ import annotations

import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core.secrets import MASK, is_secret_name, mask, remember, secret_values

SECRETS = [
    ("sk-test-1234567890abcdef", "sk-test-1234567890abcdef"),
    ("key sk-proj-abcDEF123456_ghiJKL789 end", "sk-proj-abcDEF123456_ghiJKL789"),
    ("Authorization: Bearer sk-test-1234567890abcdef", "sk-test-1234567890abcdef"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
    ("{'Authorization': 'Bearer abcdefghijklmnop'}", "abcdefghijklmnop"),
    ("curl -H 'authorization: token deadbeefcafe'", "deadbeefcafe"),
    ("Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJhbGciOiJIUzI1NiJ9"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz"),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "github_pat_11ABCDEFG0"),
    ("xoxb-123456789012-abcdefghijkl", "xoxb-123456789012-abcdefghijkl"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuvw", "AIzaSyA1234567890"),
    ("hf_abcdefghijklmnopqrst1234", "hf_abcdefghijklmnopqrst1234"),
    ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz", "b3BlbnNz"),
    ("password='hunter2'", "hunter2"),
    ("password=hunter2", "hunter2"),
    ('"password": "correcthorse"', "correcthorse"),
    ("api_key: 'abcd1234efgh'", "abcd1234efgh"),
    ("export DB_PASSWORD=correcthorse", "correcthorse"),
    ('OPENAI_API_KEY="abcdefgh"', "abcdefgh"),
    ("postgres://user:s3cret@db.example.com/x", "s3cret"),
    ("https://u:p%40ss@host/", "p%40ss"),
    ("redis://:onlypass@host:6379", "onlypass"),
    ("https://hooks.slack.com/services/T000/B000/XXXXabcd", "XXXXabcd"),
    ("https://x/?token=abc123def&y=1", "abc123def"),
    ("Set-Cookie: session=abcdef123456; Path=/", "abcdef123456"),
    ("client_secret=AbCd1234EfGh", "AbCd1234EfGh"),
    ("数据库密码：hunter2x。然后", "hunter2x"),
    ("パスワード: 'hunter2x'", "hunter2x"),
    ('headers = {"Authorization": "Bearer mytokenvalue"}', "mytokenvalue"),
]

ORDINARY = [
    "The sky is blue.",
    "sk-learn-compatible-estimators are fine",
    "max_tokens=4096",
    "n_tokens: 1234",
    "token = tokenizer.next()",
    "password: str",
    "password: required",
    "def login(password: str, token: str | None = None) -> None:",
    "login(password=password, token=auth_token)",
    "bearer of good news",
    "the password is in the drawer",
    "password=getpass()",
    'api_key=os.environ["OPENAI_API_KEY"]',
    "http://localhost:8888/lab",
    "https://example.com/a:b@c",
    "git@github.com:owner/repo.git",
    "token: integer",
    '{"password": {"type": "string"}}',
    '{"token": "string"}',
    "secret santa",
    "PATH=/usr/bin",
    "MAX_TOKENS=100000",
    "PASSWORD=$OTHER",
    "12:30:45 done",
    "df.key_name == 3",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "authorization = self.headers.get('authorization')",
    '"Authorization": authorization if authorization else None,',
    "authorization: Optional[str] = None",
    "def set_cookie(self, cookie: Cookie) -> None:",
    "add the correct Cookie: header to the request",
    "'Cookie': 'http.cookies',",
    "see postgres://user:pass@localhost:5432/db and https://user:<password>@host/",
    'tokenizer.add_special_tokens({"pad_token": "[PAD]", "mask_token": "[MASK]", "eos_token": "</s>"})',
    'token = "MISSING" if missing else "nan"',
    "total token: 1234567, per token: 0.00123456, TOKEN = 0x0080FF",
    "password = password1",
    "OpenToken = windll.advapi32.OpenProcessToken",
    "Token: '#ddd0c0',",
    'PASSWD = "%s:%s" % (user, password)',
    'labels = {"password": "Enter your password", "token": "Access token"}',
    '"password": "string?",',
    "密码：最少8位数字",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_secrets_are_masked(text: str, secret: str) -> None:
    masked = mask(text)
    assert secret not in masked
    assert MASK in masked
    assert mask(masked) == masked


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert mask(text) == text


def test_known_values_are_masked_wherever_they_stand_and_short_ones_are_not() -> None:
    assert mask("x correct-horse y correct-horse-battery", ["correct-horse", "correct-horse-battery", "x"]) == (
        f"x {MASK} y {MASK}"
    )


def test_case_136_configured_keys_are_masked_whatever_they_look_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_NB_API_KEY", "plain-looking-key-without-shape")
    monkeypatch.setenv("DB_PASSWORD", "postgres")
    monkeypatch.setenv("MY_MODE", "production-2026-01")
    monkeypatch.setenv("PWD", "/home/ada/project-2026/notebooks")
    monkeypatch.setenv("TOKEN_URI", "https://auth.example.com/token/v2")
    for ordinary in ("/home/ada/project-2026/notebooks/a.ipynb", "https://auth.example.com/token/v2"):
        assert mask(ordinary) == ordinary
    remember("value-of-an-oddly-named-variable")
    remember("short")
    text = (
        "a plain-looking-key-without-shape b postgres c production-2026-01 d value-of-an-oddly-named-variable e short"
    )
    assert mask(text) == f"a {MASK} b postgres c production-2026-01 d {MASK} e short"


def test_the_word_beside_the_secret_stays_readable() -> None:
    assert mask("postgres://me:s3cret@db/x") == f"postgres://me:{MASK}@db/x"
    assert mask("Authorization: Bearer sk-test-1234567890abcdef") == f"Authorization: Bearer {MASK}"


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "API_KEY",
        "OPENAI_API_KEY",
        "apiKey",
        "password",
        "DB_PASSWORD",
        "userPassword",
        "token",
        "auth_token",
        "authToken",
        "secret",
        "client_secret",
        "credentials",
        "aws_secret_access_key",
        "ssh_key",
        "private_key",
        "session_cookie",
        "openai_key",
    ],
)
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "keys",
        "n_tokens",
        "max_tokens",
        "tokens",
        "tokenizer",
        "token_count",
        "primary_key",
        "foreign_key",
        "sort_key",
        "df",
        "x",
        "secretary",
        "password_length",
        "monkey",
        "keyboard",
        "author",
        "authority",
        "_",
    ],
)
def test_ordinary_names(name: str) -> None:
    assert not is_secret_name(name)


def test_large_source_files_stay_as_they_are(
    size: Callable[[int, int], int], figure: Callable[[str, object], None]
) -> None:
    """The standard library without its tests: what is masked there is a cookie, a URL with a password, a literal."""
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(f for f in library.rglob("*.py") if not {"test", "tests", "site-packages"} & set(f.parts))
    changed: list[str] = []
    seconds = characters = 0.0
    for file in files[:: size(8, 1)]:
        text = file.read_text(encoding="utf-8", errors="replace")
        began = time.process_time()
        masked = mask(text)
        seconds += time.process_time() - began
        characters += len(text)
        before, after = text.split("\n"), masked.split("\n")
        changed += [f"{file.name}: {a}" for a, b in zip(before, after, strict=True) if a != b]
    figure("masked lines in the standard library", f"{len(changed)} of {int(characters):,} characters")
    figure("masking, million characters a second", f"{characters / seconds / 1e6:.1f}")
    assert not [line for line in changed if not line.startswith(("cookies.py", "request.py"))]


VALUES = st.lists(st.text(min_size=1, max_size=12), max_size=4)


@given(st.text(max_size=200), VALUES)
def test_masking_values_settles(text: str, values: list[str]) -> None:
    text = text + "".join(f" {value} " for value in values)
    assert mask(mask(text, values), values) == mask(text, values)


def test_values_of_variables_are_secrets_by_name_and_not_ordinary_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY_NAME", "x")
    variables = {
        "api_key": "abcdefghijkl",
        "password": "correcthorse",
        "token": "language",
        "auth_token": "language-7",
        "db_password": "short",
        "secret": 12345678,
        "credentials": "/home/ada/creds.json",
        "openai_key": "SOME_KEY_NAME",
        "text": "an ordinary sentence",
        "secret_password": "changeme",
    }
    assert secret_values(variables) == ["abcdefghijkl", "correcthorse", "language-7"]


@given(st.text(max_size=200))
def test_masking_never_fails_and_settles(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    ["a", "token=", "-----BEGIN PRIVATE KEY-----", "://", "sk-", "eyJaaaaaaaa.", "password: '", "authorization: ", "A_",
     "bearer ", "a.", "cookie: ", "x-token=a1", "AAAA=", "password=a", "export A=", "1:AA", "http://a:", "set-", " "],
)  # fmt: skip
def test_no_repetitive_text_takes_quadratic_time(piece: str) -> None:
    def cost(length: int) -> float:
        text = (piece * length)[:length]
        began = time.process_time()
        mask(text)
        return time.process_time() - began

    small, large = min(cost(4_000) for _ in range(3)), min(cost(32_000) for _ in range(2))
    # Eight times the text: linear work costs 8 times as much, quadratic work 64 times.
    assert large < 30 * small + 0.02
