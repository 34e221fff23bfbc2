"""Frozen request prefixes, stored once per content. Knows nothing of how a prefix is built."""

from __future__ import annotations

import hashlib
import time

from hermes_nb.core.errors import StoreError
from hermes_nb.core.types import Prefix
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import number_of


def make_prefix(tools: bytes, system: bytes) -> Prefix:
    """Return the prefix with its content address."""
    digest = hashlib.sha256(len(tools).to_bytes(8, "big"))
    digest.update(tools)
    digest.update(system)
    return Prefix(digest.hexdigest(), tools, system)


class Prefixes:
    """What each session sends before its messages, byte for byte."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def freeze(self, session_id: str, prefix: Prefix, head: bytes, replace: bool) -> Prefix:
        """See Store.freeze_prefix."""
        with self._database.write() as connection:
            sid = number_of(connection, session_id)
            connection.execute(
                "INSERT OR IGNORE INTO prefixes(id, tools, system, created) VALUES(?, ?, ?, ?)",
                (prefix.id, prefix.tools, prefix.system, time.time()),
            )
            stored = connection.execute("SELECT tools, system FROM prefixes WHERE id=?", (prefix.id,)).fetchone()
            if stored != (prefix.tools, prefix.system):
                raise StoreError(f"Prefix {prefix.id} is stored with other bytes; its id must be made by make_prefix.")
            # A prefix that is missing from its table counts as none: the session would be unusable otherwise.
            connection.execute(
                "UPDATE sessions SET prefix=?1, head=?2 WHERE sid=?3"
                " AND (?4 OR prefix IS NULL OR head IS NULL OR prefix NOT IN (SELECT id FROM prefixes))",
                (prefix.id, head, sid, replace),
            )
            row = connection.execute(
                "SELECT p.id, p.tools, p.system FROM prefixes p JOIN sessions s ON s.prefix=p.id WHERE s.sid=?", (sid,)
            ).fetchone()
        return Prefix(*row)

    def get(self, session_id: str) -> Prefix | None:
        """Return the session's prefix, or None when none was frozen yet."""
        row = self._database.one(
            "SELECT p.id, p.tools, p.system FROM sessions s LEFT JOIN prefixes p ON p.id=s.prefix WHERE s.id=?",
            (session_id,),
        )
        if row is None:
            with self._database.read() as connection:
                number_of(connection, session_id)
        return Prefix(*row) if row and row[0] else None
