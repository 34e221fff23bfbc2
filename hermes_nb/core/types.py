"""Frozen values that cross layers. Dictionaries appear only where the wire itself is meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_nb.core.inert import inert
from hermes_nb.core.names import ApprovalState, MessageStatus, ParentKind, TurnStatus

Wire = dict[str, Any]
"""One message exactly as it is sent to a chat-completions endpoint."""


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation entity. ``root_id`` names its lineage; ``revision`` rises when history changed."""

    id: str
    root_id: str
    parent_id: str | None
    parent_kind: ParentKind | None
    user: str
    source: str
    title: str | None
    revision: int
    started: float
    ended: float | None
    end_reason: str | None
    model: str | None
    base_url: str | None
    key_env: str | None
    prefix_id: str | None
    head: bytes | None
    """Start of every request body up to and including the comma before ``"tools"`` or ``"messages"``."""
    cwd: str | None
    notebook: str | None
    archived: bool
    message_count: int
    last_active: float


@dataclass(frozen=True, slots=True)
class Message:
    """One stored row. ``wire`` is the JSON text exactly as sent; ``text`` is what people read and search."""

    id: int
    session_id: str
    role: str
    wire: str
    dialect: str
    text: str
    tool_name: str | None
    status: MessageStatus
    turn_id: str | None
    timestamp: float


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A row to be stored. ``text`` None means: the wire's own content."""

    wire: Wire
    dialect: str = "openai"
    text: str | None = None
    tool_name: str | None = None
    status: MessageStatus = MessageStatus.COMPLETE
    turn_id: str | None = None
    platform_message_id: str | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """What every request of a session starts with, exactly as sent.

    ``tools`` is the JSON array (b"" when there are none), ``system`` the JSON object of the system
    message; ``id`` is the sha256 over both.
    """

    id: str
    tools: bytes
    system: bytes


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to run a turn in one lineage. Every write of the turn carries ``fence``."""

    root_id: str
    holder: str
    fence: int


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One message that matches; ``score`` is higher for better matches."""

    message_id: int
    session_id: str
    root_id: str
    role: str
    snippet: str
    timestamp: float
    score: float


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``notice`` says what could not be searched or was bounded; None when nothing is to be said."""

    hits: tuple[SearchHit, ...]
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the endpoint counted them; ``cached`` and ``reasoning`` are parts of the other two."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class RequestUsage:
    """One model call of a turn: its tokens (None: the endpoint gave none), its size, and what it shares.

    ``reuse`` is the share of the session's request before that begins this one, byte for byte; None for the first
    one of a process.
    """

    usage: Usage | None
    size: int
    reuse: float | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model asked for it; ``arguments`` is the raw JSON text."""

    id: str
    name: str
    arguments: str
    masked: bool = False
    """A secret in the arguments was replaced before anything was stored; the call is refused."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that a tool made; ``data`` are the file's bytes."""

    mime: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back. ``content`` goes to the model; ``note`` is the one-line summary people see."""

    content: str
    is_error: bool = False
    note: str | None = None
    images: tuple[Image, ...] = ()
    persisted: str | None = None
    """What was durably kept outside the transcript, for the turn's footer, e.g. ``memory: 1 entry added``."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A question to the user, as its row holds it."""

    id: str
    root_id: str
    tool: str
    arguments: Mapping[str, Any]
    args_hash: str
    reason: str
    diff: str | None
    state: ApprovalState
    answered_by: str | None
    asked: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One call of a finished turn, for ``TurnResult.tool_calls``."""

    id: str
    name: str
    arguments: str
    content: str
    is_error: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn gave back. ``str(result)`` is the text; ``code`` is its first fenced code block or None."""

    text: str
    status: TurnStatus
    session_id: str
    turn_id: str
    model: str
    usage: Usage = field(default_factory=Usage)
    requests: tuple[RequestUsage, ...] = ()
    """Each model call, in order."""
    code: str | None = None
    tool_calls: tuple[ToolRecord, ...] = ()
    messages: tuple[Wire, ...] = ()
    persisted: tuple[str, ...] = ()
    error: str | None = None

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return inert(self.text)
