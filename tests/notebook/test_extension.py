"""Loading and unloading the extension in a real kernel, completion, help, and when a cell is complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kernels import Kernel, hermes_kernel
from support.model_server import ModelServer
from support.notebooks import turn

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

TRACES = """
import hermes_nb.agent.ambient as _a
from hermes_nb.notebook.transform import transform as _t
ip = get_ipython()
print(ip.input_transformers_cleanup.count(_t), sum('hermes' in m for m in ip.magics_manager.magics.values()),
      sum('hermes' in getattr(m, '__module__', '') for m in ip.Completer.custom_matchers),
      hasattr(ip, 'hermes_nb'), _a.ambient().kernel is not None)
"""


@pytest.fixture(scope="module")
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def kernel(server: ModelServer, tmp_path_factory):
    home: Path = tmp_path_factory.mktemp("home")
    with hermes_kernel(home, server.url) as kernel:
        yield kernel


def reply(kernel: Kernel, kind: str, **content) -> dict:
    client = kernel.client
    sent = client.session.msg(kind, content)
    client.shell_channel.send(sent)
    while True:
        message = client.get_shell_msg(timeout=20)
        if message["parent_header"].get("msg_id") == sent["header"]["msg_id"]:
            return message["content"]


def completions(kernel: Kernel, code: str) -> list[str]:
    return reply(kernel, "complete_request", code=code, cursor_pos=len(code))["matches"]


def test_loading_is_silent_and_a_second_time_changes_nothing(kernel: Kernel):
    once = kernel.run(TRACES).stdout
    assert once.split() == ["1", "2", "1", "True", "True"]
    assert kernel.run("import hermes_nb\nhermes_nb.load_ipython_extension(get_ipython())").outputs == []
    assert kernel.run(TRACES).stdout == once
    assert kernel.run("%reload_ext hermes_nb").outputs == []
    assert kernel.run(TRACES).stdout == once


def test_unloading_takes_everything_out_and_loading_brings_it_back(kernel: Kernel):
    assert "before" in kernel.run(turn({"say": "before"})).markdown
    assert kernel.run("%unload_ext hermes_nb").outputs == []
    assert kernel.run(TRACES).stdout.split() == ["0", "0", "0", "False", "False"]
    gone = kernel.run("%%hermes\nhi")
    assert gone.status == "error" and "hermes" in gone.stderr + gone.error
    assert kernel.value("1+1") == "2"
    assert kernel.run("%load_ext hermes_nb").outputs == []
    assert kernel.run(TRACES).stdout.split() == ["1", "2", "1", "True", "True"]
    assert "after" in kernel.run(turn({"say": "after"})).markdown


def test_unloading_during_a_background_turn_ends_it(kernel: Kernel, server: ModelServer):
    stalled = server.stalled
    cell = kernel.send(turn({"ping": 0.1}, line="--bg"))
    cell.background = True
    cell.wait(20)
    server.wait(lambda s: s.stalled > stalled)
    disconnected = server.disconnects
    kernel.run("%unload_ext hermes_nb")
    server.wait(lambda s: s.disconnects > disconnected)
    assert kernel.run("%load_ext hermes_nb").outputs == []
    assert "again" in kernel.run(turn({"say": "again"}, line="--new")).markdown


@pytest.mark.parametrize(
    ("typed", "found", "not_found"),
    [
        ("%%hermes --ap", "--approve", "--bg"),
        ("%%hermes -m x --ke", "--keep-going", "--bg"),
        ("%%hermes --", "--new", "status"),
        ("%hermes se", "sessions", "undo"),
        ("%hermes ", "undo", "--bg"),
    ],
)
def test_flags_and_subcommands_are_completed(kernel: Kernel, typed: str, found: str, not_found: str):
    matches = completions(kernel, typed)
    assert found in matches and not_found not in matches


@pytest.mark.parametrize("typed", ["%%hermes\nexplain --ap", "%hermes undo --ap", "x = '--ap"])
def test_flags_are_not_offered_elsewhere(kernel: Kernel, typed: str):
    assert "--approve" not in completions(kernel, typed)


@pytest.mark.parametrize("question", ["%%hermes?", "?%%hermes", "%hermes?", "%%hermes ?"])
def test_a_question_mark_shows_flags_and_examples(kernel: Kernel, server: ModelServer, question: str):
    asked = len(server.requests)
    cell = kernel.run(question)
    assert cell.status == "ok"
    (page,) = (cell.reply or {})["payload"]
    assert "--keep-going" in page["data"]["text/plain"] and "Examples" in page["data"]["text/plain"]
    assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("%%hermes\nabc", "incomplete"),
        ("%%hermes\nabc\n", "incomplete"),
        ("%%hermes\nit's (unbalanced\n\n", "complete"),
        ("%hermes sessions", "complete"),
        ("1 + 1", "complete"),
    ],
)
def test_typing_goes_on_until_a_blank_line(kernel: Kernel, code: str, status: str):
    assert reply(kernel, "is_complete_request", code=code)["status"] == status


def test_a_cell_is_known_by_its_first_line_only(kernel: Kernel):
    assert kernel.run("%%hermesx\nhi").status == "error"
    assert kernel.run("text = '''\n%%hermes\n'''\nprint(text)").stdout == "\n%%hermes\n\n"
