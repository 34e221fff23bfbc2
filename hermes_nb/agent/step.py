"""One model call: streams an answer, tries again where nothing was shown yet, says what is wrong with the rest.

Owns no rows. Silent failures of endpoints (no finish reason, an error word, an empty answer) become errors here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hermes_nb.agent.events import Notice, ReasoningDelta, TextDelta
from hermes_nb.agent.fold import Fold
from hermes_nb.agent.guard import Guard
from hermes_nb.agent.provider import Provider
from hermes_nb.agent.retry import RetryPolicy
from hermes_nb.agent.turn import Turn
from hermes_nb.core.errors import (
    Cancelled,
    ContentFiltered,
    ProviderError,
    ProviderUnavailable,
    ResponseInvalid,
    StreamBroken,
)
from hermes_nb.core.types import ToolCall, Usage, Wire

_ERROR_WORDS = frozenset({"error", "network_error", "server_error", "unknown_error"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What one model call gave. ``broken`` says why the text is not the whole answer; it then has no calls."""

    text: str
    wire: Wire
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    finish_reason: str | None
    broken: str | None = None


class Step:
    """Makes model calls for one turn."""

    def __init__(
        self, turn: Turn, provider: Provider, retry: RetryPolicy, guard: Guard, *, keep_reasoning: bool = True
    ) -> None:
        self._turn = turn
        self._provider = provider
        self._retry = retry
        self._guard = guard
        self._keep_reasoning = keep_reasoning

    def run(self, body: bytes) -> Answer:
        """Send ``body`` and return the answer, whole or broken.

        Raises ProviderError when there is no text to keep and trying again is over or useless, and Cancelled.
        """
        failures = 0
        while True:
            fold = Fold(keep_reasoning=self._keep_reasoning)
            self._turn.progress.partial = ""
            problem = self._stream(body, fold) or _problem(fold)
            if problem is None:
                wire, calls = self._guard.answer(fold.wire(), fold.tool_calls)
                return Answer(wire["content"] or "", wire, calls, fold.usage, fold.finish_reason)
            if fold.text.strip():
                text = self._guard.partial(fold.text)
                broken: Wire = {"role": "assistant", "content": text}
                return Answer(text, broken, (), fold.usage, fold.finish_reason, broken=str(problem))
            failures += 1
            self._pause(problem, failures)

    def _stream(self, body: bytes, fold: Fold) -> ProviderError | None:
        """Feed the stream into ``fold`` and show it; return the error that ended it, if any."""
        turn = self._turn
        shown = _Shown(turn, self._guard)
        try:
            for chunk in self._provider.stream(body, turn.cancel):
                shown.put(fold, fold.feed(chunk))
        except ProviderError as exc:
            # A closed connection is how a cancelled stream often ends.
            turn.cancel.check()
            shown.put(fold, fold.close())
            shown.close(cut=True)
            return exc
        turn.cancel.check()
        shown.put(fold, fold.close())
        shown.close(cut=_problem(fold) is not None)
        return None

    def _pause(self, problem: ProviderError, failures: int) -> None:
        seconds = self._retry.wait(problem, failures)
        if seconds is None:
            raise problem
        again = f"trying again in {seconds:.0f} s" if seconds >= 1 else "trying again"
        self._turn.emit(Notice(f"{problem} ({again}, {failures} of {self._retry.retries})", "warning"))
        if self._turn.cancel.wait(seconds):
            raise Cancelled("interrupted")


class _Shown:
    """What front ends see of one answer while it comes: masked as it will be stored."""

    def __init__(self, turn: Turn, guard: Guard) -> None:
        self._turn = turn
        self._text, self._reasoning = guard.stream(), guard.stream()

    def put(self, fold: Fold, deltas: Sequence[TextDelta | ReasoningDelta]) -> None:
        for delta in deltas:
            if isinstance(delta, TextDelta):
                self._turn.progress.partial = fold.text
                self._emit(ReasoningDelta(self._reasoning.close(cut=True)))
                self._emit(TextDelta(self._text.feed(delta.text)))
            else:
                self._emit(ReasoningDelta(self._reasoning.feed(delta.text)))

    def close(self, *, cut: bool) -> None:
        self._emit(ReasoningDelta(self._reasoning.close(cut=True)))
        self._emit(TextDelta(self._text.close(cut=cut)))

    def _emit(self, delta: TextDelta | ReasoningDelta) -> None:
        if delta.text:
            self._turn.emit(delta)


def _problem(fold: Fold) -> ProviderError | None:
    """Return what is wrong with a stream that ended without an exception, or None."""
    reason = fold.finish_reason
    word = (reason or "").lower().replace("-", "_")
    if reason is None:
        return StreamBroken("The model's answer was cut off: the stream ended without a finish reason.")
    if word in _ERROR_WORDS:
        return ProviderUnavailable(f"The endpoint broke the answer off with the reason {reason!r}.")
    if word == "content_filter":
        return ContentFiltered("The endpoint's content filter ended the answer. Rephrase the request.")
    if word == "length" and not fold.tool_calls:
        return ResponseInvalid("The model reached its output limit before the answer was whole. Ask it to go on.")
    if not fold.tool_calls and not fold.text.strip():
        empty = ResponseInvalid("The model gave an empty answer.")
        empty.retryable = True
        return empty
    return None
