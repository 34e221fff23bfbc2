"""KernelPort: how a tool reaches the user's live kernel. A protocol; front ends implement it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hermes_nb.core.cancel import Cancel

NO_KERNEL = (
    "There is no live kernel in this session now, so nothing was run. "
    "Tell the user; they can open the notebook again or ask for a fresh kernel."
)
"""The one refusal of every kernel tool when no kernel is attached."""


@dataclass(frozen=True, slots=True)
class CodeResult:
    """What one piece of code showed, in the order of its kinds; ANSI codes are stripped from text."""

    ok: bool
    stdout: str = ""
    stderr: str = ""
    traceback: str = ""
    displays: tuple[Mapping[str, Any], ...] = ()
    """MIME bundles of results and displays, in order."""
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """One name of the user's namespace, as the model may see it."""

    name: str
    type: str
    summary: str


IN_TOOL_CALL = "HERMES_NB_IN_TOOL_CALL"
"""Environment variable that is set while code of a tool call runs: a command it starts decides nothing for the user."""


@runtime_checkable
class SecretSource(Protocol):
    """A KernelPort that can say at once which values of its namespace are secret; called from any thread."""

    def secret_values(self) -> Sequence[str]:
        """Return the text of variables with secret names, as the namespace is now. Never raises, never waits."""
        ...


class KernelPort(Protocol):
    """Runs code and looks at variables in the user's namespace.

    Calls block the calling thread until done. Contract: never call from a thread that holds a lock the
    kernel needs; raise ``Cancelled`` when ``cancel`` is set before the code began; code that was
    interrupted returns ``interrupted=True``.
    """

    def execute(self, code: str, cancel: Cancel) -> CodeResult: ...

    def variables(self, names: Sequence[str] | None, cancel: Cancel) -> list[Variable]:
        """Return summaries of ``names`` (all of the user's own when None), secrets masked."""
        ...
