"""Appending, exactness, undo and redo."""

from __future__ import annotations

import json
import sqlite3

import pytest

from hermes_nb.core.errors import InvalidTransition, SessionLeased, SessionNotFound, StoreError
from hermes_nb.core.names import MessageStatus
from hermes_nb.core.types import NewMessage
from hermes_nb.core.wirejson import dumps
from hermes_nb.store.store import Store, open_store


def user(text: object) -> dict[str, object]:
    return {"role": "user", "content": text}


def answer(text: object) -> dict[str, object]:
    return {"role": "assistant", "content": text}


def index_rows(raw: sqlite3.Connection) -> set[int]:
    return {row[0] for row in raw.execute("SELECT id FROM w_docsize")}


def test_an_appended_message_is_there_for_another_connection_when_append_returns(store, raw) -> None:
    session = store.create_session()
    message_id = store.append(session.id, user("hello"))
    assert raw.execute("SELECT id, wire FROM messages").fetchall() == [
        (message_id, '{"role":"user","content":"hello"}')
    ]


@pytest.mark.parametrize(
    "wire",
    [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}],
        },
        {"content": "key order is kept", "role": "user", "z": 1, "a": [1, 2.5, None, True]},
        user('CJK 修改, emoji 🦄, quotes " \\ / and \u2028 line separators'),
        user([{"type": "text", "text": "a\0b"}, {"type": "image_url", "image_url": {"url": "data:x"}}]),
        user("x\0y"),
        user(""),
        user("long " * 50_000),
        {"role": "tool", "tool_call_id": "c1", "content": "result"},
    ],
)
def test_the_wire_is_stored_byte_for_byte(store, wire) -> None:
    session = store.create_session()
    store.append(session.id, wire)
    (row,) = store.rows(session.id)
    assert row.wire == dumps(wire)
    assert list(json.loads(row.wire)) == list(wire)
    assert store.messages(session.id) == [wire]


def test_a_lone_surrogate_is_replaced_before_it_can_break_later_requests(store) -> None:
    session = store.create_session()
    store.append(session.id, user("caf\udce9 ok"), text="caf\udce9 ok")
    assert store.messages(session.id) == [user("caf\ufffd ok")]
    assert store.search("caf ok").hits


def test_text_is_stored_only_where_it_differs_from_the_content(store, raw) -> None:
    session = store.create_session()
    store.append(session.id, user("same"), text="same")
    store.append(session.id, user([{"type": "text", "text": "for the model"}]), text="for people")
    store.append(session.id, answer(None))
    assert [row[0] for row in raw.execute("SELECT text FROM messages ORDER BY id")] == [None, "for people", None]
    assert [row.text for row in store.rows(session.id)] == ["same", "for people", ""]


def test_a_batch_is_stored_whole_or_not_at_all(store, raw) -> None:
    session = store.create_session()
    with pytest.raises(StoreError, match="role"):
        store.append_rows(session.id, [NewMessage(user("one")), NewMessage({"content": "no role"})])
    with pytest.raises(SessionNotFound):
        store.append_rows("20200101-000000-0000000000000000", [NewMessage(user("one"))])
    assert raw.execute("SELECT count(*) FROM messages").fetchone() == (0,)
    ids = store.append_rows(session.id, [NewMessage(user("one")), NewMessage(answer("two"))])
    assert [row.id for row in store.rows(session.id)] == ids
    assert store.session(session.id).message_count == 2


def test_rows_after_an_id_and_hidden_rows_are_given_when_asked_for(store) -> None:
    session = store.create_session()
    first = store.append(session.id, user("one"))
    store.append(session.id, answer("two"), status="interrupted", tool_name=None, turn_id="t1")
    store.append(session.id, user("three"), status="compacted")
    assert [row.text for row in store.rows(session.id)] == ["one", "two"]
    (second,) = store.rows(session.id, after=first)
    assert (second.status, second.turn_id) == (MessageStatus.INTERRUPTED, "t1")
    assert [row.text for row in store.rows(session.id, hidden=True)] == ["one", "two", "three"]


def test_undo_hides_whole_turns_and_redo_brings_them_back_as_they_were(store) -> None:
    session = store.create_session()
    for turn in ("a", "b"):
        store.append(session.id, user(f"question {turn}"), turn_id=turn)
        store.append(session.id, answer(f"partial {turn}"), turn_id=turn, status="interrupted")
        store.append(session.id, user(f"sum up {turn}"), turn_id=turn)
        store.append(session.id, answer(f"answer {turn}"), turn_id=turn)
    before = store.rows(session.id)
    assert store.undo(session.id) == 4
    assert [row.text for row in store.rows(session.id)][-1] == "answer a"
    assert store.undo(session.id) == 4
    assert store.messages(session.id) == []
    assert store.undo(session.id) == 0
    assert store.redo(session.id) == 4
    assert store.redo(session.id) == 4
    assert store.redo(session.id) == 0
    assert store.rows(session.id) == before
    assert store.session(session.id).revision == 4
    assert store.session(session.id).message_count == 8


def test_several_turns_can_be_undone_at_once_and_more_than_there_are(store) -> None:
    session = store.create_session()
    for number in range(3):
        store.append(session.id, user(f"q{number}"))
        store.append(session.id, answer(f"a{number}"))
    assert store.undo(session.id, turns=2) == 4
    assert store.undo(session.id, turns=0) == 0
    assert store.undo(session.id, turns=9) == 2
    assert store.messages(session.id) == []


def test_redo_is_refused_after_something_new_was_said(store) -> None:
    session = store.create_session()
    store.append(session.id, user("one"))
    store.undo(session.id)
    store.append(session.id, user("two"))
    with pytest.raises(InvalidTransition):
        store.redo(session.id)
    assert store.messages(session.id) == [user("two")]


def test_undone_rows_leave_the_index_and_come_back(store, raw) -> None:
    session = store.create_session()
    keep = store.append(session.id, user("zebra 漓江 keep"))
    hide = store.append(session.id, user("zebra 漓江 hide"))
    store.undo(session.id)
    assert index_rows(raw) == {keep}
    assert [hit.message_id for hit in store.search("zebra").hits] == [keep]
    assert [hit.message_id for hit in store.search("江").hits] == [keep]
    store.redo(session.id)
    assert index_rows(raw) == {keep, hide}
    assert {hit.message_id for hit in store.search("漓江").hits} == {keep, hide}
    assert store.problems() == []


def test_undo_waits_for_no_running_turn_but_refuses(store) -> None:
    session = store.create_session()
    store.append(session.id, user("one"))
    lease = store.leases.acquire(session.root_id, store.leases.holder())
    with pytest.raises(SessionLeased, match="running"):
        store.undo(session.id)
    assert store.undo(session.id, lease=lease) == 1
    store.leases.release(lease)
    assert store.redo(session.id) == 1


def test_neighbours_are_the_visible_rows_around_a_message_in_its_own_session(store) -> None:
    session, other = store.create_session(), store.create_session()
    ids = []
    for number in range(9):
        ids.append(store.append(session.id, user(f"m{number}")))
        store.append(other.id, user("elsewhere"))
    found = store.neighbours([ids[0], ids[4], 10**9], before=2, after=1)
    assert [row.text for row in found[ids[0]]] == ["m0", "m1"]
    assert [row.text for row in found[ids[4]]] == ["m2", "m3", "m4", "m5"]
    assert found[10**9] == []


def test_everything_is_there_after_closing_and_opening_again(path) -> None:
    with open_store(path) as store:
        session = store.create_session(title="Kept")
        store.append(session.id, user("数据 kept"))
    with open_store(path) as again:
        assert again.messages(session.id) == [user("数据 kept")]
        assert again.session(session.id).title == "Kept"
        assert isinstance(again, Store)
