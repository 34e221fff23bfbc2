"""Enumerations and limits shared by all layers, in the words of ``docs/glossary.md``."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """Who speaks in a stored message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageStatus(StrEnum):
    """Where a stored message is in its life; only COMPLETE and INTERRUPTED rows are sent to a model."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    UNDONE = "undone"
    COMPACTED = "compacted"


class ParentKind(StrEnum):
    """Why a session has a parent."""

    COMPACTION = "compaction"
    BRANCH = "branch"
    DELEGATE = "delegate"


class ApprovalMode(StrEnum):
    """How much the user wants to be asked."""

    ASK = "ask"
    SAFE = "safe"
    DENY = "deny"
    OFF = "off"


class ApprovalState(StrEnum):
    """State of one question; every state but PENDING is final."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class HandoffState(StrEnum):
    """``pending → running → completed | failed``; every transition is conditional on the former state."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Verdict(StrEnum):
    """What policy says about one tool call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Risk(StrEnum):
    """What a tool can do at worst, declared by its author."""

    READ = "read"
    """Reads inside the workspace or the store; never asks."""
    STATE = "state"
    """Writes the agent's own state (memory, skills, todo); follows its own switches, not the approval mode."""
    WRITE = "write"
    """Changes files or other things of the user."""
    EXECUTE = "execute"
    """Runs code or commands."""


class Parallel(StrEnum):
    """Which other calls of the same answer may run at the same time."""

    SAFE = "safe"
    PATH = "path"
    """Safe beside calls whose ``path`` argument neither equals nor contains this one's."""
    NEVER = "never"


class Where(StrEnum):
    """Where a tool runs: in this process, or in the user's kernel through KernelPort."""

    PROCESS = "process"
    KERNEL = "kernel"


class TurnStatus(StrEnum):
    """How a turn ended."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    """The model's stream was cut; the partial text is kept and marked."""
    INTERRUPTED = "interrupted"
    LIMIT = "limit"
    """The step limit was reached; the answer is a summary of what was done."""
    FAILED = "failed"


MIME_TURN: Final = "application/vnd.hermes-nb.turn+json"
"""MIME type of the machine-readable part of a turn's output."""

MAX_STEPS: Final = 90
"""Model calls per turn before the final summary call."""
MAX_TOOL_RESULT: Final = 100_000
"""Characters of one tool result that reach the model."""
MAX_PARALLEL: Final = 8
"""Tool calls that run at the same time."""
LEASE_SECONDS: Final = 600
"""A live holder is not robbed before this many seconds without a renewal."""
LEASE_RENEW_SECONDS: Final = 5
APPROVAL_SECONDS: Final = 24 * 3600
"""A question that nobody answered for a day expires; its kernel may be long gone."""

ALLOWANCE = "scan"
"""Tool name and kind of the rule by which a user lets a passage through the scan; its pattern is the content hash."""
