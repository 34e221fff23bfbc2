"""The loop: one user message to its final answer. Synchronous; knows no front end, no configuration, no library.

::

    user row ─▶ one model call ─▶ tool-call row ─▶ run the calls, a row each ─┐
                  ▲    │                                                      │
                  │    └─▶ no calls: final row, end                           │
                  └───────────────────────────────────────────────────────────┘

A row is committed before the act it describes, and nothing is sent that is not a stored row, so each request
body without its end is a byte prefix of the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from hermes_nb.agent.body import join
from hermes_nb.agent.dialect import project
from hermes_nb.agent.events import Notice, StepFinished
from hermes_nb.agent.execution import Execution
from hermes_nb.agent.guard import Guard
from hermes_nb.agent.history import History
from hermes_nb.agent.provider import Provider
from hermes_nb.agent.retry import RetryPolicy
from hermes_nb.agent.reuse import Trail
from hermes_nb.agent.step import Answer, Step
from hermes_nb.agent.turn import TAKEN_OVER, Turn
from hermes_nb.core.errors import Cancelled, LeaseLost, ProviderError, StoreError
from hermes_nb.core.names import MAX_STEPS, MessageStatus, TurnStatus
from hermes_nb.core.types import Message, Prefix, RequestUsage, TurnResult, Usage, Wire
from hermes_nb.store.store import Store

log = logging.getLogger(__name__)

LIMIT_NUDGE = (
    "[harness] The step limit of this turn is reached and no further tool runs. Without calling tools, sum up "
    "what was done, what is left, and how to go on."
)
_NO_SUMMARY = "(The step limit was reached and the model gave no summary.)"
_FINAL_PAUSES = (0.1, 0.3, 1.0)
"""Seconds between the attempts to write the final row."""


@dataclass(frozen=True, slots=True)
class Request:
    """What every body of the turn is joined from, besides the rows."""

    head: bytes
    prefix: Prefix
    dialect: str
    keep_reasoning: bool = True
    history: History | None = None
    """Keeps what was joined before, from turn to turn."""

    def body(self, rows: Sequence[Message]) -> bytes:
        """Return the request body for these rows, from stored bytes."""
        if self.history is not None:
            return self.history.body(self.head, self.prefix, rows, self.dialect)
        return join(self.head, self.prefix, project(rows, self.dialect))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one turn."""

    steps: int = MAX_STEPS
    retry: RetryPolicy = field(default_factory=RetryPolicy)


class Loop:
    """Runs one turn. ``rows`` are the visible rows of the session before it."""

    def __init__(
        self,
        *,
        turn: Turn,
        store: Store,
        provider: Provider,
        request: Request,
        rows: Sequence[Message],
        execution: Execution,
        limits: Limits,
        trail: Trail | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._turn = turn
        self._store = store
        self._step = Step(turn, provider, limits.retry, guard or Guard(), keep_reasoning=request.keep_reasoning)
        self._request = request
        self._rows = list(rows)
        self._execution = execution
        self._limits = limits
        self._trail = trail or Trail()
        self._sent: tuple[int, float | None] = (0, None)

    def run(self, user: Wire, text: str | None) -> TurnResult:
        """Store the user's message, answer it, and return the result of the turn.

        Raises nothing of the error tree: an error gives a result with status FAILED (``turn.cause`` has the
        exception), an interrupt one with status INTERRUPTED. The stored history is sendable in each case.
        """
        turn = self._turn
        try:
            turn.append(user, text=text)
            return self._steps()
        except Cancelled as exc:
            # A lease that was lost cancels the turn too; there is nothing left to interrupt then.
            return turn.fail(TAKEN_OVER, exc) if turn.lost else turn.interrupt()
        except (LeaseLost, ProviderError, StoreError) as exc:
            log.info("turn %s ends: %s", turn.id, type(exc).__name__)
            return turn.fail(str(exc), exc)

    def _steps(self) -> TurnResult:
        for _ in range(self._limits.steps):
            answer = self._ask()
            if not answer.calls:
                return self._final(answer, TurnStatus.INCOMPLETE if answer.broken else TurnStatus.COMPLETE)
            self._turn.append(answer.wire)
            self._book(answer)
            self._execution.run(answer.calls)
        return self._summary()

    def _summary(self) -> TurnResult:
        """Ask once for a summary. The schemas stay in the bytes; a call of this answer is not run."""
        self._turn.emit(Notice(f"The limit of {self._limits.steps} steps is reached; asking for a summary.", "warning"))
        self._turn.append({"role": "user", "content": LIMIT_NUDGE}, text="")
        answer = self._ask()
        text = answer.text if answer.text.strip() else _NO_SUMMARY
        if answer.calls:
            answer = Answer(text, {"role": "assistant", "content": text}, (), answer.usage, answer.finish_reason)
        return self._final(answer, TurnStatus.LIMIT)

    def _ask(self) -> Answer:
        after = self._rows[-1].id if self._rows else 0
        self._rows += self._store.rows(self._turn.session.id, after=after)
        body = self._request.body(self._rows)
        self._sent = (len(body), self._trail.measure(body))
        return self._step.run(body)

    def _final(self, answer: Answer, status: TurnStatus) -> TurnResult:
        if answer.broken:
            self._turn.emit(Notice(f"{answer.broken} What arrived is kept.", "warning"))
        unsaved = self._store_final(answer)
        if unsaved is not None:
            error = f"The answer could not be stored and is shown only here. {unsaved}"
            self._turn.emit(Notice(error, "error"))
            return self._turn.finish(answer.text, TurnStatus.FAILED, error, unsaved)
        self._book(answer)
        return self._turn.finish(answer.text, status, answer.broken)

    def _store_final(self, answer: Answer) -> StoreError | None:
        """Commit the final row; return the error when it cannot be written after several attempts."""
        row_status = MessageStatus.INTERRUPTED if answer.broken else MessageStatus.COMPLETE
        for pause in (*_FINAL_PAUSES, None):
            try:
                self._turn.append(answer.wire, status=row_status)
            except LeaseLost:
                raise
            except StoreError as exc:
                if pause is None:
                    return exc
                log.warning("turn %s: the final row was not written: %s", self._turn.id, exc)
                if self._turn.cancel.wait(pause):
                    raise Cancelled("interrupted") from exc
            else:
                return None
        return None

    def _book(self, answer: Answer) -> None:
        """Book what the call cost. A booking that fails never costs the answer, but is said."""
        turn = self._turn
        usage = answer.usage or Usage()
        turn.progress.partial = ""
        turn.progress.usage += usage
        turn.progress.requests.append(RequestUsage(answer.usage, *self._sent))
        if answer.usage is not None and not turn.over:
            try:
                self._store.usage.add(turn.session.id, turn.id, turn.model, usage, kind="chat")
            except StoreError as exc:
                turn.emit(Notice(f"The tokens of this step could not be booked: {exc}", "warning"))
        turn.emit(StepFinished(usage, answer.finish_reason))
