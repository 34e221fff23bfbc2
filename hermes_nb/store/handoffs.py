"""Requests to carry a session to a chat platform. Owns the states; sends nothing.

    pending ──claim──▶ running ──complete──▶ completed
       │                  ├─renew──▶ running (the claim lasts longer)
       │                  ├─fail (by the claim's owner)──▶ failed
       │                  └─claim ran out ──claim by another──▶ running (new claim token)
       ├─give_up (the waiting side)──▶ failed
       └─deadline passed, nobody claimed ──▶ failed

Every change names the state and the claim token it starts from, so a late writer changes nothing.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hermes_nb.core.errors import HandoffFailed, InvalidTransition
from hermes_nb.core.ids import new_id
from hermes_nb.core.names import HandoffState
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import root_of

CLAIM_SECONDS: Final = 30.0
"""How long a claim lasts without a renewal."""
HANDOFF_SECONDS: Final = 60.0
"""How long a request waits to be claimed."""

_SELECT: Final = """
SELECT h.id, coalesce((SELECT id FROM sessions s WHERE s.root=h.root ORDER BY s.sid LIMIT 1), ''), h.platform, h.target,
       h.state, h.claim, h.worker, h.claimed_until, h.deadline, h.error, h.route_key, h.options, h.requested
FROM handoffs h
"""


@dataclass(frozen=True, slots=True)
class Handoff:
    """One request, as its row holds it. ``claim`` is the token that its owner must show."""

    id: str
    root_id: str
    platform: str
    target: str | None
    state: HandoffState
    claim: str | None
    worker: str | None
    claimed_until: float | None
    deadline: float
    error: str | None
    route_key: str | None
    options: Mapping[str, Any]
    requested: float


class Handoffs:
    """Handoffs of all lineages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def request(
        self,
        session_id: str,
        platform: str,
        target: str | None = None,
        *,
        seconds: float = HANDOFF_SECONDS,
        options: Mapping[str, Any] | None = None,
    ) -> Handoff:
        """Write a request. Raises InvalidTransition while another one of this lineage is under way."""
        handoff_id, now = new_id(), time.time()
        with self._database.write() as connection:
            root = root_of(connection, session_id)
            _expire(connection, now)
            if connection.execute(
                "SELECT 1 FROM handoffs WHERE root=? AND state IN ('pending', 'running')", (root,)
            ).fetchone():
                raise InvalidTransition("This session is being handed over already. Wait for that to end.")
            connection.execute(
                "INSERT INTO handoffs(id, root, platform, target, state, deadline, options, requested)"
                " VALUES(?, ?, ?, ?, 'pending', ?, ?, ?)",
                (handoff_id, root, platform, target, now + seconds, json.dumps(dict(options or {})), now),
            )
        return self.get(handoff_id)

    def get(self, handoff_id: str) -> Handoff:
        """Return the handoff in its present state."""
        row = self._database.one(_SELECT + "WHERE h.id=?", (handoff_id,))
        if row is None:
            raise HandoffFailed(f"No handoff {handoff_id!r}; its session may have been deleted.")
        return _handoff(row)

    def claim(self, worker: str, *, seconds: float = CLAIM_SECONDS) -> Handoff | None:
        """Take the oldest request that is free, or whose claim ran out; None when there is none."""
        token, now = new_id(), time.time()
        with self._database.write() as connection:
            _expire(connection, now)
            row = connection.execute(
                "UPDATE handoffs SET state='running', claim=?1, worker=?2, claimed_until=?3 WHERE id=("
                " SELECT id FROM handoffs WHERE state='pending' OR (state='running' AND claimed_until<?4)"
                " ORDER BY requested LIMIT 1) RETURNING id",
                (token, worker, now + seconds, now),
            ).fetchone()
        return self.get(row[0]) if row else None

    def renew(self, handoff: Handoff, *, seconds: float = CLAIM_SECONDS) -> bool:
        """Prolong the claim; False when it is no longer ours."""
        return self._finish(handoff, "claimed_until=?", (time.time() + seconds,))

    def complete(self, handoff: Handoff) -> None:
        """End a running handoff well. Raises InvalidTransition when the claim is no longer ours."""
        if not self._finish(handoff, "state='completed', finished=?", (time.time(),)):
            raise InvalidTransition(f"Handoff {handoff.id} is no longer claimed by this worker.")

    def fail(self, handoff: Handoff, reason: str) -> None:
        """End a running handoff with a reason. Raises InvalidTransition when the claim is no longer ours."""
        if not self._finish(handoff, "state='failed', error=?, finished=?", (reason, time.time())):
            raise InvalidTransition(f"Handoff {handoff.id} is no longer claimed by this worker.")

    def give_up(self, handoff_id: str, reason: str) -> bool:
        """End a request that nobody has claimed; False, and no change, when somebody has."""
        with self._database.write() as connection:
            cursor = connection.execute(
                "UPDATE handoffs SET state='failed', error=?, finished=? WHERE id=? AND state='pending'",
                (reason, time.time(), handoff_id),
            )
            return cursor.rowcount == 1

    def _finish(self, handoff: Handoff, what: str, values: tuple[object, ...]) -> bool:
        with self._database.write() as connection:
            cursor = connection.execute(
                f"UPDATE handoffs SET {what} WHERE id=? AND state='running' AND claim=?",
                (*values, handoff.id, handoff.claim),
            )
            return cursor.rowcount == 1


def _expire(connection: sqlite3.Connection, now: float) -> None:
    connection.execute(
        "UPDATE handoffs SET state='failed', error='Nobody took the request in time.', finished=?1"
        " WHERE state='pending' AND deadline<?1",
        (now,),
    )


def _handoff(row: Sequence[Any]) -> Handoff:
    values = list(row)
    values[4], values[11] = HandoffState(row[4]), json.loads(row[11])
    return Handoff(*values)
