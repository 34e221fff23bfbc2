"""Two kernels on one store, questions answered by every way there is, and forks beside running turns."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path

import pytest
from support.kernels import Cell, Kernel, hermes_kernel
from support.model_server import ModelServer
from support.notebooks import environment, tool, turn

import hermes_nb
from hermes_nb.core.names import MIME_TURN

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

IMPORT = {"call": "python", "args": {"code": "import os\nanswered = 42"}}
SILENCE = {"ping": 0.1}


@pytest.fixture(scope="module")
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def shared(server: ModelServer, home: Path):
    with hermes_kernel(home, server.url) as one, hermes_kernel(home, server.url) as two:
        yield one, two


@pytest.fixture
def kernels(shared, server: ModelServer):
    for kernel in shared:
        assert kernel.run("%hermes new", 20).status == "ok"
    yield shared
    for kernel in shared:
        if any(not cell.idle for cell in kernel.cells.values()):
            kernel.interrupt()  # a test that failed must not fail those after it


@pytest.fixture
def kernel(kernels) -> Kernel:
    return kernels[0]


def ask(kernel: Kernel, *steps, line: str = "", text: str = "Please.") -> Cell:
    cell = kernel.send(turn(*steps, line=line, text=text))
    cell.background = "--bg" in line
    return cell


def session_of(cell: Cell) -> str:
    return cell.of_type(MIME_TURN)[-1]["session"]


def asked(cell: Cell) -> Cell:
    return cell.until(lambda c: "Approve" in c.buttons(), 20)


# -- answering ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["main", "subshell"])
def test_a_click_arrives_from_the_main_shell_and_from_a_subshell(kernel: Kernel, way: str):
    """VS Code and older front ends send clicks to the main shell, JupyterLab to a subshell."""
    subshell = None
    if way == "subshell":
        client = kernel.client
        client.control_channel.send(client.session.msg("create_subshell_request"))
        subshell = client.get_control_msg(timeout=20)["content"]["subshell_id"]
    kernel.run("answered = None")
    cell = asked(ask(kernel, IMPORT, {"say": "Done it."}))
    kernel.click(cell.buttons()["Approve"], subshell=subshell)
    cell.wait(20)
    assert "Done it." in cell.markdown
    assert kernel.value("answered") == "42"


@pytest.mark.parametrize(("verb", "value"), [("approve", "42"), ("deny", "None")])
def test_the_command_line_answers_a_question_of_a_notebook(kernel: Kernel, home: Path, verb: str, value: str):
    kernel.run("answered = None")
    cell = asked(ask(kernel, IMPORT, {"say": "Done it."}))
    env = environment(home, None)
    (waiting,) = json.loads(tool("hermes_nb", "approvals", "list", "--json", env=env, cwd=home).stdout)
    done = tool("hermes_nb", "approvals", verb, waiting["id"], env=env, cwd=home)
    assert done.returncode == 0, done.stderr
    cell.wait(20)
    assert "command line" in cell.markdown + cell.plain
    assert kernel.value("answered") == value
    again = tool("hermes_nb", "approvals", verb, waiting["id"], env=env, cwd=home)
    assert again.returncode != 0


def test_a_question_of_one_kernel_is_answered_in_another(kernels):
    one, two = kernels
    one.run("answered = None")
    cell = asked(ask(one, IMPORT, {"say": "Done it."}))
    shown = two.run("%hermes approvals", 20).plain
    assert "import os" in shown and "answered = 42" in shown
    id = shown.split()[0]
    assert "approved" in two.run(f"%hermes approvals approve {id}", 20).plain
    cell.wait(20)
    assert one.value("answered") == "42"


# -- one store ------------------------------------------------------------------------------------------


def test_one_kernel_works_while_the_other_waits(kernels, home: Path):
    one, two = kernels
    waiting = asked(ask(one, IMPORT, {"say": "Done it."}))
    for n in range(3):
        assert f"answer {n}" in ask(two, {"say": f"answer {n}"}).wait(20).markdown
    one.click(waiting.buttons()["Approve"])
    assert "Done it." in waiting.wait(20).markdown


def test_both_kernels_write_at_the_same_time_and_nothing_is_lost(kernels, home: Path):
    steps = [*[{"call": "variables"}] * 5, {"say": "all five"}]
    cells = [ask(kernel, *steps, text=f"kernel {n}") for n, kernel in enumerate(kernels)]
    for cell in cells:
        assert "all five" in cell.wait(30).markdown
    with hermes_nb.open_store(home / "state.db") as store:
        for n, cell in enumerate(cells):
            rows = store.rows(session_of(cell))
            assert [row.role for row in rows] == ["user", *["assistant", "tool"] * 5, "assistant"]
            assert f"kernel {n}" in rows[0].text
    with sqlite3.connect(home / "state.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_the_same_session_in_two_kernels_runs_one_turn_at_a_time(kernels, server: ModelServer):
    one, two = kernels
    first = ask(one, {"say": "begun"}).wait(20)
    busy = ask(one, SILENCE)
    server.wait(lambda s: s.stalled > 0)
    busy.until_text("asking", 20)
    refused = ask(two, {"say": "too early"}, line=f"-s {session_of(first)}").wait(20)
    assert refused.status == "error"
    assert "SessionLeased" in refused.error and "is running in" in refused.error
    assert "Traceback" not in refused.error and "too early" not in refused.markdown
    one.interrupt()
    busy.wait(10)
    second = ask(two, {"say": "now it is"}, line=f"-s {session_of(first)}").wait(20)
    assert "now it is" in second.markdown
    third = ask(one, {"say": "back"}).wait(20)
    assert "added to this session elsewhere" in third.plain and "back" in third.markdown


def test_a_cell_beside_a_background_turn_of_its_session_says_how_to_go_on(kernel: Kernel, server: ModelServer):
    ask(kernel, {"say": "begun"}).wait(20)
    stalled = server.stalled
    behind = ask(kernel, SILENCE, line="--bg").wait(20)
    server.wait(lambda s: s.stalled > stalled)
    refused = ask(kernel, {"say": "no"}).wait(20)
    assert refused.status == "error"
    assert "%hermes stop" in refused.stderr and "--new" in refused.stderr
    assert "beside it" in ask(kernel, {"say": "beside it"}, line="--new").wait(20).markdown
    assert "Stopped" in kernel.run("%hermes stop", 20).plain
    behind.until_text("interrupted", 20)


# -- forks ----------------------------------------------------------------------------------------------

POOL = (
    "import multiprocessing as mp\n"
    "with mp.get_context('fork').Pool(3) as pool:\n"
    "    print(sum(pool.map(abs, range(-50, 0))))"
)


@pytest.mark.parametrize("when", ["during", "between"])
def test_a_forked_pool_harms_no_turn(kernel: Kernel, server: ModelServer, home: Path, when: str):
    if when == "during":
        calls = [{"call": "variables"}] * 10
        behind = ask(kernel, *calls, {"say": "word " * 60, "chunks": 60, "pause": 0.02}, line="--bg").wait(20)
        for _ in range(4):
            assert kernel.run(POOL, 30).stdout.strip().endswith("1275")
        behind.until(lambda c: "tokens in" in c.plain, 40)
        assert behind.markdown.count("word ") >= 60
    else:
        ask(kernel, {"call": "variables"}, {"say": "before"}).wait(20)
        assert kernel.run(POOL, 30).stdout.strip().endswith("1275")
    after = ask(kernel, {"call": "variables"}, {"say": "after the fork"}).wait(20)
    assert "after the fork" in after.markdown
    with sqlite3.connect(home / "state.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_forked_child_that_uses_the_agent_is_told_so_or_works(kernel: Kernel):
    """A child has its own store or none; the parent's session is not written by both."""
    ask(kernel, {"say": "before"}).wait(20)
    code = (
        "import multiprocessing as mp\n"
        "def child(queue):\n"
        "    import hermes_nb\n"
        "    try:\n"
        "        queue.put(hermes_nb.open_store().sessions(limit=1)[0].id)\n"
        "    except Exception as exc:\n"
        "        queue.put(f'{type(exc).__name__}: {exc}')\n"
        "fork = mp.get_context('fork')\n"
        "queue = fork.Queue()\n"
        "process = fork.Process(target=child, args=(queue,))\n"
        "process.start(); print(queue.get(timeout=20)); process.join(20); print('exit', process.exitcode)"
    )
    cell = kernel.run(code, 40)
    assert "exit 0" in cell.stdout, cell.stdout + cell.error
    assert "after" in ask(kernel, {"say": "after"}).wait(20).markdown


# -- what is shown --------------------------------------------------------------------------------------


def test_text_comes_at_once_in_one_output_and_stands_there_once(kernel: Kernel, server: ModelServer):
    """case 174: shown while the model still writes; updates go to one display; at the end the text is there once."""
    answer = "".join(f"piece{n} " for n in range(10))
    cell = ask(kernel, {"say": answer, "chunks": 10, "pause": 0.2})
    cell.until_text("piece0", 20)
    assert cell.reply is None and "piece9" not in cell.markdown
    cell.wait(20)
    texts = [output for output in cell.outputs if "piece" in output.get("data", {}).get("text/markdown", "")]
    assert len(texts) == 1 and texts[0]["updates"] > 1
    assert texts[0]["data"]["text/markdown"].strip() == answer.strip()


@pytest.mark.parametrize("wait", [True, False])
def test_clearing_the_output_clears_the_codes_own_and_nothing_of_the_turn(kernel: Kernel, server, wait: bool):
    """case 186: clear and append three times gives exactly the last text, in the cell and for the model."""
    code = (
        "from IPython.display import clear_output\n"
        f"for n in range(3):\n    clear_output(wait={wait})\n    print('frame', n)"
    )
    steps = [{"say": "First a word.", "call": "python", "args": {"code": code}}, {"say": "And the end."}]
    cell = ask(kernel, *steps, line="--approve off").wait(20)
    assert cell.stdout == "frame 2\n"
    assert cell.markdown.count("First a word.") == cell.markdown.count("And the end.") == 1
    assert "python" in "".join(cell.of_type("text/html"))
    results = [m["content"] for m in json.loads(server.bodies[-1])["messages"] if m["role"] == "tool"]
    assert results[-1].strip() == "frame 2"


def test_user_code_starts_processes_although_the_event_loop_cannot(kernel: Kernel, server: ModelServer):
    """case 184: the selector loop of Windows cannot start processes. Windows itself is not tried here; a loop that
    refuses as that one does is: tools need threads and ``subprocess`` only.
    """
    refuse = (
        "import asyncio\n"
        "def refuse(*args, **how):\n    raise NotImplementedError\n"
        "loop = type(asyncio.get_running_loop())\n"
        "asyncio.SelectorEventLoop._make_subprocess_transport = loop._make_subprocess_transport = refuse\n"
    )
    assert kernel.run(refuse).status == "ok"
    assert "NotImplementedError" in kernel.run("await asyncio.create_subprocess_exec('true')").error
    code = "import subprocess\n!echo from shell\nprint(subprocess.run(['echo', 'run'], capture_output=True).stdout)"
    cell = ask(kernel, {"call": "python", "args": {"code": code}}, {"say": "Done it."}, line="--approve off").wait(20)
    assert "from shell" in cell.stdout and "run" in cell.stdout and "Done it." in cell.markdown


def test_nothing_of_ours_starts_processes_through_an_event_loop():
    """case 184"""
    package = Path(hermes_nb.__file__).parent
    for path in package.rglob("*.py"):
        assert "create_subprocess" not in path.read_text(encoding="utf-8"), path
    if sys.platform == "win32":
        assert not isinstance(asyncio.new_event_loop(), asyncio.SelectorEventLoop)
