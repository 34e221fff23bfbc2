"""What a query means on one row's text: the definition that the index must agree with. Knows no SQL.

A run of an unspaced script is found as part of a run; other words as whole words, case and accents folded; the
words of a phrase in order with only punctuation between them; a leaf with punctuation literally, between word
boundaries.
"""

from __future__ import annotations

import re
from functools import lru_cache

from hermes_nb.store.query import Node, Term
from hermes_nb.store.tokeniser import RUN, UNSPACED, normalise, without_accents

_WORDS = re.compile(r"[^\W_]+(?: [^\W_]+)*")
# A word character of a script with blanks: the run of another script beside it is a boundary.
_SPACED = rf"[^\W_{UNSPACED}]"
_SPACED_CHARACTER = re.compile(_SPACED)
COLUMN_END = " \ue000 "
"""Stands between a row's text and its tool text; no phrase reaches across it."""
_BETWEEN_WORDS = r"(?:[^\w\ue000]|_)+"


def fold(text: str) -> str:
    """Return ``text`` as the index compares it: compatibility forms, case and accents unified."""
    text = normalise(text).lower()
    return text if text.isascii() else without_accents(text).replace("\u03c2", "\u03c3")


def holds(tree: Node, folded: str) -> bool:
    """Whether the query is true of a folded text."""
    if isinstance(tree, Term):
        return pattern(tree).search(folded) is not None
    if tree.kind == "AND":
        return holds(tree.left, folded) and holds(tree.right, folded)
    if tree.kind == "OR":
        return holds(tree.left, folded) or holds(tree.right, folded)
    return holds(tree.left, folded) and not holds(tree.right, folded)


def is_wide(term: Term) -> bool:
    """Whether the index finds more for this leaf than it means, so that rows must be looked at."""
    return not _WORDS.fullmatch(term.text) or bool(RUN.search(term.text) and not RUN.fullmatch(term.text))


def is_one_character(tree: Node) -> bool:
    """Whether this is one character of an unspaced script."""
    return isinstance(tree, Term) and len(tree.text) == 1 and bool(RUN.match(tree.text))


@lru_cache(maxsize=512)
def pattern(term: Term) -> re.Pattern[str]:
    """Return the expression that finds this leaf in folded text."""
    text = fold(term.text)
    between = _BETWEEN_WORDS if _WORDS.fullmatch(text) else r"\s+"
    body = between.join(re.escape(word) for word in text.split()) or re.escape(text)
    before = f"(?<!{_SPACED})" if _SPACED_CHARACTER.match(text[:1]) else ""
    after = f"(?!{_SPACED})" if _SPACED_CHARACTER.match(text[-1:]) and not term.prefix else ""
    return re.compile(before + body + after)
