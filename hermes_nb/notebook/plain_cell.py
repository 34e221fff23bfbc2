"""``agent.run()`` in a plain cell, in ``async def`` or in the user's own thread: what the process offers it.

The agent brings every call back to the thread that waits for it. On the main thread code runs right there;
in a thread of the user it runs on the main thread between two cells.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hermes_nb.agent.ambient import Ambient
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.names import ApprovalState
from hermes_nb.core.types import ApprovalRequest
from hermes_nb.notebook.approvers import Answers, InputApprover
from hermes_nb.notebook.executor import Idle, MainCall, run_blocking
from hermes_nb.notebook.frontend import front_end
from hermes_nb.notebook.kernel import InProcessKernel, ToolCode
from hermes_nb.tools.approval import NOBODY


class PlainCell:
    """The driver and the approver of turns that no ``%%hermes`` cell shows."""

    surface = "notebook"

    def __init__(
        self, shell: Any, tool_code: ToolCode, answers: Callable[[], Answers], check: Callable[[], None]
    ) -> None:
        self._shell = shell
        self._tool_code = tool_code
        self._answers = answers
        self._check = check

    @property
    def can_await(self) -> bool:
        return threading.current_thread() is not threading.main_thread()

    def ambient(self) -> Ambient:
        """Return what ``Agent.open()`` gets in this process when it is not told otherwise."""
        return Ambient(
            surface="notebook" if getattr(self._shell, "kernel", None) is not None else "terminal",
            kernel=InProcessKernel(self._shell, self, self._tool_code),
            approver=self,
            headless=False,
            check=self._check,
        )

    # -- the driver's face

    def submit(self, call: MainCall, cancel: Cancel) -> Any:
        if threading.current_thread() is threading.main_thread():
            return run_blocking(call)
        kernel = getattr(self._shell, "kernel", None)
        loop = getattr(getattr(kernel, "io_loop", None), "asyncio_loop", None)
        # Without the cells' lock: a cell that awaits its own thread holds it, and both would wait for ever.
        return Idle(loop, None).submit(call, cancel)

    # -- the approver's face

    def open(self, request: ApprovalRequest) -> None:
        """Ask with ``input()`` when the main thread waits for the turn and someone is there; else deny."""
        on_main = threading.current_thread() is threading.main_thread()
        if not on_main or front_end(self._shell).headless:
            self._answers().answer(request.id, ApprovalState.DENIED, NOBODY, request.args_hash)
            return
        InputApprover(self._answers(), None, _now, None).open(request)

    def close(self, request: ApprovalRequest) -> None:
        pass  # the prompt and its answer stand in the cell


def _now(call: Callable[[], None], *, interruptible: bool = False) -> None:
    call()
