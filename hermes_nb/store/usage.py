"""Token counts as endpoints returned them. Owns the sums; knows no prices."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hermes_nb.core.types import Usage
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import number_of


@dataclass(frozen=True, slots=True)
class BookedCall:
    """One model call as it was booked."""

    turn_id: str | None
    model: str
    kind: str
    usage: Usage
    timestamp: float


class UsageBook:
    """One row per model call."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        session_id: str,
        turn_id: str | None,
        model: str,
        usage: Usage,
        kind: str = "chat",
        *,
        cost: float | None = None,
        currency: str | None = None,
    ) -> None:
        """Book one call. ``cost`` only when the endpoint returned it or the user set prices."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO usage(sid, turn, model, kind, prompt, completion, cached, reasoning, cost, currency, ts)"
                " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (number_of(connection, session_id), turn_id, model, kind, usage.prompt, usage.completion,
                 usage.cached, usage.reasoning, cost, currency, time.time()),
            )  # fmt: skip

    def total(self, session_id: str) -> Usage:
        """Return the sum over the session's whole lineage."""
        row = self._database.one(
            "SELECT sum(prompt), sum(completion), sum(cached), sum(reasoning) FROM usage WHERE sid IN"
            " (SELECT sid FROM sessions WHERE root=(SELECT root FROM sessions WHERE id=?))",
            (session_id,),
        )
        return Usage(*(int(value or 0) for value in row)) if row else Usage()

    def calls(self, session_id: str, limit: int = 20) -> list[BookedCall]:
        """Return the last calls of the session's lineage, oldest first."""
        rows = self._database.query(
            "SELECT turn, model, kind, prompt, completion, cached, reasoning, ts FROM usage WHERE sid IN"
            " (SELECT sid FROM sessions WHERE root=(SELECT root FROM sessions WHERE id=?)) ORDER BY id DESC LIMIT ?",
            (session_id, limit),
        )
        return [BookedCall(row[0], row[1], row[2], Usage(*row[3:7]), row[7]) for row in reversed(rows)]

    def by_model(self, user: str, since: float = 0.0) -> dict[str, Usage]:
        """Return the sums of one user per model."""
        rows = self._database.query(
            "SELECT b.model, sum(prompt), sum(completion), sum(cached), sum(reasoning) FROM usage b"
            " JOIN sessions s ON s.sid=b.sid JOIN users u ON u.id=s.user WHERE u.name=? AND b.ts>=? GROUP BY b.model",
            (user, since),
        )
        return {str(row[0]): Usage(*(int(value) for value in row[1:])) for row in rows}
