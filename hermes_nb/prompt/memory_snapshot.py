"""The memory of one user as a new session's prompt shows it: screened, within its budget, with what to tell the user."""

from __future__ import annotations

from hermes_nb.core.scan import Allowances
from hermes_nb.prompt.blocking import Screened, screen
from hermes_nb.store.memory import MemoryStore


def memory_snapshot(memory: MemoryStore, allowances: Allowances | None = None) -> Screened:
    """Return both blocks with attacks replaced, entry by entry. Raises StoreError when a file cannot be read."""
    found: list[Screened] = []

    def shown(name: str, entry: str) -> str:
        screened = screen(entry, f"an entry of {name}", allowances=allowances)
        found.append(screened)
        return screened.text

    text = memory.snapshot(shown)
    notices = [notice for screened in found for notice in screened.notices]
    blocked = tuple(one for screened in found for one in screened.blocked)
    return Screened(text, (*memory.warnings(), *notices), blocked)
