"""Branches: a new lineage that begins with another's messages. Owns the copying of rows."""

from __future__ import annotations

from hermes_nb.core.names import ParentKind
from hermes_nb.core.types import Session
from hermes_nb.store import index
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import Sessions, number_of


class Branching:
    """Makes branches."""

    def __init__(self, database: Database, sessions: Sessions) -> None:
        self._database, self._sessions = database, sessions

    def branch(self, session_id: str, at: int | None, title: str | None, source: str | None) -> Session:
        """See Store.branch.

        Rows are copied, not shared: an undo or a deletion on one side must not change what the other side sends.
        ``origin`` lets a search show a message once.
        """
        above = self._sessions.get(session_id)
        with self._database.write() as connection:
            new_id = self._sessions.insert(
                connection, source or above.source, title or above.title, None, session_id, ParentKind.BRANCH, {}
            )
            old, new = number_of(connection, session_id), number_of(connection, new_id)
            copied = connection.execute(
                "INSERT INTO messages(sid, role, wire, text, dialect, tool, turn, status, ts, origin)"
                " SELECT ?, role, wire, text, dialect, tool, turn, status, ts, coalesce(origin, id) FROM messages"
                " WHERE sid=? AND status<2 AND (? IS NULL OR id<=?) ORDER BY id",
                (new, old, at, at),
            ).rowcount
            index.add_stored(connection, "m.sid=?", (new,))
            connection.execute(
                "UPDATE sessions SET message_count=?, branch_at=(SELECT max(id) FROM messages WHERE sid=? AND"
                " (? IS NULL OR id<=?)), prefix=(SELECT prefix FROM sessions WHERE sid=?),"
                " head=(SELECT head FROM sessions WHERE sid=?) WHERE sid=?",
                (copied, old, at, at, old, old, new),
            )
        return self._sessions.get(new_id)
