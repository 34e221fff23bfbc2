"""The composition root and the public names, with a real home, store and endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.model_server import ModelServer, call, say

import hermes_nb
from hermes_nb import app
from hermes_nb.agent.ambient import Ambient, set_ambient
from hermes_nb.agent.events import Notice
from hermes_nb.core.errors import ConfigError, NoEndpoint, SessionNotFound
from hermes_nb.core.paths import Home


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer([]) as made:
        monkeypatch.setenv("HERMES_NB_BASE_URL", made.url)
        yield made


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    for runtime in list(app._runtimes.values()):
        runtime.close()
    app._user_tools.clear()


def test_the_public_names_work_together(server: ModelServer, own_home: Path) -> None:
    server.enqueue(say("hello there"), say("still here"))
    agent = hermes_nb.Agent.open()
    result = agent.run("hi")
    assert str(result) == "hello there"
    assert result.model == "scripted-model"
    again = hermes_nb.Agent.open(session=result.session_id[:20])
    assert str(again.run("and now?")) == "still here"
    store = hermes_nb.open_store()
    assert [m["role"] for m in store.messages(result.session_id)] == ["user", "assistant"] * 2
    assert (own_home / "state.db").exists()
    store.close()


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, hermes_nb; print(dir(hermes_nb)); "
        "print([m for m in ('openai','sqlite3','IPython','hermes_nb.app','hermes_nb.store') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[1] == "[]"
    assert "open_store" in output


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = hermes_nb.nonsense


def test_the_app_does_not_import_the_client_before_a_model_is_used() -> None:
    program = "import sys, hermes_nb.app; print('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "False"


def test_six_tools_are_sent_and_disabled_ones_are_not(server: ModelServer) -> None:
    server.enqueue(say("1"), say("2"))
    hermes_nb.Agent.open().run("a")
    names = [one["function"]["name"] for one in server.requests[0].json["tools"]]
    assert names == ["memory", "python", "read_file", "session_search", "variables", "write_file"]
    hermes_nb.Agent.open(toolsets=["memory", "file"], disabled=["write_file"]).run("b")
    assert [one["function"]["name"] for one in server.requests[1].json["tools"]] == ["memory", "read_file"]


def test_unknown_toolsets_are_said_with_near_names(server: ModelServer) -> None:
    server.enqueue(say("1"))
    notices = [e.text for e in hermes_nb.Agent.open(disabled=["memry"]).stream("a") if isinstance(e, Notice)]
    assert any("memry" in text and "memory" in text for text in notices)


def test_a_plain_function_becomes_a_tool(server: ModelServer) -> None:
    @hermes_nb.tool(risk="read")
    def double(x: int) -> int:
        """Double a number."""
        return 2 * x

    assert double(4) == 8
    server.enqueue(call("double", {"x": 21}), say("42"))
    result = hermes_nb.Agent.open().run("double 21")
    assert result.tool_calls[0].content == "42"


def test_the_live_kernel_and_the_approver_come_from_the_process(server: ModelServer) -> None:
    from hermes_nb.tools.kernel import CodeResult

    class Kernel:
        def execute(self, code: str, cancel: Any) -> CodeResult:
            return CodeResult(ok=True, stdout=f"ran {code}")

        def variables(self, names: Any, cancel: Any) -> list[Any]:
            return []

    server.enqueue(call("python", {"code": "len([1])"}), say("ok"))
    before = set_ambient(Ambient(surface="notebook", kernel=Kernel()))
    try:
        result = hermes_nb.Agent.open().run("go")
    finally:
        set_ambient(before)
    assert "ran len([1])" in result.tool_calls[0].content
    assert "surface: notebook" in server.requests[0].messages[1]["content"]


def test_without_a_kernel_python_is_refused_plainly(server: ModelServer) -> None:
    server.enqueue(call("python", {"code": "1"}), say("ok"))
    result = hermes_nb.Agent.open().run("go")
    assert "no live kernel" in result.tool_calls[0].content


def test_code_that_is_not_clean_is_denied_where_nobody_can_answer(server: ModelServer) -> None:
    server.enqueue(call("python", {"code": "import os; os.remove('x')"}), say("ok"))
    result = hermes_nb.Agent.open().run("go")
    assert result.tool_calls[0].is_error
    assert "approvals.allow" in result.tool_calls[0].content


def test_no_endpoint_gives_the_help_card_and_stores_nothing() -> None:
    agent = hermes_nb.Agent.open()
    with pytest.raises(NoEndpoint, match="Three ways"):
        agent.run("hi")
    assert agent.store.sessions() == []


def test_memory_survives_into_the_prompt_of_the_next_session(server: ModelServer) -> None:
    fact = {"action": "add", "target": "user", "content": "Prefers metric units."}
    server.enqueue(call("memory", fact), say("noted"), say("hello"))
    result = hermes_nb.Agent.open().run("remember")
    assert result.persisted
    hermes_nb.Agent.open().run("new")
    assert "Prefers metric units." not in server.requests[1].messages[0]["content"]
    assert "Prefers metric units." in server.requests[2].messages[0]["content"]
    assert "Prefers metric units." in app.runtime().memory_text()


def test_soul_md_is_the_identity_of_new_sessions_only(server: ModelServer, own_home: Path) -> None:
    server.enqueue(say("1"), say("2"), say("3"))
    agent = hermes_nb.Agent.open()
    agent.run("a")
    (own_home / "SOUL.md").write_text("You are a pirate.")
    hermes_nb.Agent.open(session=agent.session).run("b")
    hermes_nb.Agent.open().run("c")
    firsts = [request.messages[0]["content"] for request in server.requests]
    assert firsts[0] == firsts[1]
    assert firsts[2].startswith("You are a pirate.")


def test_a_setting_changed_in_between_masks_but_never_moves_the_prefix(server: ModelServer) -> None:
    server.enqueue(say("1"), call("memory", {"action": "add", "content": "x"}), say("2"))
    agent = hermes_nb.Agent.open()
    agent.run("a")
    assert "toolsets.disabled" in app.runtime().config_text(["set", "toolsets.disabled", '["memory"]'])
    result = hermes_nb.Agent.open(session=agent.session).run("b")
    assert "disabled" in result.tool_calls[0].content
    assert server.bodies[1].startswith(server.bodies[0][:-2])


def test_a_session_that_is_not_there_is_named(server: ModelServer) -> None:
    with pytest.raises(SessionNotFound, match="nowhere"):
        hermes_nb.Agent.open(session="nowhere")


def test_a_store_of_its_own_can_be_used(server: ModelServer, tmp_path: Path) -> None:
    server.enqueue(say("1"))
    agent = hermes_nb.Agent.open(store=tmp_path / "own.db")
    agent.run("a")
    assert (tmp_path / "own.db").exists()
    assert app.runtime().store.sessions() == []
    agent.store.close()


def test_a_broken_plug_in_is_one_warning_in_the_first_turn(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "broken_f-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-f\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hermes_nb.tools]\nprobe = no_such_module_f:x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    server.enqueue(say("1"), say("2"))
    first = [e.text for e in hermes_nb.Agent.open().stream("a") if isinstance(e, Notice)]
    assert any("'broken-f'" in text for text in first)
    assert not any("broken-f" in e.text for e in hermes_nb.Agent.open().stream("b") if isinstance(e, Notice))


def test_config_text_shows_and_sets(own_home: Path) -> None:
    runtime = app.runtime()
    assert "approvals.mode = ask" in runtime.config_text([])
    assert runtime.config_text(["approvals.mode"]) == "ask"
    assert "safe" in runtime.config_text(["set", "approvals.mode", "safe"])
    assert runtime.config_text(["get", "approvals.mode"]) == "safe"
    assert runtime.config_text(["path"]) == str(own_home / "config.toml")
    with pytest.raises(ConfigError, match=r"approvals\.mode"):
        runtime.config_text(["approvals.mod"])


def test_the_lines_for_people_never_fail(own_home: Path) -> None:
    runtime = app.runtime()
    assert "No model" in runtime.endpoint_line()
    assert "Python" in app.doctor_text()
    assert runtime.memory_text()


def test_the_endpoint_follows_the_environment(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = app.runtime()
    first = runtime.endpoints()
    assert runtime.endpoints() is first
    monkeypatch.setenv("HERMES_NB_MODEL", "another")
    assert runtime.endpoints().primary().model == "another"


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="HERMES_NB_HOME"):
        app.runtime(Home(tmp_path / "file" / "home"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_gets_a_clear_error_and_harms_nothing(server: ModelServer) -> None:
    program = textwrap.dedent(
        """
        import os, sys
        import hermes_nb
        agent = hermes_nb.Agent.open()
        agent.run("a")
        pid = os.fork()
        if pid == 0:
            try:
                agent.run("in the child")
            except Exception as exc:
                os.write(1, (type(exc).__name__ + "\\n").encode())
                os._exit(0)
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        print(agent.run("b").text)
        """
    )
    server.enqueue(say("1"), say("2"))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["StoreForked", "2"], done.stderr
    assert json.dumps(server.requests[1].json).count("in the child") == 0
