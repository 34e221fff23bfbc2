"""Messages in from chat and out to chat: each event once, each delivery with its state. Sends nothing.

pending ──claim──▶ sending ──▶ sent | failed
                      └─ claim ran out ──reap──▶ unknown      never sent again by itself: it may have arrived
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hermes_nb.core.errors import StoreError
from hermes_nb.core.ids import new_id
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import root_of

_SELECT: Final = """
SELECT id, platform, target, part, body, state, claim, attempts, remote_id, error FROM deliveries
"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One outgoing message, as its row holds it."""

    id: str
    platform: str
    target: str
    part: int
    body: str
    state: str
    claim: str | None
    attempts: int
    remote_id: str | None
    error: str | None


class Inbox:
    """Events that arrived, so that a repeated one is known."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def first_time(self, platform: str, account: str, event: str, body: str | None = None) -> bool:
        """Record an event before it is acknowledged; False when it was recorded before."""
        with self._database.write() as connection:
            cursor = connection.execute(
                "INSERT OR IGNORE INTO inbox(platform, account, event, body, state, received)"
                " VALUES(?, ?, ?, ?, 'received', ?)",
                (platform, account, event, body, time.time()),
            )
            return cursor.rowcount == 1


class Deliveries:
    """The outbox."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session_id: str, platform: str, target: str, body: str, *, part: int = 0) -> Delivery:
        """Write an outgoing message before anything is sent."""
        delivery_id, now = new_id(), time.time()
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO deliveries(id, root, platform, target, part, body, state, created, updated)"
                " VALUES(?, ?, ?, ?, ?, ?, 'pending', ?, ?)",
                (delivery_id, root_of(connection, session_id), platform, target, part, body, now, now),
            )
        return self.get(delivery_id)

    def get(self, delivery_id: str) -> Delivery:
        """Return the delivery in its present state."""
        row = self._database.one(_SELECT + "WHERE id=?", (delivery_id,))
        if row is None:
            raise StoreError(f"No delivery {delivery_id!r}; its session may have been deleted.")
        return _delivery(row)

    def claim(self, platform: str, *, seconds: float = 60.0) -> Delivery | None:
        """Take the oldest pending delivery of a platform; None when there is none."""
        token, now = new_id(), time.time()
        with self._database.write() as connection:
            row = connection.execute(
                "UPDATE deliveries SET state='sending', claim=?1, claimed_until=?2, attempts=attempts+1, updated=?3"
                " WHERE id=(SELECT id FROM deliveries WHERE state='pending' AND platform=?4 AND not_before<=?3"
                " ORDER BY created, part LIMIT 1) RETURNING id",
                (token, now + seconds, now, platform),
            ).fetchone()
        return self.get(row[0]) if row else None

    def sent(self, delivery: Delivery, remote_id: str | None = None) -> bool:
        """Record the arrival; False when the claim is no longer ours."""
        return self._change(delivery, "state='sent', remote_id=?", (remote_id,))

    def failed(self, delivery: Delivery, error: str) -> bool:
        """Record that the platform refused it; False when the claim is no longer ours."""
        return self._change(delivery, "state='failed', error=?", (error,))

    def again(self, delivery: Delivery, error: str, seconds: float) -> bool:
        """Put back what certainly did not arrive, to be claimed again after ``seconds``."""
        return self._change(delivery, "state='pending', error=?, not_before=?", (error, time.time() + seconds))

    def reap(self) -> int:
        """Mark deliveries whose sender vanished as unknown; return how many."""
        now = time.time()
        with self._database.write() as connection:
            return connection.execute(
                "UPDATE deliveries SET state='unknown', updated=?1 WHERE state='sending' AND claimed_until<?1", (now,)
            ).rowcount

    def _change(self, delivery: Delivery, what: str, values: tuple[object, ...]) -> bool:
        with self._database.write() as connection:
            cursor = connection.execute(
                f"UPDATE deliveries SET {what}, updated=? WHERE id=? AND state='sending' AND claim=?",
                (*values, time.time(), delivery.id, delivery.claim),
            )
            return cursor.rowcount == 1


def _delivery(row: Sequence[Any]) -> Delivery:
    return Delivery(*row)
