"""Records what one piece of user code shows, while it still shows in the cell.

Patches attributes of live IPython objects for the length of one call and puts them back. Must not know
the agent. Two limits, both documented: prints of *any* thread during the call are recorded, and code that
replaces ``sys.stdout`` escapes.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_nb.core.names import MIME_TURN
from hermes_nb.notebook.executor import Interrupts
from hermes_nb.tools.judge import MARK

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_MARK_LINE = re.compile(rf"\n[^\n]*{MARK}[^\n]*")
"""The line that ``guarded`` adds to code, as a traceback quotes it."""


def plain(text: str) -> str:
    """Return ``text`` as the model should see it: no ANSI codes, no carriage returns of a pty."""
    return _ANSI.sub("", text).replace("\r\n", "\n")


class _Drain:
    """Tells when ipykernel's watcher has passed on everything that subprocesses wrote to one descriptor.

    A mark of control characters goes through the same pipe; what came before it has arrived when it arrives.
    The mark itself is taken out again, also when a read splits it.
    """

    def __init__(self, stream: Any) -> None:
        watcher = getattr(stream, "watch_fd_thread", None)
        self._fd = getattr(stream, "_original_stdstream_fd", None) if watcher and watcher.is_alive() else None
        self._mark = "\x00" + "".join(secrets.choice("\x01\x02\x03\x04\x05\x06") for _ in range(12)) + "\x00"
        self._held = ""
        self.empty = True

    def arm(self) -> None:
        if self._fd is not None:
            self.empty = False
            os.write(self._fd, self._mark.encode("ascii"))

    def passed(self, text: str) -> str:
        """Return ``text`` without the mark, holding back what may be the start of it."""
        if self.empty:
            return text
        text, self._held = self._held + text, ""
        if self._mark in text:
            self.empty = True
            return text.replace(self._mark, "")
        keep = next((n for n in range(len(self._mark) - 1, 0, -1) if text.endswith(self._mark[:n])), 0)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep]


@dataclass(slots=True)
class Captured:
    """Pieces in the order they came, one list per kind."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    traceback: list[str] = field(default_factory=list)
    displays: list[Mapping[str, Any]] = field(default_factory=list)
    drains: list[_Drain] = field(default_factory=list)

    def drained(self) -> Iterator[None]:
        """Yield until what subprocesses wrote has arrived, or half a second is over; the caller sleeps between."""
        for drain in self.drains:
            drain.arm()
        deadline = time.monotonic() + 0.5
        while not all(drain.empty for drain in self.drains) and time.monotonic() < deadline:
            yield


class _Patches:
    """Attribute replacements on live objects, undone in reverse order."""

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()

    def set(self, target: Any, name: str, make: Callable[[Any], Any]) -> None:
        own = name in getattr(target, "__dict__", {})
        old = getattr(target, name)
        setattr(target, name, make(old))
        if own:
            self._undo.callback(setattr, target, name, old)
        else:
            self._undo.callback(delattr, target, name)

    def close(self) -> None:
        self._undo.close()


class _DisplayHook:
    """Shows the value of a last expression as a display instead of an ``Out``.

    The user's ``_``, ``Out`` and prompt numbers stay theirs: a tool result is not their result.
    """

    def __init__(self, shell: Any, code: str) -> None:
        self._shell = shell
        self._code = code

    def __call__(self, value: Any = None) -> None:
        if value is None or self._shell.displayhook.semicolon_at_end_of_expression(self._code):
            return
        data, metadata = self._shell.display_formatter.format(value)
        if data:
            self._shell.display_pub.publish(data, metadata)


def _without_handler(shell: Any, etype: type, value: BaseException) -> list[str]:
    """Return the traceback of an interrupt without our signal handler, which says nothing about the user's code."""
    frame = value.__traceback__
    while frame is not None and frame.tb_next is not None:
        if frame.tb_next.tb_frame.f_globals.get("__name__") == Interrupts.__module__:
            frame.tb_next = None
        else:
            frame = frame.tb_next
    return shell.InteractiveTB.structured_traceback(etype, value, value.__traceback__, tb_offset=1)


def _masked(kind: str, value: Any, shown: Callable[[str], str]) -> Any:
    return shown(value) if kind.startswith("text/") and isinstance(value, str) else value


@contextlib.contextmanager
def capture(
    shell: Any, code: str, cleared: Callable[[], None] | None = None, shown: Callable[[str], str] = str
) -> Iterator[Captured]:
    """Record what ``code`` shows while the block runs; ``shell`` is the InteractiveShell.

    ``cleared`` is called after the code has cleared the cell, to show again what was not the code's own. ``shown``
    masks what the cell shows, piece by piece as it is written; what is recorded is masked later, as a whole.
    """
    seen = Captured()
    patches = _Patches()

    def tee(stream: Any, into: list[str]) -> Callable[[Any], Any]:
        drain = _Drain(stream)
        seen.drains.append(drain)

        def make(write: Any) -> Any:
            def teed(text: str) -> Any:
                kept = drain.passed(text)
                into.append(kept)
                write(shown(kept))
                return len(text)

            return teed

        return make

    def publishing(publish: Any) -> Any:
        def published(data: Mapping[str, Any], metadata: Any = None, **rest: Any) -> Any:
            if MIME_TURN not in data:
                seen.displays.append(data)
            return publish({kind: _masked(kind, value, shown) for kind, value in data.items()}, metadata, **rest)

        return published

    def clearing(clear: Any) -> Any:
        def clear_output(wait: bool = False) -> None:
            for pieces in (seen.stdout, seen.stderr, seen.displays):
                pieces.clear()
            clear(wait)
            if cleared is not None:
                cleared()

        return clear_output

    def printing_traceback(_: Any) -> Any:
        # As a stream and not as an ``error`` output: papermill fails a notebook that contains any error
        # output, also when the agent recovered from it.
        def show(etype: type, value: BaseException, lines: list[str]) -> None:
            if issubclass(etype, KeyboardInterrupt):
                lines = _without_handler(shell, etype, value) or lines
            text = _MARK_LINE.sub("", "\n".join(lines))
            seen.traceback.append(text)
            shell._last_traceback = lines
            print(text, file=sys.stderr)

        return show

    def refusing_exit(_: Any) -> Any:
        def ask_exit() -> None:
            raise SystemExit("the kernel stays: exit() inside a tool call does not end it")

        return ask_exit

    hook = _DisplayHook(shell, code)
    outer_hook, outer_trap_hook = sys.displayhook, shell.display_trap.hook
    outer_result = (shell.last_execution_result, shell.last_execution_succeeded)
    # The streams' own ``write`` is patched, so that ipykernel's watcher of file descriptors 1 and 2 is seen too.
    patches.set(sys.stdout, "write", tee(sys.stdout, seen.stdout))
    patches.set(sys.stderr, "write", tee(sys.stderr, seen.stderr))
    patches.set(shell.display_pub, "publish", publishing)
    patches.set(shell.display_pub, "clear_output", clearing)
    patches.set(shell, "_showtraceback", printing_traceback)
    if hasattr(shell, "ask_exit"):
        patches.set(shell, "ask_exit", refusing_exit)
    sys.displayhook = shell.display_trap.hook = hook
    try:
        yield seen
    finally:
        sys.displayhook, shell.display_trap.hook = outer_hook, outer_trap_hook
        shell.last_execution_result, shell.last_execution_succeeded = outer_result
        patches.close()
