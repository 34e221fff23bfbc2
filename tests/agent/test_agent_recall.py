"""Recall in turns: beside the user's message, in ``wire`` only, told once, and never in the way of the prefix."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from support.agents import OneServer, echo, make_agent, make_store
from support.model_server import ModelServer, call, say

from hermes_nb.agent.agent import TurnOptions
from hermes_nb.agent.events import Notice, TextDelta
from hermes_nb.agent.fold import Fold
from hermes_nb.prompt.recall_history import HistoryRecall

QUESTION = "Plot the churn dashboard figures again"


class Broken:
    name = "mem"

    def recall(self, *_: Any) -> str:
        raise OSError("no network")


def assert_prefixes(bodies: list[bytes]) -> None:
    for one, following in itertools.pairwise(bodies):
        assert following.startswith(one[:-2])


def test_past_messages_stand_in_the_wire_and_not_in_the_text(tmp_path: Path) -> None:
    with ModelServer([say("1"), call("echo"), say("2"), say("3"), say("4")]) as server:
        store = make_store(tmp_path)
        make_agent(store, server.url, [echo()]).run("The churn dashboard figures use viridis")
        agent = make_agent(store, server.url, [echo()], recall_provider=HistoryRecall())
        session = agent.run(QUESTION).session_id
        agent.run(QUESTION)
        again = make_agent(
            store, server.url, [echo()], recall_provider=HistoryRecall(), session=store.session(session), surface="x"
        )
        again.run(QUESTION + " now")
        users = [m["content"] for m in server.requests[-1].messages if m["role"] == "user"]
        assert "recall from history: " in users[0]
        assert "user said: The churn dashboard figures use viridis" in users[0]
        assert users[0].endswith("</recall>\n\n" + QUESTION)
        assert users[1] == QUESTION
        assert "viridis" not in users[2]
        rows = [row for row in store.rows(session) if row.role == "user"]
        assert [row.text for row in rows] == [QUESTION, QUESTION, QUESTION + " now"]
        assert not store.search("evidence outdated").hits
        assert_prefixes(server.bodies[1:])


def test_a_provider_that_fails_costs_a_notice_only(tmp_path: Path) -> None:
    with ModelServer([say("fine")]) as server:
        agent = make_agent(make_store(tmp_path), server.url, recall_provider=Broken())
        events = list(agent.stream("hello there"))
        assert [e.level for e in events if isinstance(e, Notice) and "no network" in e.text] == ["warning"]
        assert server.requests[0].messages[-1]["content"].endswith("hello there")


def test_a_block_that_the_model_repeats_is_neither_shown_nor_stored(tmp_path: Path) -> None:
    said = "<recall>\nsurface: notebook\n</recall>\n\nThe answer."
    with ModelServer([say(said, chunks=len(said)), say("ok")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        events = list(agent.stream("a"))
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "The answer."
        assert store.rows(agent.session.id)[-1].text == "The answer."
        agent.run("b")
        assert server.requests[1].messages[2] == {"role": "assistant", "content": "The answer."}
        assert_prefixes(server.bodies)


def test_a_fold_without_any_visible_text_has_none() -> None:
    fold = Fold()
    fold.feed({"choices": [{"index": 0, "delta": {"content": "<recall>\nx"}, "finish_reason": "stop"}]})
    fold.close()
    assert fold.text == ""


def test_context_cells_are_told_when_they_change_and_when_they_are_gone(tmp_path: Path) -> None:
    with ModelServer([say(str(n)) for n in range(5)]) as server:
        agent = make_agent(make_store(tmp_path), server.url)
        for value in ("none", "Use SI units.", "Use SI units.", "Use feet.", "none"):
            agent.run("q", TurnOptions(recall=[f"context cells: {value}"]))
        users = [m["content"] for m in server.requests[-1].messages if m["role"] == "user"]
        told = [
            line for user in users for line in user.split("</recall>")[0].splitlines() if line.startswith("context")
        ]
        assert told == ["context cells: Use SI units.", "context cells: Use feet.", "context cells: none"]
        assert "context" not in users[0]
        assert users[2] == "q"


def test_the_demo_model_is_told_nothing_from_the_past(tmp_path: Path) -> None:
    class Demo(OneServer):
        def primary(self):
            return self.named("embedded")

        def open(self, endpoint):
            return super().open(self.endpoint)

    with ModelServer([say("1")]) as server:
        store = make_store(tmp_path)
        make_agent(store, server.url, recall_provider=Broken(), models=Demo(server.url)).run(QUESTION)
        assert "mem" not in json.dumps(server.requests[0].messages[-1])
