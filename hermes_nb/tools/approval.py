"""Asking the user: write the row, show the question, wait on the row. The answer is whatever the row says.

    ask ── row pending ──► open(request) ──► poll ──► approved | denied | cancelled | expired ──► close(request)
                │ no approver: denied at once

The answer may come from any process. The waiter accepts only the row that it issued, with the arguments it issued.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.names import APPROVAL_SECONDS, ApprovalState
from hermes_nb.core.types import ApprovalRequest, Lease

POLL_SECONDS = 0.05
NOBODY = "nobody is here to answer"
"""``answered_by`` of a question that had no approver."""


class Approver(Protocol):
    """A front end that can show a question. It never blocks; the answer arrives in the row."""

    surface: str

    def open(self, request: ApprovalRequest) -> None:
        """Show the question."""
        ...

    def close(self, request: ApprovalRequest) -> None:
        """The row has its final state: take the question away and say how it ended."""
        ...


class ApprovalRows(Protocol):
    """What the store offers for questions; every answer is conditional, the first one wins."""

    def ask(
        self,
        root_id: str,
        tool: str,
        arguments: Mapping[str, Any],
        reason: str,
        diff: str | None = None,
        lease: Lease | None = None,
        seconds: float = APPROVAL_SECONDS,
    ) -> ApprovalRequest: ...

    def get(self, request_id: str) -> ApprovalRequest: ...

    def answer(self, request_id: str, state: ApprovalState, by: str, args_hash: str | None = None) -> bool: ...


class HasApprovals(Protocol):
    """The store, as far as this module knows it."""

    @property
    def approvals(self) -> ApprovalRows: ...


def _ignore(_request: ApprovalRequest) -> None: ...


def ask(
    store: HasApprovals,
    approver: Approver | None,
    *,
    root_id: str,
    tool: str,
    arguments: Mapping[str, Any],
    reason: str,
    cancel: Cancel,
    diff: str | None = None,
    lease: Lease | None = None,
    seconds: float = APPROVAL_SECONDS,
    emit: Callable[[ApprovalRequest], None] = _ignore,
) -> ApprovalRequest:
    """Ask and block until the row has a final state; only APPROVED allows the call.

    ``emit`` gets the request twice: pending when it was asked, final when it closed. A cancelled turn gets
    CANCELLED even when a yes arrived in the same moment. Store errors pass through: without a row nothing runs.
    """
    rows = store.approvals
    issued = rows.ask(root_id, tool, dict(arguments), reason, diff, lease, seconds)
    emit(issued)
    if approver is None:
        rows.answer(issued.id, ApprovalState.DENIED, NOBODY, issued.args_hash)
        return _closed(_read(rows, issued), None, emit)
    try:
        approver.open(issued)
        final = _wait(rows, issued, cancel)
    except BaseException:
        # Whatever went wrong while waiting, a yes that comes later must find nothing to approve.
        rows.answer(issued.id, ApprovalState.CANCELLED, "the question could not be shown", issued.args_hash)
        approver.close(_read(rows, issued))
        raise
    return _closed(final, approver, emit)


def refusal(request: ApprovalRequest) -> str:
    """Return what the model is told about a question that did not end in a yes."""
    what = f"{request.tool} was not run ({request.reason})"
    match request.state:
        case ApprovalState.EXPIRED:
            return f"Nobody answered in time: {what}. Silence is not consent; do not try another way to the same end."
        case ApprovalState.CANCELLED:
            return f"The user stopped the turn: {what}."
        case _ if request.answered_by == NOBODY:
            return (
                f"There is nobody here to answer: {what}. The user can allow it beforehand with approvals.allow, "
                'with an "always" given in an interactive notebook, or with --approve off.'
            )
        case _:
            return f"The user said no: {what}. Do not try another way to the same end; ask what they want instead."


def _wait(rows: ApprovalRows, issued: ApprovalRequest, cancel: Cancel) -> ApprovalRequest:
    while True:
        current = _read(rows, issued)
        if current.state is not ApprovalState.PENDING:
            return replace(current, state=ApprovalState.CANCELLED) if cancel.cancelled else current
        if cancel.wait(POLL_SECONDS):
            rows.answer(issued.id, ApprovalState.CANCELLED, "interrupt", issued.args_hash)
            return replace(_read(rows, issued), state=ApprovalState.CANCELLED)
        if time.time() >= issued.expires_at:
            rows.answer(issued.id, ApprovalState.EXPIRED, "time", issued.args_hash)


def _read(rows: ApprovalRows, issued: ApprovalRequest) -> ApprovalRequest:
    current = rows.get(issued.id)
    same = (current.id, current.root_id, current.tool, current.args_hash) == (
        issued.id,
        issued.root_id,
        issued.tool,
        issued.args_hash,
    )
    if same and dict(current.arguments) == dict(issued.arguments):
        return current
    return replace(issued, state=ApprovalState.DENIED, answered_by="the stored question was changed")


def _closed(
    final: ApprovalRequest, approver: Approver | None, emit: Callable[[ApprovalRequest], None]
) -> ApprovalRequest:
    if approver is not None:
        approver.close(final)
    emit(final)
    return final
