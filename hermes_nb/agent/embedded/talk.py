"""Which messages of a conversation the demo model gets to read: pure functions of the messages' texts.

A model of this size confuses what was said before with what is asked now: with the whole conversation in its
prompt it chose a tool far less often. So it reads earlier exchanges only when the new message refers back, and then
few and short ones. Knows no prompt text, no engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_EXCHANGES: Final = 2
MAX_SAID: Final = 60
"""Characters kept of a user's message in the history."""
MAX_ANSWERED: Final = 100
MAX_HISTORY: Final = 180
"""Characters of all exchanges together: each token of it delays the first word of the answer."""

_BACK: Final = re.compile(
    r"\b(?:it|its|that|this|these|those|them|they|their|he|she|him|his|her|again|before|earlier|previous|last|above"
    r"|same|another|also|more|else|other|continue|instead|i|me|my|mine|we|our|was|were|did|said|told|result|answer"
    r"|shorter|longer|simpler|example)\b"
    r"|^\W*(?:and|but|or|so|then|why|how come|really|yes|no|ok|okay|sure|go on)\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w{4,}")
_I: Final = re.compile(r"\b(?:i|i'm|my|me|mine|we|our)\b", re.IGNORECASE)
_AGAIN: Final = re.compile(r"\b(?:again|once more|repeat)\b", re.IGNORECASE)
_COMMON: Final = frozenset(
    {"what", "which", "when", "where", "that", "this", "these", "those", "them", "they", "have", "does", "with"}
    | {"from", "your", "were", "about", "again", "more", "tell", "give", "write", "show", "explain"}
    | {"variable", "variables", "python"}
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user said and what was answered in words, or a tool's result when there were none."""

    said: str
    answered: str


def refers_back(text: str) -> bool:
    """Return whether ``text`` may need what was said before. Rather too often: the answer only begins later then."""
    return _BACK.search(text) is not None


def stated(exchanges: Sequence[Exchange], question: str) -> str | None:
    """Return what the user told about themselves that answers ``question``, or None.

    Before the question in the same message it was found again; as an exchange of its own, after a polite answer, it
    was not.
    """
    if not question.endswith("?") or not _I.search(question):
        return None
    asked = _content(question)
    told = [one.said for one in exchanges if _I.search(one.said) and not one.said.endswith("?")]
    found = [said for said in told if asked & _content(said)][-MAX_EXCHANGES:]
    return " ".join(_cut(said, MAX_SAID).rstrip(".!") + "." for said in found) or None


def asks_again(text: str) -> bool:
    """Return whether ``text`` asks to do something once more."""
    return _AGAIN.search(text) is not None


def history(exchanges: Sequence[Exchange], text: str) -> list[Exchange]:
    """Return the few exchanges to show with ``text``, oldest first and cut: those that share a word with it, or the
    last ones.
    """
    asked = _content(text)
    numbered = [(number, one) for number, one in enumerate(exchanges) if one.said and one.answered]
    related = [pair for pair in numbered if asked & _content(f"{pair[1].said} {pair[1].answered}")]
    chosen: list[tuple[int, Exchange]] = []
    left = MAX_HISTORY
    for number, one in reversed((related or numbered)[-MAX_EXCHANGES:]):
        short = Exchange(_cut(one.said, MAX_SAID), _cut(one.answered, MAX_ANSWERED))
        left -= len(short.said) + len(short.answered)
        if left >= 0 or not chosen:
            chosen.append((number, short))
    return [one for _, one in sorted(chosen, key=lambda pair: pair[0])]


def _content(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold())) - _COMMON


def _cut(text: str, limit: int) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= limit else one_line[:limit].rsplit(" ", 1)[0] + " …"
