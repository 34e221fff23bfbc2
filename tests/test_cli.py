import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from support.model_server import ModelServer, call, say

from hermes_nb.commands.enable import BEGIN, BLOCK
from hermes_nb.commands.lab import borrow, copy_notebooks
from hermes_nb.core.names import ApprovalState
from hermes_nb.core.paths import Home
from hermes_nb.store.store import open_store

pytestmark = pytest.mark.slow

DEADLINE = 60


def run(*words: str, status: int | None = 0, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``hermes-nb`` as a person does, in a process of its own, with no terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "hermes_nb", *words],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=DEADLINE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
    )
    assert "Traceback" not in done.stderr, done.stderr
    if status is not None:
        assert done.returncode == status, done.stdout + done.stderr
    return done


def data(*words: str, **environment: str):
    return json.loads(run(*words, "--json", **environment).stdout)


def test_help_and_version_name_every_command():
    text = run("--help").stdout
    for name in ("ask", "lab", "demo", "enable", "config", "doctor", "sessions", "search", "approvals", "model"):
        assert f"  {name} " in text
    assert "hermes-nb" in run("--version").stdout


def test_a_mistyped_command_fails_with_usage():
    assert "No such command" in run("sesions", status=2).stderr


# --- config


def test_config_set_get_and_unset(own_home):
    assert run("config", "path").stdout.strip() == str(own_home / "config.toml")
    run("config", "set", "model.name", "qwen3")
    assert run("config", "get", "model.name").stdout == "qwen3\n"
    assert data("config", "get", "model.name") == {
        "key": "model.name",
        "value": "qwen3",
        "from": str(own_home / "config.toml"),
    }
    run("config", "set", "model.name", "--unset")
    assert data("config", "get", "model.name")["from"] == "default"


def test_config_says_when_a_variable_wins(own_home):
    done = run("config", "set", "model.name", "file", HERMES_NB_MODEL="variable")
    assert "HERMES_NB_MODEL" in done.stderr


def test_config_never_prints_a_token():
    run("config", "set", "gateway.discord.token", "very-secret")
    for words in (["config", "get"], ["config", "get", "gateway.discord.token"], ["config", "get", "--json"]):
        assert "very-secret" not in run(*words).stdout


def test_a_config_error_is_one_line_and_fails():
    done = run("config", "set", "model.nam", "x", status=1)
    assert done.stderr.count("\n") == 1
    assert "Did you mean model.name?" in done.stderr
    run("config", "set", "model.name", status=1)
    run("config", "get", "nothing", status=1)


# --- ask


def test_ask_streams_the_answer_and_stores_the_session(own_home):
    with ModelServer([say("It rains.", chunks=3), say("Still.")]) as server:
        done = run("ask", "Does it", "rain?", HERMES_NB_BASE_URL=server.url, HERMES_NB_MODEL="m")
        assert done.stdout == "It rains.\n"
        (session,) = data("sessions", "list")
        assert session["message_count"] == 2
        run("ask", "-s", session["id"], "And now?", HERMES_NB_BASE_URL=server.url, HERMES_NB_MODEL="m")
        first, second = server.bodies
    assert second.startswith(first.removesuffix(b"]}"))
    shown = run("sessions", "show", session["id"][:12]).stdout
    assert "Does it rain?" in shown
    assert "Still." in shown
    found = data("search", "rains")
    assert [hit["session_id"] for hit in found["hits"]] == [session["id"]]


def test_ask_reads_standard_input_and_prints_json():
    with ModelServer([say("Long, yes.")]) as server:
        environment = {"HERMES_NB_BASE_URL": server.url, "HERMES_NB_MODEL": "m"}
        done = run("ask", "-", "--json", stdin="A long text\nwith {braces}", **environment)
        answer = json.loads(done.stdout)
        assert (answer["text"], answer["status"]) == ("Long, yes.", "complete")
        assert b"A long text\\nwith {braces}" in server.bodies[0]


def test_ask_without_a_terminal_refuses_what_needs_a_question(tmp_path):
    target = tmp_path / "out.txt"
    steps = [call("write_file", {"path": str(target), "content": "x"}), say("I may not.")]
    with ModelServer(steps) as server:
        done = run("ask", "write", HERMES_NB_BASE_URL=server.url, HERMES_NB_MODEL="m")
    assert not target.exists()
    assert done.stdout == "I may not.\n"


def test_ask_without_a_model_shows_the_help_card_and_fails():
    done = run("ask", "hello", status=1)
    assert "Three ways" in done.stderr


def test_ask_with_an_empty_message_or_contradicting_flags_fails():
    assert "empty" in run("ask", " ", status=1, HERMES_NB_BASE_URL="http://127.0.0.1:9/v1", HERMES_NB_MODEL="m").stderr
    assert "only one" in run("ask", "-s", "a", "--new", "b", "hello", status=1).stderr
    assert "--approve" in run("ask", "--approve", "maybe", "hello", status=2).stderr


@pytest.mark.parametrize("key", ["y", "n"])
def test_on_a_terminal_the_person_is_asked(own_home, tmp_path, key):
    target = tmp_path / "out.txt"
    steps = [call("write_file", {"path": str(target), "content": "written\n"}), say("Well.")]
    with ModelServer(steps) as server:
        seen, status = on_terminal(
            ["ask", "write it"],
            {"HERMES_NB_BASE_URL": server.url, "HERMES_NB_MODEL": "m"},
            cwd=tmp_path,
            answers={"Run it?": key + "\n"},
        )
    assert status == 0, seen
    assert "write_file" in seen
    assert "Well." in seen
    assert target.exists() == (key == "y")


def on_terminal(words, environment, *, cwd, answers) -> tuple[str, int]:
    """Run ``hermes-nb`` on a pseudo terminal; type each answer when its question appears."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hermes_nb", *words],
        stdin=side,
        stdout=side,
        stderr=side,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), **environment},
        start_new_session=True,
    )
    os.close(side)
    seen, waiting, until = "", dict(answers), time.monotonic() + DEADLINE
    try:
        while time.monotonic() < until:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    piece = os.read(main, 65536)
                except OSError:  # Linux: the other side is closed
                    break
                if not piece:
                    break
                seen += piece.decode(errors="replace")
            for question in [question for question in waiting if question in seen]:
                os.write(main, waiting.pop(question).encode())
        return seen, process.wait(10)
    finally:
        process.kill()
        process.wait()
        os.close(main)


# --- sessions and search


@pytest.fixture
def session(own_home):
    home = Home(own_home).ensure()
    with open_store(home.database) as store:
        made = store.create_session(source="notebook", title="Rain in May")
        store.append(made.id, {"role": "user", "content": "五月の雨 \x1b[31m red"})
        store.append(made.id, {"role": "assistant", "content": "It rains."})
    return made


def test_sessions_can_be_renamed_archived_and_deleted(session):
    run("sessions", "rename", "Rain", "Rain in June")
    assert data("sessions", "list")[0]["title"] == "Rain in June"
    run("sessions", "archive", session.id)
    assert data("sessions", "list") == []
    assert data("sessions", "list", "--archived")[0]["archived"]
    run("sessions", "archive", session.id, "--undo")
    assert "--yes" in run("sessions", "delete", session.id, status=1).stderr
    run("sessions", "delete", session.id, "--yes")
    assert data("sessions", "list", "--archived") == []


def test_listings_cannot_steer_the_terminal(session):
    assert "\x1b[31m" not in run("sessions", "show", session.id).stdout
    assert "\x1b[31m" not in run("search", "雨").stdout
    assert data("sessions", "show", session.id)["messages"][0]["content"] == "五月の雨 \x1b[31m red"


def test_an_unknown_session_is_an_error_of_one_line(session):
    for command in ("show", "archive", "delete"):
        assert run("sessions", command, "nothing", status=1).stderr.startswith("hermes-nb: ")


# --- approvals


def test_a_waiting_question_can_be_answered_from_the_command_line(session, own_home):
    with open_store(own_home / "state.db") as store:
        asked = store.approvals.ask(session.root_id, "python", {"code": "1\n2"}, "it imports")
        assert "it imports" in run("approvals", "list").stdout
        assert data("approvals", "list")[0]["arguments"] == {"code": "1\n2"}
        run("approvals", "approve", asked.id[:6])
        assert store.approvals.get(asked.id).state is ApprovalState.APPROVED
        assert "No waiting question" in run("approvals", "deny", asked.id, status=1).stderr
        other = store.approvals.ask(session.root_id, "python", {"code": "3"}, "it imports")
        run("approvals", "deny", other.id)
        assert store.approvals.get(other.id).state is ApprovalState.DENIED


# --- doctor and model


def test_doctor_without_a_model_is_blocked_and_says_what_to_do():
    done = run("doctor", status=1)
    assert "blocked" in done.stdout
    assert "Three ways" in done.stdout


def test_doctor_asks_the_endpoint():
    with ModelServer([], models=("one", "two")) as server:
        lines = {line["name"]: line for line in data("doctor", HERMES_NB_BASE_URL=server.url, HERMES_NB_MODEL="one")}
        assert lines["Model"]["state"] == "ok"
        assert set(lines) >= {"Python", "SQLite", "Home", "Settings", "Store", "Kernel", "Buttons", "Demo model"}
        other = data("doctor", HERMES_NB_BASE_URL=server.url, HERMES_NB_MODEL="three")
        (line,) = [line for line in other if line["name"] == "Model"]
        assert line["state"] == "warn"
        assert "one, two" in line["next"]


def test_doctor_speaks_when_nothing_else_can(own_home):
    dead = {"HERMES_NB_BASE_URL": "http://127.0.0.1:9/v1", "HERMES_NB_MODEL": "m"}
    assert "does not answer" in run("doctor", status=1, **dead).stdout
    Home(own_home).ensure()
    (own_home / "config.toml").write_text("[model]\nnam = 1\n")
    assert "line 2" in run("doctor", status=1).stdout
    assert "HERMES_NB_HOME" in run("doctor", status=1, HERMES_NB_HOME="/dev/null/x").stdout


def test_model_list_says_what_is_used():
    listed = data("model", "list", HERMES_NB_BASE_URL="http://127.0.0.1:9/v1", HERMES_NB_MODEL="m")
    assert listed["chosen"]["model"] == "m"
    assert data("model", "list")["chosen"] is None


def test_model_install_is_skipped_when_an_endpoint_is_configured(own_home):
    done = run("model", "install", "--if-needed", HERMES_NB_BASE_URL="http://127.0.0.1:9/v1", HERMES_NB_MODEL="m")
    assert "HERMES_NB_BASE_URL" in done.stderr
    assert not (own_home / "models").exists()


# --- enable, lab, demo


@pytest.fixture
def environment(tmp_path):
    """A folder that counts as the environment of the command, with the real libraries."""
    code = "import sys; sys.prefix = sys.argv.pop(1); from hermes_nb.cli import main; main()"

    def enable(*words: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path), "enable", *words],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    return enable, tmp_path / "etc" / "ipython" / "ipython_kernel_config.py"


def test_enable_keeps_the_lines_of_the_user_and_can_be_undone(environment):
    enable, file = environment
    mine = "c = get_config()\nc.InteractiveShellApp.extensions = ['autoreload']\n"
    file.parent.mkdir(parents=True)
    file.write_text(mine)
    assert str(file) in enable()
    first = file.read_text()
    enable()
    assert file.read_text() == first
    assert first.startswith(mine)
    assert first.count(BEGIN) == 1
    from traitlets.config import PyFileConfigLoader

    config = PyFileConfigLoader(str(file)).load_config()
    assert config.InteractiveShellApp.extensions == ["autoreload"]
    assert "hermes_nb" in config.InteractiveShellApp.exec_lines.get_value([])[0]
    enable("--undo")
    assert file.read_text().strip() == mine.strip()
    assert "nothing of hermes-nb" in enable("--undo")


def test_enable_leaves_no_file_behind_and_refuses_an_edited_block(environment):
    enable, file = environment
    assert enable("--quiet") == ""
    enable("--undo")
    assert not file.exists()
    file.write_text(BEGIN + "\nhalf\n")
    assert "by hand" in enable(status=1)
    assert file.read_text() == BEGIN + "\nhalf\n"


@pytest.mark.kernel
def test_a_kernel_with_the_enabled_block_has_the_magics_and_loading_again_is_silent(tmp_path, monkeypatch):
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_kernel_config.py").write_text(BLOCK)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent))
    cells = ["%load_ext hermes_nb", "%hermes help", "'hermes_nb' in dir()"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=DEADLINE, kernel_name="python3").execute()
    loaded, helped, named = (cell.outputs for cell in notebook.cells)
    assert loaded == []
    assert "%hermes doctor" in helped[0]["data"]["text/plain"]
    assert named[0]["data"]["text/plain"] == "False"


def test_notebooks_of_the_user_are_never_overwritten(tmp_path):
    copy_notebooks(tmp_path)
    welcome = tmp_path / "00_welcome.ipynb"
    welcome.write_text("mine")
    copy_notebooks(tmp_path)
    assert welcome.read_text() == "mine"


def test_a_demo_borrows_settings_and_weights_but_not_conversations(tmp_path):
    real, temporary = Home(tmp_path / "real").ensure(), Home(tmp_path / "demo").ensure()
    real.models.mkdir()
    real.config.write_text('[model]\nname = "x"\n')
    real.database.write_text("not copied")
    borrow(real, temporary)
    assert temporary.config.read_text() == real.config.read_text()
    assert temporary.models.resolve() == real.models
    assert not temporary.database.exists()


def test_lab_refuses_a_path_that_is_not_there():
    assert "does not exist" in run("lab", "no/such.ipynb", status=1).stderr
