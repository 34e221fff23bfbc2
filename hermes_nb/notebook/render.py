"""Shows a turn's events in the cell. Knows events and an Output; must not know who drives it.

Live: text streams into one open block that is updated at most ten times a second; what is finished is
frozen and never sent again. Headless: each block is shown once and never updated, because nbval and other
runners compare or reject updates, and volatile numbers stay in the output's metadata.
"""

from __future__ import annotations

import html
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hermes_nb.agent import events
from hermes_nb.core.inert import inert
from hermes_nb.core.names import MIME_TURN, TurnStatus
from hermes_nb.core.types import ApprovalRequest, RequestUsage, ToolCall, ToolResult, TurnResult, Usage
from hermes_nb.notebook.markdown import safe_cut

Bundle = dict[str, Any]

HZ = 10
BLOCK = 4000
"""Characters after which the finished part of a text is frozen."""
_MAX_DETAIL = 4000
"""Characters of arguments or result that a tool line opens to."""


class Handle(Protocol):
    """One output of the cell that can be replaced."""

    def update(self, data: Bundle, metadata: Mapping[str, Any]) -> None: ...


class Output(Protocol):
    """Where bundles go; the notebook's is IPython's display."""

    def show(self, data: Bundle, metadata: Mapping[str, Any]) -> Handle: ...


@dataclass(slots=True)
class _Tool:
    """A call that has begun and not ended. ``answered``: how its question ended."""

    name: str
    arguments: str
    handle: Handle | None = None
    answered: str = ""
    asked_at: float = 0.0
    waited: float = 0.0


class TurnView:
    """The view of one turn in one cell. Every method runs on the thread that owns the cell's outputs."""

    def __init__(self, output: Output, *, live: bool) -> None:
        self._output = output
        self._live = live
        self._tail = ""
        self._open: Handle | None = None
        self._status: Handle | None = None
        self._block = 0
        self._last = 0.0
        self._dirty = False
        self._thinking = False
        self._tools: dict[str, _Tool] = {}
        self._ids: dict[str, Any] = {}
        self._endpoint = ""

    def handle(self, event: events.Event) -> None:
        """Take one event in; text is shown at the next ``flush`` that is due."""
        match event:
            case events.TurnStarted():
                self._ids = {"session": event.session_id, "turn": event.turn_id, "prefix": event.prefix_id}
                self._ids["at"] = int(time.time())
                self._endpoint = event.endpoint
                self._waiting(f"asking {event.endpoint} …")
            case events.TextDelta():
                self._tail += event.text
                self._dirty = True
            case events.ReasoningDelta():
                if not self._thinking and not self._tail:
                    self._thinking = True
                    self._waiting("thinking …")
            case events.Notice():
                self.note(event.text, event.level)
            case events.ToolStarted():
                self.freeze()
                self._tool_started(event.call)
            case events.ToolFinished():
                self.freeze()
                self._tool_finished(event.call, event.result, event.seconds)
            case events.ApprovalAsked():
                self._asked()
            case events.ApprovalClosed():
                self._answered(event.request)
            case events.TurnFinished():
                self.freeze(_state_of(event.result.status))
                self._end_open_tools()
                self._footer(event.result)
            case _:
                pass

    def flush(self, *, force: bool = False) -> None:
        """Show new text when an update is due."""
        now = time.monotonic()
        if not self._dirty or (not force and (not self._live or now - self._last < 1 / HZ)):
            return
        self._last, self._dirty = now, False
        cut = safe_cut(self._tail, BLOCK)
        if cut > 0:
            self._text(self._tail[:cut], "frozen")
            self._tail = self._tail[cut + 2 :]
            self._open, self._block = None, self._block + 1
        if self._tail.strip():
            self._text(self._tail, "open")

    def freeze(self, state: str = "frozen") -> None:
        """End the open block, so that what is shown next stands below it."""
        self._dirty = bool(self._tail)
        if self._live:
            self.flush(force=True)
            if self._open is not None and self._tail.strip():
                self._text(self._tail, state)
        elif self._tail.strip():
            self._text(self._tail, state)
        self._tail, self._open, self._dirty = "", None, False
        self._block += 1

    def note(self, text: str, level: str = "info") -> None:
        """Show one line that is not the model's."""
        self.freeze()
        mark = {"warning": "Warning:", "error": "Error:"}.get(level, "")
        shown = f"**{mark}** {_inline(text)}" if mark else _quiet(text)
        self._show({"text/plain": f"{mark} {text}".lstrip(), "text/markdown": shown}, kind="note", level=level)

    def ask(self, card: Bundle) -> None:
        """Show a question in the place of the line of the call it is about; that line comes back with the answer."""
        self.freeze()
        tool = self._asking()
        if tool is None:
            self._tools["?"] = tool = _Tool("question", "")
        facts: Bundle = {MIME_TURN: {"v": 1, "kind": "question", "tool": tool.name, **self._ids}}
        if tool.handle is None:
            tool.handle = self._output.show({**card, **facts}, {"hermes_nb": dict(self._ids)})
        else:
            tool.handle.update({**card, **facts}, {"hermes_nb": dict(self._ids)})

    def closed(self) -> None:
        """Leave nothing behind that looks alive: a waiting line, a call that says it runs, a question."""
        self._end_open_tools()
        if self._status is not None:
            self._status.update({"text/plain": ""}, {})
            self._status = None

    # -- pieces -----------------------------------------------------------------------------------------

    def _waiting(self, text: str) -> None:
        if not self._live:
            return
        data = {"text/plain": text, "text/markdown": _quiet(text)}
        if self._status is None:
            self._status = self._output.show(data, {})
        else:
            self._status.update(data, {})

    def _show(self, data: Bundle, *, kind: str, **facts: Any) -> Handle:
        stable = {"v": 1, "kind": kind, **facts}
        data[MIME_TURN] = {**stable, **self._ids} if self._live else stable
        metadata = {"hermes_nb": dict(self._ids)}
        if self._status is not None:
            handle, self._status = self._status, None
            handle.update(data, metadata)
            return handle
        return self._output.show(data, metadata)

    def _text(self, text: str, state: str) -> None:
        shown = inert(text)
        data: Bundle = {"text/plain": _short(shown), "text/markdown": shown}
        if self._open is not None:
            facts = {"v": 1, "kind": "text", "block": self._block, "state": state}
            data[MIME_TURN] = {**facts, **self._ids} if self._live else facts
            self._open.update(data, {"hermes_nb": dict(self._ids)})
        else:
            self._open = self._show(data, kind="text", block=self._block, state=state)

    def _tool_started(self, call: ToolCall) -> None:
        tool = self._tools[call.id] = _Tool(call.name, shown_arguments(call))
        if self._live or call.name == "python":
            # Headless, code stands above the output it makes; other tools are shown with their result.
            data = _tool_bundle(tool.name, tool.arguments, None, ("running",) if self._live else ())
            state = "running" if self._live else "called"
            tool.handle = self._show(data, kind="tool", tool=tool.name, state=state)

    def _asking(self) -> _Tool | None:
        """Return the call that a question is about: calls that ask run one at a time."""
        return next(reversed(self._tools.values()), None)

    def _asked(self) -> None:
        tool = self._asking()
        if tool is not None:
            tool.asked_at = time.monotonic()

    def _answered(self, request: ApprovalRequest) -> None:
        tool = self._asking()
        if tool is None:
            return
        if tool.asked_at:
            tool.waited += time.monotonic() - tool.asked_at
        by = f" ({request.answered_by})" if request.answered_by else ""
        tool.answered = f"{request.state.value}{by}"
        if self._live:
            self._tool_line(tool, "running", ("running", tool.answered))

    def _tool_finished(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        tool = self._tools.pop(call.id, None) or _Tool(call.name, shown_arguments(call))
        outcome = "failed" if result.is_error else "ok"
        state = "error" if result.is_error else "done"
        if self._live and tool.handle is not None:
            spent = max(0.0, seconds - tool.waited)
            if result.note and tool.answered.startswith(result.note):
                words: tuple[str, ...] = (tool.answered,)  # it did not run: the answer says it all
            else:
                words = (outcome, tool.answered, f"{spent:.1f} s" if spent >= 0.05 else "")
            self._tool_line(tool, state, words, result, seconds=round(seconds, 3))
        elif tool.handle is None:
            data = _tool_bundle(tool.name, tool.arguments, result, (outcome, tool.answered))
            self._show(data, kind="tool", tool=call.name, state=state)
        elif result.note:
            # The code that stands above made no output of its own when it was denied or refused.
            self.note(f"{call.name}: {result.note}", "warning" if result.is_error else "info")

    def _tool_line(
        self, tool: _Tool, state: str, words: Sequence[str], result: ToolResult | None = None, **volatile: Any
    ) -> None:
        if tool.handle is None:
            return
        data = _tool_bundle(tool.name, tool.arguments, result, words)
        data[MIME_TURN] = {"v": 1, "kind": "tool", "tool": tool.name, "state": state, **self._ids}
        tool.handle.update(data, {"hermes_nb": {**self._ids, **volatile}})

    def _end_open_tools(self) -> None:
        """Say of calls that got no result that they were interrupted. Headless lines promised nothing."""
        while self._tools:
            _, tool = self._tools.popitem()
            if self._live:
                self._tool_line(tool, "interrupted", ("interrupted", tool.answered))

    def _footer(self, result: TurnResult) -> None:
        text = footer_line(result, self._endpoint, live=self._live)
        requests = [_request_fields(request) for request in result.requests]
        self._ids = {**self._ids, "usage": _usage_fields(result.usage), "model": result.model, "requests": requests}
        self._show({"text/plain": text, "text/markdown": _quiet(text)}, kind="turn", status=result.status.value)


def footer_line(result: TurnResult, endpoint: str, *, live: bool) -> str:
    """Return what a turn ends with: how it ended, what was persisted and, live, what it cost."""
    parts = [*result.persisted]
    if result.status is not TurnStatus.COMPLETE:
        parts.insert(0, {TurnStatus.LIMIT: "stopped at the step limit"}.get(result.status, result.status.value))
    if endpoint == "offline demo model" or live:
        parts.append(endpoint if endpoint == "offline demo model" else result.model)
    if live:
        parts.append(_usage(result.usage))
        parts.append(f"session {result.session_id[-8:]}")
    return " · ".join(part for part in parts if part) or "done"


def _state_of(status: TurnStatus) -> str:
    return "done" if status in (TurnStatus.COMPLETE, TurnStatus.LIMIT) else status.value


def _usage_fields(usage: Usage) -> dict[str, int]:
    return {"prompt": usage.prompt, "completion": usage.completion, "cached": usage.cached}


def _request_fields(request: RequestUsage) -> dict[str, Any]:
    """Return what one model call cost and how much of it was sent before, for the turn's metadata."""
    known = request.usage
    tokens = {} if known is None else {**_usage_fields(known), "new": known.prompt - known.cached}
    return {**tokens, "bytes": request.size, "reuse": None if request.reuse is None else round(request.reuse, 6)}


def _usage(usage: Usage) -> str:
    if not usage.prompt and not usage.completion:
        return ""
    cached = f" ({100 * usage.cached // usage.prompt} % cached)" if usage.prompt and usage.cached else ""
    return f"{usage.prompt:,} tokens in{cached}, {usage.completion:,} out"


def _short(text: str) -> str:
    """Return the first words, for front ends that know no Markdown and to keep the file small."""
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:200] + "…"


def _inline(text: str) -> str:
    """Return ``text`` so that Markdown shows it as it is."""
    return "".join("\\" + ch if ch in "\\`*_[]<>#|" else ch for ch in text)


def _quiet(text: str) -> str:
    """Return a line that is not the model's, so that it does not compete with the answer."""
    return f"<small>*{_inline(text)}*</small>"


def shown_arguments(call: ToolCall) -> str:
    """Return a call's arguments as people read them: code as code, the rest as ``name: value`` lines."""
    try:
        values = json.loads(call.arguments or "{}")
    except ValueError:
        return call.arguments
    if not isinstance(values, dict):
        return call.arguments
    if call.name == "python" and set(values) == {"code"}:
        return str(values["code"])
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )


def gist(arguments: str) -> str:
    """Return the first line of a call's arguments, cut, and how many lines follow."""
    first, _, rest = arguments.strip().partition("\n")
    cut = first if len(first) <= 80 else first[:79] + "…"
    count = rest.count("\n") + 1
    return cut if not rest else f"{cut} (+{count} line{'' if count == 1 else 's'})"


def _tool_bundle(name: str, arguments: str, result: ToolResult | None, words: Sequence[str]) -> Bundle:
    """Return one line that opens to arguments and result. ``words`` say how it went, the quiet part of the line."""
    first = gist(arguments)
    said = result.note if result is not None else None
    note = f" — {said}" if said and not any(word.startswith(said) for word in words) else ""
    outcome = " · ".join(word for word in words if word)
    plain = (f"{name}: {first}" if first else name) + note + (f" [{outcome}]" if outcome else "")
    details = f"<pre>{html.escape(_cut(arguments))}</pre>" if arguments else ""
    if result is not None and result.content:
        details += f"<pre>{html.escape(_cut(result.content))}</pre>"
    shown = f" <code>{html.escape(first)}</code>" if first else ""
    right = f" <small>{html.escape(outcome)}</small>" if outcome else ""
    return {
        "text/plain": plain,
        "text/html": (
            f"<details><summary><b>{html.escape(name)}</b>{shown}{html.escape(note)}{right}</summary>{details}</details>"
        ),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_DETAIL else f"{text[:_MAX_DETAIL]}\n… {len(text) - _MAX_DETAIL:,} more characters"
