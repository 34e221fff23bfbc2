"""One running turn: its lease, what it has shown so far, and how it ends.

The worker thread runs the loop; any other thread may call ``interrupt``. Both meet here and nowhere else.
The turn ends exactly once. An interrupt advances the lease's fence before anything else, so whatever the
worker still tries to write is refused by the store; then it settles the transcript from what is stored,
without help from the worker. Must not know a provider, a tool or a front end.

::

    running ──finish──▶ over            the worker, after the final row
       │ └────fail────▶ over            the worker, after an error
       └───interrupt──▶ over            any thread; the worker's later writes raise LeaseLost
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hermes_nb.agent.events import ApprovalAsked, ApprovalClosed, Event, TurnFinished
from hermes_nb.agent.transcript import NO_ANSWER, NO_ANSWER_FAILED, closing_rows, first_code_block, tool_wire
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import LeaseLost, SessionLeased, StoreError
from hermes_nb.core.ids import new_id
from hermes_nb.core.names import LEASE_RENEW_SECONDS, ApprovalState, MessageStatus, TurnStatus
from hermes_nb.core.types import (
    Lease,
    RequestUsage,
    Session,
    ToolCall,
    ToolRecord,
    ToolResult,
    TurnResult,
    Usage,
    Wire,
)
from hermes_nb.store.store import Store

log = logging.getLogger(__name__)

Emit = Callable[[Event], None]

TAKEN_OVER = (
    "This conversation was taken over by another process while this one was asleep; the turn stopped here. "
    "Rows that came too late are kept aside."
)

_INTERRUPT_SECONDS = 0.7


_live: set[tuple[Path, str]] = set()
"""Store and lineage of every turn that this process runs or is about to run."""
_live_lock = threading.Lock()


def take_lease(store: Store, root_id: str, surface: str) -> Lease:
    """Take the right to run a turn; give it back with ``give_back``. Raises SessionLeased.

    A lease that this very process holds without running a turn was left behind when its release could not be
    written (a full disk); it is taken again.
    """
    holder, key = store.leases.holder(), (store.path, root_id)
    with _live_lock:
        try:
            lease = store.leases.acquire(root_id, holder, surface=surface)
        except SessionLeased:
            held = store.leases.current(root_id)
            if held is None or held.holder != holder or key in _live:
                raise
            log.warning("a lease of lineage %s was left behind by this process and is taken again", root_id)
            lease = store.leases.acquire(root_id, holder, surface=surface, force=True)
        _live.add(key)
    return lease


def give_back(store: Store, lease: Lease) -> None:
    """Release a lease. One that cannot be released is taken again by this process, or by others when it ends."""
    try:
        store.leases.release(lease)
    except StoreError as exc:
        log.warning("a lease of lineage %s could not be released: %s", lease.root_id, exc)
    finally:
        _live.discard((store.path, lease.root_id))


@dataclass(slots=True)
class Progress:
    """What the worker has done so far; read by the thread that interrupts."""

    partial: str = ""
    """Text of the running step that no row holds yet."""
    running: set[str] = field(default_factory=set[str])
    unsaved: dict[str, str] = field(default_factory=dict[str, str])
    """Results by call id whose row could not be written; tried again when the turn ends."""
    usage: Usage = field(default_factory=Usage)
    requests: list[RequestUsage] = field(default_factory=list[RequestUsage])
    records: list[ToolRecord] = field(default_factory=list[ToolRecord])
    wires: list[Wire] = field(default_factory=list[Wire])
    persisted: list[str] = field(default_factory=list[str])
    approvals: dict[str, None] = field(default_factory=dict[str, None])


class Turn:
    """The state of one turn. Created by the agent when it holds the lease; every method is thread-safe."""

    def __init__(
        self,
        *,
        store: Store,
        session: Session,
        lease: Lease,
        model: str,
        dialect: str,
        emit: Emit,
        after: int = 0,
        cancel: Cancel | None = None,
        clean: Callable[[str], str] = str,
        renew_seconds: float = LEASE_RENEW_SECONDS,
    ) -> None:
        self.id = new_id()
        self.session = session
        self.model = model
        self.dialect = dialect
        self.cancel = cancel or Cancel()
        self.progress = Progress()
        self.cause: Exception | None = None
        """What made the turn fail, for the traceback of the caller."""
        self._store = store
        self._lease = lease
        self._emit = emit
        self._clean = clean
        self._after = after
        self.last_row = after
        """Id of the newest row of this session that this turn knows."""
        self._lock = threading.Lock()
        self._ending = False
        self._lost = False
        self._over = threading.Event()
        self._result: TurnResult | None = None
        self._renewal = threading.Thread(
            target=self._keep_lease, args=(renew_seconds,), name=f"hermes-lease-{self.id}", daemon=True
        )
        self._renewal.start()

    # --- for the worker

    @property
    def lease(self) -> Lease:
        return self._lease

    @property
    def over(self) -> bool:
        """True as soon as the turn ends or is being ended by another thread."""
        return self._ending

    def emit(self, event: Event) -> None:
        """Pass ``event`` to the front end; dropped when the turn is over, so an abandoned thread shows nothing."""
        if isinstance(event, ApprovalAsked):
            self.progress.approvals[event.request.id] = None
        elif isinstance(event, ApprovalClosed):
            self.progress.approvals.pop(event.request.id, None)
        if not self._ending:
            self._emit(event)

    def append(
        self,
        wire: Wire,
        *,
        text: str | None = None,
        tool_name: str | None = None,
        status: MessageStatus = MessageStatus.COMPLETE,
    ) -> int:
        """Commit one row under the lease and return its id.

        Raises LeaseLost when the turn is over or was taken over, other StoreErrors when it was not written.
        """
        try:
            row = self._store.append(
                self.session.id,
                wire,
                text=text,
                dialect=self.dialect,
                status=status,
                tool_name=tool_name,
                turn_id=self.id,
                lease=self._lease_of_worker(),
            )
        except LeaseLost as exc:
            if self._ending:
                raise
            self._lost = True
            raise LeaseLost(TAKEN_OVER) from exc
        self.progress.wires.append(wire)
        self.last_row = row
        return row

    def hold(self) -> None:
        """Check, before a tool runs, that this turn may still act. Raises Cancelled or LeaseLost."""
        self.cancel.check()
        if not self._store.leases.held(self._lease_of_worker()):
            self._lost = True
            raise LeaseLost(TAKEN_OVER)

    @property
    def lost(self) -> bool:
        """True when another holder took the lease over (this process was asleep too long)."""
        return self._lost

    def tool_began(self, call: ToolCall) -> None:
        self.progress.running.add(call.id)

    def tool_ended(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        """Commit the result's row and keep the record."""
        self.progress.unsaved[call.id] = result.content
        self.append(tool_wire(call.id, result.content), tool_name=call.name)
        del self.progress.unsaved[call.id]
        self.progress.running.discard(call.id)
        self.progress.records.append(
            ToolRecord(call.id, call.name, call.arguments, result.content, result.is_error, seconds)
        )
        if result.persisted:
            self.progress.persisted.append(result.persisted)

    # --- the three ends

    def finish(
        self, text: str, status: TurnStatus, error: str | None = None, cause: Exception | None = None
    ) -> TurnResult:
        """End the turn after its last row. Called by the worker; an interrupt that came first wins."""
        if not self._begin_end():
            return self.result()
        self.cause = cause
        return self._end(self._result_of(text, status, error))

    def fail(self, error: str, cause: Exception | None = None) -> TurnResult:
        """End the turn after an error: open calls are closed and the history stays sendable."""
        if not self._begin_end():
            return self.result()
        self.cause = cause
        self.cancel.cancel()
        text = self._partial()
        if not self._lost:
            error = self._settle(NO_ANSWER_FAILED, error) or error
        return self._end(self._result_of(text, TurnStatus.FAILED, error))

    def interrupt(self) -> TurnResult:
        """End the turn now, from any thread, whatever the worker does. A second call returns the same result.

        Nothing that the worker does later is stored as this turn. Returns within a second even when another
        process locks the database; the turn's end is then stored as soon as it can be.
        """
        if not self._begin_end():
            return self.result()
        # A thread of its own: the store may wait half a minute for a lock, the user may not.
        settling = threading.Thread(target=self._interrupted, name=f"hermes-interrupt-{self.id}", daemon=True)
        settling.start()
        settling.join(_INTERRUPT_SECONDS)
        if not self._over.is_set():
            self.cancel.cancel()
            waiting = "The database is locked by another process; the end of this turn is stored when it is free."
            return self._result_of(self._partial(), TurnStatus.INTERRUPTED, waiting)
        return self.result()

    def result(self) -> TurnResult:
        """Return the turn's result; waits while another thread is ending the turn."""
        self._over.wait()
        assert self._result is not None
        return self._result

    # --- inside

    def _lease_of_worker(self) -> Lease:
        with self._lock:
            if self._ending:
                raise LeaseLost("The turn was interrupted; nothing more is stored for it.")
            return self._lease

    def _partial(self) -> str:
        """Return the text of the running step as it may be stored; ``clean`` masks what broke off."""
        partial = self.progress.partial
        return self._clean(partial) if partial else ""

    def _begin_end(self) -> bool:
        with self._lock:
            first = not self._ending
            self._ending = True
            return first

    def _interrupted(self) -> None:
        """Advance the fence before anything else, then stop the work and store the turn's end."""
        error: str | None = None
        try:
            self._lease = self._store.leases.advance(self._lease)
            mine = True
        except StoreError as exc:
            # Another holder took over, or the store cannot be written: then the worker cannot write either.
            log.warning("turn %s: the fence could not be advanced: %s", self.id, exc)
            mine, error = False, str(exc)
        self.cancel.cancel()
        text = self._partial()
        if mine:
            self._close_approvals()
            error = self._settle(NO_ANSWER, None)
        self._end(self._result_of(text, TurnStatus.INTERRUPTED, error))

    def _result_of(self, text: str, status: TurnStatus, error: str | None) -> TurnResult:
        progress = self.progress
        return TurnResult(
            text=text,
            status=status,
            session_id=self.session.id,
            turn_id=self.id,
            model=self.model,
            usage=progress.usage,
            requests=tuple(progress.requests),
            code=first_code_block(text),
            tool_calls=tuple(progress.records),
            messages=tuple(progress.wires),
            persisted=tuple(progress.persisted),
            error=error,
        )

    def _end(self, result: TurnResult) -> TurnResult:
        give_back(self._store, self._lease)
        self._result = result
        self._over.set()
        self._emit(TurnFinished(result))
        return result

    def _settle(self, no_answer: str, error: str | None) -> str | None:
        """Append what makes the stored turn whole; return ``error``, completed when that failed."""
        try:
            rows = [row for row in self._store.rows(self.session.id, after=self._after) if row.turn_id == self.id]
            closing = closing_rows(
                rows,
                partial=self._partial(),
                running=self.progress.running,
                unsaved=self.progress.unsaved,
                dialect=self.dialect,
                turn_id=self.id,
                no_answer=no_answer,
            )
            if closing:
                self.last_row = self._store.append_rows(self.session.id, closing, lease=self._lease)[-1]
                self.progress.wires.extend(row.wire for row in closing)
        except StoreError as exc:
            log.warning("turn %s: its end could not be stored: %s", self.id, exc)
            return f"{error}\n{exc}" if error and str(exc) not in error else error or str(exc)
        return error

    def _close_approvals(self) -> None:
        for request_id in list(self.progress.approvals):
            try:
                self._store.approvals.answer(request_id, ApprovalState.CANCELLED, "interrupt")
            except StoreError as exc:
                # An answer to it is worth nothing any more: its turn is over.
                log.warning("approval %s could not be closed: %s", request_id, exc)

    def _keep_lease(self, seconds: float) -> None:
        while not self._over.wait(seconds):
            lease = self._lease
            try:
                kept = self._store.leases.renew(lease)
            except StoreError as exc:
                log.warning("turn %s: the lease could not be renewed: %s", self.id, exc)
                continue
            if not kept and not self._ending and lease is self._lease:
                self._lost = True
                self.cancel.cancel()
                return
