"""Asking on a real store: rows, first answer, nobody there, interrupts, time, and rows that were tampered with."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.names import ApprovalState
from hermes_nb.core.types import ApprovalRequest
from hermes_nb.store.store import Store, open_store
from hermes_nb.tools.approval import NOBODY, ask, refusal


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "state.db")
    yield store
    store.close()


@pytest.fixture
def root(store: Store) -> str:
    return store.create_session().root_id


class Surface:
    """An approver that answers, or does not, as told."""

    surface = "test"

    def __init__(self, store: Store, answer: ApprovalState | None = None, error: Exception | None = None) -> None:
        self.store, self.answer, self.error = store, answer, error
        self.opened = threading.Event()
        self.asked: list[ApprovalRequest] = []
        self.closed: list[ApprovalRequest] = []

    def open(self, request: ApprovalRequest) -> None:
        self.asked.append(request)
        self.opened.set()
        if self.error is not None:
            raise self.error
        if self.answer is not None:
            assert self.store.approvals.answer(request.id, self.answer, "ada", request.args_hash)

    def close(self, request: ApprovalRequest) -> None:
        self.closed.append(request)


def question(store: Store, root: str, approver: Surface | None, **options: Any) -> ApprovalRequest:
    options.setdefault("cancel", Cancel())
    return ask(
        store, approver, root_id=root, tool="python", arguments={"code": "import os"}, reason="an import", **options
    )


@pytest.mark.parametrize("answer", [ApprovalState.APPROVED, ApprovalState.DENIED])
def test_the_answer_is_what_the_row_says(store: Store, root: str, answer: ApprovalState) -> None:
    seen: list[ApprovalState] = []
    surface = Surface(store, answer)
    final = question(store, root, surface, emit=lambda request: seen.append(request.state))
    assert final.state is answer
    assert final.answered_by == "ada"
    assert seen == [ApprovalState.PENDING, answer]
    assert [request.state for request in surface.closed] == [answer]


def test_case_103_without_an_approver_the_row_is_denied_at_once(store: Store, root: str) -> None:
    final = question(store, root, None)
    assert (final.state, final.answered_by) == (ApprovalState.DENIED, NOBODY)
    assert store.approvals.get(final.id).state is ApprovalState.DENIED
    assert "approvals.allow" in refusal(final)


def test_an_answer_of_another_process_ends_the_wait(store: Store, root: str, tmp_path: Path) -> None:
    surface = Surface(store)
    other = open_store(tmp_path / "state.db")

    def answer() -> None:
        assert surface.opened.wait(30)
        (pending,) = other.approvals.pending()
        assert other.approvals.answer(pending.id, ApprovalState.APPROVED, "discord:ada", pending.args_hash)

    thread = threading.Thread(target=answer)
    thread.start()
    final = question(store, root, surface)
    thread.join(30)
    other.close()
    assert (final.state, final.answered_by) == (ApprovalState.APPROVED, "discord:ada")


def test_an_interrupt_cancels_the_row_and_a_late_yes_finds_nothing(store: Store, root: str) -> None:
    surface, cancel = Surface(store), Cancel()
    thread = threading.Thread(target=lambda: (surface.opened.wait(30), cancel.cancel()))
    thread.start()
    final = question(store, root, surface, cancel=cancel)
    thread.join(30)
    assert final.state is ApprovalState.CANCELLED
    assert store.approvals.get(final.id).state is ApprovalState.CANCELLED
    assert not store.approvals.answer(final.id, ApprovalState.APPROVED, "ada")


def test_a_yes_in_the_moment_of_the_interrupt_runs_nothing(store: Store, root: str) -> None:
    cancel = Cancel()
    surface = Surface(store, ApprovalState.APPROVED)
    cancel.cancel()
    assert question(store, root, surface, cancel=cancel).state is ApprovalState.CANCELLED


def test_silence_is_no_consent(store: Store, root: str) -> None:
    final = question(store, root, Surface(store), seconds=0.1)
    assert final.state is ApprovalState.EXPIRED
    assert "not consent" in refusal(final)


def test_a_front_end_that_fails_leaves_no_open_question(store: Store, root: str) -> None:
    surface = Surface(store, error=RuntimeError("no widget"))
    with pytest.raises(RuntimeError, match="no widget"):
        question(store, root, surface)
    assert store.approvals.pending() == []
    assert [request.state for request in surface.closed] == [ApprovalState.CANCELLED]


@pytest.mark.parametrize(
    "change", ['arguments = \'{"code": "import shutil"}\'', "args_hash = 'other'", "tool = 'write_file'"]
)
def test_a_row_that_was_changed_is_no_yes(store: Store, root: str, tmp_path: Path, change: str) -> None:
    class Tampering(Surface):
        def open(self, request: ApprovalRequest) -> None:
            with sqlite3.connect(tmp_path / "state.db", timeout=30) as connection:
                connection.execute(f"UPDATE approvals SET state = 'approved', {change}")
            connection.close()

    final = question(store, root, Tampering(store))
    assert final.state is ApprovalState.DENIED
    assert final.arguments == {"code": "import os"}


def test_no_row_no_question(store: Store) -> None:
    surface = Surface(store, ApprovalState.APPROVED)
    with pytest.raises(Exception, match="session"):
        question(store, "no-such-root", surface)
    assert surface.asked == []


def test_a_no_tells_the_model_not_to_try_another_way(store: Store, root: str) -> None:
    assert "another way" in refusal(question(store, root, Surface(store, ApprovalState.DENIED)))
