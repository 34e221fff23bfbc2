"""What front ends see of a running turn, in order. Events carry values only; they ask for nothing.

TurnStarted (TextDelta | ReasoningDelta | Notice | ToolStarted … ToolFinished | ApprovalAsked … ApprovalClosed
| StepFinished)* TurnFinished
"""

from __future__ import annotations

from dataclasses import dataclass

from hermes_nb.core.types import ApprovalRequest, ToolCall, ToolResult, TurnResult, Usage


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """The turn holds its lease and its user row is next; always the first event."""

    turn_id: str
    session_id: str
    prefix_id: str
    model: str
    endpoint: str
    """Label of the endpoint, e.g. ``api.openai.com`` or ``offline demo model``."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """The next piece of the model's reasoning, when the endpoint shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the user that is not the model's: a retry, a warning, a choice that was made."""

    text: str
    level: str = "info"
    """``info``, ``warning`` or ``error``."""


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call begins; policy has not decided yet."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call has its result, whether it ran, failed or was refused."""

    call: ToolCall
    result: ToolResult
    seconds: float


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A question was written and waits for an answer."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class ApprovalClosed:
    """The question has its final state (see ``request.state`` and ``request.answered_by``)."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class StepFinished:
    """One model call ended."""

    usage: Usage
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The turn is over; always the last event."""

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
