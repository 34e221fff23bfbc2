"""Folds the chunks of one answer into text, reasoning, tool calls and one assistant message.

Owns every quirk of what endpoints stream: missing indexes and ids, reasoning under several names and inside
the text, usage with or without a chunk of its own, surrogates, a recall block that the model repeats. Knows no
transport and no store. A chunk of an unexpected shape is skipped, never an error: the missing finish reason tells
that an answer is not whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hermes_nb.agent.events import ReasoningDelta, TextDelta
from hermes_nb.agent.thinking import Piece, ThinkingFilter
from hermes_nb.core.ids import new_id
from hermes_nb.core.types import ToolCall, Usage, Wire
from hermes_nb.core.wirejson import clean_text, dumps
from hermes_nb.prompt.fence import Scrubber

REASONING_FIELDS = ("reasoning_content", "reasoning")
_HIGH_SURROGATE = re.compile("[\ud800-\udbff]\\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

Delta = TextDelta | ReasoningDelta
Json = Mapping[str, Any]


@dataclass(slots=True)
class _Call:
    """One call while it is streamed."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields that the endpoint wants back as they came, e.g. a thought signature."""


class Fold:
    """Feed chunks in order; read the answer at any time. Call ``close`` when the stream ended.

    ``keep_reasoning``: whether ``wire`` carries separate reasoning text, under the name it came with; some
    endpoints demand it back in a turn with tools. Reasoning from inline tags is never sent back.
    """

    def __init__(self, *, keep_reasoning: bool = True) -> None:
        self._keep_reasoning = keep_reasoning
        self._filter = ThinkingFilter()
        self._scrubber = Scrubber()
        self._text: list[str] = []
        self._separate: list[str] = []
        self._inline: list[str] = []
        self._reasoning_field = ""
        self._details: list[dict[str, Any]] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._high = ""
        self._closed = False
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        """None until the endpoint says that the answer is whole; still None at the end means it was cut."""
        self.answered = False
        """Whether any chunk carried a choice."""

    def feed(self, chunk: Json) -> list[Delta]:
        """Take one parsed chunk (or a whole chat.completion object) and return what became visible."""
        self._usage(chunk.get("usage"))
        choices = chunk.get("choices")
        deltas: list[Delta] = []
        for choice in cast(list[Any], choices) if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            one = cast(dict[str, Any], choice)
            if one.get("index") not in (0, None):
                continue
            self.answered = True
            self._usage(one.get("usage"))
            part = one.get("delta")
            if not isinstance(part, dict):
                part = one.get("message")
            if isinstance(part, dict):
                deltas += self._delta(cast(dict[str, Any], part))
            if isinstance(one.get("finish_reason"), str) and one["finish_reason"]:
                self.finish_reason = one["finish_reason"]
        return deltas

    def close(self) -> list[Delta]:
        """Return the text that was held back; a second call returns nothing."""
        if self._closed:
            return []
        self._closed = True
        high, self._high = self._high, ""
        deltas = self._pieces(self._filter.feed(clean_text(high)) + self._filter.close())
        return deltas + self._visible(self._scrubber.close())

    @property
    def text(self) -> str:
        if len(self._text) > 1:
            # Kept joined: a front end asks after every delta.
            self._text = ["".join(self._text)]
        return self._text[0] if self._text else ""

    @property
    def reasoning(self) -> str:
        return _join_surrogates("".join(self._separate)) or "".join(self._inline).strip()

    @property
    def unclosed_thinking(self) -> bool:
        """Whether the answer ended inside a thinking tag, so that its text may be missing."""
        return self._filter.unclosed

    @property
    def tool_calls(self) -> list[ToolCall]:
        """Return the calls in the order in which they began; empty arguments are ``{}``."""
        return [ToolCall(self._id(call), _name(call), _arguments(call)) for call in self._calls]

    def wire(self, *, tool_calls: bool = True) -> Wire:
        """Return the assistant message, key order fixed: role, content, reasoning…, tool_calls.

        Arguments that are no JSON object stand in it as ``{"invalid_arguments": "<what came>"}``: several
        endpoints refuse every later request of a session that holds a malformed call.
        """
        self.close()
        calls = self._calls if tool_calls else []
        text = self.text
        wire: Wire = {"role": "assistant", "content": text if text or not calls else None}
        if self._keep_reasoning and self._separate:
            wire[self._reasoning_field] = _join_surrogates("".join(self._separate))
        if self._keep_reasoning and self._details:
            wire["reasoning_details"] = self._details
        if calls:
            wire["tool_calls"] = [
                {
                    "id": self._id(call),
                    "type": "function",
                    "function": {"name": _name(call), "arguments": _sendable(_arguments(call))},
                    **call.extra,
                }
                for call in calls
            ]
        return wire

    def _delta(self, part: Json) -> list[Delta]:
        deltas: list[Delta] = []
        for name in REASONING_FIELDS:
            thought = part.get(name)
            if isinstance(thought, str) and thought:
                self._reasoning_field = self._reasoning_field or name
                # Some endpoints send the same text under both names.
                if name == self._reasoning_field:
                    self._separate.append(thought)
                    deltas.append(ReasoningDelta(clean_text(thought)))
        details = part.get("reasoning_details")
        if isinstance(details, list):
            for detail in cast(list[Any], details):
                if isinstance(detail, dict):
                    self._detail(cast(dict[str, Any], detail))
        text, thought = _content(part.get("content"))
        if thought:
            self._inline.append(thought)
            deltas.append(ReasoningDelta(thought))
        if isinstance(part.get("refusal"), str):
            text += part["refusal"]
        if text:
            deltas += self._pieces(self._filter.feed(self._whole(text)))
        calls = part.get("tool_calls")
        for call in cast(list[Any], calls) if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self._call(cast(dict[str, Any], call))
        return deltas

    def _whole(self, text: str) -> str:
        """Return ``text`` with surrogate pairs joined, also pairs that two chunks have split."""
        text, self._high = self._high + text, ""
        if _HIGH_SURROGATE.search(text):
            text, self._high = text[:-1], text[-1]
        return _join_surrogates(text)

    def _pieces(self, pieces: list[Piece]) -> list[Delta]:
        deltas: list[Delta] = []
        for piece in pieces:
            if piece.reasoning:
                self._inline.append(piece.text)
                deltas.append(ReasoningDelta(piece.text))
            else:
                deltas += self._visible(self._scrubber.feed(piece.text))
        return deltas

    def _visible(self, text: str) -> list[Delta]:
        if not text:
            return []
        self._text.append(text)
        return [TextDelta(text)]

    def _detail(self, detail: dict[str, Any]) -> None:
        """Join one piece of OpenRouter's reasoning details with the piece before it of the same block."""
        last = self._details[-1] if self._details else None
        if last is None or (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index")):
            self._details.append(dict(detail))
            return
        for key, value in detail.items():
            if key in ("text", "summary", "data") and isinstance(last.get(key), str) and isinstance(value, str):
                last[key] += value
            elif value is not None:
                last[key] = value

    def _call(self, part: Json) -> None:
        function = part.get("function")
        spoken = cast(dict[str, Any], function) if isinstance(function, dict) else {}
        given = part.get("id")
        id = given if isinstance(given, str) else ""
        name = spoken["name"] if isinstance(spoken.get("name"), str) else ""
        arguments = spoken.get("arguments")
        index = part.get("index")
        if isinstance(index, int):
            call = self._by_index.get(index)
        else:
            known = next((c for c in self._calls if id and c.id == id), None)
            call = known or (self._calls[-1] if self._calls and not (id and name) else None)
        if call is None or _begins_another(call, id, name):
            call = _Call()
            self._calls.append(call)
            if isinstance(index, int):
                self._by_index[index] = call
        call.id = call.id or id
        if name and name != call.name:
            call.name = name if name.startswith(call.name) else call.name + name
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments.append(dumps(arguments))
        if part.get("extra_content") is not None:
            call.extra["extra_content"] = part["extra_content"]

    def _id(self, call: _Call) -> str:
        call.id = call.id or f"call_{new_id()}"
        return call.id

    def _usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        given = cast(dict[str, Any], usage)
        prompt_details, completion_details = given.get("prompt_tokens_details"), given.get("completion_tokens_details")
        self.usage = Usage(
            prompt=_count(given, "prompt_tokens"),
            completion=_count(given, "completion_tokens"),
            # The last two are DeepSeek's and Moonshot's names for the same number.
            cached=_count(prompt_details, "cached_tokens")
            or _count(given, "prompt_cache_hit_tokens")
            or _count(given, "cached_tokens"),
            reasoning=_count(completion_details, "reasoning_tokens"),
        )


def _begins_another(call: _Call, id: str, name: str) -> bool:
    """Whether a delta that points at ``call`` starts a new one: some endpoints give every call index 0."""
    if not name or not call.name:
        return False
    if id and call.id:
        return id != call.id
    return not id and _is_json("".join(call.arguments))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _arguments(call: _Call) -> str:
    """Return the arguments as they are sent and run: ``{}`` when empty, no lone surrogate, escaped or not."""
    raw = _join_surrogates("".join(call.arguments))
    if raw.strip() in ("", "null"):
        return "{}"
    if _SURROGATE_ESCAPE.search(raw):
        try:
            parsed = json.loads(raw)
        except ValueError:
            return raw
        whole = dumps(parsed)
        return whole if "\ufffd" in whole and "\ufffd" not in raw else raw
    return raw


def _sendable(arguments: str) -> str:
    try:
        parsed = json.loads(arguments)
    except ValueError:
        parsed = None
    return arguments if isinstance(parsed, dict) else dumps({"invalid_arguments": arguments})


def _name(call: _Call) -> str:
    """Return the name in the letters that endpoints accept in a history; a made-up name must not block it."""
    return _NO_NAME.sub("_", call.name)[:64] or "unnamed"


def _content(content: Any) -> tuple[str, str]:
    """Return text and thinking of a content, which may be a list of parts (Mistral)."""
    if isinstance(content, str):
        return content, ""
    text = thought = ""
    for part in cast(list[Any], content) if isinstance(content, list) else []:
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict):
            one = cast(dict[str, Any], part)
            if isinstance(one.get("text"), str):
                text += one["text"]
            elif "thinking" in one:
                inner = one["thinking"]
                thought += clean_text(inner if isinstance(inner, str) else _content(inner)[0])
    return text, thought


def _count(values: Any, name: str) -> int:
    if not isinstance(values, dict):
        return 0
    number = cast(dict[str, Any], values).get(name)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return max(0, number) if isinstance(number, int) else 0


def _join_surrogates(text: str) -> str:
    """Return ``text`` with surrogate pairs as one character and lone surrogates as U+FFFD."""
    if text.isascii():
        return text
    if not _SURROGATE.search(text):
        return text
    return clean_text(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass"))
