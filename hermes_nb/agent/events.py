"""What front ends see of a running turn, in order. Events carry values only; they ask for nothing.

TurnStarted (TextDelta | ReasoningDelta | Notice | ToolStarted … ToolFinished | ApprovalAsked … ApprovalClosed
| StepFinished)* TurnFinished
"""

from __future__ import annotations

from dataclasses import dataclass

from hermes_nb.core.types import ApprovalRequest, ToolCall, ToolResult, TurnResult, Usage


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn_id: str
    session_id: str
    prefix_id: str
    model: str
    endpoint: str
    """Label of the endpoint, e.g. ``api.openai.com`` or ``offline demo model``."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the user that is not the model's: a retry, a warning, a choice that was made."""

    text: str
    level: str = "info"
    """``info``, ``warning`` or ``error``."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call: ToolCall
    result: ToolResult
    seconds: float


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class ApprovalClosed:
    """The question has its final state (see ``request.state`` and ``request.answered_by``)."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class StepFinished:
    usage: Usage
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    result: TurnResult


Event = (
    TurnStarted
    | TextDelta
    | ReasoningDelta
    | Notice
    | ToolStarted
    | ToolFinished
    | ApprovalAsked
    | ApprovalClosed
    | StepFinished
    | TurnFinished
)
