"""One turn's cancellation: a flag that wakes whatever waits on it. Thread-safe; knows no front end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from hermes_nb.core.errors import Cancelled


class Cancel:
    """A one-way switch. ``on_cancel`` registers closers that run once, in the cancelling thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._closers: dict[int, Callable[[], None]] = {}
        self._next = 0

    def cancel(self) -> None:
        """Set the switch and run the closers; a second call does nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            closers = list(self._closers.values())
            self._closers.clear()
        for close in closers:
            close()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled when the switch is set."""
        if self._event.is_set():
            raise Cancelled("interrupted")

    def wait(self, seconds: float) -> bool:
        """Sleep up to ``seconds``; return True at once when cancelled."""
        return self._event.wait(seconds)

    @contextmanager
    def on_cancel(self, close: Callable[[], None]) -> Generator[None]:
        """Run ``close`` if the switch is set while the block runs (at once when it is set already).

        ``close`` must be quick, thread-safe and must not raise.
        """
        with self._lock:
            already = self._event.is_set()
            key = self._next
            self._next += 1
            if not already:
                self._closers[key] = close
        if already:
            close()
        try:
            yield
        finally:
            with self._lock:
                self._closers.pop(key, None)
