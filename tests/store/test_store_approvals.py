"""Questions, rules, handoffs, deliveries: rows whose every change names the state it starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_nb.core.errors import HandoffFailed, InvalidTransition, SessionNotFound, StoreError
from hermes_nb.core.names import ApprovalState, HandoffState
from hermes_nb.store.approvals import arguments_hash
from hermes_nb.store.store import open_store

ASK = """
import sys
from pathlib import Path
from hermes_nb.store.store import open_store
store = open_store(Path(sys.argv[1]), user="ada")
print(store.approvals.ask(sys.argv[2], "python", {"code": "1"}, "why").id, flush=True)
sys.stdin.read()
"""


def test_the_first_answer_wins_and_is_final(store) -> None:
    session = store.create_session()
    asked = store.approvals.ask(session.root_id, "python", {"code": "x = '数据'"}, "runs code", diff="+1")
    assert store.approvals.pending() == [asked]
    assert (asked.state, asked.root_id, asked.arguments) == (ApprovalState.PENDING, session.id, {"code": "x = '数据'"})
    assert store.approvals.answer(asked.id, ApprovalState.DENIED, "panel")
    assert not store.approvals.answer(asked.id, ApprovalState.APPROVED, "cell")
    closed = store.approvals.get(asked.id)
    assert (closed.state, closed.answered_by) == (ApprovalState.DENIED, "panel")
    assert store.approvals.pending() == []
    with pytest.raises(InvalidTransition):
        store.approvals.answer(asked.id, ApprovalState.PENDING, "x")
    with pytest.raises(StoreError):
        store.approvals.get("unknown")
    with pytest.raises(SessionNotFound):
        store.approvals.ask("unknown", "python", {}, "why")


def test_an_answer_is_bound_to_the_arguments_it_was_given_for(store) -> None:
    session = store.create_session()
    asked = store.approvals.ask(session.root_id, "write_file", {"b": 1, "a": 2}, "writes")
    assert asked.args_hash == arguments_hash("write_file", {"a": 2, "b": 1})
    assert asked.args_hash != arguments_hash("other", {"a": 2, "b": 1})
    assert not store.approvals.answer(asked.id, ApprovalState.APPROVED, "chat", args_hash="of something else")
    assert store.approvals.answer(asked.id, ApprovalState.APPROVED, "chat", args_hash=asked.args_hash)


def test_nobody_sees_another_users_questions(store) -> None:
    session = store.create_session(user="bob")
    asked = store.approvals.ask(session.root_id, "python", {}, "why")
    assert store.approvals.pending() == []
    assert store.approvals.pending("bob") == [asked]


def test_a_question_whose_time_is_over_cannot_be_approved_and_is_reaped(store) -> None:
    session = store.create_session()
    asked = store.approvals.ask(session.root_id, "python", {}, "why", seconds=-1)
    assert store.approvals.pending() == []
    assert not store.approvals.answer(asked.id, ApprovalState.APPROVED, "late")
    assert store.approvals.reap() == 1
    assert store.approvals.get(asked.id).state is ApprovalState.EXPIRED
    assert store.approvals.reap() == 0


def test_the_question_of_a_dead_process_is_cancelled_and_that_of_a_live_one_stays(store, path, start) -> None:
    session = store.create_session()
    process = start(ASK, path, session.id)
    request_id = process.stdout.readline().strip()
    assert store.approvals.reap() == 0
    process.kill()
    process.wait()
    assert store.approvals.reap() == 1
    assert store.approvals.get(request_id).state is ApprovalState.CANCELLED


def test_a_rule_allows_exactly_what_it_names_for_its_user_only(store) -> None:
    store.rules.add("shell", "git status")
    store.rules.add("shell", "git status")
    assert store.rules.matches("shell", "git status")
    for tool, pattern, owner in (
        ("shell", "git", None),
        ("python", "git status", None),
        ("shell", "git status", "bob"),
    ):
        assert not store.rules.matches(tool, pattern, owner)
    assert list(store.rules.list()) == [("always", "shell", "git status")]
    assert store.rules.remove("shell", "git status")
    assert not store.rules.remove("shell", "git status")
    assert not store.rules.matches("shell", "git status")


def test_case_042_the_waiting_side_cannot_end_what_somebody_has_claimed(store) -> None:
    session = store.create_session()
    asked = store.request_handoff(session.id, "discord", "room")
    with pytest.raises(InvalidTransition, match="already"):
        store.request_handoff(session.id, "telegram")
    claimed = store.claim_handoff("gateway")
    assert claimed is not None
    assert (claimed.id, claimed.state, claimed.target) == (asked.id, HandoffState.RUNNING, "room")
    assert store.claim_handoff("second gateway") is None
    assert not store.handoffs.give_up(asked.id, "waited 60 s")
    store.complete_handoff(claimed)
    assert store.handoffs.get(asked.id).state is HandoffState.COMPLETED
    with pytest.raises(InvalidTransition):
        store.fail_handoff(claimed, "too late")


def test_a_claim_that_ran_out_goes_to_another_and_the_late_one_changes_nothing(store) -> None:
    session = store.create_session()
    store.request_handoff(session.id, "discord")
    late = store.claim_handoff("dead gateway", seconds=-1)
    new = store.claim_handoff("live gateway")
    assert late is not None
    assert new is not None
    assert new.claim != late.claim
    assert not store.handoffs.renew(late)
    with pytest.raises(InvalidTransition):
        store.complete_handoff(late)
    assert store.handoffs.renew(new)
    store.fail_handoff(new, "channel is gone")
    failed = store.handoffs.get(new.id)
    assert (failed.state, failed.error) == (HandoffState.FAILED, "channel is gone")
    store.request_handoff(session.id, "discord")


def test_a_request_that_nobody_took_in_time_fails(store) -> None:
    session = store.create_session()
    asked = store.request_handoff(session.id, "discord", seconds=-1)
    assert store.claim_handoff("gateway") is None
    assert store.handoffs.get(asked.id).state is HandoffState.FAILED
    with pytest.raises(HandoffFailed):
        store.handoffs.get("unknown")


def test_a_delivery_whose_sender_vanished_is_never_sent_again_by_itself(store) -> None:
    session = store.create_session()
    first = store.deliveries.add(session.id, "discord", "room", "one")
    store.deliveries.add(session.id, "telegram", "chat", "two")
    claimed = store.deliveries.claim("discord", seconds=-1)
    assert claimed is not None
    assert claimed.id == first.id
    assert store.deliveries.claim("discord") is None
    assert store.deliveries.reap() == 1
    assert store.deliveries.get(first.id).state == "unknown"
    assert not store.deliveries.sent(claimed)
    other = store.deliveries.claim("telegram")
    assert other is not None
    assert store.deliveries.again(other, "429", seconds=-1)
    again = store.deliveries.claim("telegram")
    assert again is not None
    assert again.attempts == 2
    assert store.deliveries.sent(again, "remote")
    assert store.deliveries.get(again.id).remote_id == "remote"


def test_an_event_is_new_once(store) -> None:
    assert store.inbox.first_time("telegram", "bot", "1")
    assert not store.inbox.first_time("telegram", "bot", "1")
    assert store.inbox.first_time("telegram", "bot", "2")


def test_what_waits_for_a_turn_is_taken_in_order(store) -> None:
    session = store.create_session()
    first = store.queue.add(session.root_id, "one", surface="discord")
    store.queue.add(session.root_id, "steer it", "steer")
    second = store.queue.add(session.root_id, "two")
    assert [entry.text for entry in store.queue.waiting(session.root_id)] == ["one", "steer it", "two"]
    taken = store.queue.take(session.root_id, "message")
    assert taken is not None
    assert (taken.id, taken.surface) == (first, "discord")
    assert store.queue.drop(second)
    assert not store.queue.drop(second)
    assert store.queue.take(session.root_id, "message") is None


def test_the_register_of_holders_names_live_and_dead_ones(store, path, start) -> None:
    process = start(ASK, path, store.create_session().id)
    process.stdout.readline()
    store.holders.beat("busy")
    assert {(holder.kind, holder.status, holder.dead) for holder in store.holders.list()} == {
        ("process", "busy", False),
        ("process", None, False),
    }
    process.kill()
    process.wait()
    assert [holder.dead for holder in store.holders.list()].count(True) == 1


def test_nobody_but_the_owner_of_a_session_can_approve(tmp_path: Path) -> None:
    ann, bob = open_store(tmp_path / "state.db", user="ann"), open_store(tmp_path / "state.db", user="bob")
    try:
        asked = ann.approvals.ask(ann.create_session().root_id, "python", {"code": "x()"}, "a call")
        assert not bob.approvals.answer(asked.id, ApprovalState.APPROVED, "bob", asked.args_hash)
        assert not ann.approvals.answer(asked.id, ApprovalState.APPROVED, "bob", asked.args_hash, user="bob")
        assert bob.approvals.answer(asked.id, ApprovalState.APPROVED, "phone", asked.args_hash, user="ann")
        other = ann.approvals.ask(ann.create_session().root_id, "python", {"code": "x()"}, "a call")
        assert bob.approvals.answer(other.id, ApprovalState.CANCELLED, "interrupt")  # a turn ends for whoever runs it
    finally:
        ann.close()
        bob.close()
