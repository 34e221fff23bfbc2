"""The memory of one user as a new session's prompt shows it: screened, within its budget, with notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_nb.prompt.blocking import Screened, screen
from hermes_nb.store.memory import MemoryStore

if TYPE_CHECKING:
    from hermes_nb.core.scan import Allowances


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
