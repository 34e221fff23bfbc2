"""The agent: one session, one turn at a time. Opens or continues the session, then hands the turn to the loop.

Receives everything as values: which endpoints, which tools, who may be asked. Must not know configuration, a
front end or a library. ``start`` blocks the calling thread; ``run`` and ``stream`` put it into a worker thread
and serve the calling thread meanwhile, so they work in a plain cell, inside ``async def`` and in a thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from hermes_nb.agent.ambient import ambient
from hermes_nb.agent.beside import Beside
from hermes_nb.agent.caller import Caller, CallerApprover, CallerKernel, uninterrupted
from hermes_nb.agent.events import Event, Notice, TurnStarted
from hermes_nb.agent.execution import Execution
from hermes_nb.agent.gate import ApprovalGate
from hermes_nb.agent.guard import Guard
from hermes_nb.agent.history import History
from hermes_nb.agent.loop import Limits, Loop, Request
from hermes_nb.agent.opening import Models, Opened, Opening, SessionFacts, check_kind, working_folder
from hermes_nb.agent.options import Policy, TurnOptions
from hermes_nb.agent.preview import Preview
from hermes_nb.agent.provider import Endpoint
from hermes_nb.agent.reuse import Trail
from hermes_nb.agent.transcript import repair_rows
from hermes_nb.agent.turn import Emit, Turn, give_back, take_lease
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ConfigError, HermesError, StoreError, TurnError
from hermes_nb.core.names import LEASE_RENEW_SECONDS, ApprovalMode, Role, TurnStatus
from hermes_nb.core.types import Message, Prefix, RequestUsage, Session, TurnResult, Wire
from hermes_nb.prompt.blocking import Screened
from hermes_nb.prompt.recall_provider import RecallChannel, RecallProvider
from hermes_nb.store.store import Store
from hermes_nb.tools.approval import Approver
from hermes_nb.tools.kernel import KernelPort
from hermes_nb.tools.registry import Registry
from hermes_nb.tools.tool import ToolContext
from hermes_nb.tools.toolsets import Selection, mask_for

log = logging.getLogger(__name__)

_JOIN_SECONDS = 1.0
"""How long an interrupted ``run`` waits for a worker that does not react; its writes are refused anyway."""


_MASKED = (
    "A secret in your message was replaced by [masked] before it was stored or sent. To use it, name the environment "
    "variable or the variable that holds it."
)


@dataclass(slots=True)
class _Running:
    """The turn of this moment; ``turn`` is None until it holds the lease."""

    cancel: Cancel
    turn: Turn | None = None


class Agent:
    """One session of one user. One turn at a time; ``interrupt`` may be called from any thread."""

    def __init__(
        self,
        *,
        store: Store,
        models: Models,
        registry: Registry,
        selection: Selection,
        identity: str | Callable[[], Screened],
        memory: Callable[[str], str | Screened],
        services: Mapping[str, Any],
        session: Session | None = None,
        facts: SessionFacts | None = None,
        model: str | None = None,
        kernel: KernelPort | None = None,
        approver: Approver | None = None,
        policy: Callable[[], Policy] = Policy,
        surface: str = "script",
        user: str | None = None,
        limits: Limits | None = None,
        notices: Sequence[str] = (),
        recall_provider: RecallProvider | None = None,
        seen: dict[str, int] | None = None,
        trails: dict[tuple[str, str, str], Trail] | None = None,
        today: Callable[[], date] = date.today,
        renew_seconds: float = LEASE_RENEW_SECONDS,
        context: Callable[[Path, str], Screened] | None = None,
    ) -> None:
        self.store = store
        self.registry = registry
        self.selection = selection
        self.session = session
        """The session's newest state that this agent knows; None before the first turn of a new one."""
        self.model = model
        self.kernel = kernel
        self.approver = approver
        self._policy = policy
        self.surface = surface
        self._models = models
        self._services = services
        self._limits = limits or Limits()
        self._notices = [*notices, *selection.warnings]
        self._today = today
        self._renew_seconds = renew_seconds
        self._opening = Opening(
            store, models, identity, memory, facts or SessionFacts(source=surface), user or store.user, today, context
        )
        channel = None if recall_provider is None else RecallChannel(recall_provider)
        self._beside = Beside(store, channel, today)
        self._history = History(store)
        self._seen = {} if seen is None else seen
        self._trails = {} if trails is None else trails
        self.requests: tuple[RequestUsage, ...] = ()
        """The model calls of this agent's last turn."""
        self._lock = threading.Lock()
        self._running: _Running | None = None

    # --- running a turn

    def run(self, text: str, options: TurnOptions | None = None) -> TurnResult:
        """Run one turn and return its result.

        Raises TurnError when the turn failed (the session can go on), KeyboardInterrupt when it was
        interrupted, and ConfigError, SessionLeased or another StoreError when it could not begin.
        """
        caller = self._begin(text, options)
        try:
            while caller.next_event() is not None:
                pass
        except BaseException:
            self._abandon(caller)
            raise
        return _delivered(caller)

    def stream(self, text: str, options: TurnOptions | None = None) -> Iterator[Event]:
        """Run one turn and yield its events; the last one is TurnFinished. Errors as in ``run``.

        A caller that stops iterating interrupts the turn.
        """
        caller = self._begin(text, options, with_events=True)
        try:
            while (event := caller.next_event()) is not None:
                yield event
        except BaseException:
            self._abandon(caller)
            raise
        _delivered(caller)

    def start(
        self,
        text: str,
        emit: Emit,
        *,
        cancel: Cancel | None = None,
        options: TurnOptions | None = None,
    ) -> TurnResult:
        """Run one turn in the calling thread. Returns its result, also the one of an interrupted turn.

        ``emit`` is called from this thread and from the thread that interrupts; it must be quick and must not
        raise. Raises TurnError, after the TurnFinished event, when the turn failed; ConfigError,
        SessionLeased, another StoreError or Cancelled when it could not begin (nothing is stored then).
        """
        if not text.strip():
            raise ConfigError("There is nothing to send: the message is empty.")
        running = _Running(cancel or Cancel())
        with self._lock:
            if self._running is not None:
                raise TurnError("A turn of this agent is running. Wait for its end, or interrupt it.")
            self._running = running
        try:
            turn = self._open(text, emit, running, options or TurnOptions())
        finally:
            self._let_go(running)
        result = turn.result()
        if result.status is TurnStatus.FAILED:
            raise TurnError(result.error or "The turn failed.") from turn.cause
        return result

    def interrupt(self) -> TurnResult | None:
        """End the running turn from any thread, whatever its worker does; None when none has begun.

        Idempotent. The transcript is whole when it returns, and nothing of the turn is written later. A turn
        that is about to begin raises Cancelled in its worker.
        """
        running = self._running
        if running is None:
            return None
        if running.turn is None:
            running.cancel.cancel()
        turn = running.turn  # it may have begun between the two looks
        result = turn.interrupt() if turn is not None else None
        # The next turn need not wait for a worker that does not react.
        self._let_go(running)
        return result

    @property
    def turn(self) -> Turn | None:
        """The running turn."""
        running = self._running
        return running.turn if running is not None else None

    def unseen(self) -> list[Message]:
        """Return the visible rows that others added to the session since this agent's last turn."""
        if self.session is None or self.session.root_id not in self._seen:
            return []
        return self.store.rows(self.store.tip(self.session.id).id, after=self._seen[self.session.root_id])

    def preview(self, options: TurnOptions | None = None) -> Preview:
        """Return what the next request will carry beside the user's words. Sends and stores nothing.

        What a recall provider finds depends on the words and is not in it. Raises NoEndpoint, ConfigError.
        """
        given = options or TurnOptions()
        session = None if self.session is None else self.store.tip(self.session.id)
        rows = [] if session is None else self.store.rows(session.id)
        mode = given.mode or self._policy().mode
        beside = self._beside.preview(rows, session, given.surface or self.surface, mode, given)
        return self._opening.preview(session, rows, self.selection, self.model, beside)

    def fresh_prefix(self) -> Prefix:
        """Return the prefix that a new session would get now. Stores nothing. Raises NoEndpoint, ConfigError."""
        session = None if self.session is None else self.store.tip(self.session.id)
        return self._opening.fresh(session, self.selection, self.model)[1]

    def use(self, *, model: str | None = None, selection: Selection | None = None) -> Endpoint:
        """Give the session another model or other tools from its next turn on. A new prefix is built.

        The caller announces it. Raises ConfigError when the offline demo model would change places with another.
        """
        if selection is not None:
            self.selection = selection
        session = None if self.session is None else self.store.tip(self.session.id)
        if session is None or session.model is None:
            self.model = model or self.model
            return self._models.named(self.model) if self.model else self._models.primary()
        endpoint = self._models.named(model) if model else self._opening.own_endpoint(session)
        check_kind(session, endpoint)
        self._opening.refreeze(session, endpoint, self.selection)
        if model:
            self.store.update_session(
                session.id, model=endpoint.model, base_url=endpoint.base_url, key_env=endpoint.key_env
            )
        self.session = self.store.session(session.id)
        return endpoint

    # --- inside: the calling thread

    def _begin(self, text: str, options: TurnOptions | None, *, with_events: bool = False) -> Caller:
        check = ambient().check
        if check is not None:
            check()
        caller = Caller()
        given = options or TurnOptions()
        kernel, approver = given.kernel or self.kernel, given.approver or self.approver
        mine = replace(
            given,
            kernel=None if kernel is None else CallerKernel(kernel, caller),
            approver=None if approver is None else CallerApprover(approver, caller),
        )
        emit = caller.put if with_events else _ignore
        caller.begin(lambda: self.start(text, emit, cancel=caller.cancel, options=mine))
        return caller

    def _abandon(self, caller: Caller) -> None:
        """Stop a turn whose caller was interrupted or went away. A further interrupt must not leave it half stopped."""
        while True:
            try:
                with uninterrupted():
                    caller.cancel.cancel()
                    self.interrupt()
                    caller.close(_JOIN_SECONDS)
                return
            except KeyboardInterrupt:
                continue

    # --- inside: the worker

    def _let_go(self, running: _Running) -> None:
        with self._lock:
            if self._running is running:
                self._running = None

    def _open(self, given: str, emit: Emit, running: _Running, options: TurnOptions) -> Turn:
        """Take the lease, run the turn to its end, and return it."""
        cancel, guard = running.cancel, Guard(options.kernel or self.kernel)
        text = guard.text(given)
        opened = self._opening.open(self.session, self.selection, text, options.model or self.model)
        cancel.check()
        root = opened.session.root_id
        lease = take_lease(self.store, root, options.surface or self.surface)
        try:
            rows = self._history.read(opened.session.id)
            turn = Turn(
                store=self.store,
                session=opened.session,
                lease=lease,
                model=opened.endpoint.model,
                dialect=opened.endpoint.dialect,
                emit=emit,
                after=rows[-1].id if rows else 0,
                cancel=cancel,
                clean=guard.partial,
                renew_seconds=self._renew_seconds,
            )
        except BaseException:
            give_back(self.store, lease)
            raise
        self.session = opened.session
        running.turn = turn
        try:
            if text != given:
                turn.emit(Notice(_MASKED, "warning"))
            self._run(turn, opened, rows, text, options, guard)
        except HermesError as exc:
            turn.interrupt() if cancel.cancelled else turn.fail(str(exc), exc)
        except Exception as exc:
            turn.fail(f"Internal error: {type(exc).__name__}: {exc}", exc)
            raise
        except BaseException:
            turn.interrupt()
            raise
        self._remember(turn)
        return turn

    def _run(
        self, turn: Turn, opened: Opened, rows: list[Message], text: str, options: TurnOptions, guard: Guard
    ) -> None:
        session = turn.session
        turn.cancel.check()
        endpoint = opened.endpoint
        turn.emit(TurnStarted(turn.id, session.id, opened.prefix.id, endpoint.model, endpoint.label))
        self._announce(turn, opened, rows)
        repair = repair_rows(rows)
        if repair:
            self.store.append_rows(session.id, repair, lease=turn.lease)
            rows = self._history.read(session.id)
        context = ToolContext(
            session_id=session.id,
            root_id=session.root_id,
            user=session.user,
            surface=options.surface or self.surface,
            turn_id=turn.id,
            cwd=working_folder(),
            cancel=turn.cancel,
            kernel=options.kernel or self.kernel,
            services=self._services,
            mask=guard.text,
        )
        policy = self._policy()  # anew in each turn: a changed setting holds from the next one on
        mode = options.mode or policy.mode
        if mode is ApprovalMode.OFF:
            turn.emit(Notice("Approvals are off: calls of this turn run without asking.", "warning"))
        masked = self._masked(turn, options)
        gate = ApprovalGate(
            store=self.store,
            turn=turn,
            approver=options.approver or self.approver,
            mode=mode,
            chosen=policy.chosen or options.mode is not None,
            allow=policy.allow,
            context=context,
        )
        # The demo model's window is too small for recall.
        content = self._beside.content(
            text, turn, rows, context, options, masked, mode, with_recall=not endpoint.embedded
        )
        loop = Loop(
            turn=turn,
            store=self.store,
            provider=self._models.open(endpoint),
            request=Request(opened.head, opened.prefix, endpoint.dialect, endpoint.keep_reasoning, self._history),
            rows=rows,
            execution=Execution(
                turn=turn,
                registry=self.registry,
                masked={**self.selection.masked, **masked},
                gate=gate,
                context=context,
                guard=guard,
            ),
            limits=self._limits,
            guard=guard,
            trail=self._trails.setdefault((session.root_id, endpoint.base_url, endpoint.model), Trail()),
        )
        user: Wire = {"role": "user", "content": content}
        loop.run(user, text if content != text else None)

    def _announce(self, turn: Turn, opened: Opened, rows: list[Message]) -> None:
        for notice in opened.notices:
            turn.emit(Notice(notice))
        for notice in self._notices:
            turn.emit(Notice(notice, "warning"))
        self._notices.clear()
        seen = self._seen.get(opened.session.root_id)
        if seen is not None:
            added = [row for row in rows if row.id > seen and row.role in (Role.USER, Role.ASSISTANT)]
            if added:
                turn.emit(Notice(f"{len(added)} messages were added to this session elsewhere since your last turn."))

    def _masked(self, turn: Turn, options: TurnOptions) -> dict[str, str]:
        sent = [tool.name for tool in self.selection.sent]
        masked, warnings = mask_for(self.registry, sent, only=options.only_toolsets, without=options.without)
        for warning in warnings:
            turn.emit(Notice(warning, "warning"))
        return {**masked, **options.masked}

    def _remember(self, turn: Turn) -> None:
        self._seen[turn.session.root_id] = turn.last_row
        self.requests = tuple(turn.progress.requests)
        try:
            self.session = self.store.session(turn.session.id)
        except StoreError as exc:
            log.warning("session %s could not be read after a turn: %s", turn.session.id, exc)


def _ignore(_event: Event) -> None:
    """The caller wants the result only."""


def _delivered(caller: Caller) -> TurnResult:
    """Return the worker's result, or raise what it raised, or KeyboardInterrupt for an interrupted turn."""
    if caller.error is not None:
        raise caller.error
    assert caller.result is not None
    if caller.result.status is TurnStatus.INTERRUPTED:
        raise KeyboardInterrupt("the turn was interrupted")
    return caller.result
