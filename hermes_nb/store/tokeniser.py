"""Text to what the search index is fed. Pure functions; knows no table.

Scripts written without blanks become overlapping pairs in place, and the run's last character alone:
``修改widget服务端`` is stored as ``修改 改 widget 服务 务端 端``. SQLite's unicode61 does the rest (case, accents,
punctuation). A row is taken out of the index by the very tokens it was put in with, so any change here needs a
higher TOKENISER and a rebuild.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

TOKENISER = 1
"""Version of the rules below, kept in ``meta``."""

# Thai and Lao, Myanmar, Khmer, kana, bopomofo, Han, Hangul.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
RUN = re.compile(f"[{UNSPACED}]+")
# unicode61 takes characters that Unicode 6.1 did not know for letters: a newer emoji would glue two words together.
_SYMBOL = re.compile("[\u2190-\u2bff\u2e00-\u2e7f\ufe00-\ufe0f\U0001f000-\U0001faff\U000e0000-\U000e0fff]")
_FULL_WIDTH = re.compile("[\uff01-\uff5e]")
_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u0370-\u03ff\u1e00-\u1fff]")
_ACCENT = re.compile("(?<=[\u0041-\u024f\u0370-\u03ff])[\u0300-\u036f]+")


@dataclass(frozen=True, slots=True)
class Tokens:
    """One row as the index takes it."""

    body: str
    tool: str
    characters: str


def normalise(text: str) -> str:
    """Return ``text`` with full-width and other compatibility forms unified, without NUL."""
    text = text.replace("\0", " ")
    if text.isascii():
        return text
    # Chinese is full of full-width punctuation, for which normalize() costs 90 us a message, and this 5.
    text = _FULL_WIDTH.sub(lambda match: chr(ord(match.group()) - 0xFEE0), text).replace("\u3000", " ")
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def index_text(text: str) -> str:
    """Return ``text`` for unicode61, with unspaced runs as pairs."""
    text = normalise(text)
    return text if text.isascii() else RUN.sub(_pairs, without_symbols(without_accents(text)))


def without_accents(text: str) -> str:
    """Return normalised ``text`` with the accents of Latin and Greek letters taken off.

    unicode61 does so for Latin only; in other scripts a mark makes another letter.
    """
    if not _ACCENTED.search(text):
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))


def without_symbols(text: str) -> str:
    """Return ``text`` with a blank for every symbol that unicode61 would take for a letter."""
    return _SYMBOL.sub(" ", text)


def characters(text: str) -> str:
    """Return the distinct characters of unspaced scripts, for one-character queries."""
    if text.isascii():
        return ""
    return " ".join(sorted(set("".join(RUN.findall(normalise(text))))))


def tokens_of(body: str, tool: str) -> Tokens:
    """Return what the index holds for a row with this text and these tool names and arguments."""
    return Tokens(index_text(body), index_text(tool), characters(body + " " + tool))


def content_text(wire: Mapping[str, Any]) -> str:
    """Return what people read of a wire's content: the string, or the text parts, one a line."""
    content = wire.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for part in cast("list[object]", content):
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict):
            text = cast("dict[str, object]", part).get("text")
            if isinstance(text, str):
                parts.append(text)
    return "\n".join(parts)


def tool_text(wire: Mapping[str, Any], tool_name: str | None) -> str:
    """Return the names and arguments of a wire's calls, or the name of the tool whose result it is."""
    words: list[str] = [tool_name] if tool_name else []
    calls = wire.get("tool_calls")
    for call in cast("list[object]", calls) if isinstance(calls, list) else []:
        function = cast("dict[str, object]", call).get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            named = cast("dict[str, object]", function)
            words += [str(named.get("name") or ""), str(named.get("arguments") or "")]
    return " ".join(word for word in words if word)


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    return " " + " ".join([run[i : i + 2] for i in range(len(run) - 1)] + [run[-1]]) + " "
