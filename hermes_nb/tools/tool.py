"""What a tool is: a schema, what it may do, and a function. Knows no registry, no policy, no front end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.names import Parallel, Risk, Where
from hermes_nb.core.secrets import mask
from hermes_nb.core.types import ToolResult
from hermes_nb.tools.kernel import KernelPort


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running call may use. ``services`` are the values the composition root hands to tools by name
    (``store``, ``memory``); a tool asks for what it needs and says so when it is missing.
    """

    session_id: str
    root_id: str
    user: str
    surface: str
    turn_id: str
    cwd: Path
    cancel: Cancel
    kernel: KernelPort | None = None
    services: Mapping[str, Any] = field(default_factory=dict[str, Any])
    mask: Callable[[str], str] = mask
    """Masks the turn's secrets. Every result passes it; a tool that cuts its text calls it before the cut."""
    approved: bool = False
    """The user was asked about exactly this call and said yes."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the user is asked about a call, and what it would change."""

    reason: str
    diff: str | None = None


Handler = Callable[..., "ToolResult | str"]
"""``handler(context, **arguments)``. A ``str`` is a successful result. Raises ToolError to fail."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as its author declares it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments, an object."""
    handler: Handler
    toolset: str
    risk: Risk = Risk.EXECUTE
    parallel: Parallel = Parallel.NEVER
    where: Where = Where.PROCESS
    check: Callable[[], str | None] | None = None
    """Returns why the tool cannot work here (it is then not offered), or None."""
    question: Callable[[ToolContext, Mapping[str, Any]], Question | None] | None = None
    """For a tool with a switch of its own (memory, skills): what to ask before this call, None for nothing. Where
    nobody answers, the tool runs without ``context.approved`` and keeps its change waiting."""
    aliases: tuple[Mapping[str, Any], ...] = ()
    """Argument schemas published by earlier versions, which the handler still accepts."""
