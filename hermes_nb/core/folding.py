"""Text as a reader's eye takes it: compatibility forms, look-alike letters and invisible signs folded away. Pure.

``fold`` keeps for each folded character where it stood, so that a finding can point into the text that is there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_LOOK_ALIKES = {
    # Cyrillic
    **dict(zip("абвгдезікмнорстухѕіјԛԝһԁӏьүґпи", "a6brge3ikmhopctyxsijqwhdlbyrnu", strict=True)),
    # Greek
    **dict(zip("αβγδεζηικλμνορσςτυχωϲϳ", "abydezniklmvopostuxwcj", strict=True)),
    # In a word with Latin letters these stand for what they look like, not for what they sound like.
    **dict(zip("внрсухкмтг", "bhpcyxkmtr", strict=True)),
    # Armenian, Cherokee and others that turn up in generators of such text
    **dict(zip("աոսցօհյզքԁɡɑɩıȷ", "wnugohjqpdgaiij", strict=True)),
}
_SMALL_CAPITALS = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))
_WORD = re.compile(r"[^\W_]+")
_LEET = str.maketrans("013457@$!|", "oieastasii")
_LEET_WORD = re.compile(r"[a-z0-9@$!|]{3,}")

INVISIBLE = frozenset(
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c"
    "\u202d\u202e\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\u206a\u206b\u206c\u206d\u206e\u206f\u3164"
    "\ufeff\uffa0"
)


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text; ``places[i]`` is where its i-th character stood, with one more entry for the end."""

    text: str
    places: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original of a span in the folded text."""
        if start >= end:
            return self.places[start], self.places[start]
        return self.places[start], self.places[end - 1] + 1


def fold(text: str) -> Folded:
    """Return ``text`` in lower case, with compatibility forms, accents, look-alikes and invisible signs folded."""
    if text.isascii():
        return Folded(text.lower(), range(len(text) + 1))
    pieces: list[str] = []
    places: list[int] = []
    latin = False
    for place, char in enumerate(text):
        if char < "\x80":
            pieces.append(char.lower())
            places.append(place)
            latin = char.isalpha()
            continue
        if latin and unicodedata.combining(char):
            continue
        piece = _folded(char)
        latin = bool(piece) and piece[-1].isascii() and piece[-1].isalpha()
        if piece:
            pieces.append(piece)
            places += [place] * len(piece)
    places.append(len(text))
    folded = "".join(pieces)
    return Folded(_WORD.sub(_unmixed, folded), places)


def unleet(folded: str) -> str | None:
    """Return folded text with digits read as letters where a word mixes both; None when no word does."""
    changed = _LEET_WORD.sub(_read_as_letters, folded)
    return None if changed == folded else changed


@lru_cache(maxsize=8192)
def _folded(char: str) -> str:
    if char in INVISIBLE or 0xFE00 <= ord(char) <= 0xFE0F or 0xE0000 <= ord(char) <= 0xE01EF:
        return ""
    if 0x1F1E6 <= ord(char) <= 0x1F1FF:
        return chr(ord(char) - 0x1F1E6 + ord("a"))
    if 0x1F150 <= ord(char) <= 0x1F189:
        return chr(ord("a") + (ord(char) - 0x1F150) % 32)
    plain = unicodedata.normalize("NFKC", char).casefold()
    plain = _SMALL_CAPITALS.get(plain, plain)
    parts = unicodedata.normalize("NFD", plain)
    if parts[:1].isascii():
        return "".join(part for part in parts if not unicodedata.combining(part)) or plain
    return "е" if plain == "ё" else plain


def _unmixed(found: re.Match[str]) -> str:
    word = found[0]
    if word.isascii() or not any("a" <= char <= "z" for char in word):
        return word
    return "".join(_LOOK_ALIKES.get(char, char) for char in word)


def _read_as_letters(found: re.Match[str]) -> str:
    word = found[0]
    letters = sum("a" <= char <= "z" for char in word)
    if letters == len(word) or letters < 2:
        return word
    return word.translate(_LEET)
