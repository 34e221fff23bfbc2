"""How a turn ends: interrupts in each phase, a killed process, a lease that was lost."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.agents import Held, echo, make_agent, make_store, tool
from support.model_server import ModelServer, Reply, Request, call, calls, say, silence, stall

from hermes_nb.agent.agent import Agent
from hermes_nb.agent.events import ApprovalAsked, Event, TextDelta, TurnFinished
from hermes_nb.agent.transcript import CALL_INTERRUPTED, CALL_LOST, CALL_NOT_RUN, NO_ANSWER, first_code_block
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import Cancelled, TurnError
from hermes_nb.core.names import ApprovalState, Risk, TurnStatus
from hermes_nb.core.types import TurnResult
from hermes_nb.store.store import Store
from hermes_nb.tools.tool import ToolContext

SUPPORT = Path(__file__).parent.parent


def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


class Running:
    """A turn in a worker thread, as a front end starts it."""

    def __init__(self, agent: Agent, text: str = "go") -> None:
        self.agent = agent
        self.events: list[Event] = []
        self.result: TurnResult | None = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._work, args=(text,), daemon=True)
        self.thread.start()

    def _work(self, text: str) -> None:
        try:
            self.result = self.agent.start(text, self.events.append)
        except BaseException as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc

    def saw(self, kind: type[Event]) -> bool:
        return any(isinstance(event, kind) for event in self.events)

    def interrupt(self) -> TurnResult:
        """Interrupt and check that it needed no help and took no time worth noting."""
        result = self.agent.interrupt()
        assert result is not None
        assert result.status is TurnStatus.INTERRUPTED
        assert self.agent.interrupt() in (result, None)
        return result


def rows(store: Store, agent: Agent) -> list[tuple[str, str, str]]:
    assert agent.session is not None
    return [(row.role, row.status.value, str(json.loads(row.wire)["content"])) for row in store.rows(agent.session.id)]


def snapshot(store: Store) -> list[Any]:
    return store._database.query("SELECT count(*), max(id) FROM messages") + store._database.query(
        "SELECT count(*) FROM usage"
    )


def test_an_interrupt_while_the_model_is_silent_ends_the_turn_at_once(tmp_path: Path) -> None:
    with ModelServer([silence(), say("fine")]) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url))
        server.wait(lambda s: s.stalled)
        running.interrupt()
        running.thread.join(10)
        assert not running.thread.is_alive()
        assert running.result is not None
        assert rows(store, running.agent) == [
            ("user", "complete", "<recall>\nsurface: notebook\n</recall>\n\ngo"),
            ("assistant", "interrupted", NO_ANSWER),
        ]
        server.wait(lambda s: s.disconnects)
        assert running.agent.run("next").text == "fine"
        assert [m["role"] for m in server.requests[-1].messages] == ["system", "user", "assistant", "user"]


def test_an_interrupt_while_streaming_keeps_the_partial_answer_as_interrupted(tmp_path: Path) -> None:
    with ModelServer([stall("half an ans"), say("fine")]) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url))
        until(lambda: running.saw(TextDelta))
        result = running.interrupt()
        assert result.text == "half an ans"
        assert rows(store, running.agent)[1:] == [("assistant", "interrupted", "half an ans")]
        running.thread.join(10)
        running.agent.run("next")
        assert server.bodies[1].startswith(server.bodies[0][:-2])


def test_an_interrupt_while_a_deaf_tool_runs_closes_all_calls_and_nothing_is_written_later(tmp_path: Path) -> None:
    held = Held()
    script = [calls([("echo", {"text": "1"}), ("wait", {}), ("echo", {"text": "3"})]), say("fine")]
    with ModelServer(script) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url, [echo(), held.tool]))
        assert held.entered.wait(20)
        result = running.interrupt()
        assert [record.content for record in result.tool_calls] == ["echo 1"]
        assert [content for role, _, content in rows(store, running.agent) if role == "tool"] == [
            "echo 1",
            CALL_INTERRUPTED,
            CALL_NOT_RUN,
        ]
        before, events = snapshot(store), len(running.events)
        assert isinstance(running.events[-1], TurnFinished)
        held.leave.set()
        running.thread.join(10)
        assert not running.thread.is_alive()
        assert snapshot(store) == before
        assert len(running.events) == events
        assert running.agent.run("next").text == "fine"


def test_an_interrupt_while_parallel_tools_run_leaves_their_results_out(tmp_path: Path) -> None:
    from hermes_nb.core.names import Parallel

    held = Held()
    beside = tool("wait", held.tool.handler, parallel=Parallel.SAFE)
    with ModelServer([calls([("wait", {}), ("echo", {"text": "2"})]), say("fine")]) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url, [echo(), beside]))
        assert held.entered.wait(20)
        running.interrupt()
        running.thread.join(10)
        assert not running.thread.is_alive()
        before = snapshot(store)
        held.leave.set()
        assert held.left.wait(10)
        assert snapshot(store) == before
        assert [content for role, _, content in rows(store, running.agent) if role == "tool"] == [CALL_INTERRUPTED] * 2


def test_an_interrupt_while_a_question_waits_cancels_the_question(tmp_path: Path) -> None:
    shown: list[str] = []

    class Approver:
        surface = "test"

        def open(self, request: Any) -> None:
            shown.append(request.id)

        def close(self, request: Any) -> None:
            shown.append(request.state.value)

    ran: list[int] = []
    act = tool("act", lambda context: ran.append(1), risk=Risk.EXECUTE)
    with ModelServer([call("act"), say("fine")]) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url, [act], approver=Approver()))
        until(lambda: running.saw(ApprovalAsked))
        running.interrupt()
        assert store.approvals.get(shown[0]).state is ApprovalState.CANCELLED
        assert not store.approvals.answer(shown[0], ApprovalState.APPROVED, "late")
        running.thread.join(10)
        assert shown[1:] == ["cancelled"]
        assert rows(store, running.agent)[-1][2] == CALL_NOT_RUN
        assert running.agent.run("next").text == "fine"
        assert ran == []


def test_an_approved_call_runs_and_a_denied_one_tells_the_model(tmp_path: Path) -> None:
    answers = iter([ApprovalState.APPROVED, ApprovalState.DENIED])

    class Approver:
        surface = "test"

        def open(self, request: Any) -> None:
            assert store.approvals.answer(request.id, next(answers), "tester", request.args_hash)

        def close(self, request: Any) -> None:
            pass

    ran: list[int] = []
    act = tool("act", lambda context: ran.append(1) or "acted", risk=Risk.EXECUTE)
    with ModelServer([call("act"), call("act"), say("fine")]) as server:
        store = make_store(tmp_path)
        result = make_agent(store, server.url, [act], approver=Approver()).run("go")
        assert ran == [1]
        assert [record.is_error for record in result.tool_calls] == [False, True]
        assert "said no" in result.tool_calls[1].content


def test_nobody_to_ask_means_no(tmp_path: Path) -> None:
    ran: list[int] = []
    act = tool("act", lambda context: ran.append(1), risk=Risk.EXECUTE)
    with ModelServer([call("act"), say("fine")]) as server:
        store = make_store(tmp_path)
        result = make_agent(store, server.url, [act]).run("go")
        assert ran == []
        assert "approvals.allow" in result.tool_calls[0].content


def test_the_next_turn_need_not_wait_for_a_deaf_tool(tmp_path: Path) -> None:
    held = Held()
    with ModelServer([call("wait"), say("fine")]) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url, [held.tool]))
        assert held.entered.wait(20)
        running.interrupt()
        assert running.agent.run("next").text == "fine"
        held.leave.set()
        running.thread.join(10)
        assert [role for role, _, _ in rows(store, running.agent)] == ["user", "assistant", "tool", "user", "assistant"]


def test_a_locked_database_does_not_delay_an_interrupt(tmp_path: Path) -> None:
    with ModelServer([stall("half")]) as server:
        store = make_store(tmp_path)
        running = Running(make_agent(store, server.url))
        until(lambda: running.saw(TextDelta))
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        result = running.agent.interrupt()
        assert time.monotonic() - began < 5  # the store itself waits up to 30 s
        assert result is not None
        assert result.status is TurnStatus.INTERRUPTED
        other.rollback()
        other.close()
        running.thread.join(20)
        assert rows(store, running.agent)[-1] == ("assistant", "interrupted", "half")
        assert store.leases.current(running.agent.session.root_id) is None


def test_an_undo_takes_a_whole_turn_with_its_nudge(tmp_path: Path) -> None:
    with ModelServer([say("1"), call("echo"), say("sum")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()], steps=1)
        agent.run("a")
        assert agent.run("b").status is TurnStatus.LIMIT
        store.undo(agent.session.id)
        assert [role for role, _, _ in rows(store, agent)] == ["user", "assistant"]


def test_a_lease_that_could_not_be_released_does_not_lock_its_own_process_out(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        root = agent.run("a").session_id
        store.leases.acquire(root, store.leases.holder())  # as after a release that the full disk refused
        assert agent.run("b").text == "2"


def test_a_cancel_before_the_turn_began_stores_nothing(tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.cancel()
    with ModelServer([say("never")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        with pytest.raises(Cancelled):
            agent.start("go", lambda event: None, cancel=cancel)
        assert server.requests == []
        assert snapshot(store)[0] == (0, None)


def test_interrupting_without_a_turn_does_nothing(tmp_path: Path) -> None:
    assert make_agent(make_store(tmp_path), "http://127.0.0.1:9/v1").interrupt() is None


def test_interrupts_at_random_moments_always_leave_a_sendable_history(tmp_path: Path, size: Callable[..., int]) -> None:
    random.seed(5)
    count = size(12, 100)
    both = [("echo", {"text": "1"}), ("echo", {"text": "2"})]

    def answer(request: Request) -> Reply:
        asked = request.messages[-1]["role"] == "user"
        return calls(both) if asked else say("a b c d", chunks=4, pause=0.002)

    with ModelServer([answer] * (3 * count)) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        for n in range(count):
            running = Running(agent, f"turn {n}")
            time.sleep(random.random() * 0.05)
            agent.interrupt()
            running.thread.join(10)
            assert not running.thread.is_alive()
            assert not isinstance(running.error, TurnError), running.error
        # A request that was cancelled while it was sent arrives without its body.
        whole = [body for body in server.bodies if body.endswith(b"]}")]
        for one, following in itertools.pairwise(whole):
            assert following.startswith(one[:-2])
        assert_paired(json.loads(whole[-1])["messages"])


def assert_paired(messages: list[dict[str, Any]]) -> None:
    """Every call has exactly one result, right after its message."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
            waiting = [one["id"] for one in message.get("tool_calls") or []]
    assert not waiting


def test_a_turn_that_was_taken_over_runs_no_further_tool(tmp_path: Path) -> None:
    ran: list[str] = []

    def rob(context: ToolContext) -> str:
        store.leases.acquire(context.root_id, "host:elsewhere:1:1", force=True)
        ran.append("rob")
        return "robbed"

    with ModelServer([calls([("rob", {}), ("echo", {})])]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [tool("rob", rob), echo()])
        with pytest.raises(TurnError, match="taken over"):
            agent.run("go")
        assert ran == ["rob"]
        assert [row.role for row in store.rows(agent.session.id)] == ["user", "assistant"]
        assert len(store.late_results(agent.session.id)) == 1


def test_a_lease_that_is_lost_while_the_model_is_silent_ends_the_turn(tmp_path: Path) -> None:
    with ModelServer([silence()]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, renew_seconds=0.02)
        running = Running(agent)
        server.wait(lambda s: s.stalled)
        store.leases.acquire(agent.session.root_id, "host:elsewhere:1:1", force=True)
        running.thread.join(10)
        assert isinstance(running.error, TurnError)
        assert "taken over" in str(running.error)


PROGRAM = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from support.agents import echo, make_agent, make_store, tool
    folder, url = Path(sys.argv[2]), sys.argv[3]

    def handler(context):
        with (folder / "effects").open("a") as file:
            file.write("x")
        print("inside", flush=True)
        time.sleep(60)

    make_agent(make_store(folder), url, [echo(), tool("slow", handler)]).run("go")
    """
)


def test_kill_9_in_a_tool_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    script = [calls([("echo", {"text": "1"}), ("slow", {}), ("echo", {"text": "3"})]), say("I see it was cut off.")]
    with ModelServer(script) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(SUPPORT), str(tmp_path), server.url], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "inside"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        store = make_store(tmp_path)
        (session,) = store.sessions()
        agent = make_agent(store, server.url, [echo()], session=session)
        assert agent.run("what happened?").text == "I see it was cut off."
        assert (tmp_path / "effects").read_text() == "x"
        results = [m["content"] for m in server.requests[-1].messages if m["role"] == "tool"]
        assert results == ["echo 1", CALL_LOST, CALL_LOST]
        assert_paired(server.requests[-1].messages)
        assert server.bodies[1].startswith(server.bodies[0][:-2])


def test_keyboard_interrupt_in_the_main_thread_ends_run(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, signal, sys, threading
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from support.agents import make_agent, make_store
        store = make_store(Path(sys.argv[2]))
        agent = make_agent(store, sys.argv[3])
        print("ready", flush=True)
        try:
            agent.run("go")
        except KeyboardInterrupt:
            print([row.role for row in store.rows(agent.session.id)])
            print(agent.run("again").text)
        """
    )
    with ModelServer([silence(), say("works")]) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(SUPPORT), str(tmp_path), server.url], stdout=subprocess.PIPE, text=True
        )
        server.wait(lambda s: s.stalled)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=30)
        assert output.splitlines() == ["ready", "['user', 'assistant']", "works"]


def test_the_first_fenced_block_is_found() -> None:
    assert first_code_block("a\n```python\nx = 1\n\n```\nb\n```\nno\n```") == "x = 1\n\n"
    assert first_code_block("~~~\na\n```\nb\n~~~") == "a\n```\nb\n"
    assert first_code_block("`inline` only") is None
    assert first_code_block("```py\nnot closed") is None
