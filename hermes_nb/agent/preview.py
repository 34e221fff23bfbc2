"""What the next request of a session will carry, part by part, without sending or storing anything. Values only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_nb.agent.body import join
from hermes_nb.agent.dialect import project
from hermes_nb.agent.transcript import repair_rows
from hermes_nb.core.types import Message, Prefix
from hermes_nb.core.wirejson import dumps


@dataclass(frozen=True, slots=True)
class Preview:
    """The parts as they will be sent. ``frozen`` is False while no turn has fixed head and prefix."""

    head: bytes
    prefix: Prefix
    frozen: bool
    history: tuple[str, ...]
    """The messages so far, each as its JSON text."""
    recall: str
    """What stands before the user's words in the next message; "" for nothing."""

    def body(self, text: str) -> bytes:
        """Return the request body for a next message that says ``text``."""
        user = dumps({"role": "user", "content": self.recall + text})
        return join(self.head, self.prefix, [*self.history, user])


def system_text(prefix: Prefix) -> str:
    """Return the text of the system message."""
    return str(json.loads(prefix.system)["content"]) if prefix.system else ""


def history_of(rows: Sequence[Message], dialect: str) -> tuple[str, ...]:
    """Return the messages that the next turn sends before its own, broken ends closed as it will close them."""
    closed = [
        Message(0, "", str(row.wire["role"]), dumps(row.wire), row.dialect, "", row.tool_name, row.status, None, 0.0)
        for row in repair_rows(rows)
    ]
    return tuple(project([*rows, *closed], dialect))
