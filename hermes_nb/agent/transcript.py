"""The shape of a stored turn: which calls are open, which rows make it whole. Pure; reads no store."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hermes_nb.core.names import MessageStatus, Role
from hermes_nb.core.types import Message, NewMessage, ToolCall, Wire

CALL_INTERRUPTED = "cancelled: the turn ended while this call ran. It may have had effects."
CALL_NOT_RUN = "cancelled: the turn ended before this call began. It was not run."
CALL_LOST = (
    "cancelled: the process ended before a result of this call was stored. It may have had effects: "
    "look before you repeat it."
)
NO_ANSWER = "(no answer: the turn was interrupted)"
NO_ANSWER_FAILED = "(no answer: the turn failed)"
NO_ANSWER_LOST = "(no answer was stored: the process ended, or could not write)"


_FENCED = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1`*[ \t]*$", re.MULTILINE | re.DOTALL)


def first_code_block(text: str) -> str | None:
    """Return the inside of the first fenced code block of ``text``, or None."""
    found = _FENCED.search(text)
    return found.group(2) if found else None


def open_calls(rows: Sequence[Message]) -> list[ToolCall]:
    """Return the calls of the newest assistant row that have no result row after it, in call order."""
    answered: list[str] = []
    for row in reversed(rows):
        wire: dict[str, Any] = json.loads(row.wire)
        if row.role == Role.TOOL:
            answered.append(str(wire.get("tool_call_id")))
        elif row.role == Role.ASSISTANT:
            return [call for call in calls_of(wire) if not _taken(answered, call.id)]
        else:
            break
    return []


def _taken(ids: list[str], wanted: str) -> bool:
    """Remove one ``wanted`` from ``ids``; some endpoints give two calls of one answer the same id."""
    if wanted not in ids:
        return False
    ids.remove(wanted)
    return True


def calls_of(wire: Wire) -> list[ToolCall]:
    """Return the tool calls of an assistant message."""
    return [
        ToolCall(str(call["id"]), str(call["function"]["name"]), str(call["function"]["arguments"]))
        for call in wire.get("tool_calls") or ()
    ]


def tool_wire(call_id: str, content: str) -> Wire:
    """Return the message that answers one call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def closing_rows(
    rows: Sequence[Message],
    *,
    partial: str,
    running: Collection[str],
    unsaved: Mapping[str, str],
    dialect: str,
    turn_id: str,
    no_answer: str,
) -> list[NewMessage]:
    """Return the rows that make an ended turn whole, given its stored rows.

    ``partial`` is the text of a step that no row holds, ``running`` the ids of calls that had begun, ``unsaved``
    results by call id that could not be written before.

    Open calls get a "cancelled" result each; a partial answer is kept as interrupted; a question without
    any answer gets a line in its place, because some endpoints refuse two user messages in a row.
    """
    if not rows:
        return []

    def row(wire: Wire, tool_name: str | None = None) -> NewMessage:
        status = MessageStatus.COMPLETE if tool_name else MessageStatus.INTERRUPTED
        return NewMessage(wire, dialect=dialect, tool_name=tool_name, status=status, turn_id=turn_id)

    calls = open_calls(rows)
    if calls:
        begun = {call.id: CALL_INTERRUPTED for call in calls if call.id in running} | dict(unsaved)
        return [row(tool_wire(call.id, begun.get(call.id, CALL_NOT_RUN)), call.name) for call in calls]
    last = rows[-1].role
    if last == Role.ASSISTANT:
        return []
    if partial:
        return [row({"role": "assistant", "content": partial})]
    return [row({"role": "assistant", "content": no_answer})] if last == Role.USER else []


def repair_rows(rows: Sequence[Message]) -> list[NewMessage]:
    """Return the rows that close a turn whose process died, given the visible rows of its session.

    They are appended, never inserted: what was sent stays a prefix of what will be sent, and no call runs twice.
    """
    if not rows:
        return []
    last = rows[-1]
    calls = open_calls(rows)
    if calls:
        return [
            NewMessage(tool_wire(call.id, CALL_LOST), dialect=last.dialect, tool_name=call.name, turn_id=last.turn_id)
            for call in calls
        ]
    if last.role == Role.USER and last.turn_id is not None:
        wire: Wire = {"role": "assistant", "content": NO_ANSWER_LOST}
        return [NewMessage(wire, dialect=last.dialect, status=MessageStatus.INTERRUPTED, turn_id=last.turn_id)]
    return []
