"""A store on a real file, and ways to look at it from another connection or process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_nb.store.store import Store, open_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with open_store(path, user="ada") as opened:
        yield opened


@pytest.fixture
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """A second connection, as another program would have it."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=10)
    yield connection
    connection.close()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a Python process that runs a script with arguments; killed at the end if it still runs."""
    running: list[subprocess.Popen[str]] = []

    def begin(script: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
