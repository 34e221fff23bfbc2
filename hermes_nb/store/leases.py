"""The right to run a turn: one holder per lineage, a fence that only rises. Knows no messages.

free ──acquire──▶ held (fence+1) ──release──▶ free
                    │  ├─renew──▶ held
                    │  └─advance──▶ held (fence+1)        what the old fence still writes is refused
                    └─ holder dead, or silent for LEASE_SECONDS ──acquire by another──▶ held (fence+1)
"""

from __future__ import annotations

import sqlite3
import time

from hermes_nb.core.errors import LeaseLost, SessionLeased
from hermes_nb.core.names import LEASE_SECONDS
from hermes_nb.core.types import Lease
from hermes_nb.store.database import Database
from hermes_nb.store.process import describe, is_dead, this_process
from hermes_nb.store.sessions import root_of


class Leases:
    """Leases of all lineages. ``root_id`` may be the id of any session of the lineage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @staticmethod
    def holder() -> str:
        """Return the holder string of this process: host, boot, pid, start time."""
        return this_process()

    def acquire(self, root_id: str, holder: str, *, surface: str | None = None, force: bool = False) -> Lease:
        """Take the right to run a turn.

        A holder of this host that is dead is replaced at once, a live one only after LEASE_SECONDS without a
        renewal, or when the user says so (``force``). Raises SessionLeased naming the holder.
        """
        now = time.time()
        with self._database.write() as connection:
            root = root_of(connection, root_id)
            row = connection.execute(
                "SELECT holder, fence, surface, expires_at FROM leases WHERE root=?", (root,)
            ).fetchone()
            if row is not None and row[0] is not None and not force and row[3] > now and not is_dead(row[0]):
                where = f" ({row[2]})" if row[2] else ""
                raise SessionLeased(
                    f"A turn of this session is running in {describe(row[0])}{where}. Wait for it, or stop it there."
                )
            fence = (row[1] if row else 0) + 1
            connection.execute(
                "INSERT INTO leases(root, holder, fence, surface, acquired, expires_at) VALUES(?, ?, ?, ?, ?, ?)"
                " ON CONFLICT(root) DO UPDATE SET holder=excluded.holder, fence=excluded.fence,"
                " surface=excluded.surface, acquired=excluded.acquired, expires_at=excluded.expires_at",
                (root, holder, fence, surface, now, now + LEASE_SECONDS),
            )
        return Lease(root_id, holder, fence)

    def renew(self, lease: Lease) -> bool:
        """Prolong the lease; False when it is no longer ours."""
        with self._database.write() as connection:
            return self._change(connection, lease, "expires_at=?", (time.time() + LEASE_SECONDS,))

    def held(self, lease: Lease) -> bool:
        """Whether the lease is still ours, without writing."""
        return bool(
            self._database.query(
                "SELECT 1 FROM leases WHERE root=(SELECT root FROM sessions WHERE id=?) AND holder=? AND fence=?",
                (lease.root_id, lease.holder, lease.fence),
            )
        )

    def current(self, root_id: str) -> Lease | None:
        """Return the lease of the turn that runs now, whoever holds it, or None."""
        row = self._database.one(
            "SELECT holder, fence FROM leases WHERE root=(SELECT root FROM sessions WHERE id=?)"
            " AND holder IS NOT NULL AND expires_at>?",
            (root_id, time.time()),
        )
        return Lease(root_id, row[0], row[1]) if row and not is_dead(row[0]) else None

    def release(self, lease: Lease) -> bool:
        """Give the lease back; False when it was no longer ours."""
        with self._database.write() as connection:
            return self._change(connection, lease, "holder=NULL, expires_at=0", ())

    def advance(self, lease: Lease) -> Lease:
        """Raise the fence, so that nothing written under the old one is accepted. Raises LeaseLost."""
        with self._database.write() as connection:
            if not self._change(connection, lease, "fence=fence+1, expires_at=?", (time.time() + LEASE_SECONDS,)):
                raise LeaseLost("This turn no longer holds the session; another turn, or an interrupt, took it.")
        return Lease(lease.root_id, lease.holder, lease.fence + 1)

    @staticmethod
    def _change(connection: sqlite3.Connection, lease: Lease, what: str, values: tuple[object, ...]) -> bool:
        cursor = connection.execute(
            f"UPDATE leases SET {what} WHERE root=(SELECT root FROM sessions WHERE id=?) AND holder=? AND fence=?",
            (*values, lease.root_id, lease.holder, lease.fence),
        )
        return cursor.rowcount == 1
