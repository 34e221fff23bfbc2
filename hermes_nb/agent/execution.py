"""Runs the tool calls of one answer: in order, side by side only where that is safe, never without a decision.

::

    calls ──prepare──▶ refused | ready ──plan──▶ segments ──run──▶ results, in the order of the calls

A segment of several calls holds only calls that policy allows outright, whose tools say they are safe
beside others, and whose paths do not overlap. Everything else is a barrier and runs alone, in the worker.
A failure of any kind is a result for the model. Must not know a provider or a front end.
"""

from __future__ import annotations

import contextvars
import logging
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hermes_nb.agent.events import ToolFinished, ToolStarted
from hermes_nb.agent.guard import REFUSED, Guard
from hermes_nb.agent.turn import Turn
from hermes_nb.core.errors import Cancelled, LeaseLost, StoreError, ToolError
from hermes_nb.core.names import MAX_PARALLEL, MAX_TOOL_RESULT, Parallel, Verdict, Where
from hermes_nb.core.types import ToolCall, ToolResult
from hermes_nb.tools.arguments import parse
from hermes_nb.tools.policy import Decision
from hermes_nb.tools.registry import Registry
from hermes_nb.tools.tool import Tool, ToolContext

log = logging.getLogger(__name__)

UNANSWERED = "nobody answered"
"""Note of a refusal that nobody spoke: a tool with a switch of its own then keeps its change waiting instead."""
_TURN_LIMIT = 200_000
"""Characters of all results of one turn together; then each further result gets the floor."""
_FLOOR = 8_000


class Gate(Protocol):
    """Decides about one call and asks the user where that is needed (the composition of policy and approval)."""

    def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        """Return policy's verdict and its reason; asks nobody."""
        ...

    def ask(self, tool: Tool, arguments: Mapping[str, Any], reason: str) -> ToolResult | None:
        """Ask the user and wait. None is a yes; a result is the refusal that the model gets. Raises Cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that is ready to run, or refused before anything was asked."""

    call: ToolCall
    tool: Tool | None
    arguments: Mapping[str, Any]
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """Calls that run at the same time (several) or a barrier (one)."""

    calls: tuple[Prepared, ...]


def plan(calls: Sequence[Prepared], may_join: Callable[[Prepared], bool], cwd: Path) -> list[Segment]:
    """Group ``calls`` into segments without changing their order."""
    segments: list[Segment] = []
    group: list[Prepared] = []
    paths: list[Path] = []

    def close() -> None:
        if group:
            segments.append(Segment(tuple(group)))
        group.clear()
        paths.clear()

    for call in calls:
        try:
            path = _path_of(call, cwd)
            joins = may_join(call)
        except (ValueError, RuntimeError, OSError):
            # A path that cannot be resolved (a zero byte, an unknown ~user) is the tool's to report.
            path, joins = None, False
        if not joins:
            close()
            segments.append(Segment((call,)))
            continue
        if path is not None and any(_overlap(path, other) for other in paths):
            close()
        group.append(call)
        if path is not None:
            paths.append(path)
    close()
    return segments


def _path_of(call: Prepared, cwd: Path) -> Path | None:
    path = call.arguments.get("path")
    if call.tool is None or call.tool.parallel is not Parallel.PATH or not isinstance(path, str):
        return None
    return Path(os.path.normcase(os.path.realpath(cwd / Path(path).expanduser())))


def _overlap(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


def shorten(text: str, limit: int) -> str:
    """Return ``text``, or its head and tail around a line that says how much was left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


class Execution:
    """Runs the calls of one turn's answers."""

    def __init__(
        self,
        *,
        turn: Turn,
        registry: Registry,
        masked: Mapping[str, str],
        gate: Gate,
        context: ToolContext,
        guard: Guard | None = None,
    ) -> None:
        self._guard = guard or Guard()
        self._turn = turn
        self._registry = registry
        self._masked = masked
        self._gate = gate
        self._context = context
        self._used = 0

    def run(self, calls: Sequence[ToolCall]) -> None:
        """Run ``calls`` and commit one result row for each, in order, each as soon as its turn has come.

        Raises Cancelled or LeaseLost when the turn is over, other StoreErrors when a result was not written
        (nothing further is run then).
        """
        prepared = [self._prepare(call) for call in calls]
        for segment in plan(prepared, self._may_join, self._context.cwd):
            self._turn.hold()
            for call, result, seconds in self._results(segment):
                self._used += len(result.content)
                self._turn.tool_ended(call, result, seconds)
                self._turn.emit(ToolFinished(call, result, seconds))

    def _prepare(self, call: ToolCall) -> Prepared:
        if call.name in self._masked:
            return Prepared(call, None, {}, f"{self._masked[call.name]} Nothing was run; go on without it.")
        if call.masked:
            return Prepared(call, None, {}, REFUSED)
        try:
            tool = self._registry.get(call.name)
            return Prepared(call, tool, parse(tool, call.arguments))
        except ToolError as exc:
            return Prepared(call, None, {}, str(exc))

    def _may_join(self, call: Prepared) -> bool:
        tool = call.tool
        # The kernel has one main thread; its calls gain nothing side by side.
        if tool is None or tool.parallel is Parallel.NEVER or tool.where is Where.KERNEL:
            return False
        if tool.parallel is Parallel.PATH and not isinstance(call.arguments.get("path"), str):
            return False
        return self._gate.decide(tool, call.arguments).verdict is Verdict.ALLOW

    def _results(self, segment: Segment) -> Iterator[tuple[ToolCall, ToolResult, float]]:
        if len(segment.calls) > 1:
            yield from self._side_by_side(segment.calls)
            return
        for call in segment.calls:
            self._turn.emit(ToolStarted(call.call))
            began = time.monotonic()
            result = self._decided(call)
            yield call.call, result, time.monotonic() - began

    def _decided(self, call: Prepared) -> ToolResult:
        """Run one call after policy, and where needed the user, agreed."""
        if call.refusal is not None or call.tool is None:
            return ToolResult(call.refusal or "", is_error=True, note="refused")
        approved = False
        decision = self._gate.decide(call.tool, call.arguments)
        if decision.verdict is Verdict.DENY:
            return ToolResult(decision.reason, is_error=True, note="denied")
        if decision.verdict is Verdict.ASK:
            refused = self._gate.ask(call.tool, call.arguments, decision.reason)
            approved = refused is None
            if refused is not None and (call.tool.question is None or refused.note != UNANSWERED):
                return refused
            self._turn.hold()  # the answer may have taken hours
        self._turn.tool_began(call.call)
        return self._call(call.tool, call, approved=approved)

    def _side_by_side(self, calls: Sequence[Prepared]) -> Iterator[tuple[ToolCall, ToolResult, float]]:
        """Run several calls on daemon threads; yield their results in order.

        Daemon threads and no pool: a pool's threads are joined at exit, and one stuck call would keep the
        kernel alive.
        """
        slots: list[tuple[ToolResult, float] | None] = [None] * len(calls)
        changed = threading.Condition()
        waiting = iter(range(len(calls)))

        def work() -> None:
            while not self._turn.cancel.cancelled:
                with changed:
                    index = next(waiting, None)
                if index is None:
                    return
                began = time.monotonic()
                result = self._call_one(calls[index])
                with changed:
                    slots[index] = (result, time.monotonic() - began)
                    changed.notify_all()

        def wake() -> None:
            with changed:
                changed.notify_all()

        for call in calls:
            self._turn.tool_began(call.call)
            self._turn.emit(ToolStarted(call.call))
        for _ in range(min(MAX_PARALLEL, len(calls))):
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(work,), name="hermes-tool", daemon=True).start()
        with self._turn.cancel.on_cancel(wake):
            for index, call in enumerate(calls):
                with changed:
                    while slots[index] is None:
                        self._turn.cancel.check()
                        changed.wait()
                    done = slots[index]
                assert done is not None
                yield call.call, done[0], done[1]

    def _call_one(self, call: Prepared) -> ToolResult:
        assert call.tool is not None
        try:
            return self._call(call.tool, call)
        except Cancelled:
            return ToolResult("cancelled", is_error=True, note="cancelled")

    def _call(self, tool: Tool, call: Prepared, *, approved: bool = False) -> ToolResult:
        """Call the tool's function. Every failure becomes a result; only the turn's own end passes through."""
        context = replace(self._context, approved=True) if approved else self._context
        try:
            return self._shown(_result_of(tool.handler(context, **call.arguments)))
        except (Cancelled, LeaseLost):
            if self._turn.cancel.cancelled or self._turn.over:
                raise
            return ToolResult("The call was cancelled.", is_error=True, note="cancelled")
        except (ToolError, StoreError) as exc:
            failed = f"Error: {exc}"
        except Exception as exc:  # noqa: BLE001 - whatever a tool raises is for the model
            text = self._guard.text("".join(traceback.format_exception(exc)))
            log.warning("tool %s of turn %s failed\n%s", tool.name, self._turn.id, text)
            failed = f"Error: {_said(exc)}"
        except BaseException as exc:  # noqa: BLE001 - a library's own: nobody would wait for a thread that it ends
            failed = f"Error: the tool raised {_said(exc)}"
        return self._shown(ToolResult(failed, is_error=True))

    def _shown(self, result: ToolResult) -> ToolResult:
        """Return what is stored and sent of a result: secrets masked, and no longer than there is room."""
        limit = min(MAX_TOOL_RESULT, max(_FLOOR, _TURN_LIMIT - self._used))
        masked = self._guard.result(result)
        return replace(masked, content=shorten(masked.content, limit))


def _result_of(returned: Any) -> ToolResult:
    if isinstance(returned, ToolResult):
        content: Any = returned.content  # a user's own tool need not keep to the type
        return replace(returned, content=_as_text(content))
    return ToolResult(_as_text(returned))


def _said(exc: BaseException) -> str:
    try:
        return f"{type(exc).__name__}: {exc}"
    except Exception:  # noqa: BLE001 - its own text fails
        return type(exc).__name__


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "(done; nothing was returned)"
    return str(value)
