"""BM25 over the newest matches, where SQLite's own would walk every match of every leaf. Knows no query text."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final

SAMPLE: Final = 200
_K1, _B = 1.2, 0.75
_USUAL_LENGTH = 435.0
"""Characters of an ordinary row; the index keeps no average that could be read cheaply."""
_CACHED = 2000


class Frequencies:
    """How many rows hold a leaf: exact up to SAMPLE, beyond that judged by the density of the newest ones."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, connection: sqlite3.Connection, phrase: str, total: int) -> int:
        """Return the frequency of a phrase; remembered until the store has grown by a tenth."""
        count, then = self._known.get(phrase, (0, 0))
        if then and total <= then * 1.1:
            return count
        found, lowest = connection.execute(
            "SELECT count(*), min(rowid) FROM (SELECT rowid FROM w WHERE w MATCH ? ORDER BY rowid DESC LIMIT ?)",
            ("{body tool} : " + phrase, SAMPLE),
        ).fetchone()
        count = found if found < SAMPLE else max(SAMPLE, int(SAMPLE * total / max(1, total - lowest)))
        if len(self._known) >= _CACHED:
            self._known.clear()
        self._known[phrase] = (count, max(1, total))
        return count


def weight(frequency: int, total: int) -> float:
    """Return how telling a leaf is that so many of all rows hold."""
    return max(1e-6, math.log((total - frequency + 0.5) / (frequency + 0.5))) if total > frequency else 1e-6


def scores(texts: Mapping[int, str], terms: Sequence[tuple[str, float]]) -> dict[int, float]:
    """Return the BM25 score of each folded text for (folded leaf, weight) pairs."""
    result: dict[int, float] = {}
    for message_id, text in texts.items():
        length, score = 1 - _B + _B * len(text) / _USUAL_LENGTH, 0.0
        for term, value in terms:
            count = text.count(term)
            if count:
                score += value * count * (_K1 + 1) / (count + _K1 * length)
        result[message_id] = score
    return result
