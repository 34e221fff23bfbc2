"""Who has the store open, for upgrades and for the gateway's status. Knows no lease."""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from hermes_nb.core.ids import new_id
from hermes_nb.store.database import Database
from hermes_nb.store.process import is_dead, this_process


@dataclass(frozen=True, slots=True)
class Holder:
    """One open store of one process."""

    id: str
    holder: str
    kind: str
    version: str
    started: float
    heartbeat: float
    status: str | None
    dead: bool


class Holders:
    """The register of open stores."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._id: str | None = None

    def register(self, kind: str) -> None:
        """Enter this store, and strike out those of dead processes of this host."""
        now, gone = time.time(), [row.id for row in self.list() if row.dead]
        self._id = new_id()
        with self._database.write() as connection:
            connection.executemany("DELETE FROM holders WHERE id=?", [(holder,) for holder in gone])
            connection.execute(
                "INSERT INTO holders(id, holder, kind, version, started, heartbeat) VALUES(?, ?, ?, ?, ?, ?)",
                (self._id, this_process(), kind, _version(), now, now),
            )

    def beat(self, status: str | None = None) -> None:
        """Say that this store is in use, with an optional line for others to read."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE holders SET heartbeat=?, status=coalesce(?, status) WHERE id=?", (time.time(), status, self._id)
            )

    def leave(self) -> None:
        """Strike this store out."""
        if self._id is None:
            return
        with self._database.write() as connection:
            connection.execute("DELETE FROM holders WHERE id=?", (self._id,))
        self._id = None

    def list(self) -> list[Holder]:
        """Return every entry; ``dead`` marks those of processes of this host that are gone."""
        rows = self._database.query(
            "SELECT id, holder, kind, version, started, heartbeat, status FROM holders ORDER BY started"
        )
        return [Holder(*row, dead=is_dead(row[1])) for row in rows]


def _version() -> str:
    try:
        return version("hermes-nb")
    except PackageNotFoundError:
        # Run from a source tree that was not installed.
        return "source"
