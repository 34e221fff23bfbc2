"""The agent over a real store and the real client: continuity, prefix reuse, options, callers."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import textwrap
import threading
from datetime import date
from pathlib import Path

import pytest
from support.agents import OneServer, echo, make_agent, make_store, tool
from support.model_server import ModelServer, call, calls, say

from hermes_nb.agent.agent import TurnOptions
from hermes_nb.agent.events import Notice, TextDelta, TurnFinished, TurnStarted
from hermes_nb.agent.provider_openai import OpenAIProvider
from hermes_nb.core.errors import ConfigError, NoEndpoint, SessionLeased, TurnError
from hermes_nb.core.names import ApprovalMode, TurnStatus
from hermes_nb.store.memory import MemoryStore
from hermes_nb.tools.builtin import memory as memory_tools
from hermes_nb.tools.tool import ToolContext
from hermes_nb.tools.toolsets import resolve

SUPPORT = Path(__file__).parent.parent


def assert_prefixes(bodies: list[bytes]) -> None:
    """Every body without its closing ``]}`` is a byte prefix of the next one."""
    for one, following in itertools.pairwise(bodies):
        assert following.startswith(one[:-2]), (one[-300:], following[: len(one) + 50][-350:])


def test_a_turn_answers_and_stores_its_rows_in_order(tmp_path: Path) -> None:
    with ModelServer([call("echo", {"text": "x"}), say("It says ```python\n1 + 1\n``` .")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        result = agent.run("please")
        assert result.status is TurnStatus.COMPLETE
        assert [row.role for row in store.rows(result.session_id)] == ["user", "assistant", "tool", "assistant"]
        assert store.rows(result.session_id)[0].text == "please"
        assert [record.content for record in result.tool_calls] == ["echo x"]
        assert result.usage.prompt == 20
        assert store.usage.total(result.session_id).prompt == 20
        assert store.session(result.session_id).title == "please"


def test_every_body_is_a_byte_prefix_of_the_next_also_in_new_objects(tmp_path: Path) -> None:
    script = [
        call("echo", {"text": "世界 \ud83d\ude00"}),
        say("one", reasoning="because"),
        say("two"),
        call("echo"),
        say("three"),
    ]
    with ModelServer(script) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        session = agent.run("first").session_id
        agent.run("second")
        store.close()
        again = make_store(tmp_path)
        other = make_agent(
            again, server.url, [echo(), tool("later", lambda context: "")], session=again.session(session)
        )
        assert other.run("third").text == "three"
        assert len(server.bodies) == 5
        assert_prefixes(server.bodies)


def test_the_prefix_survives_a_new_process(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from support.agents import echo, make_agent, make_store
        folder, url, session, text = Path(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
        store = make_store(folder)
        found = store.session(session) if session != "-" else None
        print(make_agent(store, url, [echo()], session=found).run(text).session_id)
        """
    )
    with ModelServer([call("echo", {"text": "a"}), say("1"), call("echo", {"text": "b"}), say("2")]) as server:

        def run(session: str, text: str) -> str:
            command = [sys.executable, "-c", program, str(SUPPORT), str(tmp_path), server.url, session, text]
            return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

        session = run("-", "hello")
        assert run(session, "again") == session
        assert len(server.bodies) == 4
        assert_prefixes(server.bodies)
        assert b"hello" in server.bodies[-1]


def test_memory_written_at_turn_three_leaves_the_prefix_of_all_eight_turns(tmp_path: Path) -> None:
    memory = MemoryStore(tmp_path / "memories")
    save = call("memory", {"action": "add", "target": "user", "content": "Likes short answers."})
    script = [say("1"), say("2"), save, *(say(str(n)) for n in range(3, 9))]
    with ModelServer(script) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, memory_tools.TOOLS, memory=lambda user: memory.snapshot())
        agent._services = {"store": store, "memory": memory}
        for n in range(1, 9):
            result = agent.run(f"turn {n}")
            assert bool(result.persisted) == (n == 3)
        assert len(server.bodies) == 9
        assert_prefixes(server.bodies)
        assert b"Likes short answers" not in server.bodies[0]
        server.enqueue(say("hello"))
        fresh = make_agent(store, server.url, memory_tools.TOOLS, memory=lambda user: memory.snapshot())
        fresh.run("new session")
        assert "Likes short answers" in server.requests[-1].messages[0]["content"]


def test_the_clock_and_the_surface_are_told_only_when_they_change(tmp_path: Path) -> None:
    day = [date.today()]
    with ModelServer([say(str(n)) for n in range(5)]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()], today=lambda: day[0])
        agent.run("a")
        agent.run("b")
        day[0] = date(2031, 1, 2)
        agent.run("c")
        agent.run("d", TurnOptions(surface="discord", without=("echo",)))
        agent.run("e")
        said = [m["content"] for m in server.requests[-1].messages if m["role"] == "user"]
        assert said[0] == "<recall>\nsurface: notebook\n</recall>\n\na"
        assert said[1] == "b"
        assert said[2] == "<recall>\ndate: 2031-01-02 (Thursday)\n</recall>\n\nc"
        assert said[3] == "<recall>\nsurface: discord\nmasked: echo\n</recall>\n\nd"
        assert said[4] == "<recall>\nsurface: notebook\nmasked: none\n</recall>\n\ne"
        assert [row.text for row in store.rows(agent.session.id) if row.role == "user"] == list("abcde")
        assert_prefixes(server.bodies)


def test_a_lost_prompt_is_built_once_more_and_then_stays(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2"), say("3")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        session = agent.run("a").session_id
        with store._database.write() as connection:
            connection.execute("UPDATE sessions SET head=NULL")
        events = list(agent.stream("b"))
        assert any("built anew" in event.text for event in events if isinstance(event, Notice))
        assert not any("built anew" in event.text for event in agent.stream("c") if isinstance(event, Notice))
        assert store.session(session).head
        assert_prefixes(server.bodies)


def test_another_model_for_one_turn_does_not_move_the_prefix(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2"), say("3")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        agent.run("a")
        agent.run("b", TurnOptions(model="other-model"))
        agent.run("c")
        assert [request.json["model"] for request in server.requests] == [
            "scripted-model",
            "other-model",
            "scripted-model",
        ]
        assert server.requests[1].messages[:3] == server.requests[2].messages[:3]
        assert_prefixes([server.bodies[0], server.bodies[2]])


def test_the_demo_model_shares_no_session_with_another(tmp_path: Path) -> None:
    with ModelServer([say("1")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        agent.run("a")
        with pytest.raises(ConfigError, match=r"%%hermes --new -m embedded"):
            agent.run("b", TurnOptions(model="embedded"))
        assert len(store.rows(agent.session.id)) == 2


def test_a_session_keeps_its_model_when_the_settings_name_another(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2")]) as server:
        store = make_store(tmp_path)
        session = make_agent(store, server.url).run("a").session_id
        later = make_agent(
            store, server.url, models=OneServer(server.url, "newer-model"), session=store.session(session)
        )
        later.run("b")
        assert [request.json["model"] for request in server.requests] == ["scripted-model"] * 2


def test_equal_first_messages_make_two_sessions(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2")]) as server:
        store = make_store(tmp_path)
        first, second = (make_agent(store, server.url).run("hi").session_id for _ in range(2))
        assert first != second


def test_the_user_row_is_sent_and_stored_once(tmp_path: Path) -> None:
    with ModelServer([say("ok")]) as server:
        store = make_store(tmp_path)
        session = store.create_session()
        for n in range(2):
            store.append(session.id, {"role": "user", "content": f"q{n}"})
            store.append(session.id, {"role": "assistant", "content": f"a{n}"})
        store.close()
        store = make_store(tmp_path)
        make_agent(store, server.url, session=store.session(session.id)).run("hi there")
        assert json.dumps(server.requests[0].json).count("hi there") == 1
        assert sum("hi there" in row.wire for row in store.rows(session.id)) == 1
        assert len(store.rows(session.id)) == 6


def test_an_agent_says_what_others_added(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2"), say("3")]) as server:
        store = make_store(tmp_path)
        one = make_agent(store, server.url)
        session = one.run("a").session_id
        make_agent(store, server.url, session=store.session(session)).run("from elsewhere")
        assert [row.text for row in one.unseen()][:1] == ["from elsewhere"]
        notices = [event.text for event in one.stream("c") if isinstance(event, Notice)]
        assert any(text.startswith("2 messages") for text in notices)
        assert one.unseen() == []


def test_run_works_in_a_thread_and_inside_a_running_loop(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2"), say("3")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        texts = [agent.run("plain").text]
        thread = threading.Thread(target=lambda: texts.append(agent.run("thread").text))
        thread.start()
        thread.join(30)

        async def inside() -> str:
            return agent.run("coroutine").text

        texts.append(asyncio.run(inside()))
        assert texts == ["1", "2", "3"]


def test_kernel_code_runs_in_the_thread_that_called_run(tmp_path: Path) -> None:
    seen: list[str] = []

    class Kernel:
        def execute(self, code, cancel):
            seen.append(threading.current_thread().name)
            return "ran"

        def variables(self, names, cancel):
            return []

    def handler(context: ToolContext) -> str:
        return context.kernel.execute("x", context.cancel)

    with ModelServer([call("go"), say("1"), call("go"), say("2")]) as server:
        agent = make_agent(make_store(tmp_path), server.url, [tool("go", handler)], kernel=Kernel())
        agent.run("a")
        for _ in agent.stream("b"):
            pass
        assert seen == [threading.current_thread().name] * 2


def test_events_come_in_order_and_end_with_the_result(tmp_path: Path) -> None:
    with ModelServer([say("Hello world", chunks=3)]) as server:
        events = list(make_agent(make_store(tmp_path), server.url).stream("hi"))
        assert isinstance(events[0], TurnStarted)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello world"
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].result.text == "Hello world"


def test_leaving_a_stream_early_interrupts_the_turn(tmp_path: Path) -> None:
    with ModelServer([say("a b c d e f", chunks=6, pause=0.2)]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        events = agent.stream("hi")
        while not isinstance(next(events), TextDelta):
            pass
        events.close()
        rows = store.rows(agent.session.id)
        assert [(row.role, row.status.value) for row in rows] == [("user", "complete"), ("assistant", "interrupted")]


def test_an_empty_message_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    with pytest.raises(ConfigError, match="empty"):
        make_agent(store, "http://127.0.0.1:9/v1").run(" \n\t")
    assert store.sessions() == []


def test_a_second_turn_of_the_same_lineage_is_refused_while_one_runs(tmp_path: Path) -> None:
    refused: list[str] = []

    def handler(context: ToolContext) -> str:
        for attempt in (lambda: agent.run("inner"), lambda: other.run("inner")):
            try:
                attempt()
            except (TurnError, SessionLeased) as exc:
                refused.append(type(exc).__name__)
        return "tried"

    with ModelServer([say("0"), call("nest"), say("done")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [tool("nest", handler)])
        session = agent.run("first").session_id
        other = make_agent(store, server.url, session=store.session(session))
        assert agent.run("go").text == "done"
        assert refused == ["TurnError", "SessionLeased"]


def test_variables_are_told_with_the_message_only_when_they_changed(tmp_path: Path) -> None:
    from hermes_nb.tools.kernel import Variable

    class Kernel:
        value = "3 rows"

        def variables(self, names, cancel):
            return [Variable(name, "DataFrame", self.value) for name in names if name == "df"]

    with ModelServer([say(str(n)) for n in range(3)]) as server:
        kernel = Kernel()
        agent = make_agent(make_store(tmp_path), server.url, kernel=kernel)
        options = TurnOptions(variables=("df",))
        agent.run("a", options)
        agent.run("b", options)
        kernel.value = "4 rows"
        agent.run("c", options)
        said = [m["content"] for m in server.requests[-1].messages if m["role"] == "user"]
        assert "df: DataFrame 3 rows" in said[0]
        assert said[1] == "b"
        assert said[2] == "<recall>\ndf: DataFrame 4 rows\n</recall>\n\nc"
        with pytest.raises(TurnError, match="no variable nope"):
            agent.run("d", TurnOptions(variables=("nope",)))


def test_a_call_for_another_tool_set_keeps_the_history_sendable(tmp_path: Path) -> None:
    with ModelServer([calls([("echo", {"text": "1"}), ("echo", {"text": "2"})]), say("ok")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()], mode=ApprovalMode.DENY, chosen=True)
        agent.run("a", TurnOptions(masked={"echo": "Not now."}))
        assert [m["content"] for m in server.requests[-1].messages if m["role"] == "tool"] == [
            "Not now. Nothing was run; go on without it."
        ] * 2


def test_a_branch_goes_on_with_its_parents_bytes(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2")]) as server:
        store = make_store(tmp_path)
        parent = make_agent(store, server.url, [echo()]).run("a").session_id
        branch = store.create_session(parent=parent, parent_kind="branch")
        for row in store.rows(parent):
            store.append(branch.id, json.loads(row.wire), dialect=row.dialect)
        later = make_agent(store, server.url, [echo(), tool("more", lambda context: "")], session=branch)
        later.run("b")
        assert_prefixes(server.bodies)


def test_a_notebook_finds_its_session_by_path(tmp_path: Path) -> None:
    from hermes_nb.agent.agent import SessionFacts

    with ModelServer([say("1")]) as server:
        store = make_store(tmp_path)
        facts = SessionFacts(notebook="/work/a.ipynb")
        session = make_agent(store, server.url, facts=facts).run("a").session_id
        found = store.notebook_session("/work/a.ipynb")
        assert found is not None
        assert found.id == session


def test_an_explicit_change_of_model_and_tools_builds_one_new_prefix(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2"), say("3"), call("more"), say("4")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url, [echo()])
        agent.run("a")
        assert agent.use(model="other-model").model == "other-model"
        agent.run("b")
        agent.registry.add(tool("more", lambda context: "more"))
        agent.use(selection=resolve(agent.registry))
        agent.run("c")
        assert agent.run("d").tool_calls[0].content == "more"
        assert [request.json["model"] for request in server.requests] == ["scripted-model"] + ["other-model"] * 4
        assert [len(request.json["tools"]) for request in server.requests] == [1, 1, 2, 2, 2]
        assert_prefixes(server.bodies[2:])
        assert server.requests[2].messages[1:4] == server.requests[1].messages[1:4]
        assert store.session(agent.session.id).model == "other-model"


def test_the_demo_model_cannot_become_the_model_of_another_session(tmp_path: Path) -> None:
    with ModelServer([say("1"), say("2")]) as server:
        store = make_store(tmp_path)
        agent = make_agent(store, server.url)
        agent.run("a")
        with pytest.raises(ConfigError, match="demo model"):
            agent.use(model="embedded")
        agent.run("b")
        assert_prefixes(server.bodies)


def test_a_dead_server_with_a_session_of_its_own_fails_with_its_address(tmp_path: Path) -> None:
    class Nothing(OneServer):
        def primary(self):
            raise NoEndpoint("nothing here")

    with ModelServer([say("1")]) as server:
        store = make_store(tmp_path)
        session = make_agent(store, server.url).run("a").session_id
        models = Nothing(server.url)
        models.open = lambda endpoint: OpenAIProvider(endpoint, environ={})
        later = make_agent(store, server.url, models=models, session=store.session(session))
        server.enqueue(say("2"))
        assert later.run("b").text == "2"
        with pytest.raises(NoEndpoint):
            make_agent(store, server.url, models=models).run("new")
