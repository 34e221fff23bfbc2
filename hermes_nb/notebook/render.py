"""Shows a turn's events in the cell. Knows events and an Output; must not know who drives it.

Live: text streams into one open block that is updated at most ten times a second; what is finished is
frozen and never sent again. Headless: each block is shown once and never updated, because nbval and other
runners compare or reject updates, and volatile numbers stay in the output's metadata.
"""

from __future__ import annotations

import html
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hermes_nb.agent import events
from hermes_nb.core.inert import inert
from hermes_nb.core.names import MIME_TURN, TurnStatus
from hermes_nb.core.types import ToolCall, ToolResult, TurnResult, Usage
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
    handle: Handle | None
    arguments: str


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
            case events.TurnFinished():
                self.freeze(_state_of(event.result.status))
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
        mark = {"warning": "⚠️ ", "error": "❌ "}.get(level, "")
        self._show({"text/plain": text, "text/markdown": f"{mark}*{_inline(text)}*"}, kind="note", level=level)

    def closed(self) -> None:
        """Remove a waiting line that nothing replaced."""
        if self._status is not None:
            self._status.update({"text/plain": ""}, {})
            self._status = None

    # -- pieces -----------------------------------------------------------------------------------------

    def _waiting(self, text: str) -> None:
        if not self._live:
            return
        data = {"text/plain": text, "text/markdown": f"*{_inline(text)}*"}
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
        arguments = shown_arguments(call)
        if self._live or call.name == "python":
            # Headless, code stands above the output it makes; other tools are shown with their result.
            data = _tool_bundle(call.name, arguments, None, "runs" if self._live else "")
            state = "running" if self._live else "called"
            self._tools[call.id] = _Tool(self._show(data, kind="tool", tool=call.name, state=state), arguments)
        else:
            self._tools[call.id] = _Tool(None, arguments)

    def _tool_finished(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        tool = self._tools.pop(call.id, None) or _Tool(None, shown_arguments(call))
        outcome = "failed" if result.is_error else "ok"
        state = "error" if result.is_error else "done"
        if self._live and tool.handle is not None:
            data = _tool_bundle(call.name, tool.arguments, result, f"{outcome} · {seconds:.1f} s")
            data[MIME_TURN] = {"v": 1, "kind": "tool", "tool": call.name, "state": state, **self._ids}
            tool.handle.update(data, {"hermes_nb": {**self._ids, "seconds": round(seconds, 3)}})
        elif tool.handle is None:
            data = _tool_bundle(call.name, tool.arguments, result, outcome)
            self._show(data, kind="tool", tool=call.name, state=state)
        elif result.note:
            # The code that stands above made no output of its own when it was denied or refused.
            self.note(f"{call.name}: {result.note}", "warning" if result.is_error else "info")

    def _footer(self, result: TurnResult) -> None:
        text = footer_line(result, self._endpoint, live=self._live)
        self._ids = {**self._ids, "usage": _usage_fields(result.usage), "model": result.model}
        self._show({"text/plain": text, "text/markdown": f"*{_inline(text)}*"}, kind="turn", status=result.status.value)


def _state_of(status: TurnStatus) -> str:
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


    return "done" if status in (TurnStatus.COMPLETE, TurnStatus.LIMIT) else status.value


def _usage_fields(usage: Usage) -> dict[str, int]:
    return {"prompt": usage.prompt, "completion": usage.completion, "cached": usage.cached}


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
    """Return the first line of a call's arguments, cut."""
    first = arguments.strip().partition("\n")[0]
    return first if len(first) <= 80 else first[:79] + "…"


def _tool_bundle(name: str, arguments: str, result: ToolResult | None, outcome: str) -> Bundle:
    first = gist(arguments)
    said = result.note if result is not None else None
    note = f" — {said}" if said and not outcome.startswith(said) else ""
    title = f"{name}: {first}" if first else name
    plain = f"{title}{note}" + (f" [{outcome}]" if outcome else "")
    details = f"<pre>{html.escape(_cut(arguments))}</pre>" if arguments else ""
    if result is not None and result.content:
        details += f"<pre>{html.escape(_cut(result.content))}</pre>"
    right = f" <small>{html.escape(outcome)}</small>" if outcome else ""
    return {
        "text/plain": plain,
        "text/html": (
            f"<details><summary>🔧 <b>{html.escape(name)}</b> <code>{html.escape(first)}</code>"
            f"{html.escape(note)}{right}</summary>{details}</details>"
        ),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_DETAIL else f"{text[:_MAX_DETAIL]}\n… {len(text) - _MAX_DETAIL:,} more characters"
