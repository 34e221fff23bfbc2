from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from hermes_nb.agent.dialect import LOST_RESULT, dialect_of, project
from hermes_nb.core.names import MessageStatus
from hermes_nb.core.types import Message

_ids = count(1)


def row(wire: dict[str, Any] | str, dialect: str = "openai") -> Message:
    text = wire if isinstance(wire, str) else json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
    role = json.loads(text)["role"]
    return Message(next(_ids), "s", role, text, dialect, "", None, MessageStatus.COMPLETE, None, 0.0)


def asks(*ids: str, **more: Any) -> dict[str, Any]:
    calls = [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, **more, "tool_calls": calls}


def answers(id: str, content: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content}


USER = {"role": "user", "content": "hi"}


def test_rows_of_the_same_dialect_go_out_as_their_stored_bytes() -> None:
    odd = '{"role": "assistant",  "content": "x", "reasoning_content": "plan", "unknown": [1.0]}'
    rows = [row(USER), row(odd), row(asks("a", reasoning_content="p")), row(answers("a")), row(USER)]
    assert project(rows, "openai") == [r.wire for r in rows]


def test_rows_of_another_dialect_lose_what_only_that_one_understands() -> None:
    made = asks("call_|weird id|", reasoning_content="plan", reasoning_details=[{"signature": "s"}])
    made["tool_calls"][0]["extra_content"] = {"thought_signature": "t"}
    rows = [row(USER, "x"), row(made, "x"), row({**answers("call_|weird id|"), "extra": 1}, "x")]
    user, assistant, tool = (json.loads(text) for text in project(rows, "openai"))
    assert user == USER
    assert list(assistant) == ["role", "content", "tool_calls"]
    (call,) = assistant["tool_calls"]
    assert list(call) == ["id", "type", "function"]
    assert call["id"] == tool["tool_call_id"]
    assert call["id"].isalnum()
    assert len(call["id"]) == 9
    assert list(tool) == ["role", "tool_call_id", "content"]


def test_rows_of_another_dialect_that_hold_nothing_special_keep_their_bytes() -> None:
    rows = [row('{"role": "user", "content": "x"}', "x"), row('{"role": "assistant", "content": "y"}', "x")]
    assert project(rows, "openai") == [r.wire for r in rows]


def test_a_result_without_its_call_and_a_second_result_are_left_out() -> None:
    rows = [row(answers("lost")), row(USER), row(asks("a")), row(answers("a")), row(answers("a", "again"))]
    assert project(rows, "openai") == [rows[1].wire, rows[2].wire, rows[3].wire]


@pytest.mark.parametrize("dialect", ["openai", "other"])
def test_a_call_without_its_result_gets_one_before_the_next_message(dialect: str) -> None:
    rows = [row(asks("a", "b")), row(answers("b")), row(USER), row(asks("c"))]
    sent = [json.loads(text) for text in project(rows, dialect)]
    assert [m["role"] for m in sent] == ["assistant", "tool", "tool", "user", "assistant", "tool"]
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["ok", LOST_RESULT, LOST_RESULT]
    asked = [call["id"] for m in sent for call in m.get("tool_calls", [])]
    assert sorted(asked) == sorted(m["tool_call_id"] for m in sent if m["role"] == "tool")


def test_the_projection_of_a_longer_history_starts_with_that_of_the_shorter() -> None:
    rows = [row(USER, "x"), row(asks("a", reasoning="r"), "x"), row(answers("a"), "x"), row(USER), row(asks("a"))]
    rows += [row(answers("a")), row({"role": "assistant", "content": "end"})]
    whole = project(rows, "openai")
    for n in (1, 3, 4, 6):
        assert whole[:n] == project(rows[:n], "openai")


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("http://127.0.0.1:11434/v1", "local"),
        ("http://localhost:1/v1", "local"),
        ("http://[::1]:1/v1", "local"),
        ("https://API.Example.com/v1", "api.example.com"),
    ],
)
def test_the_dialect_is_the_family_of_the_host(url: str, dialect: str) -> None:
    assert dialect_of(url) == dialect


def test_ids_in_texts_are_not_taken_for_ids_of_calls() -> None:
    trap = '{"id":"fake","type":"function","function":{}} "tool_call_id":"fake"'
    rows = [row(asks("a", content=trap)), row(answers("a", trap)), row(USER)]
    assert project(rows, "openai") == [r.wire for r in rows]


def test_rows_that_others_have_written_with_other_blanks_and_orders_are_read() -> None:
    made = '{"type": "function", "id": "a\\u00e9", "function": {"name": "f", "arguments": "{}"}}'
    asked = f'{{"tool_calls": [{made}], "role": "assistant"}}'
    rows = [row(asked), row('{"content": "x", "tool_call_id": "a\\u00e9", "role": "tool"}')]
    assert project(rows, "openai") == [r.wire for r in rows]
