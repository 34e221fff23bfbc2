"""Serves the thread that called ``agent.run()`` while the turn runs in a worker thread.

What belongs to the caller's thread (code for the live kernel, a question to the user) is posted back to it, so
that a plain cell, a coroutine and a user's thread all work, and an interrupt always arrives in the caller.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import queue
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

from hermes_nb.agent.events import Event
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import Cancelled
from hermes_nb.core.types import ApprovalRequest, TurnResult
from hermes_nb.tools.approval import Approver
from hermes_nb.tools.kernel import CodeResult, KernelPort, SecretSource, Variable

T = TypeVar("T")

_TICK = 0.2
"""Seconds between two chances for a signal handler to run on platforms whose lock waits ignore signals."""


@dataclass(slots=True)
class _Job:
    call: Callable[[], Any]
    future: concurrent.futures.Future[Any] = field(default_factory=concurrent.futures.Future[Any])


class Caller:
    """The queue between one worker and the thread that waits for it."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[_Job | Event | None] = queue.SimpleQueue()
        self._closed = False
        self.cancel = Cancel()
        self.result: TurnResult | None = None
        self.error: BaseException | None = None
        self.thread: threading.Thread | None = None

    # --- the waiting thread

    def begin(self, work: Callable[[], TurnResult]) -> None:
        """Start ``work`` in a daemon thread that has a copy of this thread's context."""

        def body() -> None:
            try:
                self.result = work()
            except BaseException as exc:  # noqa: BLE001 - raised again in the thread that waits
                self.error = exc
            finally:
                self._inbox.put(None)

        context = contextvars.copy_context()
        self.thread = threading.Thread(target=context.run, args=(body,), name="hermes-turn", daemon=True)
        self.thread.start()

    def next_event(self) -> Event | None:
        """Serve jobs until there is an event, and return it; None when the work has ended.

        Raises what a job raises that is no Exception, e.g. KeyboardInterrupt.
        """
        with _interrupts_raise():
            while True:
                try:
                    item = self._inbox.get(timeout=_TICK)
                except queue.Empty:
                    continue
                if not isinstance(item, _Job):
                    return item
                self._serve(item)

    def close(self, seconds: float) -> None:
        """Give up every job that nobody will serve any more, and wait a little for the worker."""
        self._closed = True
        while True:
            try:
                item = self._inbox.get_nowait()
            except queue.Empty:
                break
            if isinstance(item, _Job):
                _give_up(item)
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join(seconds)

    def _serve(self, job: _Job) -> None:
        try:
            outcome = job.call()
        except BaseException as exc:
            with contextlib.suppress(concurrent.futures.InvalidStateError):
                job.future.set_exception(exc if isinstance(exc, Exception) else Cancelled("interrupted"))
            if not isinstance(exc, Exception):
                raise
        else:
            with contextlib.suppress(concurrent.futures.InvalidStateError):
                job.future.set_result(outcome)

    # --- the worker

    def put(self, event: Event) -> None:
        self._inbox.put(event)

    def submit(self, call: Callable[[], T], cancel: Cancel) -> T:
        """Run ``call`` in the waiting thread and return its result. Raises Cancelled when the turn is over."""
        cancel.check()
        job = _Job(call)
        self._inbox.put(job)
        with cancel.on_cancel(lambda: _give_up(job)):
            if self._closed:
                _give_up(job)
            return job.future.result()

    def post(self, call: Callable[[], None]) -> None:
        """Run ``call`` in the waiting thread; do not wait for it."""
        if not self._closed:
            self._inbox.put(_Job(call))


@contextlib.contextmanager
def _interrupts_raise() -> Generator[None]:
    """Let SIGINT raise KeyboardInterrupt in this thread, if it is the main one.

    A kernel whose cell awaits only cancels the cell's task, which cannot happen while this thread waits.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handler(signal.default_int_handler):
        yield


@contextlib.contextmanager
def uninterrupted() -> Generator[None]:
    """Drop every SIGINT while the block runs in the main thread; for a second or two that must be finished."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handler(lambda _number, _frame: None):
        yield


@contextlib.contextmanager
def _handler(handler: Callable[[int, FrameType | None], object]) -> Generator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        # None: the handler was not installed from Python and cannot be put back.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def _give_up(job: _Job) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        job.future.set_exception(Cancelled("interrupted"))


class CallerKernel:
    """A KernelPort whose calls are made in the waiting thread."""

    def __init__(self, kernel: KernelPort, caller: Caller) -> None:
        self._kernel = kernel
        self._caller = caller

    def execute(self, code: str, cancel: Cancel) -> CodeResult:
        return self._caller.submit(lambda: self._kernel.execute(code, cancel), cancel)

    def variables(self, names: Sequence[str] | None, cancel: Cancel) -> list[Variable]:
        return self._caller.submit(lambda: self._kernel.variables(names, cancel), cancel)

    def secret_values(self) -> Sequence[str]:
        # Asked directly: it never waits, and a text enters while the caller may be busy.
        return self._kernel.secret_values() if isinstance(self._kernel, SecretSource) else ()


class CallerApprover:
    """An Approver that shows its question in the waiting thread; it may block there, e.g. in ``input()``."""

    def __init__(self, approver: Approver, caller: Caller) -> None:
        self._approver = approver
        self._caller = caller
        self.surface = approver.surface

    def open(self, request: ApprovalRequest) -> None:
        self._caller.post(lambda: self._approver.open(request))

    def close(self, request: ApprovalRequest) -> None:
        self._caller.post(lambda: self._approver.close(request))
