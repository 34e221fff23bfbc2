"""Numbered steps from one schema to the next. Each is one function, runs once, and never changes afterwards."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from hermes_nb.core.errors import StoreBusy, StoreError, StoreNewer
from hermes_nb.store.database import Database, schema_version
from hermes_nb.store.process import describe, is_dead, this_process
from hermes_nb.store.schema import SCHEMA_1
from hermes_nb.store.tokeniser import TOKENISER

APPLICATION = 0x484E4231
"""``HNB1`` in the file's header, so that tools and we can tell our file from another program's."""
_STALE = 600.0
"""Seconds without a heartbeat after which a holder on another host counts as gone."""


def first_schema(connection: sqlite3.Connection) -> None:
    """1: everything that the product needs from the start."""
    connection.execute(f"PRAGMA application_id={APPLICATION}")
    for statement in SCHEMA_1:
        connection.execute(statement)
    connection.execute("INSERT INTO meta(key, value) VALUES('tokeniser', ?)", (TOKENISER,))


Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: tuple[Migration, ...] = (first_schema,)


def migrate(database: Database, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest schema, in one transaction.

    Raises StoreNewer for a file of a later version, StoreBusy while another live process uses an older schema,
    StoreError for the database of another program.
    """
    newest = len(migrations)
    with database.read() as connection:
        version = schema_version(connection)
    if version != newest:
        with database.write() as connection:
            # Read again under the lock: another process may have done the work meanwhile.
            version = schema_version(connection)
            if version > newest:
                raise StoreNewer(
                    f"The store {database.path} was written by a newer hermes-nb (schema {version}, this one knows "
                    f"{newest}). Upgrade with: pip install -U hermes-nb"
                )
            if version == 0:
                _refuse_foreign(connection, database)
            elif version < newest:
                _refuse_live_holders(connection, database)
            for number in range(version, newest):
                migrations[number](connection)
            connection.execute(f"PRAGMA user_version={newest}")
    database.version = newest


def _refuse_foreign(connection: sqlite3.Connection, database: Database) -> None:
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        raise StoreError(
            f"{database.path} is a database of another program. Nothing was changed; name another file or home."
        )


def _refuse_live_holders(connection: sqlite3.Connection, database: Database) -> None:
    now = time.time()
    for holder, kind, heartbeat in connection.execute("SELECT holder, kind, heartbeat FROM holders").fetchall():
        if holder == this_process() or is_dead(holder):
            continue
        if holder.split("/")[0] == this_process().split("/")[0] or now - heartbeat < _STALE:
            raise StoreBusy(
                f"The store {database.path} must be upgraded, but {describe(holder)} ({kind}) still uses it with an "
                "older hermes-nb. End it (restart that kernel or gateway), then open the store again."
            )
