"""The one main-thread executor: user code runs on the kernel's main thread, whoever asks for it.

::

    worker thread --- submit(job) --> queue --> driver on the main thread --- result --> worker thread

    drivers:  Foreground.drive   awaited by the cell: clicks and interrupts get through
              Foreground.pump    the cell blocks (inside %%time, run_cell): no clicks, no top-level await
              Idle               no cell waits (--bg, a thread of the user): between two cells

A job is a coroutine function. The drivers know nothing of agents: they get a list of things to watch.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import Cancelled, ToolError

_TICK = 0.02
"""Seconds between two looks of an awaiting driver; a pure await is not woken by SIGINT on ipykernel 7.4."""

MainCall = Callable[[], Coroutine[Any, Any, Any]]

NO_AWAIT_HERE = (
    "top-level await is not available here because the cell blocks (it runs inside another magic or call); "
    "use a synchronous call instead"
)


@dataclass(slots=True)
class _Job:
    call: MainCall
    interruptible: bool = True
    """False for our own quick displays: an interrupt in the middle of one would leave half a card behind."""
    future: concurrent.futures.Future[Any] = field(default_factory=concurrent.futures.Future)


async def _guarded(call: MainCall) -> Any:
    """Await a job so that no KeyboardInterrupt escapes its task: that would leave the event loop and wedge
    the kernel for good. The signal handler raises nothing while this very frame runs.
    """
    try:
        return await call()
    except (KeyboardInterrupt, SystemExit):
        raise Cancelled("interrupted") from None


def run_blocking(call: MainCall) -> Any:
    """Run a job's coroutine on this thread without an event loop; it must not really await."""
    coroutine = call()
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise ToolError(NO_AWAIT_HERE)


class Interrupts:
    """One SIGINT handler for a whole turn. It replaces ipykernel's, which only cancels the cell's task.

    The handler sets a flag and wakes the driver; when user code is on the stack it raises there. All
    real work of stopping a turn happens in the driver, never inside a signal handler, because a handler
    may run while this thread holds a lock of the store.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.task: asyncio.Task[Any] | None = None
        self.blocking = False
        """Set while user code or input() is on this thread's stack without a task."""
        self.unblock_input = False
        """Set by a watcher thread that wants input() to end because the question was answered elsewhere."""
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextlib.contextmanager
    def handled(self, loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._loop = loop
        old = signal.signal(signal.SIGINT, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, old)

    def _on_signal(self, _signal: int, frame: Any) -> None:
        if self.unblock_input:
            self.unblock_input = False
            raise KeyboardInterrupt
        self.stop.set()
        if self.blocking:
            raise KeyboardInterrupt
        loop, task = self._loop, self.task
        if task is not None and loop is not None:
            between = frame is not None and frame.f_code is _guarded.__code__
            if asyncio.current_task(loop) is task and not between:
                raise KeyboardInterrupt  # user code is running right now
            loop.call_soon_threadsafe(task.cancel)  # user code is awaiting
        elif loop is not None:
            loop.call_soon_threadsafe(lambda: None)  # wake the selector


class Foreground:
    """The driver of a cell that waits for its turn. One instance per cell."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._closed = threading.Event()
        self.interrupts = Interrupts()
        self.can_await = True

    def submit(self, call: MainCall, cancel: Cancel) -> Any:
        """Run ``call`` on the main thread and return its result. Called from the worker.

        Raises Cancelled when the turn was cancelled before the job's end was seen.
        """
        if threading.current_thread() is threading.main_thread():
            return run_blocking(call)
        cancel.check()
        job = _Job(call)
        self._jobs.put(job)
        with cancel.on_cancel(lambda: _give_up(job)):
            if self._closed.is_set():
                _give_up(job)
            return job.future.result()

    def post(self, call: Callable[[], None], *, interruptible: bool = False) -> None:
        """Run ``call`` on the main thread at the driver's next look; do not wait.

        ``interruptible`` is for a call that waits for the user, such as ``input()``.
        """

        async def posted() -> None:
            call()

        if not self._closed.is_set():
            self._jobs.put(_Job(posted, interruptible))

    async def drive(self, busy: Callable[[], bool], look: Callable[[], None]) -> None:
        """Serve jobs until ``busy()`` is False and none is left. Returns early when interrupted."""
        loop = asyncio.get_running_loop()
        with self.interrupts.handled(loop):
            while not self.interrupts.stop.is_set():
                look()
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    if not busy():
                        return
                    await asyncio.sleep(_TICK)
                    continue
                look()  # what happened before the job was given is shown before it runs
                await self._serve(job)

    async def _serve(self, job: _Job) -> None:
        task = asyncio.get_running_loop().create_task(_guarded(job.call))
        self.interrupts.task = task if job.interruptible else None
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=0.1)
        except asyncio.CancelledError:
            # Something other than our handler cancelled the cell: pass it on to the user's code first.
            task.cancel()
            await asyncio.wait({task}, timeout=1)
            self.interrupts.stop.set()
        finally:
            self.interrupts.task = None
        _settle(job, task)

    def pump(self, busy: Callable[[], bool], look: Callable[[], None]) -> None:
        """As ``drive``, for a cell whose event loop is blocked by the caller."""
        self.can_await = False
        with self.interrupts.handled(None):
            while not self.interrupts.stop.is_set():
                look()
                try:
                    # Not get(timeout=...): in Python 3.11 a signal near its deadline makes that wait for ever.
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    if not busy():
                        return
                    time.sleep(_TICK)
                    continue
                look()
                self.interrupts.blocking = job.interruptible
                try:
                    job.future.set_result(run_blocking(job.call))
                except (Exception, KeyboardInterrupt) as exc:  # noqa: BLE001 - belongs to the waiting worker
                    _fail(job, exc)
                finally:
                    self.interrupts.blocking = False

    def close(self) -> None:
        """Give up jobs that nobody will serve any more, so that no worker waits for ever."""
        self._closed.set()
        while True:
            try:
                _give_up(self._jobs.get_nowait())
            except queue.Empty:
                return


class Idle:
    """The driver without a waiting cell: a job runs on the main loop between two cells.

    Cells that are already queued run first. ``loop`` is the kernel's main loop and ``lock`` the lock that
    its cells hold (private in ipykernel 7.4, pinned by a test).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None, lock: asyncio.Lock | None) -> None:
        self._loop = loop
        self._lock = lock
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.interrupts = Interrupts()
        self.can_await = True

    def submit(self, call: MainCall, cancel: Cancel) -> Any:
        """Run ``call`` on the main thread between two cells and return its result."""
        if threading.current_thread() is threading.main_thread():
            return run_blocking(call)
        if self._loop is None or not self._loop.is_running():
            raise ToolError("The kernel's main thread cannot run code for a background thread here.")
        cancel.check()
        loop = self._loop

        async def between_cells() -> Any:
            async with self._lock or asyncio.Lock():
                if cancel.cancelled:
                    raise Cancelled("interrupted")
                with self.interrupts.handled(loop):
                    task = loop.create_task(_guarded(call))
                    self.interrupts.task = task
                    try:
                        await asyncio.wait({task})
                    finally:
                        self.interrupts.task = None
                    return task.result()

        future = asyncio.run_coroutine_threadsafe(between_cells(), loop)
        with cancel.on_cancel(lambda: _stop_idle(loop, self.interrupts, future)):
            try:
                return future.result()
            except concurrent.futures.CancelledError:
                raise Cancelled("interrupted") from None

    def post(self, call: Callable[[], None], *, interruptible: bool = False) -> None:
        """Run ``call`` at the next ``serve_posted``: one thread alone shows what a background turn shows."""
        self._posted.put(call)

    def serve_posted(self, look: Callable[[], None]) -> None:
        """Run what was posted, each after a look at what happened before it."""
        while True:
            try:
                call = self._posted.get_nowait()
            except queue.Empty:
                return
            look()
            call()


def _stop_idle(loop: asyncio.AbstractEventLoop, interrupts: Interrupts, future: concurrent.futures.Future[Any]) -> None:
    def stop() -> None:
        if interrupts.task is not None:
            interrupts.task.cancel()
        else:
            future.cancel()

    loop.call_soon_threadsafe(stop)


def _give_up(job: _Job) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        job.future.set_exception(Cancelled("interrupted"))


def _fail(job: _Job, exc: BaseException) -> None:
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        job.future.set_exception(Cancelled("interrupted") if isinstance(exc, KeyboardInterrupt) else exc)


def _settle(job: _Job, task: asyncio.Task[Any]) -> None:
    if not task.done() or task.cancelled():
        _give_up(job)
        return
    exc = task.exception()
    if exc is not None:
        _fail(job, exc)
        return
    with contextlib.suppress(concurrent.futures.InvalidStateError):
        job.future.set_result(task.result())


def wait_for(thread: threading.Thread, seconds: float) -> bool:
    """Join ``thread`` for at most ``seconds``; return whether it ended."""
    deadline = time.monotonic() + seconds
    while thread.is_alive() and time.monotonic() < deadline:
        thread.join(0.05)
    return not thread.is_alive()
