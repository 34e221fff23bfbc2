"""Finding messages: which way a query takes through the two tables. Owns the routing, knows no FTS5 syntax.

one character of an unspaced script ──▶ table c
leaf with punctuation or mixed scripts ──▶ table w, then each row's text, newest first, bounded
everything else ──▶ table w alone
                      newest / oldest: stream and stop
                      rank: SQLite's bm25 where few rows hold the leaves, else own BM25 over the newest WINDOW
"""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hermes_nb.core.errors import StoreError
from hermes_nb.core.types import SearchHit, SearchResult
from hermes_nb.store.database import Database
from hermes_nb.store.literal import COLUMN_END, fold, holds, is_one_character, is_wide
from hermes_nb.store.matching import expression, loosen, phrase
from hermes_nb.store.people import People
from hermes_nb.store.query import Node, Term, leaves, parse
from hermes_nb.store.ranking import Frequencies, scores, weight
from hermes_nb.store.sessions import ROOT_ID
from hermes_nb.store.snippet import snippet
from hermes_nb.store.tokeniser import RUN, content_text, tool_text

WINDOW: Final = 200
"""Newest matches among which rows are ranked."""
_CHECKED_WINDOW: Final = 150
_EXACT: Final = 1500
"""Rows that may hold the leaves for SQLite's bm25 to be quick; it walks all of them, three times for a phrase."""
_LOOKED_AT: Final = 5000
"""Rows whose text is read for one query before the rest is given up with a notice."""
SORTS: Final = ("rank", "newest", "oldest")


@dataclass(slots=True)
class _Scope:
    """What narrows a search, in the two forms it is used in: words for the scope column, conditions on the rows."""

    words: list[str] = field(default_factory=list[str])
    same_on_rows: list[str] = field(default_factory=list[str])
    """What the words say, for the table that has no scope column."""
    same_values: list[Any] = field(default_factory=list[Any])
    conditions: list[str] = field(default_factory=list[str])
    values: list[Any] = field(default_factory=list[Any])
    impossible: bool = False

    def narrow(self, prefix: str, column: str, values: Sequence[Any]) -> None:
        """Allow only rows whose ``column`` has one of the values; the index knows them with the prefix."""
        self.words.append("(" + " OR ".join(f"{prefix}{value}" for value in values) + ")")
        self.same_on_rows.append(f"{column} IN ({', '.join('?' * len(values))})")
        self.same_values += values
        self.impossible |= not values

    def require(self, condition: str, *values: Any) -> None:
        """Allow only rows for which the condition holds."""
        self.conditions.append(condition)
        self.values += values

    def match(self, tree: Node) -> str:
        """Return the whole text for MATCH."""
        text = f"{{body tool}} : ({expression(tree)})"
        return f"{text} AND scope : ({' AND '.join(self.words)})" if self.words else text


@dataclass(slots=True)
class _Found:
    """Message ids in the wanted order, their scores, and what is to be said."""

    ids: list[int]
    scores: dict[int, float] = field(default_factory=dict[int, float])
    notices: list[str] = field(default_factory=list[str])


class Search:
    """Search over visible rows."""

    def __init__(self, database: Database, people: People, user: str) -> None:
        self._database, self._people, self._user = database, people, user
        self._frequencies = Frequencies()

    def search(
        self,
        query: str,
        limit: int,
        sort: str,
        sources: Sequence[str] | None,
        user: str | None,
        *,
        session: str | None,
        exclude_root: str | None,
        roles: Sequence[str] | None,
    ) -> SearchResult:
        """See Store.search."""
        if sort not in SORTS:
            raise StoreError(f"No sort order {sort!r}. Use one of: {', '.join(SORTS)}.")
        parsed = parse(query)
        notices = list(parsed.notices)
        if parsed.tree is None or limit < 1:
            return SearchResult((), " ".join(notices) or None)
        with self._database.read() as connection:
            scope = self._scope(connection, user, sources, session, exclude_root, roles)
            if scope.impossible:
                return SearchResult((), " ".join(notices) or None)
            found = self._find(connection, parsed.tree, scope, limit, sort)
            hits = _hits(connection, found, [term for term, negated in leaves(parsed.tree) if not negated])
        return SearchResult(hits, " ".join([*notices, *found.notices]) or None)

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """See Store.frequencies."""
        with self._database.read() as connection:
            total = _total(connection)
            return {word: self._frequencies.of(connection, phrase(Term(word)), total) for word in words}

    def _scope(
        self,
        connection: sqlite3.Connection,
        user: str | None,
        sources: Sequence[str] | None,
        session: str | None,
        exclude_root: str | None,
        roles: Sequence[str] | None,
    ) -> _Scope:
        scope = _Scope()
        users = dict(connection.execute("SELECT name, id FROM users").fetchall())
        owner = users.get(user or self._user)
        if owner is None:
            scope.impossible = True
        elif len(users) > 1:
            scope.narrow("u", "s.user", [owner])
        if sources is not None:
            known = dict(connection.execute("SELECT name, id FROM sources").fetchall())
            scope.narrow("s", "s.source", [known[name] for name in sources if name in known])
        if roles is not None:
            scope.narrow("r", "m.role", [role for role in roles if role.isalnum()])
        if session is not None:
            bounds = connection.execute(
                "SELECT s.sid, min(m.id), max(m.id) FROM sessions s JOIN messages m ON m.sid=s.sid WHERE s.id=?",
                (session,),
            ).fetchone()
            scope.impossible |= bounds[0] is None
            # The range first: the index follows it, where it would read every match of the whole store otherwise.
            scope.require("t.rowid BETWEEN ? AND ?", bounds[1], bounds[2])
            scope.require("m.sid=?", bounds[0])
        if exclude_root is not None:
            scope.require("s.root IS NOT (SELECT root FROM sessions WHERE id=?)", exclude_root)
        return scope

    def _find(self, connection: sqlite3.Connection, tree: Node, scope: _Scope, limit: int, sort: str) -> _Found:
        index_tree, look = loosen(tree)
        if is_one_character(tree):
            ids = self._one_character(connection, tree, scope, limit if sort != "rank" else WINDOW, sort)
        elif look:
            return self._checked(connection, tree, index_tree, scope, limit, sort)
        else:
            ids = _ids(connection, scope, index_tree, limit if sort != "rank" else WINDOW, sort)
        if sort != "rank" or len(ids) < 2:
            return _Found(ids[:limit])
        if not scope.words and not scope.conditions and self._is_cheap(connection, tree):
            rows = connection.execute(
                "SELECT rowid, rank FROM w WHERE w MATCH ? AND rank MATCH 'bm25(1.0, 1.0, 0.0)'"
                " ORDER BY rank, rowid DESC LIMIT ?",
                (scope.match(index_tree), limit),
            ).fetchall()
            return _Found([row[0] for row in rows], {row[0]: -row[1] for row in rows})
        return self._ranked(connection, tree, ids, limit, WINDOW)

    def _one_character(
        self, connection: sqlite3.Connection, tree: Node, scope: _Scope, limit: int, sort: str
    ) -> list[int]:
        text = '"' + next(term.text for term, _ in leaves(tree)) + '"'
        conditions, values = [*scope.conditions, *scope.same_on_rows], [*scope.values, *scope.same_values]
        return _stream(connection, "c", text, conditions, values, limit, sort)

    def _checked(
        self, connection: sqlite3.Connection, tree: Node, index_tree: Node, scope: _Scope, limit: int, sort: str
    ) -> _Found:
        """Follow the index and keep the rows whose text bears the query out; failing all, take the index's word."""
        wanted = limit if sort != "rank" else _CHECKED_WINDOW
        kept: list[int] = []
        looked = 0
        order = "ASC" if sort == "oldest" else "DESC"
        for message_id, wire, text, tool in connection.execute(
            "SELECT m.id, m.wire, m.text, m.tool FROM w t CROSS JOIN messages m ON m.id=t.rowid CROSS JOIN sessions s"
            f" ON s.sid=m.sid WHERE {' AND '.join(['w MATCH ?', *scope.conditions])} ORDER BY t.rowid {order}",
            (scope.match(index_tree), *scope.values),
        ):
            looked += 1
            if looked > _LOOKED_AT:
                break
            if holds(tree, _folded(wire, text, tool)):
                kept.append(message_id)
                if len(kept) == wanted:
                    break
        found = _Found(kept)
        if looked > _LOOKED_AT:
            rest = "newer" if sort == "oldest" else "older"
            found.notices.append(f"Only {_LOOKED_AT} rows were compared letter by letter; {rest} ones may match too.")
        elif not kept and looked and not _is_decided_by_text(tree):
            ids = _ids(connection, scope, index_tree, wanted, sort)
            found = _Found(ids, notices=["Nothing matches the punctuation exactly; this is what matches the words."])
        if sort == "rank" and len(found.ids) > 1:
            ranked = self._ranked(connection, tree, found.ids, limit, _CHECKED_WINDOW)
            return _Found(ranked.ids, ranked.scores, [*found.notices, *ranked.notices])
        found.ids = found.ids[:limit]
        return found

    def _is_cheap(self, connection: sqlite3.Connection, tree: Node) -> bool:
        terms = [term for term, _ in leaves(tree)]
        single = all(len(term.text) == 2 if RUN.search(term.text) else " " not in term.text for term in terms)
        if not single or any(term.prefix for term in terms):
            return False
        total = _total(connection)
        return sum(self._frequencies.of(connection, phrase(term), total) for term in terms) <= _EXACT

    def _ranked(
        self, connection: sqlite3.Connection, tree: Node, ids: Sequence[int], limit: int, window: int
    ) -> _Found:
        terms, total = [term for term, negated in leaves(tree) if not negated], _total(connection)
        weighted = [
            (
                fold(term.text),
                weight(self._frequencies.of(connection, phrase(term), total), total) if len(terms) > 1 else 1.0,
            )
            for term in terms
        ]
        rows = _rows(connection, "m.id, m.wire, m.text, m.tool", ids)
        points = scores({row[0]: _folded(*row[1:]) for row in rows}, weighted)
        best = heapq.nsmallest(limit, points, key=lambda message_id: (-points[message_id], -message_id))
        notices = [f"Ranked among the newest {window} matches; sort by newest or oldest for the others."]
        return _Found(best, points, notices if len(ids) >= window else [])


def _is_decided_by_text(tree: Node) -> bool:
    """Whether rows were looked at for more than punctuation, so that the index alone would say something wrong."""
    return any((negated and is_wide(term)) or is_one_character(term) for term, negated in leaves(tree))


def _ids(connection: sqlite3.Connection, scope: _Scope, tree: Node, limit: int, sort: str) -> list[int]:
    return _stream(connection, "w", scope.match(tree), scope.conditions, scope.values, limit, sort)


def _stream(
    connection: sqlite3.Connection,
    table: str,
    match: str,
    conditions: Sequence[str],
    values: Sequence[Any],
    limit: int,
    sort: str,
) -> list[int]:
    """Return matching ids, newest (or oldest) first; SQLite stops at the last one that is wanted."""
    joined = " CROSS JOIN messages m ON m.id=t.rowid CROSS JOIN sessions s ON s.sid=m.sid" if conditions else ""
    rows = connection.execute(
        f"SELECT t.rowid FROM {table} t{joined} WHERE {' AND '.join([f'{table} MATCH ?', *conditions])}"
        f" ORDER BY t.rowid {'ASC' if sort == 'oldest' else 'DESC'} LIMIT ?",
        (match, *values, limit),
    )
    return [row[0] for row in rows]


def _total(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT max(id) FROM messages").fetchone()[0] or 1)


def _rows(connection: sqlite3.Connection, columns: str, ids: Sequence[int]) -> list[tuple[Any, ...]]:
    return connection.execute(
        f"SELECT {columns} FROM messages m JOIN sessions s ON s.sid=m.sid"
        " WHERE m.id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids),),
    ).fetchall()


def _texts(wire: str, text: str | None, tool: str | None) -> tuple[str, str]:
    value = json.loads(wire)
    return (content_text(value) if text is None else text), tool_text(value, tool)


def _folded(wire: str, text: str | None, tool: str | None) -> str:
    return fold(COLUMN_END.join(_texts(wire, text, tool)))


def _hits(connection: sqlite3.Connection, found: _Found, terms: Sequence[Term]) -> tuple[SearchHit, ...]:
    columns = f"m.id, s.id, {ROOT_ID}, m.role, m.ts, m.wire, m.text, m.tool, coalesce(m.origin, m.id)"
    rows = {row[0]: row for row in _rows(connection, columns, found.ids)}
    hits: list[SearchHit] = []
    shown: set[int] = set()
    for message_id in found.ids:
        row = rows.get(message_id)
        # Missing: another tool deleted the session or the row, and the index does not know.
        # Shown: a branch's copy of a message that is in the list already.
        if row is None or row[8] in shown:
            continue
        shown.add(row[8])
        hits.append(
            SearchHit(
                message_id=message_id,
                session_id=row[1],
                root_id=row[2],
                role=row[3],
                snippet=snippet(*_texts(row[5], row[6], row[7]), terms),
                timestamp=row[4],
                score=found.scores.get(message_id, 0.0),
            )
        )
    return tuple(hits)
