"""One running turn of this kernel: its worker thread, and what it shows on the thread that owns its outputs."""

from __future__ import annotations

import contextvars
import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from hermes_nb.agent.agent import Agent, TurnOptions
from hermes_nb.agent.events import Event
from hermes_nb.core.errors import Cancelled
from hermes_nb.core.types import TurnResult
from hermes_nb.notebook.approvers import InputApprover, WidgetApprover
from hermes_nb.notebook.executor import Foreground, Idle, wait_for
from hermes_nb.notebook.render import TurnView
from hermes_nb.notebook.terminal import TerminalView

_JOIN_SECONDS = 1.0
"""How long an interrupted cell waits for its worker; a worker stuck in a read is left behind as a daemon."""


@dataclass(slots=True)
class Running:
    """A turn from the cell that began it to its end. ``question`` is the cell's body."""

    id: str
    agent: Agent
    options: TurnOptions
    view: TurnView | TerminalView
    driver: Foreground | Idle
    approver: WidgetApprover | InputApprover | None
    question: str
    background: bool
    events: queue.SimpleQueue[Event] = field(default_factory=queue.SimpleQueue)
    result: TurnResult | None = None
    error: BaseException | None = None

    def begin(self) -> threading.Thread:
        """Start the agent in a thread of its own and return it."""
        return in_thread(self._work, f"hermes-nb-turn-{self.id}")

    def look(self) -> None:
        """Show what happened since the last look. Runs on the thread that owns the cell's outputs."""
        while True:
            try:
                event = self.events.get_nowait()
            except queue.Empty:
                break
            self.view.handle(event)
        self.view.flush()

    def end_foreground(self, worker: threading.Thread) -> bool:
        """Stop serving the cell's jobs; return whether the user interrupted it, which then ends the turn."""
        assert isinstance(self.driver, Foreground)
        interrupted = self.driver.interrupts.stop.is_set()
        if interrupted:
            self.agent.interrupt()
        self.driver.close()
        if interrupted:
            wait_for(worker, _JOIN_SECONDS)
        return interrupted

    def pump_in_background(self) -> None:
        """Run the turn without a cell that waits: its outputs are published from this thread."""
        assert isinstance(self.driver, Idle)
        worker = self.begin()
        while worker.is_alive():
            self.look()
            self.driver.serve_posted(self.look)
            if self.driver.interrupts.stop.is_set():
                self.agent.interrupt()
            worker.join(0.1)
        self.driver.serve_posted(self.look)

    def show_rest(self) -> None:
        """Show what is left, and leave no question or waiting line behind."""
        self.look()
        self.view.freeze()
        if self.approver is not None:
            self.approver.close_all()
        self.view.closed()

    def note_error(self) -> None:
        """Say in the cell what ended the turn, where no cell waits that could raise it."""
        if self.error is not None and not isinstance(self.error, Cancelled):
            text = str(self.error) or "".join(traceback.format_exception_only(self.error)).strip()
            self.view.note(text, "error")

    def _work(self) -> None:
        try:
            self.result = self.agent.start(self.question, self.events.put, options=self.options)
        except BaseException as exc:  # noqa: BLE001 - the cell that waits raises it on the main thread
            self.error = exc


def in_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start ``work`` in a daemon thread whose output stays in this cell.

    A daemon thread and not a pool: pool threads are joined at exit, and a stuck one would keep the kernel alive.
    """
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True, name=name)
    thread.start()
    return thread
