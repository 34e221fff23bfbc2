"""Runs one ``%%hermes`` cell: the agent in a worker thread, everything visible on the main thread.

The runner owns which turns of this kernel are running and how each is stopped. It receives a Runtime (the
composition root's) as a value and never builds an agent's parts itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError

from hermes_nb.agent.agent import Agent, TurnOptions
from hermes_nb.agent.events import Notice
from hermes_nb.core.errors import Cancelled, HermesError, TurnError
from hermes_nb.core.ids import new_id
from hermes_nb.core.names import TurnStatus
from hermes_nb.core.types import Session, TurnResult
from hermes_nb.notebook.approvers import InputApprover, WidgetApprover
from hermes_nb.notebook.arguments import ArgumentsInvalid, CellArguments, parse
from hermes_nb.notebook.context_cells import ContextCells
from hermes_nb.notebook.continuity import Continuity
from hermes_nb.notebook.display import CellOutput, bind_result, short_traceback
from hermes_nb.notebook.executor import Foreground, Idle
from hermes_nb.notebook.frontend import AnswerBy, FrontEnd, front_end, notebook_path
from hermes_nb.notebook.kernel import InProcessKernel, ToolCode
from hermes_nb.notebook.namespace import summaries, unknown_name
from hermes_nb.notebook.render import TurnView
from hermes_nb.notebook.running import Running, in_thread
from hermes_nb.notebook.runtime import Runtime
from hermes_nb.notebook.terminal import TerminalView
from hermes_nb.tools.toolsets import first_unknown, mask_for


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
            self._begin_background(running, arguments)
            return
        driver = running.driver
        assert isinstance(driver, Foreground)
        # To the very end: a second interrupt must not tear what the first one began.
        with driver.interrupts.handled(asyncio.get_running_loop()):
            self._register(running)
            worker = running.begin()
            try:
                await driver.drive(worker.is_alive, running.look)
            except (asyncio.CancelledError, KeyboardInterrupt):
                driver.interrupts.stop.set()
            self._end(running, worker, arguments)

    def run_magic(self, line: str, body: str) -> None:
        """Run a cell that blocks its event loop: inside ``%%time``, ``run_cell_magic`` and the like."""
        arguments, running = self._begin(line, body, blocking=True)
        if running.background:
            self._begin_background(running, arguments)
            return
        driver = running.driver
        assert isinstance(driver, Foreground)
        with driver.interrupts.handled(None):
            self._register(running)
            worker = running.begin()
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

    def _register(self, running: Running) -> None:
        with self._lock:
            self.turns[running.id] = running

    def _end(self, running: Running, worker: threading.Thread, arguments: CellArguments) -> None:
        """Finish a foreground cell: show the rest, bind the result, raise what has to be raised."""
        interrupted = running.end_foreground(worker)
        self._forget(running)
        if interrupted:
            raise _interrupt() from None
        self._raise_or_bind(running, arguments)

    def _forget(self, running: Running) -> None:
        running.show_rest()
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

    def _begin_background(self, running: Running, arguments: CellArguments) -> None:
        def work() -> None:
            running.pump_in_background()
            self._forget(running)
            if running.result is not None:
                self.ended_in_background.append(running.result)
                bind_result(self.shell, running.result, arguments.output, last=False)
            running.note_error()

        self._register(running)
        in_thread(work, f"hermes-nb-background-{running.id}")


def _interrupt() -> KeyboardInterrupt:
    exc = KeyboardInterrupt("the hermes turn was interrupted")
    exc.__dict__["_render_traceback_"] = short_traceback(exc)
    return exc


def _kernel_id(shell: Any) -> str | None:
    """Return the kernel's id as its connection file names it (``kernel-<id>.json``); never the file itself."""
    parent = getattr(getattr(shell, "kernel", None), "parent", None)
    name = Path(getattr(parent, "connection_file", "") or "").stem
    return name.removeprefix("kernel-") or None
