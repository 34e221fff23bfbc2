"""The SQLite file: opening it, its two connections, transactions, retry. Knows no table but the schema's version.

     writer ──lock── BEGIN IMMEDIATE … COMMIT      one short transaction at a time, never a model call inside
     reader ──lock── snapshot                      its own connection: never waits behind a writer of this process

No code opens the database file raw: closing any descriptor of it drops the POSIX locks of the whole process.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from hermes_nb.core.errors import ConfigError, StoreError, StoreForked, StoreNewer
from hermes_nb.core.paths import HOME_VARIABLE
from hermes_nb.store import fork
from hermes_nb.store.filesystem import is_network
from hermes_nb.store.sqlite_errors import is_busy, is_corrupt, translated

T = TypeVar("T")
Connect = Callable[[Path], sqlite3.Connection]

BUSY_SECONDS = 30.0
"""How long a write waits for the lock before it raises StoreBusy."""
_FIRST_PAUSE, _GROWTH, _LONGEST_PAUSE = 0.001, 1.6, 0.02
_JITTER = random.Random()

_COMMON = ("PRAGMA busy_timeout=0", "PRAGMA foreign_keys=ON", "PRAGMA temp_store=MEMORY")
_READER = ("PRAGMA mmap_size=1073741824", "PRAGMA cache_size=-65536", "PRAGMA query_only=ON")
_WRITER = ("PRAGMA mmap_size=268435456", "PRAGMA cache_size=-16384", "PRAGMA wal_autocheckpoint=1000")


def connect(path: Path) -> sqlite3.Connection:
    """Open one connection whose transactions are ours alone to begin and end."""
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=256)


def retried(act: Callable[[], T], seconds: float = BUSY_SECONDS) -> T:
    """Call ``act`` until it is no longer refused as busy.

    Own pauses instead of SQLite's busy handler: as fast, far fairer between processes, and a Python signal
    (the user's interrupt) is seen between two tries.
    """
    pause, end = _FIRST_PAUSE, time.monotonic() + seconds
    while True:
        try:
            return act()
        except sqlite3.OperationalError as exc:
            if not is_busy(exc) or time.monotonic() > end:
                raise
        time.sleep(pause * _JITTER.uniform(0.2, 1.0))
        pause = min(pause * _GROWTH, _LONGEST_PAUSE)


class Database:
    """One open file. Every method may be called from any thread of the process that opened it.

    Raises, from every method: StoreBusy, StoreFull, StoreCorrupt, StoreForked, StoreNewer (writes only).
    """

    def __init__(
        self,
        path: Path,
        *,
        connect: Connect = connect,
        network: Callable[[Path], bool] = is_network,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self.version: int | None = None
        """Schema version that writes require; set once the migrations ran."""
        self.notices: list[str] = []
        self._pid = os.getpid()
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        self._closed = False
        _create(path)
        fork.release_inherited(path)
        opened: list[sqlite3.Connection] = []
        try:
            with translated(path):
                self._writer = self._opened(connect, opened)
                self.journal_mode = self._choose_journal(network(path))
                self._configure(self._writer, _WRITER)
                # WAL keeps every acknowledged row through a process kill; without it only FULL is as safe.
                self._writer.execute(f"PRAGMA synchronous={'NORMAL' if self.journal_mode == 'wal' else 'FULL'}")
                self._reader = self._opened(connect, opened)
                self._configure(self._reader, _READER)
            self._identity = _identity(path)
        except BaseException:
            for connection in opened:
                connection.close()
            raise
        self._guard = fork.guard(path, [(self._writer, self._write_lock), (self._reader, self._read_lock)])

    def _opened(self, connect: Connect, opened: list[sqlite3.Connection]) -> sqlite3.Connection:
        connection = connect(self.path)
        opened.append(connection)
        for pragma in _COMMON:
            connection.execute(pragma)
        # The first real read: a damaged or foreign file is told here and not at some later statement.
        retried(lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchone())
        return connection

    def _configure(self, connection: sqlite3.Connection, pragmas: Sequence[str]) -> None:
        for pragma in pragmas:
            # A file that another host may truncate under us must not be mapped: the read would kill the process.
            if "mmap_size" not in pragma or self.journal_mode == "wal":
                connection.execute(pragma)

    def _choose_journal(self, network: bool) -> str:
        """Return ``wal`` or ``delete``; the mode SQLite reports counts, not the one that was asked for."""
        mode = self._journal("")
        why = "it lies on a network file system" if network else None
        if mode == "wal" and why is None:
            return mode
        if why is None:
            try:
                mode = self._journal("=WAL")
            except sqlite3.OperationalError as exc:
                if is_busy(exc):
                    raise
                why = str(exc)
            else:
                if mode == "wal":
                    return mode
                why = f"SQLite answered {mode!r}"
        mode = self._journal("=DELETE")
        self.notices.append(
            f"The store {self.path} works with a rollback journal, because the faster write-ahead log cannot be used "
            f"there ({why}). Several kernels at once will be slower. Set {HOME_VARIABLE} to a folder on a local disk."
        )
        return mode

    def _journal(self, wanted: str) -> str:
        return str(retried(lambda: self._writer.execute(f"PRAGMA journal_mode{wanted}").fetchone())[0])

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise StoreForked(
                "This process is a fork of the one that opened the store, and cannot use it. "
                "Open a new one here with hermes_nb.open_store()."
            )
        if self._closed:
            raise StoreError("This store was closed. Open it again with hermes_nb.open_store().")

    @contextmanager
    def write(self) -> Generator[sqlite3.Connection]:
        """Run the block in one ``BEGIN IMMEDIATE`` transaction; committed to the journal when the block has ended.

        Any exception rolls back. Not reentrant: a block must not open a second one.
        """
        self._check_usable()
        # A with statement, not acquire() and try: the user's interrupt cannot fall between the two.
        with self._write_lock:
            self._check_usable()
            connection = self._writer
            self._end(connection)
            with translated(self.path):
                try:
                    self._begin(connection)
                    yield connection
                    retried(lambda: connection.execute("COMMIT"), self._busy_seconds)
                finally:
                    # Twice: the user's interrupt may strike as the first call is entered.
                    try:
                        self._end(connection)
                    finally:
                        self._end(connection)

    def _begin(self, connection: sqlite3.Connection) -> None:
        if _identity(self.path) != self._identity:
            raise StoreError(
                f"The store {self.path} was removed or replaced while it was open. Nothing was written; restart the "
                "kernel, or open the store again."
            )
        retried(lambda: connection.execute("BEGIN IMMEDIATE"), self._busy_seconds)
        if self.version is not None:
            version = schema_version(connection)
            if version > self.version:
                raise StoreNewer(
                    f"A newer hermes-nb has upgraded the store {self.path} (schema {version}, this one knows "
                    f"{self.version}). Nothing was written; restart this kernel with the newer version."
                )
            if version < self.version:
                raise StoreError(f"The store {self.path} was replaced by an older one. Open the store again.")

    def _end(self, connection: sqlite3.Connection) -> None:
        """Roll back what was not committed."""
        # A child that was forked inside the block unwinds it too; the transaction is the parent's.
        if connection.in_transaction and os.getpid() == self._pid:
            connection.execute("ROLLBACK")

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Run the block on one snapshot of the database."""
        self._check_usable()
        with self._read_lock:
            self._check_usable()
            connection = self._reader
            self._end(connection)
            with translated(self.path):
                try:
                    connection.execute("BEGIN")
                    # Takes the snapshot now, so that no later statement of the block can be refused as busy.
                    retried(lambda: connection.execute("SELECT count(*) FROM sqlite_master").fetchone())
                    yield connection
                finally:
                    # Twice: the user's interrupt may strike as the first call is entered.
                    try:
                        self._end(connection)
                    finally:
                        self._end(connection)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of one SELECT."""
        self._check_usable()
        with self._read_lock:
            self._check_usable()
            self._end(self._reader)
            with translated(self.path):
                return retried(lambda: self._reader.execute(sql, parameters).fetchall())

    def one(self, sql: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of one SELECT, or None."""
        rows = self.query(sql, parameters)
        return rows[0] if rows else None

    def data_version(self) -> int:
        """Return a number that changes when any other connection has committed (28 us; cheap enough to poll)."""
        row = self.one("PRAGMA data_version")
        return int(row[0]) if row else 0

    def problems(self) -> list[str]:
        """Return what SQLite's checks find wrong; empty when the file is sound. Reads the whole file."""
        found = [str(row[0]) for row in self.query("PRAGMA integrity_check") if row[0] != "ok"]
        found += [f"{row[0]} row {row[1]} names a missing {row[2]}" for row in self.query("PRAGMA foreign_key_check")]
        with self.write() as connection:
            for table in ("w", "c"):
                try:
                    connection.execute(f"INSERT INTO {table}({table}) VALUES('integrity-check')")
                except sqlite3.DatabaseError as exc:
                    if not is_corrupt(exc):
                        raise
                    found.append(f"search table {table}: {exc}")
        return found

    @property
    def usable(self) -> bool:
        """Whether this process may still use the connections."""
        return not self._closed and os.getpid() == self._pid

    def close(self) -> None:
        """Close both connections; a second call, and a call in a forked child, do nothing."""
        if not self.usable:
            return
        with self._write_lock, self._read_lock:
            self._closed = True
            fork.forget(self._guard)
            self._reader.close()
            self._writer.close()


def schema_version(connection: sqlite3.Connection) -> int:
    """Return the number of migrations that the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - on every write: a third of the cost of Path.stat
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _create(path: Path) -> None:
    """Make the folder and an empty file that only its owner can read, if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError as exc:
        if path.is_dir() or not path.parent.is_dir():
            raise ConfigError(
                f"The store {path} is a folder, or its folder is a file. Set {HOME_VARIABLE} to another folder."
            ) from exc
    except OSError as exc:
        raise ConfigError(
            f"The store {path} cannot be created ({exc.strerror or exc}). "
            f"Set {HOME_VARIABLE} to a folder on a local disk that you own."
        ) from exc
