"""Chat accounts and the local user each speaks for. Knows no platform."""

from __future__ import annotations

import time

from hermes_nb.store.database import Database
from hermes_nb.store.people import People


class Accounts:
    """Pairings that were confirmed. An account that is not here is a stranger."""

    def __init__(self, database: Database, people: People, user: str) -> None:
        self._database, self._people, self._user = database, people, user

    def link(self, platform: str, account: str, user: str | None = None, *, display: str | None = None) -> None:
        """Let an account speak for a user, in place of the user it spoke for before."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO accounts(platform, account, user, display, paired) VALUES(?, ?, ?, ?, ?)",
                (platform, account, self._people.user(connection, user or self._user), display, time.time()),
            )

    def unlink(self, platform: str, account: str) -> bool:
        """Make the account a stranger again; False when it was one."""
        with self._database.write() as connection:
            cursor = connection.execute("DELETE FROM accounts WHERE platform=? AND account=?", (platform, account))
            return cursor.rowcount == 1

    def user_of(self, platform: str, account: str) -> str | None:
        """Return the user an account speaks for, or None for a stranger."""
        row = self._database.one(
            "SELECT u.name FROM accounts a JOIN users u ON u.id=a.user WHERE a.platform=? AND a.account=?",
            (platform, account),
        )
        return str(row[0]) if row else None

    def of(self, user: str | None = None) -> list[tuple[str, str]]:
        """Return (platform, account) of every account of a user."""
        rows = self._database.query(
            "SELECT a.platform, a.account FROM accounts a JOIN users u ON u.id=a.user WHERE u.name=? ORDER BY a.paired",
            (user or self._user,),
        )
        return [(str(platform), str(account)) for platform, account in rows]
