"""The tool session_search on a real store: its four modes, whose sessions it shows, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.core.errors import StoreBusy, ToolArgumentsInvalid, ToolError
from hermes_nb.core.types import SearchResult, Session, ToolResult
from hermes_nb.store.store import Store, open_store
from hermes_nb.tools.arguments import parse
from hermes_nb.tools.builtin.history import TOOLS
from hermes_nb.tools.tool import ToolContext

(SEARCH,) = TOOLS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "state.db", user="ada")
    yield store
    store.close()


@pytest.fixture
def here(store: Store, context: ToolContext) -> ToolContext:
    session = talk(store, ["the present talk about falcon"])
    return replace(context, session_id=session.id, root_id=session.root_id, services={"store": store})


def talk(store: Store, texts: list[str], **options: Any) -> Session:
    session = store.create_session(**options)
    for number, text in enumerate(texts):
        store.append(session.id, {"role": "assistant" if number % 2 else "user", "content": text})
    return store.session(session.id)


def call(context: ToolContext, **arguments: Any) -> dict[str, Any]:
    result = SEARCH.handler(context, **parse(SEARCH, json.dumps(arguments)))
    assert isinstance(result, ToolResult)
    assert not result.is_error
    return json.loads(result.content)


def test_discover_shows_the_passage_its_place_and_both_ends(store: Store, here: ToolContext) -> None:
    texts = [f"line {n}" for n in range(40)]
    texts[20] = "we deploy falcon on Fridays"
    session = talk(store, texts, title="Deployments")
    shown = call(here, query="falcon")
    (hit,) = shown["results"]
    assert shown["count"] == 1
    assert (hit["session_id"], hit["title"], hit["matched_role"]) == (session.id, "Deployments", "user")
    assert [row["text"] for row in hit["bookend_start"]] == ["line 0", "line 1", "line 2"]
    assert [row["text"] for row in hit["bookend_end"]] == ["line 37", "line 38", "line 39"]
    assert len(hit["messages"]) == 11
    (anchor,) = [row for row in hit["messages"] if row.get("anchor")]
    assert anchor["id"] == hit["match_message_id"]
    assert (hit["messages_before"], hit["messages_after"]) == (15, 14)
    assert "outdated" in shown["about"]


def test_the_present_conversation_and_other_users_are_left_out(store: Store, here: ToolContext) -> None:
    talk(store, ["falcon of somebody else"], user="bob")
    shown = call(here, query="falcon")
    assert (shown["count"], shown["results"]) == (0, [])
    assert "hint" in shown
    ids = {one["session_id"] for one in call(here)["results"]}
    assert here.session_id not in ids


def test_a_lineage_is_shown_once_and_its_limit_is_kept(store: Store, here: ToolContext) -> None:
    for number in range(12):
        talk(store, [f"falcon {number}", "falcon again", "falcon once more"])
    assert call(here, query="falcon")["count"] == 3
    shown = call(here, query="falcon", limit=99)
    assert shown["count"] == 10
    assert len({one["session_id"] for one in shown["results"]}) == 10


def test_hidden_sources_are_hidden_and_scheduled_ones_come_last(store: Store, here: ToolContext) -> None:
    cron = talk(store, ["falcon " * 5], source="cron")
    talk(store, ["falcon"], source="subagent")
    mine = talk(store, ["a long line that says falcon somewhere among many other words"])
    assert [one["session_id"] for one in call(here, query="falcon")["results"]] == [mine.id, cron.id]


def test_a_title_that_is_the_query_is_found_on_top(store: Store, here: ToolContext) -> None:
    session = talk(store, ["nothing about it"], title="Project Osprey")
    other = talk(store, ["the project osprey is mentioned here"])
    shown = call(here, query="project osprey")
    assert [one["session_id"] for one in shown["results"]] == [session.id, other.id]
    assert shown["results"][0]["matched_role"] == "session_title"


def test_roles_and_tool_rows(store: Store, here: ToolContext) -> None:
    session = store.create_session()
    store.append(session.id, {"role": "user", "content": "go"})
    store.append(session.id, {"role": "tool", "tool_call_id": "c", "content": "falcon output"}, tool_name="python")
    assert call(here, query="falcon")["count"] == 0
    (hit,) = call(here, query="falcon", roles=["tool"])["results"]
    assert hit["messages"][-1]["tool"] == "python"


def test_read_gives_a_short_session_whole_and_a_long_one_at_both_ends(store: Store, here: ToolContext) -> None:
    short = talk(store, ["a", "b"])
    assert [row["text"] for row in call(here, session_id=short.id)["messages"]] == ["a", "b"]
    long = talk(store, [f"m{n}" for n in range(50)])
    shown = call(here, session_id=long.id)
    assert len(shown["messages"]) == 20
    assert len(shown["last_messages"]) == 10
    assert shown["left_out"].startswith("20 messages")


def test_scroll_moves_through_a_session_and_tells_the_ends(store: Store, here: ToolContext) -> None:
    session = talk(store, [f"m{n}" for n in range(12)])
    ids = [row.id for row in store.rows(session.id)]
    shown = call(here, session_id=session.id, around_message_id=ids[5], window=3)
    assert [row["text"] for row in shown["messages"]] == ["m2", "m3", "m4", "m5", "m6", "m7", "m8"]
    assert (shown["at_start"], shown["at_end"]) == (False, False)
    shown = call(here, session_id=session.id, around_message_id=ids[1], window=3)
    assert (shown["at_start"], shown["at_end"]) == (True, False)


def test_scroll_across_a_compaction_is_rebound_with_a_warning(store: Store, here: ToolContext) -> None:
    parent = talk(store, ["a", "b"])
    child = talk(store, ["c", "d"], parent=parent.id, parent_kind="compaction")
    anchor = store.rows(child.id)[0].id
    shown = call(here, session_id=parent.id, around_message_id=anchor)
    assert shown["session_id"] == child.id
    assert "same conversation" in shown["warning"]


def test_wrong_places_are_errors_and_not_empty_answers(store: Store, here: ToolContext) -> None:
    other = talk(store, ["a"])
    foreign = talk(store, ["secret of bob"], user="bob")
    anchor = store.rows(other.id)[0].id
    for arguments in (
        {"session_id": "no-such-session"},
        {"session_id": here.session_id},
        {"session_id": here.session_id, "around_message_id": 1},
        {"session_id": other.id, "around_message_id": 999_999},
        {"session_id": foreign.id},
        {"session_id": foreign.id, "around_message_id": store.rows(foreign.id)[0].id},
        {"session_id": talk(store, ["b"]).id, "around_message_id": anchor},
    ):
        with pytest.raises(ToolError):
            call(here, **arguments)
    with pytest.raises(ToolArgumentsInvalid):
        call(here, around_message_id=1)


def test_browse_lists_recent_sessions_with_their_beginning(store: Store, here: ToolContext) -> None:
    talk(store, ["how do I x?", "so"], title="One")
    shown = call(here, limit=5)
    assert shown["mode"] == "browse"
    assert shown["results"][0]["begins"] == "how do I x?"


def test_a_notice_of_the_search_is_passed_on(store: Store, here: ToolContext) -> None:
    shown = call(here, query='"')
    assert shown["count"] == 0
    assert shown.get("notice") or shown.get("hint")


def test_secrets_said_earlier_are_masked(store: Store, here: ToolContext) -> None:
    session = talk(store, ["my key is sk-test-1234567890abcdef"])
    assert "1234567890abcdef" not in json.dumps(call(here, session_id=session.id))


def test_a_store_that_fails_is_a_failure_and_no_empty_answer(here: ToolContext) -> None:
    class Busy:
        def search(self, *args: Any, **kwargs: Any) -> SearchResult:
            raise StoreBusy("the database is locked")

    with pytest.raises(ToolError, match=r"search failed.*locked"):
        call(replace(here, services={"store": Busy()}), query="x")
    with pytest.raises(ToolError, match="no session store"):
        call(replace(here, services={}), query="x")
