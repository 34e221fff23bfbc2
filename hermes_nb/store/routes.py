"""Where a session is reached: chat addresses and notebook files, each bound to a lineage. Knows no platform."""

from __future__ import annotations

import time

from hermes_nb.core.types import Session
from hermes_nb.store.database import Database
from hermes_nb.store.sessions import Sessions, root_id_of, root_of


class Routes:
    """Bindings name the lineage, so they outlive a compaction; reading one gives the live tip."""

    def __init__(self, database: Database, sessions: Sessions) -> None:
        self._database, self._sessions = database, sessions

    def bind(self, session_key: str, session_id: str) -> str | None:
        """Bind a session key; return the root id it was bound to before."""
        with self._database.write() as connection:
            root = root_of(connection, session_id)
            row = connection.execute("SELECT root FROM routes WHERE key=?", (session_key,)).fetchone()
            connection.execute(
                "INSERT INTO routes(key, root, previous, bound) VALUES(?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET"
                " previous=CASE WHEN root=excluded.root THEN previous ELSE root END, root=excluded.root,"
                " bound=excluded.bound",
                (session_key, root, None, time.time()),
            )
            return root_id_of(connection, row[0]) if row else None

    def unbind(self, session_key: str) -> bool:
        """Remove a binding; False when there was none."""
        with self._database.write() as connection:
            return connection.execute("DELETE FROM routes WHERE key=?", (session_key,)).rowcount == 1

    def resolve(self, session_key: str) -> Session | None:
        """Return the live session of a key, or None."""
        row = self._database.one("SELECT root FROM routes WHERE key=?", (session_key,))
        return self._sessions.tip_of_root(row[0]) if row else None

    def keys(self, session_id: str) -> list[str]:
        """Return the keys that lead to this session's lineage."""
        rows = self._database.query(
            "SELECT key FROM routes WHERE root=(SELECT root FROM sessions WHERE id=?) ORDER BY bound", (session_id,)
        )
        return [str(row[0]) for row in rows]

    def bind_notebook(self, path: str, session_id: str) -> None:
        """Bind a notebook file to the session's lineage."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO notebooks(path, root, bound) VALUES(?, ?, ?)",
                (path, root_of(connection, session_id), time.time()),
            )

    def notebook_session(self, path: str) -> Session | None:
        """Return the live session bound to a notebook file, or None."""
        row = self._database.one("SELECT root FROM notebooks WHERE path=?", (path,))
        return self._sessions.tip_of_root(row[0]) if row else None

    def notebook_path(self, root_id: str) -> str | None:
        """Return the notebook file bound to the lineage last, or None."""
        row = self._database.one(
            "SELECT path FROM notebooks WHERE root=(SELECT root FROM sessions WHERE id=?) ORDER BY bound DESC LIMIT 1",
            (root_id,),
        )
        return str(row[0]) if row else None
