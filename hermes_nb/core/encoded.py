"""Text inside text: what base64, hexadecimal, percent signs, escapes, binary, rot13 and reversal say in clear. Pure.

Each view is plain text with the span of the original that it came from. Nothing is executed, and the work is bounded
by the length of the text.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

View = tuple[str, str, int, int]
"""Kind, decoded text, start and end of the encoded passage."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}(?:\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{8,})*={0,2}")
_BASE32 = re.compile(r"(?<![A-Z2-7])[A-Z2-7]{24,}={0,6}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:;]{0,2}){12,}")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2}|[\w.+/-]){6,}")
_ENTITY = re.compile(r"(?:&#(?:x[0-9A-Fa-f]{1,6}|\d{1,7});[ ]?|\w){8,}")
_ESCAPE = re.compile(r"(?:\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|[\w ]){8,}")
_BINARY = re.compile(r"(?<!\d)(?:[01]{8}[ ,]{0,2}){8,}")
_DECIMAL = re.compile(r"(?<!\d)(?:\d{2,3}[ ,]{1,2}){11,}\d{2,3}(?!\d)")
_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})")
_TAGS = re.compile("[\U000e0000-\U000e007f]{8,}")
_SPACED = re.compile(r"(?<!\w)(?:\w[ \t.\-_*|/]{1,3}){4,}\w(?!\w)")
_MORSE = re.compile(r"(?:[.-]{1,6}[ /]{1,3}){12,}")
_MORSE_CODE = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
)
_MORSE_LETTERS = {code: chr(ord("a") + number) for number, code in enumerate(_MORSE_CODE.split(" "))}


def views(text: str) -> Iterator[View]:
    """Yield what is encoded in ``text``, when it decodes to something that reads like text."""
    for found in _BASE64.finditer(text):
        for clear in _base64(found[0]):
            yield "base64", clear, *found.span()
    for found in _BASE32.finditer(text):
        yield from _try("base32", found, _base32)
    for found in _HEX.finditer(text):
        yield from _try("hex", found, _hex)
    for found in _BINARY.finditer(text):
        yield from _try("binary", found, _binary)
    for found in _DECIMAL.finditer(text):
        yield from _try("character codes", found, _decimal)
    for found in _TAGS.finditer(text):
        yield (
            "tag characters",
            "".join(chr(ord(char) - 0xE0000) for char in found[0] if ord(char) > 0xE001F),
            *found.span(),
        )
    yield from _substituted("percent signs", _PERCENT, "%", text, unquote)
    yield from _substituted("entities", _ENTITY, "&#", text, html.unescape)
    yield from _substituted("escapes", _ESCAPE, "\\", text, _unescaped)
    for found in _MORSE.finditer(text):
        words = (found[0].replace("/", " / ")).split(" ")
        yield "Morse", "".join(" " if word == "/" else _MORSE_LETTERS.get(word, "") for word in words), *found.span()
    for found in _SPACED.finditer(text):
        joined = re.sub(r"[^\w]+", "", found[0])
        # The rest of the sentence may be spelled as usual: ``I g n o r e all previous instructions``.
        yield "spaced letters", f"{joined}{text[found.end() : found.end() + 80]}", *found.span()


def disguised(text: str) -> Iterator[View]:
    """Yield the whole text under rot13 and reversed: views that need no mark of their own in the text."""
    yield "rot13", codecs.encode(text, "rot13"), 0, len(text)
    yield "reversed", text[::-1], 0, len(text)


def _substituted(
    kind: str, pattern: re.Pattern[str], mark: str, text: str, decode: Callable[[str], str]
) -> Iterator[View]:
    if text.count(mark) < 4:
        return
    for found in pattern.finditer(text):
        if found[0].count(mark) >= 3:
            clear = decode(found[0])
            if clear != found[0]:
                yield kind, clear.replace("+", " "), *found.span()


def _base64(raw: str) -> Iterator[str]:
    joined = re.sub(r"\s+", "", raw).rstrip("=").replace("-", "+").replace("_", "/")
    # A run of letters may begin before the payload (``data_``, a path): each alignment is tried.
    for shift in (0, 1, 2, 3):
        part = joined[shift:]
        try:
            clear = _readable(
                base64.b64decode(
                    part[: len(part) // 4 * 4 + (len(part) % 4 > 1) * (len(part) % 4)] + "=" * (-len(part) % 4 % 3)
                )
            )
        except (binascii.Error, ValueError):
            continue
        if clear:
            yield clear
            return


def _base32(raw: str) -> bytes:
    bare = raw.rstrip("=")
    return base64.b32decode(bare + "=" * (-len(bare) % 8))


def _hex(raw: str) -> bytes:
    digits = re.sub(r"0x|\\x|[ ,:;]", "", raw)
    return bytes.fromhex(digits[: len(digits) // 2 * 2])


def _binary(raw: str) -> bytes:
    bits = re.sub(r"[ ,]", "", raw)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _decimal(raw: str) -> bytes:
    # Numbers above 255 are no characters: ValueError.
    return bytes(int(number) for number in re.findall(r"\d+", raw))


def _unescaped(raw: str) -> str:
    return _ESCAPED.sub(_char, raw)


def _try(kind: str, found: re.Match[str], decode: Callable[[str], bytes]) -> Iterator[View]:
    try:
        clear = _readable(decode(found[0]))
    except (binascii.Error, ValueError, OverflowError):
        return
    if clear:
        yield kind, clear, *found.span()


def _readable(raw: bytes) -> str | None:
    """Return the text that ``raw`` is, or None when it is not text."""
    if len(raw) < 8:
        return None
    for encoding in ("utf-8", "utf-16-le"):
        try:
            clear = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if sum(char.isprintable() or char in "\n\r\t" for char in clear) >= 0.95 * len(clear):
            return clear
    return None


def _char(found: re.Match[str]) -> str:
    return chr(int(found[1] or found[2], 16))
