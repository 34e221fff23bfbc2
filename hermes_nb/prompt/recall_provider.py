"""The recall channel: what a provider remembers about a question, bounded in time and size.

One provider is active. It is asked before each turn, in a thread of its own; what it gives stands in the recall
block beside the user's message and nowhere else. A provider that fails costs a notice, never the turn. Must not
know which providers there are.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Protocol

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.secrets import mask
from hermes_nb.core.types import Message
from hermes_nb.prompt.fence import defang
from hermes_nb.store.store import Store

log = logging.getLogger(__name__)

GROUP = "hermes_nb.recall"
"""An entry point names a provider, or a class or function that makes one without arguments."""
SECONDS = 8.0
LIMIT = 1_500
"""Characters of all that is recalled for one turn."""
_SNIPPET = 400
_OUTDATED = "evidence from outside this session, may be outdated"


@dataclass(frozen=True, slots=True)
class Snippet:
    """One thing remembered: ``timestamp`` says when it was true, ``origin`` where it comes from, in a few words."""

    text: str
    timestamp: float | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class RecallFacts:
    """What a provider may know about the turn. ``rows`` are the visible rows, which need not be recalled."""

    store: Store
    user: str
    session_id: str
    root_id: str
    surface: str = ""
    rows: Sequence[Message] = ()


class RecallProvider(Protocol):
    """Remembers things outside the session. Called from threads, several at once when several turns run."""

    @property
    def name(self) -> str:
        """The name that the setting ``recall.provider`` takes."""
        ...

    def recall(self, question: str, facts: RecallFacts, cancel: Cancel) -> str | Sequence[Snippet] | None:
        """Return what helps with ``question``, best first, or None. ``cancel`` is set when nobody waits any more."""
        ...


@dataclass(frozen=True, slots=True)
class Recalled:
    """``value`` is for the recall block ("" for nothing new); ``problem`` is a line for the user."""

    value: str = ""
    problem: str | None = None


@dataclass(slots=True)
class _Call:
    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    error: BaseException | None = None


class RecallChannel:
    """Asks one provider for one agent."""

    def __init__(self, provider: RecallProvider, *, seconds: float = SECONDS) -> None:
        self._provider = provider
        self._seconds = seconds
        self._late: _Call | None = None

    @property
    def fact(self) -> str:
        """The name under which the result stands in the block; no variable can have it."""
        return "recall from " + " ".join(self._provider.name.replace(":", " ").split())

    def ask(self, question: str, facts: RecallFacts, cancel: Cancel, *, told: Collection[str], today: date) -> Recalled:
        """Return what the provider says that is not in ``told`` (lines of earlier blocks). Raises Cancelled only."""
        cancel.check()
        name = self._provider.name
        if self._late is not None and not self._late.done.is_set():
            return Recalled(problem=f"The recall provider {name!r} is still busy with an earlier question; left out.")
        call, mine = _Call(), Cancel()

        def wake() -> None:
            mine.cancel()
            call.done.set()

        def work() -> None:
            try:
                call.value = self._provider.recall(question, facts, mine)
            except BaseException as exc:  # noqa: BLE001 - the border to a plug-in, in a thread of its own
                call.error = exc
            finally:
                call.done.set()

        threading.Thread(target=work, name=f"hermes-recall-{name}", daemon=True).start()
        with cancel.on_cancel(wake):
            in_time = call.done.wait(self._seconds)
        cancel.check()
        if not in_time:
            mine.cancel()
            self._late = call
            return Recalled(problem=f"The recall provider {name!r} gave nothing within {self._seconds:g} s; left out.")
        if call.error is not None:
            log.warning("the recall provider %s failed", name, exc_info=call.error)
            return Recalled(problem=_failed(name, call.error))
        try:
            return Recalled(_block(call.value, told, today))
        except Exception as exc:  # noqa: BLE001 - what a plug-in returns may be anything
            return Recalled(problem=_failed(name, exc))


def _failed(name: str, exc: BaseException) -> str:
    return f"The recall provider {name!r} failed ({type(exc).__name__}: {str(exc)[:200]}); left out."


def _block(value: Any, told: Collection[str], today: date) -> str:
    """Return the lines of a result under one that says what they are."""
    if value is None:
        return ""
    if isinstance(value, str):
        lines = [_one_line(line) for line in value.splitlines()]
        lines = [line for line in lines if line and not _is_suspicious(line)]
        if all(line in told for line in lines):
            return ""
        return _capped(f"as of {today.isoformat()}, {_OUTDATED}:", lines)
    lines = [_line(snippet) for snippet in value]
    new = [line for line in dict.fromkeys(lines) if line and line not in told and not _is_suspicious(line)]
    return _capped(f"{_OUTDATED}:", new)


def _is_suspicious(line: str) -> bool:
    """Whether a line reads like instructions: what an earlier turn was fed must not come back as if it were ours."""
    # Compiling its rules takes a quarter of a second; most turns recall nothing.
    from hermes_nb.core.scan import CONTEXT, scan  # noqa: PLC0415

    return bool(scan(line, CONTEXT))


def _line(snippet: Any) -> str:
    if not isinstance(snippet, Snippet):
        raise TypeError(f"it gives {type(snippet).__name__} where a Snippet is expected")
    text = _one_line(snippet.text)
    if not text:
        return ""
    day = "undated" if snippet.timestamp is None else time.strftime("%Y-%m-%d", time.localtime(snippet.timestamp))
    return f"{day} {_one_line(snippet.origin)}".rstrip() + f": {text}"


def _one_line(text: str) -> str:
    line = " ".join(mask(defang(text)).split())
    return line if len(line) <= _SNIPPET else line[: _SNIPPET - 2].rstrip() + " …"


def _capped(head: str, lines: Sequence[str]) -> str:
    kept = [head]
    left = LIMIT - len(head)
    for line in lines:
        if len(line) + 1 > left:
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join(kept) if len(kept) > 1 else ""
