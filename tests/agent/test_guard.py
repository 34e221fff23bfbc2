"""Secrets are masked once, where text enters: what is stored is what is shown, run and sent."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.agents import echo, make_agent, make_store, tool
from support.model_server import ModelServer, call, say

from hermes_nb.agent.events import Notice, ReasoningDelta, TextDelta, ToolFinished, ToolStarted
from hermes_nb.agent.guard import REFUSED, Guard
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.names import ApprovalState
from hermes_nb.core.secrets import MASK
from hermes_nb.core.types import ApprovalRequest, ToolCall
from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.store import Store
from hermes_nb.tools.builtin.memory import TOOLS as MEMORY_TOOLS
from hermes_nb.tools.kernel import CodeResult, Variable
from hermes_nb.tools.tool import ToolContext

KEY = "sk-test-1234567890abcdef"
VALUE = "the-live-value-7"


class Namespace:
    """A kernel whose namespace holds one secret."""

    def __init__(self) -> None:
        self.values: list[str] = [VALUE]

    def execute(self, code: str, cancel: Cancel) -> CodeResult:
        raise NotImplementedError

    def variables(self, names: Sequence[str] | None, cancel: Cancel) -> list[Variable]:
        return []

    def secret_values(self) -> Sequence[str]:
        return self.values


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = make_store(tmp_path)
    yield opened
    opened.close()


def everything(store: Store, session: str) -> str:
    return "".join(row.wire + row.text for row in store.rows(session, hidden=True))


def test_case_136_keys_are_in_no_row_no_request_and_no_event(store: Store) -> None:
    def leak(context: ToolContext) -> str:
        return f"Authorization: Bearer {KEY}\n{VALUE}\nordinary words"

    script = [
        call("leak", {}),
        call("echo", {"text": f"curl -H 'x: {KEY}'\n{VALUE}"}),
        say(f"It is `{KEY}` or {VALUE}.", chunks=7),
    ]
    with ModelServer(script) as server:
        agent = make_agent(store, server.url, [tool("leak", leak), echo()], kernel=Namespace())
        events = list(agent.stream(f"use {KEY} and {VALUE}"))
        bodies = list(server.bodies)
    assert agent.session is not None
    for secret in (KEY, VALUE):
        assert secret not in everything(store, agent.session.id)
        assert secret not in repr(events)
        assert not [body for body in bodies if secret.encode() in body]
        assert secret not in (store.session(agent.session.id).title or "")
    assert "ordinary words" in everything(store, agent.session.id)
    assert [e for e in events if isinstance(e, Notice) and "in your message" in e.text]
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == f"It is `{MASK}` or {MASK}."
    for body, later in itertools.pairwise(bodies):
        assert later.startswith(body.removesuffix(b"]}"))


def test_a_call_whose_arguments_were_masked_is_refused_and_shown_as_it_is_stored(store: Store) -> None:
    ran: list[str] = []

    def handler(context: ToolContext, text: str = "") -> str:
        ran.append(text)
        return "ran"

    script = [call("run", {"text": f"key = '{KEY}'"}), call("run", {"text": "key = os.environ['KEY']"}), say("done")]
    with ModelServer(script) as server:
        agent = make_agent(store, server.url, [tool("run", handler, properties={"text": {"type": "string"}})])
        events = list(agent.stream("go"))
    assert ran == ["key = os.environ['KEY']"]
    first = next(event for event in events if isinstance(event, ToolFinished))
    assert first.result.content == REFUSED
    started = next(event for event in events if isinstance(event, ToolStarted))
    assert json.loads(started.call.arguments) == {"text": f"key = '{MASK}'"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"code": f"x = 1\nk = '{KEY}'"},
        {"nested": [{"deep": KEY}]},
        {"password": "hunter2-and-more"},
        {KEY: 1},
    ],
)
def test_secrets_are_found_inside_the_arguments_values(arguments: dict[str, Any]) -> None:
    given = ToolCall("c1", "run", json.dumps(arguments))
    wire = {"role": "assistant", "content": None, "tool_calls": [sent(given)]}
    masked, (checked,) = Guard().answer(wire, [given])
    assert checked.masked
    assert KEY not in checked.arguments
    assert "hunter2" not in checked.arguments
    assert masked["tool_calls"][0]["function"]["arguments"] == checked.arguments


def test_malformed_arguments_are_masked_behind_escapes_too() -> None:
    given = ToolCall("c1", "run", '{"code": "a\\n' + KEY)
    _, (checked,) = Guard().answer({"role": "assistant", "content": None, "tool_calls": [sent(given)]}, [given])
    assert checked.masked
    assert KEY not in checked.arguments


def test_harmless_arguments_keep_their_bytes() -> None:
    raw = '{ "code":"df.groupby(\\"token\\")",  "n": 1.0 }'
    given = ToolCall("c1", "run", raw)
    wire = {"role": "assistant", "content": None, "tool_calls": [sent(given)]}
    masked, (checked,) = Guard().answer(wire, [given])
    assert checked == given
    assert masked == wire


def test_signed_reasoning_that_holds_a_secret_is_left_out() -> None:
    wire = {"role": "assistant", "content": "x", "reasoning": f"I use {KEY}", "reasoning_details": [{"text": KEY}]}
    masked, _ = Guard().answer(wire, [])
    assert KEY not in json.dumps(masked)
    assert "reasoning_details" not in masked


def test_values_are_asked_for_at_the_moment_a_text_enters() -> None:
    kernel = Namespace()
    guard = Guard(kernel)
    assert guard.text("later-value-99") == "later-value-99"
    kernel.values.append("later-value-99")
    assert guard.text("later-value-99") == MASK


def test_reasoning_is_shown_masked(store: Store) -> None:
    with ModelServer([say("done", reasoning=f"the key {KEY} is")]) as server:
        events = list(make_agent(store, server.url).stream("go"))
    assert KEY not in "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def sent(given: ToolCall) -> dict[str, Any]:
    return {"id": given.id, "type": "function", "function": {"name": given.name, "arguments": given.arguments}}


class Answers:
    """A front end that gives one answer and keeps what it was asked."""

    surface = "test"

    def __init__(self, store: Store, state: ApprovalState) -> None:
        self._store, self._state = store, state
        self.asked: list[ApprovalRequest] = []

    def open(self, request: ApprovalRequest) -> None:
        self.asked.append(request)
        self._store.approvals.answer(request.id, self._state, "ann", request.args_hash)

    def close(self, request: ApprovalRequest) -> None: ...


@pytest.mark.parametrize(
    ("answer", "written", "staged"),
    [(ApprovalState.APPROVED, 1, 0), (ApprovalState.DENIED, 0, 0), (ApprovalState.EXPIRED, 0, 1), (None, 0, 1)],
)
def test_case_137_ask_shows_the_diff_and_stages_where_nobody_answers(
    store: Store, tmp_path: Path, answer: ApprovalState | None, written: int, staged: int
) -> None:
    memory = MemoryStore(tmp_path / "memories")
    approver = None if answer is None else Answers(store, answer)
    with ModelServer([call("memory", {"action": "add", "content": "likes tea"}), say("done")]) as server:
        agent = make_agent(
            store,
            server.url,
            MEMORY_TOOLS,
            approver=approver,
            services={"store": store, "memory": memory, "memory_write": "ask"},
        )
        agent.run("remember that I like tea")
    assert len(memory.entries()) == written
    assert len(store.staged.list()) == staged
    if approver is not None:
        (asked,) = approver.asked
        assert "+likes tea" in (asked.diff or "")
        assert "memory.write = ask" in asked.reason
