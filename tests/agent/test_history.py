"""What is kept between turns never differs from what the store would give anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.agent.body import head, join
from hermes_nb.agent.dialect import project
from hermes_nb.agent.history import Bodies, History
from hermes_nb.core.names import MessageStatus
from hermes_nb.core.types import Message, Prefix
from hermes_nb.core.wirejson import dumps
from hermes_nb.store.messages import as_message
from hermes_nb.store.store import Store, open_store
from hermes_nb.store.tokeniser import content_text

HEAD = head("m")
PREFIX = Prefix("p", b'[{"type":"function"}]', b'{"role":"system","content":"s"}')


def message(number: int, role: str, wire: dict, dialect: str = "local") -> Message:
    return Message(number, "s", role, dumps(wire), dialect, "", None, MessageStatus.COMPLETE, None, 0.0)


def made(number: int, kind: str, id: str, dialect: str) -> Message:
    if kind == "user":
        return message(number, "user", {"role": "user", "content": f"中 {number}"}, dialect)
    if kind == "result":
        return message(number, "tool", {"role": "tool", "tool_call_id": id, "content": "r"}, dialect)
    wire: dict = {"role": "assistant", "content": None if kind == "calls" else "a", "reasoning_content": "r"}
    if kind == "calls":
        call = {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        wire["tool_calls"] = [call, {**call, "id": f"{id}2"}]
    return message(number, "assistant", wire, dialect)


rows_of_any_shape = st.lists(
    st.tuples(
        st.sampled_from(["user", "assistant", "calls", "result"]),
        st.sampled_from(["a", "a2", "b", "b2"]),
        st.sampled_from(["local", "openai"]),
    ),
    max_size=25,
)


@given(shapes=rows_of_any_shape, cuts=st.lists(st.integers(0, 25), max_size=6))
def test_a_body_that_grew_is_the_body_joined_anew(shapes, cuts) -> None:
    rows = [made(number, *shape) for number, shape in enumerate(shapes, 1)]
    bodies = Bodies()
    # Also shorter lists than before, as the worker of an interrupted turn may ask for.
    for cut in [*cuts, len(rows)]:
        for prefix in (PREFIX, PREFIX) if cut % 2 else (Prefix("q", b"", b""), PREFIX):
            expected = join(HEAD, prefix, project(rows[:cut], "local"))
            assert bodies.body(HEAD, prefix, rows[:cut], "local") == expected
    assert bodies.body(HEAD, PREFIX, rows, "openai") == join(HEAD, PREFIX, project(rows, "openai"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "state.db") as store:
        yield store


def test_rows_follow_what_anybody_does_to_the_session(store: Store, tmp_path: Path) -> None:
    session = store.create_session().id
    history = History(store)

    def same() -> None:
        rows = history.read(session)
        assert rows == store.rows(session)
        body = history.body(HEAD, PREFIX, rows, "openai")
        assert body == join(HEAD, PREFIX, project(rows, "openai"))

    def say(where: Store, text: str) -> None:
        where.append(session, {"role": "user", "content": text})
        where.append(session, {"role": "assistant", "content": f"on {text}"})

    same()
    say(store, "one")
    same()
    with open_store(tmp_path / "state.db") as other:
        say(other, "two")
        same()
        other.undo(session)
        same()
        other.redo(session)
        same()
        other.undo(session)
        say(other, "three")
        same()
        other.undo(session, 2)
        same()


def test_another_session_is_not_mixed_up(store: Store) -> None:
    history = History(store)
    one, two = store.create_session().id, store.create_session().id
    store.append(one, {"role": "user", "content": "1"})
    store.append(two, {"role": "user", "content": "2"})
    assert [row.text for row in history.read(one)] == ["1"]
    assert [row.text for row in history.read(two)] == ["2"]
    assert [row.text for row in history.read(one)] == ["1"]


contents = st.one_of(
    st.none(),
    st.text(),
    st.lists(st.one_of(st.text(), st.fixed_dictionaries({"type": st.just("text"), "text": st.text()})), max_size=3),
)


@given(
    role=st.sampled_from(["user", "assistant", "tool", "developer"]),
    content=contents,
    first=st.booleans(),
    id=st.sampled_from(["c1", 'quo"te', "back\\slash", '","content":"no']),
)
def test_the_text_of_a_row_is_its_content_whatever_the_wire_looks_like(role, content, first, id):
    wire: dict = {"role": role}
    if role == "tool":
        wire["tool_call_id"] = id
    wire |= {"content": content, "name": "n"} if first else {"name": '"content":"x"', "content": content}
    row = (1, "s", role, dumps(wire), "openai", None, None, 0, None, 0.0)
    assert as_message(row).text == content_text(json.loads(dumps(wire)))
