"""SQLite's errors in our words. Owns the mapping from result codes to the error tree; knows no table."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from hermes_nb.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull
from hermes_nb.core.paths import HOME_VARIABLE

# A write that the operating system refused half-way (file size limit, quota, full disk under the -shm file) comes
# as one of these and not as SQLITE_FULL.
_NO_ROOM = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)


def code_of(error: sqlite3.Error) -> int:
    """Return the extended result code; 0 for errors that Python's own layer raised."""
    return getattr(error, "sqlite_errorcode", 0)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether trying again may help."""
    return code_of(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether the file is no database or a damaged one."""
    return code_of(error) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """Return our error for SQLite's; the caller raises it ``from`` the original."""
    code = code_of(error)
    primary = code & 0xFF
    if is_busy(error):
        return StoreBusy(
            f"Another program kept the store {path} locked for too long. Nothing was written; "
            "end the program that holds it, or try again."
        )
    if primary == sqlite3.SQLITE_READONLY:
        return StoreFull(f"The store {path} is read-only. Nothing was written; make the file and its folder writable.")
    if primary == sqlite3.SQLITE_FULL or code in _NO_ROOM:
        return StoreFull(f"There is no room to write {path} ({error}). Nothing was written; free some space.")
    if is_corrupt(error):
        return StoreCorrupt(
            f"The store {path} is damaged ({error}). Restart the kernels that use it: the file is then moved aside, "
            "nothing of it is deleted, and a new one is begun."
        )
    if primary == sqlite3.SQLITE_CANTOPEN:
        return StoreError(
            f"The store {path} cannot be opened ({error}). Check its folder, or set {HOME_VARIABLE} to a local folder."
        )
    return StoreError(f"The store {path} failed: {error}.")


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Raise our errors for SQLite's while the block runs."""
    try:
        yield
    except sqlite3.Error as exc:
        raise translate(exc, path) from exc
