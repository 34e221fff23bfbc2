"""Masking: what must go, what must stay, and that no text takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core.secrets import MASK, is_secret_name, mask, remember

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
