"""Removing sessions so that nothing of them is found or left behind. Knows every table that names a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hermes_nb.store import index
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import root_of

_BY_ROOT = ("leases", "approvals", "queue", "cell_edits", "routes", "notebooks", "handoffs", "deliveries")


class Deletion:
    """Deletes whole lineages, or single sessions out of one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def delete(self, session_id: str) -> None:
        """Delete the session's lineage (what a list shows as one entry) with its delegates; branches stay."""
        with self._database.write() as connection:
            roots = [root_of(connection, session_id)]
            for root in roots:
                roots += [
                    row[0]
                    for row in connection.execute(
                        "SELECT d.root FROM sessions d JOIN sessions s ON s.sid=d.parent"
                        " WHERE s.root=? AND d.parent_kind='delegate' AND d.root<>s.root",
                        (root,),
                    )
                    if row[0] not in roots
                ]
            sids = [
                row[0]
                for root in roots
                for row in connection.execute("SELECT sid FROM sessions WHERE root=?", (root,)).fetchall()
            ]
            self._delete_rows(connection, sids)
            self._delete_lineages(connection, roots)
            _drop_unused_prefixes(connection)

    def prune(self, session_ids: Sequence[str]) -> int:
        """Delete just these sessions; what followed them is kept, with its parent cleared. Return how many."""
        with self._database.write() as connection:
            rows = [
                row
                for session_id in dict.fromkeys(session_ids)
                for row in connection.execute("SELECT sid, root FROM sessions WHERE id=?", (session_id,)).fetchall()
            ]
            self._delete_rows(connection, [sid for sid, _ in rows])
            gone = [
                root
                for root in {root for _, root in rows}
                if not connection.execute("SELECT 1 FROM sessions WHERE root=? LIMIT 1", (root,)).fetchone()
            ]
            self._delete_lineages(connection, gone)
            _drop_unused_prefixes(connection)
            return len(rows)

    @staticmethod
    def _delete_rows(connection: sqlite3.Connection, sids: Sequence[int]) -> None:
        for sid in sids:
            index.remove_stored(connection, "m.sid=?", (sid,))
            # Said here and not left to the foreign keys alone: a file may have been changed with them switched off.
            connection.execute("UPDATE sessions SET parent=NULL WHERE parent=?", (sid,))
            for table in ("messages", "late_results", "usage", "checkpoints", "staged"):
                connection.execute(f"DELETE FROM {table} WHERE sid=?", (sid,))
            connection.execute("DELETE FROM sessions WHERE sid=?", (sid,))

    @staticmethod
    def _delete_lineages(connection: sqlite3.Connection, roots: Sequence[int]) -> None:
        for root in roots:
            for table in _BY_ROOT:
                connection.execute(f"DELETE FROM {table} WHERE root=?", (root,))


def _drop_unused_prefixes(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM prefixes WHERE id NOT IN (SELECT prefix FROM sessions WHERE prefix IS NOT NULL)")
