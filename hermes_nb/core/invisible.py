"""Characters that a person does not see and a model reads: which uses are ordinary and which are not. Pure.

Ordinary: the joiners of emoji and of scripts that need them, variation selectors, marks and isolates around
right-to-left text, a byte order mark in front. Not ordinary: a joiner between plain letters, long runs, tag
characters that spell text, direction changes where nothing runs right to left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff\u180e\u3164\uffa0\u115f\u1160\u034f"
_RUN = re.compile(f"[{_ZERO_WIDTH}\u00ad\u200e\u200f\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4,}}")
_ONE = re.compile(f"[{_ZERO_WIDTH}]")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_SELECTORS = re.compile("[\U000e0100-\U000e01ef]+")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_FLAG = "\U0001f3f4"
_FLAG_END = "\U000e007f"
# Scripts in which a joiner or a break without width is ordinary spelling: Arabic, Syriac, Indic to Tibetan, Thai,
# Lao, Myanmar, Khmer, Mongolian.
_SPELLED_WITH_JOINERS = ((0x0590, 0x109F), (0x1780, 0x18AF), (0x1A20, 0x1AAF), (0xA8E0, 0xA8FF), (0xFB1D, 0xFDFF))

Hidden = tuple[str, int, int]
"""Rule, start and end."""


def hidden(text: str) -> Iterator[Hidden]:
    """Yield every use of invisible characters in ``text`` that is not ordinary."""
    if text.isascii():
        return
    for found in _TAGS.finditer(text):
        if not _is_flag(text, found):
            yield "unicode_tags", *found.span()
    for found in _SELECTORS.finditer(text):
        before = text[found.start() - 1 : found.start()]
        if found.end() - found.start() > 1 or not (before and unicodedata.category(before) == "Lo"):
            yield "invisible_characters", *found.span()
    covered = -1
    for found in _RUN.finditer(text):
        covered = found.end()
        yield "invisible_characters", *found.span()
    for found in _ONE.finditer(text):
        if found.start() >= covered and not _ordinary(text, found.start()):
            yield "invisible_characters", *found.span()
    yield from _directions(text)


def _is_flag(text: str, found: re.Match[str]) -> bool:
    # A flag such as that of Scotland: a black flag, at most seven tag characters, the end tag.
    return (
        text[found.start() - 1 : found.start()] == _FLAG
        and found[0].endswith(_FLAG_END)
        and found.end() - found.start() <= 7
    )


def _ordinary(text: str, at: int) -> bool:
    char = text[at]
    before, after = _seen(text, at, -1), _seen(text, at, 1)
    if char == "\ufeff" and at == 0:
        return True
    if not (before.isalnum() and after.isalnum()):
        return True
    if char == "\u200b" and not (_alphabetic(before) and _alphabetic(after)):
        # Chinese and Japanese text from the web has break marks between signs; they hide nothing.
        return True
    if _is_emoji(before) or _is_emoji(after):
        return True
    return _joins(before) or _joins(after)


def _seen(text: str, at: int, step: int) -> str:
    at += step
    while 0 <= at < len(text) and (text[at] in _ZERO_WIDTH or 0xFE00 <= ord(text[at]) <= 0xFE0F):
        at += step
    return text[at] if 0 <= at < len(text) else " "


def _alphabetic(char: str) -> bool:
    return char.isalnum() and ord(char) < 0x2E80


def _joins(char: str) -> bool:
    code = ord(char)
    return any(first <= code <= last for first, last in _SPELLED_WITH_JOINERS)


def _is_emoji(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sk") or ord(char) >= 0x1F000


def _directions(text: str) -> Iterator[Hidden]:
    if not _BIDI.search(text):
        return
    start = 0
    for line in text.splitlines(keepends=True):
        runs_right_to_left = bool(_RIGHT_TO_LEFT.search(line))
        for found in _BIDI.finditer(line):
            # An override shows letters in another order than they are read; no ordinary text needs it.
            if found[0] in "\u202d\u202e" or not (runs_right_to_left or _empty_pair(line)):
                yield "bidi_control", start + found.start(), start + found.end()
        start += len(line)


def _empty_pair(line: str) -> bool:
    # First-strong isolates around a name are what localisation libraries (Fluent, ICU) put there.
    return set(_BIDI.findall(line)) == {"\u2068", "\u2069"}
