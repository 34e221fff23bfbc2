"""The recall provider that ships: what this user and the agent said before about the same rare words.

Few rare words of the question are looked up in our own index; a passage counts when it holds enough of them.
Deterministic for the same store. Must not know sessions beyond what the facts of the turn say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import SessionNotFound
from hermes_nb.core.names import ParentKind, Role
from hermes_nb.core.types import Message, SearchHit
from hermes_nb.prompt.recall_provider import RecallFacts, Snippet
from hermes_nb.store.literal import fold
from hermes_nb.store.tokeniser import RUN

_READ: Final = 2_000
"""Characters of the question that are looked at; what follows is usually pasted material."""
_MIN_QUESTION: Final = 12
_MIN_DENSE: Final = 6
_CANDIDATES: Final = 10
_TERMS: Final = 4
_COMMON: Final = 150
"""A word in more rows says little, and reading so many rows costs time."""
_HITS: Final = 24
_ROLES: Final = (Role.USER.value, Role.ASSISTANT.value)
_SNIPPETS: Final = 4
_BEFORE, _WIDTH = 80, 300

_WORD = re.compile(r"[^\W_]+")
_HAS_LETTER = re.compile(r"[^\W\d_]")
_PLAIN_WORDS = """
about after again also another because been before being below between both cannot could does doing done each every
from give going have having hello here into just know like look make many more most much must need only other over
please same shall should show some something such take tell than thank thanks that their them then there these they
thing think this those through under until using very want were what when where which while will with without would
write your yours
什么 怎么 一个 可以 这个 那个 我们 你们 他们 是不 不是 没有 如何 为什 请帮 帮我 请问 一下 现在 还是 哪里 哪个
ます です した
"""
_PLAIN = frozenset(_PLAIN_WORDS.split())
"""What stands in every question; other languages' are left to their frequency."""


@dataclass(frozen=True, slots=True)
class HistoryRecall:
    """Implements RecallProvider over ``RecallFacts.store``."""

    name: str = "history"

    def recall(self, question: str, facts: RecallFacts, cancel: Cancel) -> Sequence[Snippet]:
        """Return up to four passages of other sessions of this user, best first."""
        words = _words(question)
        if not words:
            return ()
        counts = facts.store.frequencies(words)
        terms = sorted((word for word in words if 0 < counts[word] <= _COMMON), key=lambda word: counts[word])[:_TERMS]
        cancel.check()
        if not terms:
            return ()
        found = facts.store.search(
            " OR ".join(f'"{term}"' for term in terms), _HITS, user=facts.user, exclude_root=facts.root_id, roles=_ROLES
        )
        cancel.check()
        return _chosen(found.hits, terms, len(words), facts)


def _words(question: str) -> list[str]:
    """Return what may be telling in the question: its longest words, in a fixed order; none for a short question."""
    text = fold(question[:_READ])
    runs = RUN.findall(text)
    if len(text.strip()) < _MIN_QUESTION and sum(map(len, runs)) < _MIN_DENSE:
        return []
    words = [
        word
        for word in _WORD.findall(RUN.sub(" ", text))
        if len(word) >= 4 and word not in _PLAIN and (_HAS_LETTER.search(word) or len(word) >= 5)
    ]
    pairs = [pair for run in runs for at in range(len(run) - 1) if (pair := run[at : at + 2]) not in _PLAIN]
    words = sorted(dict.fromkeys(words), key=lambda word: (-len(word), word))[:_CANDIDATES]
    return words + list(dict.fromkeys(pairs))[:_CANDIDATES]


def _chosen(hits: Sequence[SearchHit], terms: Sequence[str], asked: int, facts: RecallFacts) -> list[Snippet]:
    messages = _texts(hits, facts)
    here = {row.text for row in facts.rows}
    above = _ancestors(facts)
    # One rare word in common is chance when the question has many.
    enough = 1 if asked <= 2 else 2
    kept: list[Snippet] = []
    for hit in hits:
        message = messages.get(hit.message_id)
        if message is None or message.text in here or message.timestamp < above.get(hit.root_id, 0.0):
            continue
        folded = fold(message.text)
        places = {term: at for term in terms if (at := folded.find(term)) >= 0}
        if len(places) < enough:
            continue
        here.add(message.text)
        kept.append(Snippet(_passage(message.text, places), message.timestamp, f"{hit.role} said"))
        if len(kept) == _SNIPPETS:
            break
    return kept


def _texts(hits: Sequence[SearchHit], facts: RecallFacts) -> dict[int, Message]:
    around = facts.store.neighbours([hit.message_id for hit in hits], 0, 0)
    return {id: row for id, rows in around.items() for row in rows if row.id == id}


def _ancestors(facts: RecallFacts) -> Mapping[str, float]:
    """Return when this lineage left each one that it branched from: what was said there before is here too."""
    left: dict[str, float] = {}
    try:
        session = facts.store.session(facts.root_id)
        while session.parent_id is not None and session.parent_kind is ParentKind.BRANCH and len(left) < 20:
            began, parent = session.started, facts.store.session(session.parent_id)
            left[parent.root_id] = began
            session = facts.store.session(parent.root_id)
    except SessionNotFound:
        # The first session of a lineage may be deleted.
        pass
    return left


def _passage(text: str, places: Mapping[str, int]) -> str:
    """Return the part of ``text`` around the first word; folding may have moved it a little, which is enough."""
    first = min(places.values())
    low = max(0, min(first - _BEFORE, len(text) - _WIDTH))
    part = text[low : low + _WIDTH]
    return ("… " if low else "") + part.strip() + (" …" if low + _WIDTH < len(text) else "")
