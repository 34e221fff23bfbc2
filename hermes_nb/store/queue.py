"""Messages and steering that wait for a turn, in order. Knows no surface.

waiting ──take──▶ taken        waiting ──drop──▶ dropped
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from hermes_nb.store.database import Database
from hermes_nb.store.sessions import root_of


@dataclass(frozen=True, slots=True)
class Waiting:
    """One entry of the queue. ``kind`` is ``message`` (a turn of its own) or ``steer`` (for the running one)."""

    id: int
    kind: str
    text: str
    surface: str | None
    account: str | None
    created: float


class Queue:
    """What was said while a turn was running, per lineage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, root_id: str, text: str, kind: str = "message", *, surface: str | None = None, account: str | None = None
    ) -> int:
        """Add an entry and return its number."""
        with self._database.write() as connection:
            cursor = connection.execute(
                "INSERT INTO queue(root, kind, text, surface, account, created) VALUES(?, ?, ?, ?, ?, ?)",
                (root_of(connection, root_id), kind, text, surface, account, time.time()),
            )
            return cursor.lastrowid or 0

    def waiting(self, root_id: str) -> list[Waiting]:
        """Return what waits, oldest first."""
        rows = self._database.query(
            "SELECT id, kind, text, surface, account, created FROM queue"
            " WHERE root=(SELECT root FROM sessions WHERE id=?) AND state='waiting' ORDER BY id",
            (root_id,),
        )
        return [Waiting(*row) for row in rows]

    def take(self, root_id: str, kind: str, turn_id: str | None = None) -> Waiting | None:
        """Take the oldest waiting entry of a kind; exactly one caller gets it."""
        with self._database.write() as connection:
            row = connection.execute(
                "UPDATE queue SET state='taken', taken=?, turn=? WHERE id=(SELECT id FROM queue WHERE root=?"
                " AND kind=? AND state='waiting' ORDER BY id LIMIT 1)"
                " RETURNING id, kind, text, surface, account, created",
                (time.time(), turn_id, root_of(connection, root_id), kind),
            ).fetchone()
        return Waiting(*row) if row else None

    def drop(self, entry_id: int) -> bool:
        """Remove a waiting entry; False when it was taken already."""
        with self._database.write() as connection:
            cursor = connection.execute("UPDATE queue SET state='dropped' WHERE id=? AND state='waiting'", (entry_id,))
            return cursor.rowcount == 1
