"""The loop against every way an endpoint or the store can fail."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.agents import OneServer, echo, make_agent, make_store, tool
from support.model_server import (
    ModelServer,
    Reply,
    call,
    calls,
    cut,
    delta,
    error,
    html,
    say,
    sse,
    status,
)

from hermes_nb.agent.events import Notice, StepFinished, TextDelta, TurnFinished
from hermes_nb.agent.loop import LIMIT_NUDGE
from hermes_nb.agent.retry import RetryPolicy
from hermes_nb.agent.transcript import NO_ANSWER_FAILED
from hermes_nb.core.errors import ProviderUnavailable, RateLimited, RequestRejected, StoreFull, TurnError
from hermes_nb.core.names import TurnStatus
from hermes_nb.store.store import Store
from hermes_nb.tools.tool import ToolContext


def kinds(store: Store, session: str) -> list[tuple[str, str]]:
    return [(row.role, row.status.value) for row in store.rows(session)]


def wires(store: Store, session: str) -> list[dict[str, Any]]:
    return [json.loads(row.wire) for row in store.rows(session)]


def empty(finish: str | None) -> Reply:
    return sse(delta({"role": "assistant", "content": ""}), delta({}, finish))


@pytest.mark.parametrize("word", ["network_error", "network-error", "error"])
def test_an_error_word_without_text_is_tried_again(tmp_path: Path, word: str) -> None:
    with ModelServer([empty(word), say("ok")]) as server:
        store = make_store(tmp_path)
        result = make_agent(store, server.url).run("hi")
        assert result.text == "ok"
        assert server.bodies[0] == server.bodies[1]
        assert kinds(store, result.session_id) == [("user", "complete"), ("assistant", "complete")]


def test_a_content_filter_without_text_is_told_and_not_repeated(tmp_path: Path) -> None:
    with ModelServer([empty("content_filter")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        with pytest.raises(TurnError, match="content filter"):
            agent.run("hi")
        assert len(server.requests) == 1
        assert wires(store, agent.session.id)[-1]["content"] == NO_ANSWER_FAILED


@pytest.mark.parametrize(
    "bad",
    [
        empty("stop"),
        empty(None),
        sse(),
        cut("", how="clean"),
        cut("", how="fin"),
        cut("", how="reset"),
        cut("", how="hangup"),
        error(503, "busy"),
        error(429, "slow down", headers={"Retry-After": "0"}),
    ],
    ids=lambda reply: f"{reply.status}-{reply.end}-{len(reply.events)}",
)
def test_what_failed_before_any_output_is_tried_again_with_the_same_bytes(tmp_path: Path, bad: Reply) -> None:
    with ModelServer([bad, say("ok")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        events = list(agent.stream("hi"))
        assert events[-1].result.text == "ok"
        assert any(isinstance(event, Notice) and "again" in event.text for event in events)
        assert server.bodies == [server.bodies[0]] * 2
        assert len(store.rows(agent.session.id)) == 2


@pytest.mark.parametrize("how", ["fin", "reset", "clean"])
def test_a_stream_cut_after_text_is_incomplete_and_its_text_is_kept(tmp_path: Path, how: str) -> None:
    with ModelServer([cut("two chunks", how=how), say("rest")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        result = agent.run("hi")
        assert result.status is TurnStatus.INCOMPLETE
        assert result.text == "two chunks"
        assert result.error
        assert kinds(store, result.session_id)[-1] == ("assistant", "interrupted")
        assert agent.run("go on").text == "rest"
        assert server.bodies[1].startswith(server.bodies[0][:-2])


def test_calls_of_a_cut_stream_are_not_run(tmp_path: Path) -> None:
    ran: list[int] = []
    act = tool("act", lambda context: ran.append(1))
    whole = call("act", {}, text="I will")
    broken = Reply(whole.events[:-2], end="clean")
    with ModelServer([broken]) as server:
        store = make_store(tmp_path)
        result = make_agent(store, server.url, [act]).run("hi")
        assert result.status is TurnStatus.INCOMPLETE
        assert ran == []
        assert "tool_calls" not in wires(store, result.session_id)[-1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (error(401, "bad key", "invalid_api_key"), "key"),
        (error(404, "no such model", "model_not_found"), "model"),
        (error(400, "too long", "context_length_exceeded"), ""),
        (html(), ""),
        (status(200, {}), ""),
        (error(429, "no credit", "insufficient_quota"), ""),
    ],
    ids=["401", "404", "overflow", "html", "empty", "quota"],
)
def test_an_error_that_waiting_does_not_cure_fails_the_turn_once(tmp_path: Path, bad: Reply, message: str) -> None:
    with ModelServer([bad, say("works again")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        with pytest.raises(TurnError) as caught:
            agent.run("hi")
        assert message in str(caught.value).lower()
        assert len(server.requests) == 1
        assert kinds(store, agent.session.id) == [("user", "complete"), ("assistant", "interrupted")]
        assert agent.run("again").text == "works again"
        assert server.bodies[1].startswith(server.bodies[0][:-2])
        assert store.leases.current(agent.session.root_id) is None


def test_retries_are_bounded(tmp_path: Path) -> None:
    with ModelServer([error(500, "broken")] * 10) as server:
        with pytest.raises(TurnError):
            make_agent(make_store(tmp_path), server.url).run("hi")
        assert len(server.requests) == 3


def test_a_dead_endpoint_fails_the_turn_and_keeps_the_question(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    agent = make_agent(store, "http://127.0.0.1:9/v1")
    with pytest.raises(TurnError, match=r"127\.0\.0\.1:9"):
        agent.run("precious question")
    assert store.rows(agent.session.id)[0].text == "precious question"


def test_a_failure_in_a_later_step_keeps_what_was_done(tmp_path: Path) -> None:
    with ModelServer([call("echo", {"text": "x"}), error(400, "bad request"), say("on we go")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        with pytest.raises(TurnError):
            agent.run("hi")
        assert [role for role, _ in kinds(store, agent.session.id)] == ["user", "assistant", "tool"]
        agent.run("go on")
        assert [m["role"] for m in server.requests[-1].messages[1:]] == ["user", "assistant", "tool", "user"]


def test_the_step_limit_ends_in_a_summary_without_tools(tmp_path: Path) -> None:
    with ModelServer([call("echo"), call("echo"), call("echo", text="I stop here."), say("next")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()], steps=2)
        result = agent.run("hi")
        assert result.status is TurnStatus.LIMIT
        assert result.text == "I stop here."
        assert len(result.tool_calls) == 2
        last = server.requests[2].json
        assert last["messages"][-1] == {"role": "user", "content": LIMIT_NUDGE}
        assert last["tools"] == server.requests[0].json["tools"]
        assert "tool_calls" not in wires(store, result.session_id)[-1]
        agent.run("next")
        for one, following in itertools.pairwise(server.bodies):
            assert following.startswith(one[:-2])


def test_reasoning_is_sent_back_where_it_is_wanted(tmp_path: Path) -> None:
    with ModelServer([call("echo", reasoning="plan"), say("ok")]) as server:
        store = make_store(tmp_path)
        make_agent(store, server.url, [echo()]).run("hi")
        assert server.requests[1].messages[2]["reasoning_content"] == "plan"


def test_reasoning_stays_out_where_it_is_not_accepted(tmp_path: Path) -> None:
    with ModelServer([call("echo", reasoning="plan"), say("ok")]) as server:
        models = OneServer(server.url)
        models.endpoint = replace(models.endpoint, keep_reasoning=False)
        make_agent(make_store(tmp_path), server.url, [echo()], models=models).run("hi")
        assert b"plan" not in server.bodies[1]


def test_a_commit_that_fails_before_the_tools_keeps_them_from_running(tmp_path: Path) -> None:
    ran: list[int] = []
    store = make_store(tmp_path)

    def full(request: Any) -> Reply:
        limit_pages(store)  # the disk fills up while the model answers
        return call("act", {"padding": "x" * 200_000})

    with ModelServer([full]) as server:
        act = tool("act", lambda context, padding="": ran.append(1), properties={"padding": {"type": "string"}})
        agent = make_agent(store, server.url, [act])
        with pytest.raises(TurnError) as caught:
            agent.run("hi")
        assert isinstance(caught.value.__cause__, StoreFull)
        assert ran == []
        limit_pages(store, none=True)
        server.enqueue(say("fine"))
        assert agent.run("again").text == "fine"
        roles = [m["role"] for m in server.requests[-1].messages]
        assert roles == ["system", "user", "assistant", "user"]


def limit_pages(store: Store, *, none: bool = False) -> None:
    with store._database.write() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={1_073_741_823 if none else pages}")


def test_a_final_row_that_cannot_be_written_is_said_and_its_text_is_shown(tmp_path: Path) -> None:
    store = make_store(tmp_path)

    def full(request: Any) -> Reply:
        limit_pages(store)
        return say("the answer " + "y" * 200_000)

    with ModelServer([full]) as server:
        agent = make_agent(store, server.url)
        events: list[Any] = []
        with pytest.raises(TurnError, match="could not be stored"):
            agent.start("hi", events.append)
        assert "".join(e.text for e in events if isinstance(e, TextDelta)).startswith("the answer")
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].result.text.startswith("the answer")


def test_a_result_that_cannot_be_written_stops_the_batch(tmp_path: Path) -> None:
    ran: list[str] = []
    store = make_store(tmp_path)

    def big(context: ToolContext) -> str:
        ran.append("big")
        limit_pages(store)
        return "z" * 90_000

    with ModelServer([calls([("big", {}), ("small", {})])]) as server:
        agent = make_agent(store, server.url, [tool("big", big), tool("small", lambda context: ran.append("small"))])
        with pytest.raises(TurnError):
            agent.run("hi")
        assert ran == ["big"]
        limit_pages(store, none=True)
        server.enqueue(say("fine"))
        agent.run("again")
        results = [m["content"] for m in server.requests[-1].messages if m["role"] == "tool"]
        assert len(results) == 2


def test_a_user_row_that_cannot_be_written_keeps_the_model_from_being_called(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("never")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        agent.run("a")
        limit_pages(store)
        with pytest.raises(TurnError):
            agent.run("b" * 500_000)
        assert len(server.requests) == 1


def test_usage_is_booked_per_step_and_shown(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    with ModelServer([call("echo", usage=usage), say("ok", usage=None)]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        steps = [event for event in agent.stream("hi") if isinstance(event, StepFinished)]
        assert [step.usage.prompt for step in steps] == [100, 0]
        assert store.usage.total(agent.session.id).cached == 64


def test_the_wait_before_a_retry_follows_the_server_within_bounds() -> None:
    policy = RetryPolicy(retries=3, base=2.0, cap=60.0, jitter=0.5)
    assert policy.wait(RateLimited("x", retry_after=17.0), 1) == 17.0
    assert policy.wait(RateLimited("x", retry_after=601.0), 1) is None
    assert policy.wait(RequestRejected("x"), 1) is None
    assert policy.wait(ProviderUnavailable("x"), 4) is None
    for failures, low in ((1, 2.0), (2, 4.0), (3, 8.0)):
        wait = policy.wait(ProviderUnavailable("x"), failures)
        assert wait is not None
        assert low <= wait <= low * 1.5
