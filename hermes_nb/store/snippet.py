"""The piece of a message that shows why it was found. Pure text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hermes_nb.store.literal import fold, pattern
from hermes_nb.store.query import Term

WIDTH: Final = 200
_LEAD = 60


def snippet(body: str, tool: str, terms: Sequence[Term]) -> str:
    """Return about WIDTH characters around the first leaf that is found, on one line."""
    for text in (body, tool):
        # Folding may change the length; the place is then only near, which is enough to cut by.
        folded = fold(text)
        for term in terms:
            match = pattern(term).search(folded)
            if match:
                return _cut(text, match.start(), match.end())
    return _cut(body or tool, 0, 0)


def _cut(text: str, start: int, end: int) -> str:
    low = max(0, start - _LEAD)
    high = min(len(text), max(low + WIDTH, end))
    if low:
        blank = text.find(" ", low, start)
        low = blank + 1 if blank >= 0 else low
    if high < len(text):
        blank = text.rfind(" ", end, high)
        high = blank if blank > low else high
    inside = re.sub(r"\s+", " ", text[low:high]).strip()
    return ("… " if low else "") + inside + (" …" if high < len(text) else "")
