"""Masking text that arrives in pieces: the parts that are shown, joined, are the masked whole. Pure.

A piece of an answer may end inside a key, so the end is held back while more of it could become a secret: the last
word, what follows a word such as ``password:`` on its line, an open key block, the beginning of a known value.
Chosen instead of showing raw text and masking it at the end: a terminal, a saved notebook or a chat keeps what it
was shown, and nothing takes it back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_nb.core.secrets import FOREIGN_WORDS, KEY_BLOCK_LENGTH, MASK, SECRET_WORD, TOKEN_STARTS, mask_known

_LONGEST_WORD = 4096
_SHORTEST_BEGINNING = 4
"""A shorter beginning of a known value tells nothing and is often an ordinary word's."""
_WORD = re.compile(r"[!-~]*\Z")
_OPEN = re.compile(
    rf"(?:{SECRET_WORD}|authorization|cookie|bearer|^(?:export\s+)?[A-Z][A-Z0-9_]{{2,80}}(?==))"
    r"""["']?\s{0,4}[:=：]?\s{0,4}["']?(?:(?:bearer|basic|token|bot|digest)\s{1,4})?[^\n]{0,600}\Z"""
    r"|[A-Za-z][A-Za-z0-9+.-]{1,20}://\S{0,400}\Z|-----BEGIN[^\n-]{0,60}-{0,5}\Z|(?-i:^(?:export\s+)?[A-Z][A-Z0-9_]*\Z)|^export\s+\Z",
    re.IGNORECASE | re.MULTILINE,
)
_TAIL = 1_400
"""Characters in which ``_OPEN`` is looked for; more than it can match."""
_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END [^\n-]{0,60}-----")
_FRAGMENT = re.compile(rf"(?<![A-Za-z0-9_])(?:{TOKEN_STARTS})[A-Za-z0-9_.-]{{4,}}\Z")


# The beginnings of TOKEN_STARTS as far as they are letters, and of Discord's, which is M, N or O and mixed letters.
_KEY_LIKE = re.compile(
    r"(?:s|sk|r|rk|A|AK|AKI|AS|ASI|AI|AIz|g|gh|gh[pousr]|git|gith|githu|github|gl|glp|glpa|glpat|x|xo|xox|xox[abeoprs]|xa|xap"
    r"|xapp|xai|y|ya|h|hf|n|np|npm|nv|nva|nvap|nvapi|gs|gsk|p|pp|ppl|pplx|py|pyp|pypi|d|do|dop|sh|shp|shpa|shpat|S|SG|e|ey)\Z"
    r"|AKIA|ASIA|AIza|eyJ|[MNO](?:\Z|[a-z]*[A-Z])"
)


class MaskedStream:
    """Takes pieces, returns what may be shown. ``known`` is what ``known_values`` returned."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self._known = known
        self._raw = ""
        self._context = 0
        """How many characters at the beginning of ``_raw`` were returned already."""

    def feed(self, text: str) -> str:
        """Return what became certain."""
        self._raw += text
        certain = len(self._raw) - self._undecided()
        if certain <= self._context:
            return ""
        part = mask_known(self._raw[:certain], self._known)[self._context :]
        # What is shown of the last word stays as context, with the character before it: from them is seen what begins.
        self._context = min(certain, len(_word(self._raw[:certain])) + 1)
        self._raw = self._raw[certain - self._context :]
        return part

    def close(self, *, cut: bool = False) -> str:
        """Return the rest. ``cut``: the text broke off, so the beginning of a key at its end is masked too."""
        raw, context = self._raw, self._context
        self._raw, self._context = "", 0
        return (mask_cut(raw, self._known) if cut else mask_known(raw, self._known))[context:]

    def _undecided(self) -> int:
        raw = self._raw
        start = len(raw)
        start = min(start, len(raw) - max(_begun(raw, self._known), _begun(raw, FOREIGN_WORDS)))
        before = -1
        while start != before:
            before = start
            # Back to where nothing that follows can reach: not inside a word, not behind ``password:``.
            word = _word(raw[:start])
            ends_value = any(raw.find(v, max(0, start - len(word) - len(v) + 1), start) >= 0 for v in self._known)
            start -= 0 if _plain(word) and not ends_value else len(word)
            for value in self._known:
                at = raw.find(value, max(0, start - len(value) + 1), start + len(value) - 1)
                start = min(start, at) if at >= 0 else start
            opened = _OPEN.search(raw, max(0, start - _TAIL), start)
            start = opened.start() if opened is not None else start
            start = _before_open_block(raw, start)
        return len(raw) - start


def _before_open_block(raw: str, start: int) -> int:
    """Return where a private key begins that has no end before ``start``; held to the end of the answer if need be."""
    if "PRIVATE KEY" in raw:
        for block in _BLOCK.finditer(raw, 0, start):
            if start - block.start() < KEY_BLOCK_LENGTH and not _BLOCK_END.search(raw, block.end(), start):
                return block.start()
    return start


def mask_cut(text: str, known: Sequence[str] = ()) -> str:
    """Return masked text whose end may be missing: the beginning of a key at its end is masked too."""
    begun = _begun(text, known)
    if begun >= _SHORTEST_BEGINNING:
        return mask_known(text[: len(text) - begun], known) + MASK
    return _FRAGMENT.sub(MASK, mask_known(text, known))


def _word(text: str) -> str:
    found = _WORD.search(text, max(0, len(text) - _LONGEST_WORD))
    return found.group() if found else ""


def _plain(word: str) -> bool:
    """Whether a word that may go on is surely no beginning of a key, so that it may be shown as it comes."""
    if not word.isalpha() or len(word) >= 16:
        return False
    return not _KEY_LIKE.match(word)


def _begun(text: str, values: Sequence[str]) -> int:
    """Return the length of the longest end of ``text`` with which one of ``values`` begins, whole ones left out."""
    longest = 0
    for value in values:
        at = max(0, len(text) - len(value) + 1)
        while (at := text.find(value[0], at)) >= 0:
            if value.startswith(text[at:]):
                longest = max(longest, len(text) - at)
                break
            at += 1
    return longest
