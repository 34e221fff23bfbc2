"""What the running process offers to an agent that was opened without saying: kernel, approver, surface.

The notebook front end sets it when its extension is loaded; a plain ``Agent.open()`` in a cell then sees the
live namespace. One value per process, replaced as a whole. Imports nothing of ours, because loading the extension
imports this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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


Source = Ambient | Callable[[], Ambient]
"""A value, or what makes it when it is asked for the first time."""


class _Current:
    def __init__(self) -> None:
        self.source: Source = Ambient()


_current = _Current()


def ambient() -> Ambient:
    """Return what the process offers now."""
    source = _current.source
    if isinstance(source, Ambient):
        return source
    made = source()
    if _current.source is source:
        _current.source = made
    return made


def set_ambient(source: Source) -> Source:
    """Set what the process offers and return what it offered before."""
    before = _current.source
    _current.source = source
    return before
