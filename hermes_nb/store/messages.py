"""Message rows: append under a fence, read, undo, redo. Owns the order and exactness of a transcript.

    append                undo
──────────▶ complete ◀────────────▶ undone      undone rows leave the search index and come back by redo
──────────▶ interrupted ◀─────────▶ undone
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hermes_nb.core.errors import InvalidTransition, LeaseLost, SessionLeased, StoreError
from hermes_nb.core.names import MessageStatus
from hermes_nb.core.types import Lease, Message, NewMessage, Wire
from hermes_nb.core.wirejson import clean_text, dumps
from hermes_nb.store import index
from hermes_nb.store.database import Database
from hermes_nb.store.process import describe, is_dead
from hermes_nb.store.sessions import number_of
from hermes_nb.store.tokeniser import Tokens, content_text, tokens_of, tool_text

_NUMBER: Final[Mapping[MessageStatus, int]] = {
    MessageStatus.COMPLETE: 0,
    MessageStatus.INTERRUPTED: 1,
    MessageStatus.COMPACTED: 2,
    MessageStatus.UNDONE: 3,
}
_STATUS: Final = {number: status for status, number in _NUMBER.items()}
VISIBLE: Final = "m.status<2"
"""Rows that are sent to a model and shown in a transcript."""
COLUMNS: Final = "m.id, s.id, m.role, m.wire, m.dialect, m.text, m.tool, m.status, m.turn, m.ts"
_FROM: Final = f"SELECT {COLUMNS} FROM messages m JOIN sessions s ON s.sid=m.sid "
_INSERT: Final = """
INSERT INTO messages(sid, role, wire, text, dialect, tool, turn, status, ts, platform_id, fence)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
"""
# The right to write stands in the statement that writes: no moment lies between the check and the row.
_FENCED: Final = _INSERT + "WHERE EXISTS(SELECT 1 FROM leases WHERE root=? AND holder=? AND fence=?)"
_LATE: Final = """
INSERT INTO late_results(sid, role, wire, text, dialect, tool, turn, status, ts, fence) VALUES(?,?,?,?,?,?,?,?,?,?)
"""


@dataclass(frozen=True, slots=True)
class _Prepared:
    role: str
    wire: str
    text: str | None
    dialect: str
    tool: str | None
    turn: str | None
    status: int
    platform_id: str | None
    tokens: Tokens


class Messages:
    """The rows of all sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, session_id: str, rows: Sequence[NewMessage], lease: Lease | None) -> list[int]:
        """See Store.append_rows."""
        prepared = [_prepare(row) for row in rows]
        with self._database.write() as connection:
            sid = number_of(connection, session_id)
            root, user, source = connection.execute(
                "SELECT root, user, source FROM sessions WHERE sid=?", (sid,)
            ).fetchone()
            now = time.time()
            ids: list[int] = []
            for row in prepared:
                values = (
                    sid, row.role, row.wire, row.text, row.dialect, row.tool, row.turn, row.status, now,
                    row.platform_id, lease.fence if lease else None,
                )  # fmt: skip
                if lease is None:
                    cursor = connection.execute(_INSERT, values)
                else:
                    cursor = connection.execute(_FENCED, (*values, root, lease.holder, lease.fence))
                if cursor.rowcount != 1:
                    break
                message_id = cursor.lastrowid or 0
                if row.status != _NUMBER[MessageStatus.UNDONE]:
                    index.add(connection, message_id, row.tokens, index.scope_tokens(user, source, row.role))
                ids.append(message_id)
            else:
                connection.execute(
                    "UPDATE sessions SET message_count=message_count+?, last_active=? WHERE sid=?",
                    (len(ids), now, sid),
                )
                return ids
            # The lease cannot change inside this transaction, so it was the first row that was refused.
            for row in prepared:
                connection.execute(
                    _LATE,
                    (sid, row.role, row.wire, row.text, row.dialect, row.tool, row.turn, row.status, now,
                     lease.fence if lease else None),
                )  # fmt: skip
        raise LeaseLost(
            "This turn no longer holds the session: it was interrupted, or taken over elsewhere. "
            f"{len(prepared)} late row(s) were kept apart; the next turn shows them."
        )

    def wires(self, session_id: str) -> list[Wire]:
        """Return the visible wires in order."""
        rows = self._rows_of(session_id, f"{VISIBLE} AND m.sid=?", ())
        return [json.loads(row[3]) for row in rows]

    def rows(self, session_id: str, after: int, hidden: bool) -> list[Message]:
        """Return the rows with an id above ``after``; ``hidden`` adds undone and compacted ones."""
        condition = "m.sid=? AND m.id>?" if hidden else f"{VISIBLE} AND m.sid=? AND m.id>?"
        return [as_message(row) for row in self._rows_of(session_id, condition, (after,))]

    def _rows_of(self, session_id: str, condition: str, more: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with self._database.read() as connection:
            sid = number_of(connection, session_id)
            return connection.execute(f"{_FROM} WHERE {condition} ORDER BY m.id", (sid, *more)).fetchall()

    def neighbours(self, message_ids: Iterable[int], before: int, after: int) -> dict[int, list[Message]]:
        """Return for each message the visible rows around it in its session, itself included, in order."""
        wanted = list(dict.fromkeys(message_ids))
        found: dict[int, list[Message]] = {message_id: [] for message_id in wanted}
        rows = self._database.query(
            f"""
            WITH h(id, sid) AS (SELECT id, sid FROM messages WHERE id IN (SELECT value FROM json_each(?)))
            SELECT h.id, {COLUMNS} FROM h JOIN messages m ON m.id IN (
                SELECT id FROM (SELECT id FROM messages n WHERE n.sid=h.sid AND n.id<=h.id AND n.status<2
                                ORDER BY n.id DESC LIMIT ?)
                UNION ALL
                SELECT id FROM (SELECT id FROM messages n WHERE n.sid=h.sid AND n.id>h.id AND n.status<2
                                ORDER BY n.id LIMIT ?))
            JOIN sessions s ON s.sid=m.sid ORDER BY h.id, m.id
            """,
            (json.dumps(wanted), max(0, before) + 1, max(0, after)),
        )
        for row in rows:
            found[row[0]].append(as_message(row[1:]))
        return found

    def undo(self, session_id: str, turns: int, lease: Lease | None) -> int:
        """See Store.undo."""
        with self._database.write() as connection:
            sid = number_of(connection, session_id)
            _refuse_running_turn(connection, sid, lease)
            first = _first_of_turns(connection, sid, turns)
            if first is None:
                return 0
            index.remove_stored(connection, f"m.sid=? AND m.id>=? AND {VISIBLE}", (sid, first))
            number = connection.execute("SELECT coalesce(max(undo), 0)+1 FROM messages WHERE sid=?", (sid,)).fetchone()[
                0
            ]
            # The former status must come back by redo, so it is kept in the number: undone = 3 + former status.
            hidden = connection.execute(
                f"UPDATE messages AS m SET status=m.status+3, undo=? WHERE m.sid=? AND m.id>=? AND {VISIBLE}",
                (number, sid, first),
            ).rowcount
            _history_changed(connection, sid, -hidden)
            return hidden

    def redo(self, session_id: str, lease: Lease | None) -> int:
        """See Store.redo."""
        with self._database.write() as connection:
            sid = number_of(connection, session_id)
            _refuse_running_turn(connection, sid, lease)
            number, first = connection.execute(
                "SELECT undo, min(id) FROM messages WHERE sid=?1 AND status>=3"
                " AND undo=(SELECT max(undo) FROM messages WHERE sid=?1 AND status>=3)",
                (sid,),
            ).fetchone()
            if number is None:
                return 0
            if connection.execute(
                f"SELECT 1 FROM messages m WHERE m.sid=? AND m.id>? AND {VISIBLE} LIMIT 1", (sid, first)
            ).fetchone():
                raise InvalidTransition("Something was said since the undo, so it cannot be taken back.")
            shown = connection.execute(
                "UPDATE messages SET status=status-3, undo=NULL WHERE sid=? AND undo=? AND status>=3", (sid, number)
            ).rowcount
            index.add_stored(connection, f"m.sid=? AND m.id>=? AND {VISIBLE}", (sid, first))
            _history_changed(connection, sid, shown)
            return shown

    def late_results(self, session_id: str) -> list[Message]:
        """Return the rows that came after their turn had lost the right to write, oldest first."""
        rows = self._database.query(
            "SELECT m.id, s.id, m.role, m.wire, m.dialect, m.text, m.tool, m.status, m.turn, m.ts"
            " FROM late_results m JOIN sessions s ON s.sid=m.sid WHERE s.id=? ORDER BY m.id",
            (session_id,),
        )
        return [as_message(row) for row in rows]


def as_message(row: Sequence[Any]) -> Message:
    """Return the value of a row selected with COLUMNS."""
    text = row[5]
    return Message(
        id=row[0],
        session_id=row[1],
        role=row[2],
        wire=row[3],
        dialect=row[4],
        text=_content_of(row[3]) if text is None else text,
        tool_name=row[6],
        status=_STATUS.get(row[7], MessageStatus.UNDONE),
        turn_id=row[8],
        timestamp=row[9],
    )


# How nearly every wire begins, up to its content: a string, or null. ``dumps`` writes no blanks, and quotes inside a
# string are escaped. Parsing the content only takes a tenth of the time of parsing the wire; a long session has
# thousands.
_BEFORE_CONTENT: Final = re.compile(
    r'\{"role":"(?:user|assistant|tool)",(?:"tool_call_id":"[^"\\]*",)?"content":(?="|null[,}])'
)
_value_at: Final = json.JSONDecoder().raw_decode


def _content_of(wire: str) -> str:
    """Return content_text of a stored wire."""
    before = _BEFORE_CONTENT.match(wire)
    if before is None:
        return content_text(json.loads(wire))
    content: str | None = _value_at(wire, before.end())[0]
    return content or ""


def _prepare(row: NewMessage) -> _Prepared:
    """Do all work that needs no lock: encoding and tokenising."""
    role = row.wire.get("role")
    if not isinstance(role, str) or not role.isalnum():
        raise StoreError(f"A message needs a role; this one has {role!r}.")
    wire = dumps(row.wire)
    value = json.loads(wire)
    content = content_text(value)
    text = None if row.text is None else clean_text(row.text)
    tokens = tokens_of(content if text is None else text, tool_text(value, row.tool_name))
    return _Prepared(
        role=role,
        wire=wire,
        text=None if text == content else text,
        dialect=row.dialect,
        tool=row.tool_name,
        turn=row.turn_id,
        status=_NUMBER[MessageStatus(row.status)],
        platform_id=row.platform_message_id,
        tokens=tokens,
    )


def _first_of_turns(connection: sqlite3.Connection, sid: int, turns: int) -> int | None:
    """Return the id of the row with which the last ``turns`` turns begin.

    A turn begins with a user row; further user rows of the same turn (a request to sum up) do not begin another.
    """
    if turns < 1:
        return None
    first: int | None = None
    seen: set[str] = set()
    for message_id, turn in connection.execute(
        f"SELECT m.id, m.turn FROM messages m WHERE m.sid=? AND m.role='user' AND {VISIBLE} ORDER BY m.id DESC", (sid,)
    ):
        key = turn or f"row {message_id}"
        if key not in seen and len(seen) == turns:
            break
        seen.add(key)
        first = message_id
    return first


def _history_changed(connection: sqlite3.Connection, sid: int, rows: int) -> None:
    connection.execute(
        "UPDATE sessions SET revision=revision+1, message_count=message_count+?, last_active=? WHERE sid=?",
        (rows, time.time(), sid),
    )


def _refuse_running_turn(connection: sqlite3.Connection, sid: int, lease: Lease | None) -> None:
    row = connection.execute(
        "SELECT holder, fence FROM leases WHERE root=(SELECT root FROM sessions WHERE sid=?) AND holder IS NOT NULL"
        " AND expires_at>?",
        (sid, time.time()),
    ).fetchone()
    if row is None or is_dead(row[0]) or (lease is not None and row == (lease.holder, lease.fence)):
        return
    raise SessionLeased(f"A turn of this session is running in {describe(row[0])}. Stop it first: %hermes stop")
