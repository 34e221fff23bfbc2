"""What a fork does to open SQLite connections.

A child that inherits a connection must not use it, and must not let it be closed by accident while the parent was
in the middle of a write: the close would roll the parent's transaction back in memory that both share. Before a
fork we therefore wait, shortly, until the connections are idle. In the child nothing is touched: SQLite may hold
mutexes of threads that no longer exist, and most children never use the store. The inherited connections are kept
alive for ever. Only when the child opens the same file for itself are the idle ones closed first, because SQLite
remembers locks per process and would believe it holds those of the parent
(https://www.sqlite.org/howtocorrupt.html, section 2.6).
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path

from hermes_nb.core.errors import StoreForked

_WAIT = 1.0
"""Seconds for which a fork waits for a running write."""


@dataclass(eq=False)
class Guarded:
    """The connections of one open database with the locks that say when each is idle."""

    path: Path
    connections: list[tuple[sqlite3.Connection, threading.Lock]]
    idle: list[bool] = field(default_factory=list[bool])


_open: weakref.WeakSet[Guarded] = weakref.WeakSet()
_at_fork: list[Guarded] = []
_inherited: list[Guarded] = []


def guard(path: Path, connections: list[tuple[sqlite3.Connection, threading.Lock]]) -> Guarded:
    """Watch these connections; the caller keeps the returned value for as long as they are open."""
    guarded = Guarded(path, connections)
    _open.add(guarded)
    return guarded


def forget(guarded: Guarded) -> None:
    """Stop watching connections that were closed."""
    _open.discard(guarded)


def release_inherited(path: Path) -> None:
    """In a forked child, close the idle connections to ``path`` that it inherited, before it opens its own.

    Raises StoreForked when the fork happened in the middle of a write, where no safe way exists.
    """
    for guarded in [g for g in _inherited if g.path == path]:
        if not all(guarded.idle):
            raise StoreForked(
                f"This process was forked while {path} was being written, so it cannot open it safely. "
                "Start the process with the 'spawn' method instead."
            )
        for connection, _ in guarded.connections:
            connection.close()
        _inherited.remove(guarded)


def _before() -> None:
    for guarded in list(_open):
        guarded.idle = [lock.acquire(timeout=_WAIT) for _, lock in guarded.connections]
        _at_fork.append(guarded)


def _release() -> None:
    for guarded in _at_fork:
        for (_, lock), idle in zip(guarded.connections, guarded.idle, strict=True):
            if idle:
                lock.release()
    _at_fork.clear()


def _in_child() -> None:
    for guarded in _at_fork:
        for connection, _ in guarded.connections:
            # One reference too many: the interpreter's exit must not close the parent's connection.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        _open.discard(guarded)
        _inherited.append(guarded)
    _at_fork.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
