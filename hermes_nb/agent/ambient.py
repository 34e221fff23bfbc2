"""What the running process offers to an agent that was opened without saying: kernel, approver, surface.

The notebook front end sets it when its extension is loaded; a plain ``Agent.open()`` in a cell then sees the
live namespace. One value per process, replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hermes_nb.tools.approval import Approver
from hermes_nb.tools.kernel import KernelPort


@dataclass(frozen=True, slots=True)
class Ambient:
    """The defaults of this process. Without a front end: nobody to ask, no kernel."""

    surface: str = "script"
    kernel: KernelPort | None = None
    approver: Approver | None = None
    headless: bool = True
    check: Callable[[], None] | None = None
    """Called in the thread that wants to run a turn; raises HermesError when it must not, e.g. inside a tool."""


class _Current:
    value = Ambient()


def ambient() -> Ambient:
    """Return what the process offers now."""
    return _Current.value


def set_ambient(value: Ambient) -> Ambient:
    """Set what the process offers and return what it offered before."""
    before = _Current.value
    _Current.value = value
    return before
