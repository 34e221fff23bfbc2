"""KernelPort inside the kernel's own process: runs code in the user's namespace on the main thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.secrets import secret_values
from hermes_nb.notebook.capture import Captured, capture, plain
from hermes_nb.notebook.executor import MainCall
from hermes_nb.notebook.namespace import NamespaceMask, summaries
from hermes_nb.tools.kernel import IN_TOOL_CALL, CodeResult, Variable

_POLL = 0.002
"""Seconds between two looks whether the output of subprocesses has arrived."""


class Driver(Protocol):
    """Runs a call on the main thread (see executor.py)."""

    @property
    def can_await(self) -> bool: ...

    def submit(self, call: MainCall, cancel: Cancel) -> Any: ...


class ToolCode:
    """Says whether user code runs as a tool right now. A turn that starts in there is an error, not a wait."""

    def __init__(self) -> None:
        self.running = False

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        self.running = True
        os.environ[IN_TOOL_CALL] = "1"
        try:
            yield
        finally:
            os.environ.pop(IN_TOOL_CALL, None)
            self.running = False


class InProcessKernel:
    """The live namespace of this IPython shell, reached through a driver of the main thread."""

    def __init__(
        self, shell: Any, driver: Driver, tool_code: ToolCode, cleared: Callable[[], None] | None = None
    ) -> None:
        self._shell = shell
        self._driver = driver
        self._tool_code = tool_code
        self._cleared = cleared

    def execute(self, code: str, cancel: Cancel) -> CodeResult:
        """Run one cell of code; its output appears in the cell and comes back."""

        async def call() -> CodeResult:
            with self._tool_code.entered():
                return await _run(self._shell, code, self._driver.can_await, self._cleared)

        result: CodeResult = self._driver.submit(call, cancel)
        if result.interrupted and threading.current_thread() is threading.main_thread():
            # No driver saw the signal: ``agent.run()`` in a plain cell. IPython swallowed it; raise it again.
            raise KeyboardInterrupt
        return result

    def variables(self, names: Sequence[str] | None, cancel: Cancel) -> list[Variable]:
        """Return typed summaries of the user's own variables, or of ``names``."""

        async def call() -> list[Variable]:
            return summaries(self._shell, names)

        return self._driver.submit(call, cancel)

    def secret_values(self) -> list[str]:
        """Return the text of variables with secret names. Reads the namespace from any thread: a copy, no code."""
        for _ in range(10):
            try:
                return secret_values(dict(self._shell.user_ns))
            except RuntimeError:  # the main thread defined a name while it was copied
                continue
        return []


async def _run(shell: Any, code: str, can_await: bool, cleared: Callable[[], None] | None) -> CodeResult:
    """Run ``code`` as IPython runs a cell. Never raises what the code raises, not even KeyboardInterrupt:
    a KeyboardInterrupt that escapes a task leaves the event loop and wedges the kernel.
    """
    succeeded = interrupted = False
    with capture(shell, code, cleared, NamespaceMask(shell)) as seen:
        try:
            succeeded, interrupted = await _run_cell(shell, code)
        except (KeyboardInterrupt, asyncio.CancelledError):
            interrupted = True
            seen.traceback.append("KeyboardInterrupt")
        sys.stdout.flush()
        sys.stderr.flush()
        for _ in seen.drained():
            if can_await:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(_POLL)
            else:
                time.sleep(_POLL)  # noqa: ASYNC251 - here the coroutine runs without a loop
    return _result(seen, succeeded, interrupted)


async def _run_cell(shell: Any, code: str) -> tuple[bool, bool]:
    """Return whether the code succeeded and whether an interrupt ended it."""
    preprocessing = None
    try:
        transformed = shell.transform_cell(code)
    except Exception:  # noqa: BLE001 - a transformer's error is shown as the cell's error, as IPython does
        transformed, preprocessing = code, sys.exc_info()
    result = await shell.run_cell_async(
        code, store_history=False, transformed_cell=transformed, preprocessing_exc_tuple=preprocessing
    )
    # run_cell_async leaves these to its caller; matplotlib flushes inline figures here.
    shell.events.trigger("post_execute")
    shell.events.trigger("post_run_cell", result)
    # IPython keeps what ended the code instead of raising it.
    ended_by = result.error_in_exec
    return bool(result.success), isinstance(ended_by, KeyboardInterrupt | asyncio.CancelledError)


def _result(seen: Captured, succeeded: bool, interrupted: bool) -> CodeResult:
    traceback = plain("\n".join(seen.traceback))
    stderr = plain("".join(seen.stderr))
    for text in seen.traceback:
        # The traceback was printed to stderr so that people see it; the model gets it once.
        stderr = stderr.replace(plain(text) + "\n", "").replace(plain(text), "")
    return CodeResult(
        ok=succeeded and not interrupted,
        stdout=plain("".join(seen.stdout)),
        stderr=stderr,
        traceback=traceback,
        displays=tuple(seen.displays),
        interrupted=interrupted,
    )
