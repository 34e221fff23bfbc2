"""One private event loop in a daemon thread per process, for asynchronous clients behind a synchronous face."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

THREAD_NAME = "hermes-nb-provider"
_CLOSE_SECONDS = 2.0


class LoopThread:
    """The loop and its thread. Valid only in the process that made it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.resources: dict[Any, Any] = {}
        """What belongs to the loop and must not outlive it (clients); touched on the loop only."""
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self.thread.start()
        atexit.register(self.close)

    def submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Start ``work`` on the loop; cancelling the future cancels the work."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    @property
    def alive(self) -> bool:
        return self.pid == os.getpid() and self.thread.is_alive()

    def close(self) -> None:
        """Cancel what runs and end the thread; called at exit so that no transport is left open."""
        if not self.alive:
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


class _OwnRecords(logging.Filter):
    """Drops what the HTTP libraries log below WARNING from our thread: it names URLs, bodies and headers.

    The user's own use of the same libraries logs as before.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.threadName != THREAD_NAME


_LOGGERS = ("httpx", "httpx2", "openai", "openai._base_client", "openai._legacy_response", "openai._response")
_lock = threading.Lock()
_current: LoopThread | None = None
_parents: list[LoopThread] = []


def current() -> LoopThread:
    """Return this process's loop thread; starts it at the first call, and anew in a forked child."""
    global _current
    with _lock:
        if _current is None or not _current.alive:
            for name in _LOGGERS:
                logger = logging.getLogger(name)
                if not any(isinstance(one, _OwnRecords) for one in logger.filters):
                    logger.addFilter(_OwnRecords())
            _current = LoopThread()
        return _current


def _forget() -> None:
    """In a forked child: the thread is gone, and the lock may have been held by a thread that is gone too."""
    global _current, _lock
    if _current is not None:
        # Kept, not dropped: its loop cannot be closed here, and its sockets belong to the parent.
        _parents.append(_current)
    _current, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
