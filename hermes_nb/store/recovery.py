"""What happens to a damaged file: it is moved aside whole, never deleted, and a new one is begun."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hermes_nb.core.errors import StoreBusy, StoreCorrupt

T = TypeVar("T")

_SUFFIXES = ("", "-wal", "-shm", "-journal")


def open_or_replace(path: Path, open_file: Callable[[], T]) -> tuple[T, str | None]:
    """Return what ``open_file`` returns, and a message when a damaged file had to be moved aside first.

    Raises StoreCorrupt when it cannot be moved.
    """
    try:
        return open_file(), None
    except StoreCorrupt as exc:
        damage = exc
    # A damaged file is rare, and filelock costs a fifth of the whole store's import.
    from filelock import FileLock, Timeout  # noqa: PLC0415

    lock = FileLock(path.with_name(path.name + ".repair.lock"), timeout=30)
    try:
        with lock:
            try:
                # Another process may have replaced the file while we waited for the lock.
                return open_file(), None
            except StoreCorrupt:
                aside = _move_aside(path)
                return open_file(), (
                    f"The store {path} was damaged ({damage.__cause__}). It was moved to {aside}, nothing of it was "
                    f"deleted, and a new store was begun. What can still be read of it: sqlite3 {aside} .recover"
                )
    except Timeout as exc:
        raise StoreBusy(f"Another process is repairing {path}. Try again in a minute.") from exc
    except OSError as exc:
        raise StoreCorrupt(
            f"The store {path} is damaged ({damage.__cause__}) and could not be moved aside ({exc.strerror or exc}). "
            "Move it away yourself, or make its folder writable."
        ) from exc


def _move_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    aside, number = path.with_name(f"{path.name}.damaged-{stamp}"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    # The main file goes last: as long as it stands, whoever looks still finds it damaged.
    for suffix in reversed(_SUFFIXES):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    return aside
