"""What may differ from turn to turn, and how calls are decided. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hermes_nb.core.names import ApprovalMode
from hermes_nb.tools.approval import Approver
from hermes_nb.tools.kernel import KernelPort


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """What is different in one turn. None: as the agent was opened."""

    model: str | None = None
    only_toolsets: Sequence[str] = ()
    without: Sequence[str] = ()
    masked: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further tools that may not run in this turn, each with the sentence that the model gets."""
    mode: ApprovalMode | None = None
    variables: Sequence[str] = ()
    """Names whose summaries the model gets with the message, each only when it changed."""
    recall: Sequence[str] = ()
    """Lines ``name: value``, or blocks that begin with one; each is told only when it changed."""
    surface: str | None = None
    kernel: KernelPort | None = None
    approver: Approver | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How calls are decided. ``chosen``: somebody set the mode, so it overrides stored rules in a headless run."""

    mode: ApprovalMode = ApprovalMode.ASK
    chosen: bool = False
    allow: tuple[str, ...] = ()
