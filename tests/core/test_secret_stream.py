"""Masking in pieces: the parts joined are the masked whole, and no part shows more than that."""

from __future__ import annotations

import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core.secret_stream import MaskedStream, mask_cut
from hermes_nb.core.secrets import MASK, known_values, mask

KNOWN = ("correct horse battery staple", "plain-known-value")
PIECES = [
    "Here is the key: sk-test-1234567890abcdef.",
    "use `sk-proj-abcDEF123456_ghiJKL789`\n",
    "Authorization: Bearer sk-test-1234567890abcdef\n",
    'headers = {"Authorization": "Bearer abcdefghijklmnop"}\n',
    "password:\n  'hunter2 x'\n",
    "password = 'hunter2 and more'\n",
    "export DB_PASSWORD=correcthorse\n",
    'OPENAI_API_KEY="abcd efgh1"\n',
    "postgres://user:s3cret@db.example.com/x ",
    "数据库密码：hunter2x。然后",
    "パスワード: 'hunter2x' です",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----\nafter",
    "a line with -----BEGIN RSA PRIVATE KEY----- in prose",
    "Set-Cookie: session=abcdef123456; Path=/\n",
    "correct horse battery staple",
    "xplain-known-valuey",
    "correct horse, wrong battery",
    "The sky is blue. ",
    "今天天气很好，我们去公园散步。",
    "the token of appreciation\n",
    "total token: 1234567 ",
    "https://example.com/a:b@c ",
    "\n\n",
    "MAX_TOKENS=100000 tokens\n",
    "bearer\n abcdefgh12345",
    "🔑 ключ и пароль: abc12345 ",
    "user at http",
    "s://ann:s3cret@host/ and more",
    "th",
    "isecret: abc123 ",
    "MTIzNDU2Nzg5MDEyMzQ1Njc4.abcdef.abcdefghijklmnopqrstuvwxyz01234 ",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
]


def stream(text: str, cuts: list[int]) -> list[str]:
    masked = MaskedStream(known_values(KNOWN))
    parts, at = [], 0
    for cut in [*sorted({c % (len(text) + 1) for c in cuts}), len(text)]:
        parts.append(masked.feed(text[at:cut]))
        at = max(at, cut)
    return [*parts, masked.close()]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), st.lists(st.integers(0, 600), max_size=40))
def test_the_parts_joined_are_the_masked_whole(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    assert "".join(stream(text, cuts)) == mask(text, KNOWN)


@pytest.mark.parametrize("piece", PIECES)
def test_character_by_character_gives_the_same(piece: str) -> None:
    text = f"before {piece} and after\nend"
    assert "".join(stream(text, list(range(len(text))))) == mask(text, KNOWN)


def test_ordinary_text_is_shown_word_by_word_in_every_script() -> None:
    masked = MaskedStream()
    assert masked.feed("The sky is bl") == "The sky is bl"
    assert masked.feed("ue and x=1") == "ue and "
    assert masked.feed(" 2") == "x=1 "
    masked = MaskedStream()
    assert masked.feed("今天天气") == "今天天气"
    assert masked.feed("很好") == "很好"


def test_the_beginning_of_a_key_is_never_shown_when_the_text_breaks_off() -> None:
    for text in ("the key is sk-proj-abcDE", "it is plain-known-v", "-----BEGIN RSA PRIVATE KEY-----\nMIIEowabc"):
        masked = MaskedStream(known_values(KNOWN))
        shown = masked.feed(text) + masked.close(cut=True)
        assert shown == mask_cut(text, known_values(KNOWN))
        assert shown.endswith(MASK)
    assert mask_cut("an ordinary end, pla", KNOWN) == "an ordinary end, pla"


def test_a_long_answer_takes_linear_time() -> None:
    random = Random(3)
    words = ["alpha", "beta", "token", "the", "数据", "sk-learn", "\n", "password", "x=1"]

    def cost(count: int) -> float:
        masked = MaskedStream(known_values(KNOWN))
        pieces = [f"{random.choice(words)} " for _ in range(count)]
        began = time.process_time()
        for piece in pieces:
            masked.feed(piece)
        masked.close()
        return time.process_time() - began

    small, large = min(cost(500) for _ in range(3)), cost(4_000)
    assert large < 30 * small + 0.05
