"""Session rows and their lineages. Knows no messages, no index, no leases.

root ──compaction── child ──compaction── tip        one lineage: same ``root``; the tip is its newest session
  └──branch── another lineage, ``parent`` remembered
"""

from __future__ import annotations

import difflib
import re
import sqlite3
import time
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from hermes_nb.core.errors import InvalidTransition, SessionNotFound, StoreError
from hermes_nb.core.ids import new_session_id
from hermes_nb.core.names import ParentKind
from hermes_nb.core.types import Session
from hermes_nb.store.database import Database
from hermes_nb.store.people import People

TITLE_LENGTH: Final = 100
COMPACTED: Final = "compressed"
"""``end_reason`` of a session that a compaction ended."""

ROOT_ID: Final = "(SELECT f.id FROM sessions f WHERE f.root=s.root ORDER BY f.sid LIMIT 1)"
"""Public id of a session's lineage: its first session's, or the first one that is left."""
_SELECT = f"""
SELECT s.id, {ROOT_ID}, p.id, s.parent_kind, u.name, o.name, s.title, s.revision, s.started, s.ended, s.end_reason,
       s.model, s.base_url, s.key_env, s.prefix, s.head, s.cwd, s.notebook, s.archived, s.message_count, s.last_active
FROM sessions s JOIN users u ON u.id=s.user JOIN sources o ON o.id=s.source
     LEFT JOIN sessions p ON p.sid=s.parent
"""
_TIP = "NOT EXISTS(SELECT 1 FROM sessions t WHERE t.root=s.root AND t.sid>s.sid)"
INHERITED: Final = ("model", "base_url", "key_env", "cwd", "notebook")
"""What a child takes over from its parent where nothing else is given."""
_UPDATABLE = frozenset(
    {"title", "title_by", "model", "base_url", "key_env", "cwd", "notebook", "kernel", "kernel_boot", "archived"}
)


class Sessions:
    """Makes, finds, lists and changes sessions."""

    def __init__(self, database: Database, people: People, user: str) -> None:
        self._database, self._people, self._user = database, people, user

    def create(
        self,
        source: str,
        title: str | None,
        user: str | None,
        parent: str | None,
        parent_kind: str,
        places: dict[str, str | None],
    ) -> Session:
        """See Store.create_session. ``places`` are the columns that a child inherits when they are None."""
        with self._database.write() as connection:
            session_id = self.insert(connection, source, title, user, parent, parent_kind, places)
        return self.get(session_id)

    def insert(
        self,
        connection: sqlite3.Connection,
        source: str,
        title: str | None,
        user: str | None,
        parent: str | None,
        parent_kind: str,
        places: dict[str, str | None],
    ) -> str:
        """Write the row inside the caller's transaction and return its id."""
        session_id, now = new_session_id(), time.time()
        above = _require(connection, parent) if parent else None
        kind = ParentKind(parent_kind) if above is not None else None
        owner = self._people.user(connection, user or (above.user if above else self._user))
        values: dict[str, Any] = {
            "id": session_id,
            "root": 0,
            "parent_kind": kind,
            "user": owner,
            "source": self._people.source(connection, source),
            "title": clean_title(title),
            "started": now,
            "last_active": now,
            **places,
        }
        if above is not None:
            self._inherit(connection, above, kind, values)
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        sid = connection.execute(f"INSERT INTO sessions({names}) VALUES({marks})", tuple(values.values())).lastrowid
        if not values["root"]:
            connection.execute("UPDATE sessions SET root=sid WHERE sid=?", (sid,))
        return session_id

    def _inherit(
        self, connection: sqlite3.Connection, above: Session, kind: ParentKind | None, values: dict[str, Any]
    ) -> None:
        sid, root = connection.execute("SELECT sid, root FROM sessions WHERE id=?", (above.id,)).fetchone()
        values["parent"] = sid
        for name in INHERITED:
            if values.get(name) is None:
                values[name] = getattr(above, name)
        if kind is not ParentKind.COMPACTION:
            return
        if connection.execute("SELECT 1 FROM sessions WHERE root=? AND sid>? LIMIT 1", (root, sid)).fetchone():
            raise InvalidTransition(f"Session {above.id} was compacted already. Continue with its newest session.")
        values["root"] = root
        values["user"] = connection.execute("SELECT user FROM sessions WHERE sid=?", (sid,)).fetchone()[0]
        values["title"] = values["title"] or above.title
        values["revision"] = above.revision + 1
        connection.execute(
            "UPDATE sessions SET ended=coalesce(ended, ?), end_reason=coalesce(end_reason, ?) WHERE sid=?",
            (values["started"], COMPACTED, sid),
        )

    def get(self, session_id: str) -> Session:
        row = self._database.one(_SELECT + "WHERE s.id=?", (session_id,))
        if row is None:
            raise _not_found(session_id)
        return _session(row)

    def tip(self, session_id: str) -> Session:
        row = self._database.one(
            _SELECT + "WHERE s.root=(SELECT root FROM sessions WHERE id=?) ORDER BY s.sid DESC LIMIT 1", (session_id,)
        )
        if row is None:
            raise _not_found(session_id)
        return _session(row)

    def tip_of_root(self, root: int) -> Session | None:
        """Return the live session of a lineage number, or None when the lineage was deleted."""
        row = self._database.one(_SELECT + "WHERE s.root=? ORDER BY s.sid DESC LIMIT 1", (root,))
        return _session(row) if row else None

    def lineage(self, session_id: str) -> list[Session]:
        rows = self._database.query(
            "WITH RECURSIVE up(sid) AS (SELECT sid FROM sessions WHERE id=? UNION"
            " SELECT s.parent FROM sessions s JOIN up ON s.sid=up.sid WHERE s.parent IS NOT NULL)"
            + _SELECT
            + "WHERE s.sid IN (SELECT sid FROM up) OR s.root=(SELECT root FROM sessions WHERE id=?) ORDER BY s.sid",
            (session_id, session_id),
        )
        if not rows:
            raise _not_found(session_id)
        return [_session(row) for row in rows]

    def list(self, user: str | None, limit: int, sources: Sequence[str] | None, archived: bool) -> list[Session]:
        where = ["u.name=?", _TIP, "s.parent_kind IS NOT 'delegate'"]
        values: list[Any] = [user or self._user]
        if not archived:
            where.append("s.archived=0")
        if sources is not None:
            where.append(f"o.name IN ({', '.join('?' * len(sources))})")
            values += sources
        rows = self._database.query(
            f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY s.last_active DESC, s.sid DESC LIMIT ?", (*values, limit)
        )
        return [_session(row) for row in rows]

    def find(self, reference: str, user: str | None) -> Session:
        """See Store.find_session."""
        reference = reference.strip()
        owner = user or self._user
        exact = self._database.one(_SELECT + "WHERE s.id=? AND u.name=?", (reference, owner))
        if exact is not None:
            return self.tip(_session(exact).id)
        for condition, values in (
            ("s.title=?", (reference,)),
            (r"s.id LIKE ? ESCAPE '\'", (_like(reference),)),
            (r"s.title LIKE ? ESCAPE '\'", (_like(reference),)),
        ):
            found = self._database.query(
                f"{_SELECT} WHERE u.name=? AND {condition} AND s.parent_kind IS NOT 'delegate'"
                " ORDER BY s.last_active DESC LIMIT 20",
                (owner, *values),
            )
            tips = {tip.id: tip for tip in (self.tip(_session(row).id) for row in found if reference)}
            if len(tips) == 1:
                return next(iter(tips.values()))
            if tips:
                named = "; ".join(f"{tip.id} ({tip.title or 'no title'})" for tip in list(tips.values())[:5])
                raise SessionNotFound(f"{reference!r} fits several sessions: {named}. Name one by its id.")
        raise SessionNotFound(self._no_such(reference, owner))

    def _no_such(self, reference: str, owner: str) -> str:
        recent = self.list(owner, 200, None, archived=True)
        names = {name: tip for tip in recent for name in (tip.title, tip.id) if name}
        near = difflib.get_close_matches(reference, list(names), n=3, cutoff=0.5)
        if near:
            hints = ", ".join(f"{names[name].id} ({names[name].title or 'no title'})" for name in near)
            return f"No session {reference!r}. Near: {hints}."
        return f"No session {reference!r}. List them with: %hermes sessions"

    def update(self, session_id: str, fields: dict[str, Any]) -> Session:
        """Change columns that are free to change; archiving concerns the whole lineage."""
        wrong = sorted(set(fields) - _UPDATABLE)
        if wrong:
            raise StoreError(
                f"A session has no changeable field {', '.join(wrong)}. Use: {', '.join(sorted(_UPDATABLE))}."
            )
        if "title" in fields:
            fields = {**fields, "title": clean_title(fields["title"])}
        with self._database.write() as connection:
            sid, root = number_of(connection, session_id), root_of(connection, session_id)
            if fields:
                settings = ", ".join(f"{name}=?" for name in fields)
                connection.execute(f"UPDATE sessions SET {settings} WHERE sid=?", (*fields.values(), sid))
            if "archived" in fields:
                connection.execute("UPDATE sessions SET archived=? WHERE root=?", (bool(fields["archived"]), root))
        return self.get(session_id)

    def end(self, session_id: str, reason: str) -> None:
        """Mark the session as ended; the first reason stays."""
        with self._database.write() as connection:
            sid = number_of(connection, session_id)
            connection.execute(
                "UPDATE sessions SET ended=?, end_reason=? WHERE sid=? AND ended IS NULL", (time.time(), reason, sid)
            )


def number_of(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the internal number of a session. Raises SessionNotFound."""
    row = connection.execute("SELECT sid FROM sessions WHERE id=?", (session_id,)).fetchone()
    if row is None:
        raise _not_found(session_id)
    return int(row[0])


def root_of(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the lineage number of a session, named by its own id or its root's. Raises SessionNotFound."""
    row = connection.execute("SELECT root FROM sessions WHERE id=?", (session_id,)).fetchone()
    if row is None:
        raise _not_found(session_id)
    return int(row[0])


def root_id_of(connection: sqlite3.Connection, root: int) -> str | None:
    """Return the public id of a lineage: its first session's, or the first one left."""
    row = connection.execute("SELECT id FROM sessions WHERE root=? ORDER BY sid LIMIT 1", (root,)).fetchone()
    return str(row[0]) if row else None


def clean_title(title: str | None) -> str | None:
    """Return a title on one line, without control and direction characters, of at most TITLE_LENGTH characters."""
    if title is None:
        return None
    blanks = re.sub(r"\s+", " ", title)
    hidden = ("Cc", "Cf", "Cs", "Co")
    shown = "".join(char for char in blanks if char in "\u200c\u200d" or unicodedata.category(char) not in hidden)
    return shown.strip()[:TITLE_LENGTH].rstrip() or None


def _require(connection: sqlite3.Connection, session_id: str) -> Session:
    row = connection.execute(_SELECT + "WHERE s.id=?", (session_id,)).fetchone()
    if row is None:
        raise _not_found(session_id)
    return _session(row)


def _not_found(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"No session {session_id!r}. It may have been deleted; list them with: %hermes sessions")


def _like(prefix: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", prefix) + "%"


def _session(row: Sequence[Any]) -> Session:
    kind = ParentKind(row[3]) if row[3] and row[2] else None
    return Session(
        id=row[0],
        root_id=row[1],
        parent_id=row[2],
        parent_kind=kind,
        user=row[4],
        source=row[5],
        title=row[6],
        revision=row[7],
        started=row[8],
        ended=row[9],
        end_reason=row[10],
        model=row[11],
        base_url=row[12],
        key_env=row[13],
        prefix_id=row[14],
        head=row[15],
        cwd=row[16],
        notebook=row[17],
        archived=bool(row[18]),
        message_count=row[19],
        last_active=row[20],
    )
