"""The query language: free text in, a tree of leaves out. Never raises. Knows no index.

    expression   conjunction OR conjunction …
    conjunction  leaf [AND] leaf NOT leaf …          words side by side are joined by AND
    leaf         word   prefix*   "exact phrase"   ( expression )

An operator without operands is a plain word. What has no letter or digit cannot be searched and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from hermes_nb.store.tokeniser import RUN, normalise

MAX_LENGTH: Final = 2048
MAX_TERMS: Final = 32
MAX_LEXEMES: Final = 96
"""Words, operators and parentheses that are read; FTS5's parser holds no deeper nesting than these can make."""
MAX_DEPTH: Final = 8
MIN_PREFIX: Final = 3
"""Shorter beginnings would merge a large part of the index (184 ms for two letters at a million rows)."""

_QUOTES = re.compile("[\u201c\u201d\u201e\u201f\u300c-\u300f\u00ab\u00bb]")
_LEXEMES = re.compile(r'"([^"]*)"(\*?)|([()])|([^\s()"]+)')
_ALNUM = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Term:
    """One leaf: a word, a phrase or a run of an unspaced script. ``prefix``: its last word may go on."""

    text: str
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """Two trees under an operator; NOT means the left without the right."""

    kind: Literal["AND", "OR", "NOT"]
    left: Node
    right: Node


Node = Term | Operation


@dataclass(frozen=True, slots=True)
class Query:
    """What can be searched (None: nothing) and what the user should know about the rest."""

    tree: Node | None
    notices: tuple[str, ...]


def parse(text: str) -> Query:
    """Read a query, whatever it is."""
    notices: list[str] = []
    if len(text) > MAX_LENGTH:
        notices.append(f"Only the first {MAX_LENGTH} characters of the query were used.")
    lexemes = _lex(_QUOTES.sub('"', normalise(text[:MAX_LENGTH])), notices)
    tree = _Parser(lexemes).expression(0)
    if tree is None:
        notices.append("There is nothing to search for: name at least one word, letter or digit.")
    return Query(tree, tuple(notices))


def leaves(tree: Node, negated: bool = False) -> Iterator[tuple[Term, bool]]:
    """Yield every leaf with whether it is under a NOT."""
    if isinstance(tree, Term):
        yield tree, negated
        return
    yield from leaves(tree.left, negated)
    yield from leaves(tree.right, negated or tree.kind == "NOT")


def _lex(text: str, notices: list[str]) -> list[Term | str]:
    """Return terms, and operators and parentheses as strings."""
    lexemes: list[Term | str] = []
    terms = 0
    for match in _LEXEMES.finditer(text):
        if len(lexemes) == MAX_LEXEMES:
            notices.append("Only the beginning of the query was used; it has too many operators.")
            break
        phrase, star, parenthesis, word = match.groups()
        if parenthesis:
            lexemes.append(parenthesis)
        elif word in ("AND", "OR", "NOT"):
            lexemes.append(word)
        else:
            text, starred = (phrase, bool(star)) if word is None else (word.rstrip("*"), word.endswith("*"))
            leaf = _term(text, starred, notices)
            if leaf is None:
                continue
            terms += 1
            if terms > MAX_TERMS:
                notices.append(f"Only the first {MAX_TERMS} words of the query were used.")
                break
            lexemes.append(leaf)
    return lexemes


def _term(text: str, prefix: bool, notices: list[str]) -> Term | None:
    text = " ".join(text.split())
    if not _ALNUM.search(text):
        return None
    if prefix and not RUN.search(text[-1]):
        last = re.split(r"[\W_]+", text)[-1]
        if len(last) < MIN_PREFIX:
            notices.append(f"{text}* was searched as a whole word: a beginning needs at least {MIN_PREFIX} letters.")
            prefix = False
    return Term(text, prefix)


class _Parser:
    """Recursive descent over the lexemes; parentheses deeper than MAX_DEPTH are ignored."""

    def __init__(self, lexemes: list[Term | str]) -> None:
        self._lexemes, self._position = lexemes, 0

    def _peek(self) -> Term | str | None:
        return self._lexemes[self._position] if self._position < len(self._lexemes) else None

    def expression(self, depth: int) -> Node | None:
        left = self._conjunction(depth)
        while self._peek() == "OR":
            self._position += 1
            right = self._conjunction(depth) or Term("or")
            left = Operation("OR", left or Term("or"), right) if left != right else left
        return left

    def _conjunction(self, depth: int) -> Node | None:
        left: Node | None = None
        while True:
            lexeme = self._peek()
            if lexeme is None or lexeme == "OR" or (lexeme == ")" and depth):
                return left
            kind: Literal["AND", "NOT"] = "AND"
            if lexeme in (")", "AND", "NOT"):
                self._position += 1
                if lexeme == ")":
                    continue
                if lexeme == "AND":
                    if left is not None and self._peek() not in (None, "OR", "AND", ")"):
                        continue
                    right: Node | None = Term("and")
                else:
                    right = self._leaf(depth)
                    if right is None or left is None:
                        right = Operation("AND", Term("not"), right) if right else Term("not")
                    else:
                        kind = "NOT"
            else:
                right = self._leaf(depth)
            if right is not None:
                left = right if left is None else Operation(kind, left, right)

    def _leaf(self, depth: int) -> Node | None:
        lexeme = self._peek()
        if isinstance(lexeme, Term):
            self._position += 1
            return lexeme
        if lexeme != "(":
            return None
        self._position += 1
        if depth >= MAX_DEPTH:
            return None
        inside = self.expression(depth + 1)
        if self._peek() == ")":
            self._position += 1
        return inside
