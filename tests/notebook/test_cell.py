"""``%%hermes`` in real kernels against the scripted model server: answers, tools, questions, interrupts."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from support.kernels import Cell, Kernel, hermes_kernel
from support.model_server import ModelServer, call, calls, say, silence, stall

import hermes_nb
from hermes_nb.core.names import MIME_TURN

pytestmark = [pytest.mark.kernel, pytest.mark.slow]


@pytest.fixture(scope="module")
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def shared(server: ModelServer, home: Path):
    with hermes_kernel(home, server.url) as kernel:
        yield kernel


@pytest.fixture
def kernel(shared: Kernel, server: ModelServer):
    """The module's kernel with a session of its own and nothing scripted."""
    server.clear()
    assert shared.run("%hermes new", 20).status == "ok"
    return shared


def ask(kernel: Kernel, line: str = "", text: str = "hi", **how) -> Cell:
    cell = kernel.send(f"%%hermes {line}\n{text}", **how)
    cell.background = "--bg" in line
    return cell


def rows(home: Path) -> list[tuple[str, str, str]]:
    """Role, status and text of the newest session, as they are on disk."""
    store = hermes_nb.open_store(home / "state.db")
    try:
        session = store.sessions(limit=1)[0]
        return [(row.role, row.status.value, row.text) for row in store.rows(session.id)]
    finally:
        store.close()


def approve(cell: Cell, word: str = "Approve", seconds: float = 20) -> None:
    cell.until(lambda c: word in c.buttons(), seconds)
    cell.kernel.click(cell.buttons()[word])


# -- answers --------------------------------------------------------------------------------------------


def test_an_answer_streams_into_the_cell_and_the_cell_has_no_value(kernel: Kernel, server: ModelServer):
    server.enqueue(say("Hello **you**.", chunks=5))
    cell = ask(kernel).wait(20)
    assert cell.status == "ok"
    assert "Hello **you**." in cell.markdown
    assert not [o for o in cell.outputs if o["output_type"] == "execute_result"]
    assert kernel.value("_.text") == "'Hello **you**.'"


def test_the_result_is_bound_to_the_named_variable(kernel: Kernel, server: ModelServer):
    server.enqueue(say("Use this:\n```python\nx = 1\n```\n"))
    ask(kernel, "-o answer").wait(20)
    assert kernel.value("answer.code.strip()") == "'x = 1'"
    assert kernel.value("str(answer) == answer.text and answer.status") == "<TurnStatus.COMPLETE: 'complete'>"


def test_a_second_cell_remembers_the_first_and_new_starts_anew(kernel: Kernel, server: ModelServer):
    """case 173"""
    server.enqueue(say("ok"), say("7"), say("what?"))
    ask(kernel, text="remember 7").wait(20)
    ask(kernel, text="what number?").wait(20)
    assert [m["content"].strip() for m in json.loads(server.bodies[1])["messages"][-3::2]][-1] == "what number?"
    assert "remember 7" in server.bodies[1].decode()
    ask(kernel, "--new", text="what number?").wait(20)
    assert "remember 7" not in server.bodies[2].decode()


def test_running_a_cell_again_is_a_new_turn(kernel: Kernel, server: ModelServer):
    """case 173"""
    server.enqueue(say("one"), say("two"))
    ask(kernel, text="same").wait(20)
    ask(kernel, text="same").wait(20)
    asked = [m["content"] for m in json.loads(server.bodies[1])["messages"] if m["role"] == "user"]
    assert [text.count("same") for text in asked] == [1, 1]


def test_the_body_reaches_the_model_byte_for_byte(kernel: Kernel, server: ModelServer):
    """case 170"""
    text = "{v:k for k,v in d.items()} explain {} and {0} and f\"{x!r:>5}\" $HOME !ls %time\n'''x''' \\n 中文 🐈‍⬛\n\n"
    server.enqueue(say("ok"))
    kernel.run("%%hermes\n" + text, 20)
    assert json.loads(server.bodies[0])["messages"][-1]["content"].endswith(text)


def test_every_body_is_a_byte_prefix_of_the_next(kernel: Kernel, server: ModelServer):
    server.enqueue(calls([("variables", {}), ("variables", {})]), say("a"), say("中文"))
    server.enqueue(call("variables", {}), say("b"))
    for text in ("one", "two", "three"):
        ask(kernel, text=text).wait(20)
    assert len(server.bodies) == 5
    for earlier, later in zip(server.bodies, server.bodies[1:], strict=False):
        assert later.startswith(earlier.removesuffix(b"]}"))


# -- tools on the live namespace ------------------------------------------------------------------------


def test_a_tool_works_on_the_existing_dataframe(kernel: Kernel, server: ModelServer):
    kernel.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})")
    server.enqueue(call("python", {"code": "df['b'] = df.a * 2\nprint(df.b.sum())"}), say("The sum is 12."))
    cell = ask(kernel)
    approve(cell)
    cell.wait(20)
    assert "12\n" in cell.stdout
    assert "The sum is 12." in cell.markdown
    assert json.loads(server.bodies[1])["messages"][-1]["content"].strip() == "12"
    assert kernel.value("list(df.columns)") == "['a', 'b']"


def test_code_that_only_looks_runs_without_a_question(kernel: Kernel, server: ModelServer):
    kernel.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 3]})")
    server.enqueue(call("python", {"code": "df.describe()"}), say("done"))
    cell = ask(kernel, allow_stdin=False).wait(20)
    assert cell.status == "ok"
    assert "mean" in json.loads(server.bodies[1])["messages"][-1]["content"]


def test_variables_are_summarised_and_secrets_masked(kernel: Kernel, server: ModelServer):
    kernel.run("API_KEY = 'sk-secret-123'\nrows = [1, 2, 3]\nconfig = {'password': 'hunter2', 'host': 'h'}")
    server.enqueue(call("variables", {}), say("done"))
    ask(kernel).wait(20)
    body = server.bodies[1].decode()
    assert "rows" in body
    assert "sk-secret-123" not in body
    assert "hunter2" not in body


def test_a_variable_named_on_the_line_is_told_once(kernel: Kernel, server: ModelServer):
    kernel.run("table = [1, 2, 3]")
    server.enqueue(say("a"), say("b"))
    ask(kernel, "-v table").wait(20)
    ask(kernel, "-v table").wait(20)
    assert server.bodies[1].decode().count("table: list") == 1


def test_a_tool_error_is_no_error_output(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "1/0"}), say("It divides by zero."))
    cell = ask(kernel, "--approve off").wait(20)
    assert cell.status == "ok"
    assert cell.error == ""
    assert "ZeroDivisionError" in cell.stderr
    assert "ZeroDivisionError" in server.bodies[1].decode()
    assert "# hermes-nb" not in cell.stderr + server.bodies[1].decode()


def test_a_turn_inside_a_tool_is_refused_and_the_outer_turn_goes_on(kernel: Kernel, server: ModelServer):
    code = "get_ipython().run_cell('%%hermes\\nnested')"
    server.enqueue(call("python", {"code": code}), call("python", {"code": NESTED_RUN}), say("outer done"))
    cell = ask(kernel, "--approve off").wait(20)
    assert cell.status == "ok"
    assert "outer done" in cell.markdown
    bodies = [body.decode() for body in server.bodies]
    assert "inside a tool call" in bodies[1]
    assert "inside a tool call" in bodies[2].split("NESTED", 1)[1]


NESTED_RUN = "print('NESTED'); import hermes_nb; hermes_nb.Agent.open().run('nested')"


def test_masked_tools_are_refused_but_still_sent(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "1"}), say("ok"))
    ask(kernel, "--without python").wait(20)
    first, second = (json.loads(body) for body in server.bodies)
    assert first["tools"] == second["tools"]
    assert "python" in {tool["function"]["name"] for tool in first["tools"]}
    assert "switched off" in second["messages"][-1]["content"]


# -- questions ------------------------------------------------------------------------------------------


def test_deny_means_nothing_ran(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "ran = True"}), call("python", {"code": "open('x','w')"}), say("ok"))
    cell = ask(kernel)
    approve(cell, "Deny")
    cell.wait(20)
    assert "denied (notebook)" in cell.plain
    assert not [s for s in kernel.widgets.values() if s.get("_model_name") == "ButtonModel"]
    assert "application/vnd.jupyter.widget-view+json" not in json.dumps(cell.outputs)


def test_the_row_may_be_answered_by_another_process(kernel: Kernel, server: ModelServer, home: Path):
    server.enqueue(call("python", {"code": "import os; x = 42"}), say("ok"))
    cell = ask(kernel)
    cell.until(lambda c: "Approve" in c.buttons(), 20)
    store = hermes_nb.open_store(home / "state.db")
    (request,) = store.approvals.pending()
    assert store.approvals.answer(request.id, "approved", "another surface", request.args_hash)
    assert not store.approvals.answer(request.id, "denied", "too late", request.args_hash)
    store.close()
    cell.wait(20)
    assert kernel.value("x") == "42"
    assert "approved (another surface)" in cell.plain


def test_headless_is_denied_at_once_and_says_how_to_allow(kernel: Kernel, server: ModelServer):
    """case 183"""
    server.enqueue(call("python", {"code": "import os"}), say("I could not."))
    cell = ask(kernel, allow_stdin=False).wait(20)
    assert cell.status == "ok"
    assert not cell.prompts
    assert "approvals.allow" in json.loads(server.bodies[1])["messages"][-1]["content"]
    assert all(o.get("updates", 0) == 0 for o in cell.outputs)


def test_a_console_asks_with_input(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "import os; y = 5"}), say("ok"))
    cell = ask(kernel, cell_id=None)
    cell.until(lambda c: bool(c.prompts), 20)
    assert "import os" in cell.stdout
    kernel.answer_input("y")
    cell.wait(20)
    assert kernel.value("y") == "5"


def test_the_mode_off_is_said_to_the_model(kernel: Kernel, server: ModelServer):
    server.enqueue(say("ok"))
    ask(kernel, "--approve off").wait(20)
    assert "approvals: off" in server.bodies[0].decode()


# -- cells that block their loop ------------------------------------------------------------------------


@pytest.mark.parametrize("magic", ["%%time", "%%capture seen"])
def test_it_works_inside_other_magics(kernel: Kernel, server: ModelServer, magic: str):
    server.enqueue(call("python", {"code": "nested = 'yes'"}), say("inner answer"))
    cell = kernel.run(f"{magic}\n%%hermes --approve off\nhi", 20)
    assert cell.status == "ok", cell.outputs
    assert kernel.value("nested") == "'yes'"
    assert kernel.value("_.text if hasattr(_, 'text') else 0") in ("'inner answer'", "0")


def test_a_blocking_cell_asks_with_input(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "import os; z = 6"}), say("ok"))
    cell = kernel.send("get_ipython().run_cell_magic('hermes', '', 'hi')")
    cell.until(lambda c: bool(c.prompts), 20)
    kernel.answer_input("y")
    cell.wait(20)
    assert kernel.value("z") == "6"


@pytest.mark.parametrize(
    "code",
    [
        "result = hermes_nb.Agent.open().run('hi')",
        "async def main():\n    return hermes_nb.Agent.open().run('hi')\nresult = await main()",
        "import asyncio, threading\nbox = []\ndef work():\n    box.append(hermes_nb.Agent.open().run('hi'))\n"
        "t = threading.Thread(target=work)\nt.start()\nwhile t.is_alive():\n    await asyncio.sleep(0.02)\n"
        "result = box[0]",
    ],
)
def test_the_python_api_works_in_a_plain_cell_in_async_code_and_in_a_thread(kernel: Kernel, server, code: str):
    """case 175"""
    kernel.run("import hermes_nb\nlive = 20")
    server.enqueue(call("python", {"code": "live + 1"}), say("21"))
    cell = kernel.run(code, 30)
    assert cell.status == "ok", cell.outputs
    assert kernel.value("result.text") == "'21'"
    assert json.loads(server.bodies[1])["messages"][-1]["content"] == "21"


# -- interrupts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["silent", "streaming", "approval", "code", "await"])
def test_an_interrupt_ends_the_turn_and_the_next_cell_works(kernel: Kernel, server, home: Path, phase: str):
    """case 179: an interrupt works in every front end, and the help of the cell names it as the way to stop."""
    line = ""
    if phase == "silent":
        server.enqueue(silence())
    elif phase == "streaming":
        server.enqueue(stall("begun " * 3, chunks=3))
    elif phase == "approval":
        server.enqueue(call("python", {"code": "import os"}))
    else:
        wait = "import time; time.sleep(60)" if phase == "code" else "import asyncio; await asyncio.sleep(60)"
        server.enqueue(call("python", {"code": f"print('go', flush=True)\n{wait}"}))
        line = "--approve off"
    cell = ask(kernel, line)
    if phase == "silent":
        cell.until(lambda _: len(server.bodies) == 1, 20)
    elif phase == "streaming":
        cell.until_text("begun", 20)
    elif phase == "approval":
        cell.until(lambda c: "Approve" in c.buttons(), 20)
    else:
        cell.until_text("go", 20)
    kernel.interrupt()
    cell.wait(10)
    assert cell.error.startswith("KeyboardInterrupt")
    assert "_on_signal" not in cell.stderr
    assert not [s for s in kernel.widgets.values() if s.get("_model_name") == "ButtonModel"]
    before = rows(home)
    server.clear()
    server.enqueue(say("I am back."))
    kernel.drain(0.3)
    assert rows(home) == before
    assert before[-1][0] in ("assistant", "tool")
    if phase == "streaming":
        assert before[-1][:2] == ("assistant", "interrupted")
        assert before[-1][2].startswith("begun")
    after = ask(kernel, text="still there?").wait(20)
    assert "I am back." in after.markdown
    assert json.loads(server.bodies[-1])["messages"][-1]["content"].strip().endswith("still there?")


def test_an_interrupt_of_a_blocking_cell_works_too(kernel: Kernel, server: ModelServer):
    server.enqueue(silence(), say("back"))
    cell = kernel.send("%%time\n%%hermes\nhi")
    cell.until(lambda _: len(server.bodies) == 1, 20)
    kernel.interrupt()
    cell.wait(10)
    assert "KeyboardInterrupt" in cell.error + cell.stderr + cell.stdout
    assert "back" in ask(kernel).wait(20).markdown


@pytest.mark.parametrize("how", ["plain", "async"])
def test_an_interrupt_ends_the_python_api(kernel: Kernel, server: ModelServer, how: str):
    kernel.run("import hermes_nb")
    server.enqueue(silence(), say("back"))
    code = "hermes_nb.Agent.open().run('hi')"
    cell = kernel.send(code if how == "plain" else f"async def main():\n    {code}\nawait main()")
    cell.until(lambda _: len(server.bodies) == 1, 20)
    kernel.interrupt()
    cell.wait(10)
    assert "Interrupt" in cell.error or "Cancelled" in cell.error
    assert "back" in ask(kernel).wait(20).markdown


# -- background -----------------------------------------------------------------------------------------


def test_a_background_turn_stays_in_its_own_cell(kernel: Kernel, server: ModelServer):
    """case 177"""
    server.enqueue(say("slow answer", chunks=6, pause=0.1))
    cell = ask(kernel, "--bg -o later").wait(20)
    other = kernel.run("import time\nprint('other')\ntime.sleep(0.5)", 20)
    cell.until(lambda c: "slow answer" in c.markdown and "session" in c.plain, 20)
    assert [o.get("text") for o in other.outputs] == ["other\n"]
    kernel.until(lambda: kernel.value("'later' in globals()") == "True", None, 20)
    assert kernel.value("later.text") == "'slow answer'"


def test_a_background_turn_asks_with_buttons_and_runs_code_between_cells(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "import os; from_background = 1\nprint('bg out')"}), say("bg done"))
    cell = ask(kernel, "--bg").wait(20)
    approve(cell)
    cell.until(lambda c: "bg done" in c.markdown, 20)
    assert "bg out" in cell.stdout
    assert kernel.value("from_background") == "1"


def test_a_background_question_stands_in_the_place_of_its_call(kernel: Kernel, server: ModelServer):
    server.enqueue(call("python", {"code": "import os; y = 1"}, text="Before. "), say("After."))
    cell = ask(kernel, "--bg --new").wait(20)
    cell.until(lambda c: "Approve" in c.buttons(), 20)
    cell.until(lambda c: "application/vnd.jupyter.widget-view+json" in c.outputs[-1].get("data", {}), 20)
    assert cell.outputs[-2]["data"]["text/markdown"] == "Before. "
    kernel.click(cell.buttons()["Approve"])
    cell.until(lambda c: "After." in c.markdown and "session" in c.plain, 20)
    assert "application/vnd.jupyter.widget-view+json" not in json.dumps(cell.outputs)
    assert "approved (notebook)" in cell.plain


def test_background_turns_are_listed_and_stopped(kernel: Kernel, server: ModelServer):
    server.enqueue(silence(), say("next"))
    cell = ask(kernel, "--bg", text="long question").wait(20)
    cell.until_text("asking", 20)
    kernel.until(lambda: len(server.bodies) == 1, None, 20)
    assert "long question" in kernel.run("%hermes ps", 20).markdown
    assert "Stopped" in kernel.run("%hermes stop", 20).markdown
    kernel.until(lambda: "No turn" in kernel.run("%hermes ps", 20).markdown, None, 20)
    assert "next" in ask(kernel).wait(20).markdown


def test_background_is_refused_headless(kernel: Kernel):
    cell = ask(kernel, "--bg", allow_stdin=False).wait(20)
    assert cell.status == "error"
    assert "without --bg" in cell.error


# -- what a saved notebook holds ------------------------------------------------------------------------


def test_the_bundle_names_session_and_turn_and_holds_no_secret(kernel: Kernel, server: ModelServer):
    server.enqueue(say("hi"))
    cell = ask(kernel).wait(20)
    bundles = cell.of_type(MIME_TURN)
    assert {b["kind"] for b in bundles} >= {"text", "turn"}
    assert len({b["session"] for b in bundles if "session" in b}) == 1
    assert "test-key" not in json.dumps(cell.outputs)


def test_first_text_is_shown_while_the_model_still_writes(kernel: Kernel, server: ModelServer):
    """case 174"""
    server.enqueue(stall("begun " * 3, chunks=3), say("x"))
    cell = ask(kernel)
    cell.until_text("begun", 20)
    assert cell.reply is None
    kernel.interrupt()
    cell.wait(10)


def test_a_key_never_reaches_the_store(kernel: Kernel, server: ModelServer, home: Path):
    server.enqueue(say("hi"))
    ask(kernel).wait(20)
    for path in home.rglob("*"):
        if path.is_file():
            assert b"test-key" not in path.read_bytes(), path
    with sqlite3.connect(home / "state.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


# -- explicit changes -----------------------------------------------------------------------------------


def test_tools_of_the_session_are_listed_and_changed_with_a_word_about_the_prefix(kernel: Kernel, server: ModelServer):
    server.enqueue(say("one"), say("two"))
    ask(kernel).wait(20)
    assert "`python`" in kernel.run("%hermes tools", 20).markdown
    assert "built anew" in kernel.run("%hermes tools without python", 20).markdown
    ask(kernel).wait(20)
    first, second = ({t["function"]["name"] for t in json.loads(body)["tools"]} for body in server.bodies)
    assert first - second == {"python", "variables"}  # the toolset of that name
    assert "no toolset or tool" in kernel.run("%hermes tools without pythn", 20).stderr


def test_the_model_of_the_session_is_changed_on_request(kernel: Kernel, server: ModelServer):
    server.enqueue(say("one"), say("two"))
    ask(kernel).wait(20)
    assert "built anew" in kernel.run("%hermes model other-model", 20).markdown
    ask(kernel).wait(20)
    assert [json.loads(body)["model"] for body in server.bodies] == ["scripted", "other-model"]


def test_another_model_for_one_turn_leaves_the_session_as_it_was(kernel: Kernel, server: ModelServer):
    server.enqueue(say("one"), say("two"), say("three"))
    ask(kernel).wait(20)
    ask(kernel, "-m other-model").wait(20)
    ask(kernel).wait(20)
    assert [json.loads(body)["model"] for body in server.bodies] == ["scripted", "other-model", "scripted"]
    assert server.bodies[2].startswith(server.bodies[0].removesuffix(b"]}"))


def test_a_branch_goes_on_by_itself(kernel: Kernel, server: ModelServer):
    server.enqueue(say("one"), say("two"), say("three"))
    ask(kernel, text="remember 7").wait(20)
    original = kernel.run("%hermes", 20).markdown.split("`")[1]
    assert "branch" in kernel.run("%hermes branch side", 20).markdown
    ask(kernel, text="in the branch").wait(20)
    kernel.run(f"%hermes resume {original}", 20)
    ask(kernel, text="in the original").wait(20)
    assert "remember 7" in server.bodies[1].decode()
    assert "in the branch" not in server.bodies[2].decode()


def test_a_changed_approval_setting_holds_from_the_next_turn_on(kernel: Kernel, server: ModelServer):
    server.enqueue(say("one"), call("python", {"code": "import os; told = 1"}), say("two"))
    ask(kernel).wait(20)
    try:
        kernel.run("%hermes config approvals.allow '[\"python\"]'", 20)
        ask(kernel).wait(20)
    finally:
        kernel.run("%hermes config approvals.allow '[]'", 20)
    assert kernel.value("told") == "1"
