"""Users and sources as small integers, for rows and for the search scope. Knows nothing of sessions."""

from __future__ import annotations

import getpass
import sqlite3
import time

from hermes_nb.store.database import Database


def system_user() -> str:
    """Return the name of the user who runs this process; ``user`` where the system has no name for it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run under a uid without an entry and without USER.
        return "user"


class People:
    """Numbers of users and sources. Rows are never removed, so a number once seen stays right."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def user(self, connection: sqlite3.Connection, name: str) -> int:
        """Return the user's number, made on first sight. For use inside a write transaction."""
        connection.execute("INSERT OR IGNORE INTO users(name, created) VALUES(?, ?)", (name, time.time()))
        return int(connection.execute("SELECT id FROM users WHERE name=?", (name,)).fetchone()[0])

    def source(self, connection: sqlite3.Connection, name: str) -> int:
        """Return the source's number, made on first sight. For use inside a write transaction."""
        connection.execute("INSERT OR IGNORE INTO sources(name) VALUES(?)", (name,))
        return int(connection.execute("SELECT id FROM sources WHERE name=?", (name,)).fetchone()[0])

    def known_user(self, name: str) -> int | None:
        """Return the user's number, or None for a user who never had a row."""
        row = self._database.one("SELECT id FROM users WHERE name=?", (name,))
        return int(row[0]) if row else None
