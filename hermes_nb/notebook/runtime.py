"""What the notebook front end gets from the composition root, as a protocol: the front end never imports it."""

from __future__ import annotations

from typing import Protocol

from hermes_nb.agent.agent import Agent
from hermes_nb.core.paths import Home
from hermes_nb.core.types import Session
from hermes_nb.store.approvals import Allowed
from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.store import Store


class Runtime(Protocol):
    """What the composition root gives to front ends."""

    home: Home

    @property
    def store(self) -> Store: ...

    def agent(
        self, *, session: Session | None, title: str | None, notebook: str | None, kernel_id: str | None
    ) -> Agent:
        """Return an agent that continues ``session``, or begins one when it is None."""
        ...

    def endpoint_line(self) -> str: ...

    def memory_text(self) -> str: ...

    def allowed(self) -> Allowed: ...

    def memory(self) -> MemoryStore: ...

    def close(self) -> None: ...
