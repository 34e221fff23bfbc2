"""Many processes write one memory file at once while a reader looks all the time."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.memory_text import DELIMITER, size

PROCESSES = 8
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def entry(name: int, number: int) -> str:
    return f"process {name} entry {number:04d}"


def write(folder: str, name: int, count: int, limit: int, acknowledged: str) -> None:
    """Add ``count`` entries; note each that was acknowledged in a file of this process."""
    store = MemoryStore(Path(folder), char_limit=limit)
    with open(acknowledged, "w", encoding="utf-8") as file:  # noqa: PTH123
        for number in range(count):
            outcome = store.add("memory", entry(name, number))
            assert outcome.success or outcome.over_budget, outcome.message
            if outcome.success:
                file.write(f"{entry(name, number)}\n")
                file.flush()


def torture(folder: Path, total: int, limit: int) -> tuple[list[str], list[str], int, float]:
    """Return what was acknowledged, what the file holds, how often it was read meanwhile, and the seconds."""
    spawn = multiprocessing.get_context("spawn")
    memories = folder / "memories"
    notes = [folder / f"acknowledged-{name}" for name in range(PROCESSES)]
    workers = [
        spawn.Process(target=write, args=(os.fspath(memories), name, total // PROCESSES, limit, os.fspath(note)))
        for name, note in enumerate(notes)
    ]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    path = memories / "MEMORY.md"
    known = {entry(name, number) for name in range(PROCESSES) for number in range(total // PROCESSES)}
    reads, before = 0, 0
    while any(worker.is_alive() for worker in workers):
        if path.exists():
            text = path.read_bytes().decode("utf-8")
            assert text.endswith("\n")
            entries = text.removesuffix("\n").split(DELIMITER)
            assert len(set(entries)) == len(entries)
            assert known.issuperset(entries)
            assert size(entries) <= limit
            assert len(entries) >= before
            before = len(entries)
            reads += 1
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    said = [line for note in notes for line in note.read_text(encoding="utf-8").splitlines()]
    return said, list(MemoryStore(memories, char_limit=limit).entries()), reads, time.monotonic() - began


def test_a_budget_that_holds_all_has_every_entry_once(
    tmp_path: Path, size: Callable[[int, int], int], figure: Callable[[str, object], None]
) -> None:
    total = size(200, 1000)
    said, held, reads, seconds = torture(tmp_path, total, 100_000)
    assert len(said) == total
    assert len(held) == total
    assert sorted(held) == sorted(said)
    assert not list((tmp_path / "memories").glob(".mem_*"))
    figure(f"{total} memory writes from {PROCESSES} processes, all kept", f"{seconds:.1f} s, {reads} reads meanwhile")


def test_at_the_default_budget_every_acknowledged_entry_is_there_and_the_file_never_exceeds_it(
    tmp_path: Path, size: Callable[[int, int], int]
) -> None:
    said, held, _, _ = torture(tmp_path, size(200, 1000), 2200)
    assert len(said) > 50
    assert sorted(held) == sorted(said)
