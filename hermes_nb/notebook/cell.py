"""Runs one ``%%hermes`` cell: the agent in a worker thread, everything visible on the main thread.

The runner owns which turns of this kernel are running and how each is stopped. It receives a Runtime (the
composition root's) as a value and never builds an agent's parts itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from IPython.core.error import UsageError

from hermes_nb.agent.agent import Agent, TurnOptions
from hermes_nb.agent.events import Event, Notice
from hermes_nb.core.errors import Cancelled, HermesError, TurnError
from hermes_nb.core.ids import new_id
from hermes_nb.core.names import TurnStatus
from hermes_nb.core.paths import Home
from hermes_nb.core.types import Session, TurnResult
from hermes_nb.notebook.approvers import InputApprover, WidgetApprover
from hermes_nb.notebook.arguments import ArgumentsInvalid, CellArguments, parse
from hermes_nb.notebook.context_cells import ContextCells
from hermes_nb.notebook.continuity import Continuity
from hermes_nb.notebook.display import CellOutput, bind_result, short_traceback
from hermes_nb.notebook.executor import Foreground, Idle, wait_for
from hermes_nb.notebook.frontend import AnswerBy, FrontEnd, front_end, notebook_path
from hermes_nb.notebook.kernel import InProcessKernel, ToolCode
from hermes_nb.notebook.namespace import summaries, unknown_name
from hermes_nb.notebook.render import TurnView
from hermes_nb.notebook.terminal import TerminalView
from hermes_nb.store.approvals import Allowed
from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.store import Store
from hermes_nb.tools.toolsets import first_unknown, mask_for

_JOIN_SECONDS = 1.0
"""How long an interrupted cell waits for its worker; a worker stuck in a read is left behind as a daemon."""


class Runtime(Protocol):
    """What the composition root gives to front ends."""

    home: Home

    @property
    def store(self) -> Store: ...

    def agent(
        self, *, session: Session | None, title: str | None, notebook: str | None, kernel_id: str | None
    ) -> Agent:
        """Return an agent that continues ``session``, or begins one when it is None."""
        ...

    def endpoint_line(self) -> str: ...

    def memory_text(self) -> str: ...

    def allowed(self) -> Allowed: ...

    def memory(self) -> MemoryStore: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Running:
    """One running turn of this kernel."""

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

    def look(self) -> None:
        """Show what happened since the last look. Runs on the thread that owns the cell's outputs."""
        while True:
            try:
                event = self.events.get_nowait()
            except queue.Empty:
                break
            self.view.handle(event)
        self.view.flush()


class CellRunner:
    """The ``%%hermes`` of one shell; reachable as ``get_ipython().hermes_nb.runner``."""

    def __init__(self, shell: Any, runtime: Callable[[], Runtime], doctor: Callable[[], str]) -> None:
        self.shell = shell
        self.doctor = doctor
        """Examines the installation; needs no runtime, so that it can speak when none can be made."""
        self._make_runtime = runtime
        self._runtime: Runtime | None = None
        self._lock = threading.Lock()
        self.turns: dict[str, Running] = {}
        self.cells = ContextCells(lambda: self.runtime.store)
        self.sessions = Continuity(shell, lambda: self.runtime.store, before_bind=self.cells.look)
        self.agents: dict[str, Agent] = {}
        self.tool_code = ToolCode()
        self.ended_in_background: list[TurnResult] = []

    @property
    def runtime(self) -> Runtime:
        """The composition root, made at first use so that loading the extension stays cheap."""
        if self._runtime is None:
            self._runtime = self._make_runtime()
        return self._runtime

    # -- entry points -----------------------------------------------------------------------------------

    async def run_cell(self, line: str, body: str) -> None:
        """Run a cell whose event loop is free (the input transformer's call)."""
        arguments, running = self._begin(line, body, blocking=False)
        if running.background:
            self._start(running, self._background, body, arguments)
            return
        driver = running.driver
        assert isinstance(driver, Foreground)
        # To the very end: a second interrupt must not tear what the first one began.
        with driver.interrupts.handled(asyncio.get_running_loop()):
            worker = self._start(running, self._work, body, arguments)
            try:
                await driver.drive(worker.is_alive, running.look)
            except (asyncio.CancelledError, KeyboardInterrupt):
                driver.interrupts.stop.set()
            self._end(running, worker, arguments)

    def run_magic(self, line: str, body: str) -> None:
        """Run a cell that blocks its event loop: inside ``%%time``, ``run_cell_magic`` and the like."""
        arguments, running = self._begin(line, body, blocking=True)
        if running.background:
            self._start(running, self._background, body, arguments)
            return
        driver = running.driver
        assert isinstance(driver, Foreground)
        with driver.interrupts.handled(None):
            worker = self._start(running, self._work, body, arguments)
            try:
                driver.pump(worker.is_alive, running.look)
            except KeyboardInterrupt:
                driver.interrupts.stop.set()
            self._end(running, worker, arguments)

    def stop(self, id: str | None = None) -> list[str]:
        """Interrupt background turns (all, or the one whose id begins with ``id``); return their ids."""
        chosen = [t for t in list(self.turns.values()) if t.background and t.id.startswith(id or "")]
        for running in chosen:
            running.agent.interrupt()
        return [running.id for running in chosen]

    def agent_here(self) -> Agent:
        """Return the agent of the session that the next cell of this notebook continues.

        Raises UsageError when there is none yet, or its turn is running.
        """
        session = self.sessions.here()
        if session is None:
            raise UsageError("This notebook has no session yet: ask something with %%hermes, or %hermes new.")
        known = self.agents.get(session.root_id)
        if known is not None and known.turn is not None:
            raise UsageError("A turn of this session is running; wait for it or stop it.")
        agent = known or self._agent(session, CellArguments(), notebook_path(self.shell))
        self.agents[session.root_id] = agent
        return agent

    def next_turn(self) -> tuple[Agent, TurnOptions, list[str]]:
        """Return what a plain next cell would run with, and lines for the user. Begins and changes nothing."""
        seen, notebook = front_end(self.shell), notebook_path(self.shell)
        cells = self.cells.look(None if seen.headless else notebook)
        agent = self._agent(self.sessions.look(), CellArguments(), notebook)
        options = TurnOptions(recall=[cells.fact], surface="terminal" if seen.terminal else "notebook")
        return agent, options, [cells.said] if cells.said else []

    def close(self) -> None:
        """Stop everything and let go of the store (``%unload_ext`` and the kernel's end)."""
        for running in list(self.turns.values()):
            running.agent.interrupt()
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            runtime.close()

    # -- beginning --------------------------------------------------------------------------------------

    def _begin(self, line: str, body: str, *, blocking: bool) -> tuple[CellArguments, Running]:
        try:
            return self._checked(line, body, blocking)
        except ArgumentsInvalid as exc:
            if not front_end(self.shell).headless:
                raise UsageError(str(exc)) from None
            # IPython publishes no error output for a UsageError, and papermill would take the run for a success.
            exc.__dict__["_render_traceback_"] = short_traceback(exc)
            raise
        except HermesError as exc:
            exc.__dict__["_render_traceback_"] = short_traceback(exc)
            raise

    def _checked(self, line: str, body: str, blocking: bool) -> tuple[CellArguments, Running]:
        arguments = parse(line)
        if not body.strip():
            raise ArgumentsInvalid("The cell is empty: write your message below the %%hermes line. See %%hermes?")
        self.refuse_nested()
        if threading.current_thread() is not threading.main_thread():
            raise ArgumentsInvalid("%%hermes runs on the kernel's main thread only, not in a subshell or a thread.")
        seen = front_end(self.shell)
        if arguments.background and (seen.headless or not seen.in_kernel):
            raise ArgumentsInvalid("--bg needs a notebook that stays open; run this cell without --bg here.")
        if not arguments.background and any(not t.background for t in self.turns.values()):
            raise ArgumentsInvalid("A %%hermes turn is already running in this kernel; wait for it or interrupt it.")
        return arguments, self._prepare(arguments, seen, body, blocking)

    def refuse_nested(self) -> None:
        """Raise when user code that runs as a tool starts a turn: it would wait for itself."""
        if self.tool_code.running and threading.current_thread() is threading.main_thread():
            raise ArgumentsInvalid("A turn cannot be started from inside a tool call of the same kernel.")

    def _prepare(self, arguments: CellArguments, seen: FrontEnd, body: str, blocking: bool) -> Running:
        notebook = notebook_path(self.shell)
        choice = self.sessions.choose(seen, named=arguments.session, new=arguments.new)
        self._refuse_beside_background(choice.session)
        output = CellOutput()
        view = TerminalView() if seen.terminal else TurnView(output, live=not seen.headless)
        if arguments.background:
            kernel = getattr(self.shell, "kernel", None)
            driver: Foreground | Idle = Idle(asyncio.get_running_loop(), getattr(kernel, "_main_asyncio_lock", None))
        else:
            driver = Foreground()
        approver = self._approver(seen, view, driver, blocking, arguments.background)
        agent = self._agent(choice.session, arguments, None if seen.headless else notebook)
        problem = first_unknown(agent.registry, arguments.toolsets, "-t")
        problem = problem or first_unknown(agent.registry, arguments.without, "--without")
        problem = problem or unknown_name(self.shell, arguments.variables)
        if problem:
            raise ArgumentsInvalid(problem)
        cells = self.cells.look(None if seen.headless else notebook)
        session = self.sessions.take(choice, seen)
        if choice.branch:
            agent = self._agent(session, arguments, notebook)
        masked, warnings = mask_for(
            agent.registry,
            [tool.name for tool in agent.selection.sent],
            only=arguments.toolsets,
            without=arguments.without,
        )
        options = TurnOptions(
            model=arguments.model,
            masked=masked,
            mode=arguments.approve,
            recall=[
                *(f"{v.name}: {v.type}: {v.summary}" for v in summaries(self.shell, arguments.variables)),
                *([] if seen.headless else [cells.fact]),
            ],
            surface="terminal" if seen.terminal else "notebook",
            kernel=InProcessKernel(self.shell, driver, self.tool_code, output.again),
            approver=approver,
        )
        running = Running(new_id(), agent, options, view, driver, approver, body, arguments.background)
        for said in (choice.said, *warnings, self.cells.news(cells)):
            if said:
                running.events.put(Notice(said))
        return running

    def _refuse_beside_background(self, session: Session | None) -> None:
        for running in self.turns.values():
            other = running.agent.session
            if session is not None and other is not None and running.background and other.root_id == session.root_id:
                raise ArgumentsInvalid(
                    "A background turn of this session is running in this kernel: wait for it, stop it with "
                    "%hermes stop, or ask beside it with %%hermes --new."
                )

    def _agent(self, session: Session | None, arguments: CellArguments, notebook: Path | None) -> Agent:
        """Return the agent of a lineage: kept from cell to cell, so that it knows what it has seen."""
        known = None if session is None else self.agents.get(session.root_id)
        if known is not None and known.turn is None:
            return known
        return self.runtime.agent(
            session=session,
            title=arguments.title,
            notebook=None if notebook is None else str(notebook),
            kernel_id=_kernel_id(self.shell),
        )

    def _approver(
        self,
        seen: FrontEnd,
        view: TurnView | TerminalView,
        driver: Foreground | Idle,
        blocking: bool,
        background: bool,
    ) -> WidgetApprover | InputApprover | None:
        if seen.answer_by is AnswerBy.NOBODY:
            return None
        answers = self.runtime.store.approvals
        if isinstance(view, TurnView) and (background or not blocking):
            return WidgetApprover(answers, view, driver.post)
        if background:
            return None
        return InputApprover(answers, view, driver.post, driver.interrupts)

    # -- running ----------------------------------------------------------------------------------------

    def _start(
        self,
        running: Running,
        work: Callable[[Running, str, CellArguments], None],
        body: str,
        arguments: CellArguments,
    ) -> threading.Thread:
        with self._lock:
            self.turns[running.id] = running
        # A daemon thread and not a pool: pool threads are joined at exit, and a stuck one would keep the
        # kernel alive. The copied context keeps the thread's output in this cell.
        worker = threading.Thread(
            target=contextvars.copy_context().run,
            args=(work, running, body, arguments),
            daemon=True,
            name=f"hermes-nb-turn-{running.id}",
        )
        worker.start()
        return worker

    def _work(self, running: Running, body: str, _arguments: CellArguments) -> None:
        try:
            running.result = running.agent.start(body, running.events.put, options=running.options)
        except BaseException as exc:  # noqa: BLE001 - the cell that waits raises it on the main thread
            running.error = exc

    def _end(self, running: Running, worker: threading.Thread, arguments: CellArguments) -> None:
        """Finish a foreground cell: show the rest, bind the result, raise what has to be raised."""
        driver = running.driver
        assert isinstance(driver, Foreground)
        interrupted = driver.interrupts.stop.is_set()
        if interrupted:
            running.agent.interrupt()
        driver.close()
        if interrupted:
            wait_for(worker, _JOIN_SECONDS)
        self._forget(running)
        if interrupted:
            raise _interrupt() from None
        self._raise_or_bind(running, arguments)

    def _forget(self, running: Running) -> None:
        running.look()
        running.view.freeze()
        if running.approver is not None:
            running.approver.close_all()
        running.view.closed()
        with self._lock:
            self.turns.pop(running.id, None)
        session = running.agent.session
        if session is not None:
            self.agents[session.root_id] = running.agent
            if not running.background or notebook_path(self.shell) not in self.sessions.current:
                self.sessions.current[notebook_path(self.shell)] = session.root_id

    def _raise_or_bind(self, running: Running, arguments: CellArguments) -> None:
        error, result = running.error, running.result
        if result is not None:
            bind_result(self.shell, result, arguments.output)
        if isinstance(error, Cancelled) or (result is not None and result.status is TurnStatus.INTERRUPTED):
            raise _interrupt() from None
        if isinstance(error, HermesError):
            if isinstance(error, TurnError) and arguments.keep_going:
                running.view.note(str(error), "error")
                return
            error.__dict__["_render_traceback_"] = short_traceback(error)
            raise error
        if error is not None:
            raise error

    def _background(self, running: Running, body: str, arguments: CellArguments) -> None:
        """Pump a turn without a cell that waits: its outputs are published from this thread."""
        worker = threading.Thread(
            target=contextvars.copy_context().run,
            args=(self._work, running, body, arguments),
            daemon=True,
            name=f"hermes-nb-agent-{running.id}",
        )
        worker.start()
        driver = running.driver
        assert isinstance(driver, Idle)
        while worker.is_alive():
            running.look()
            driver.serve_posted(running.look)
            if running.driver.interrupts.stop.is_set():
                running.agent.interrupt()
            worker.join(0.1)
        driver.serve_posted(running.look)
        self._forget(running)
        if running.result is not None:
            self.ended_in_background.append(running.result)
            bind_result(self.shell, running.result, arguments.output, last=False)
        if running.error is not None and not isinstance(running.error, Cancelled):
            running.view.note(_one_line(running.error), "error")


def _interrupt() -> KeyboardInterrupt:
    exc = KeyboardInterrupt("the hermes turn was interrupted")
    exc.__dict__["_render_traceback_"] = short_traceback(exc)
    return exc


def _one_line(exc: BaseException) -> str:
    return str(exc) or "".join(traceback.format_exception_only(exc)).strip()


def _kernel_id(shell: Any) -> str | None:
    """Return the kernel's id as its connection file names it (``kernel-<id>.json``); never the file itself."""
    parent = getattr(getattr(shell, "kernel", None), "parent", None)
    name = Path(getattr(parent, "connection_file", "") or "").stem
    return name.removeprefix("kernel-") or None
