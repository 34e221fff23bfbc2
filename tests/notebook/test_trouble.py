"""Bad input and broken surroundings: one clear message, nothing stored is lost, the next cell works."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kernels import Cell, Kernel, hermes_kernel
from support.model_server import ModelServer, call, error, html, say, status

import hermes_nb

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

SECONDS = 30
ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(models=("scripted-model", "another-model")) as server:
        yield server


@pytest.fixture(scope="module")
def shared(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with hermes_kernel(tmp_path_factory.mktemp("first-home"), server.url) as kernel:
        yield kernel


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def kernel(shared: Kernel, server: ModelServer, home: Path) -> Iterator[Kernel]:
    """The module's kernel with a home of its own; what a test changes in the environment is put back."""
    server.clear()
    shared.run("import os\n_environment = dict(os.environ)", SECONDS)
    use_home(shared, home)
    yield shared
    shared.run("os.environ.clear()\nos.environ.update(_environment)", SECONDS)


def use_home(kernel: Kernel, home: Path) -> None:
    cell = kernel.run(f"os.environ['HERMES_NB_HOME'] = {str(home)!r}\n%reload_ext hermes_nb", SECONDS)
    assert cell.status == "ok" and not cell.outputs, cell.outputs


def ask(kernel: Kernel, text: str = "hi", line: str = "") -> Cell:
    return kernel.run(f"%%hermes {line}\n{text}", SECONDS)


def says(cell: Cell, *words: str) -> None:
    """Check that the cell failed with one message that has these words, and with none of our frames."""
    assert cell.status == "error", cell.outputs
    errors = [o for o in cell.outputs if o["output_type"] == "error"]
    if errors:
        (one,) = errors
        shown = "\n".join(one["traceback"])
        assert not cell.stderr, cell.stderr
    else:
        shown = cell.stderr
        assert shown.count("UsageError") == 1
    for word in words:
        assert word in shown, shown
    for sign in ("Traceback", "hermes_nb/", "hermes_nb\\", 'File "', "test-key"):
        assert sign not in shown, shown


def fine(kernel: Kernel, server: ModelServer, text: str = "and now?") -> dict:
    """Check that a cell works, and return the request it made."""
    server.clear()
    server.enqueue(say("All is well."))
    cell = ask(kernel, text)
    assert cell.status == "ok", cell.outputs
    assert "All is well." in cell.markdown
    return json.loads(server.bodies[-1])


def stored(home: Path) -> list[tuple[str, str, str]]:
    """Role, status and text of the newest session, from a sound database."""
    with sqlite3.connect(home / "state.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with hermes_nb.open_store(home / "state.db") as store:
        return [(r.role, r.status.value, r.text) for r in store.rows(store.sessions(limit=1)[0].id)]


# -- the endpoint ---------------------------------------------------------------------------------------


def test_without_an_endpoint_there_are_three_ways_and_the_next_cell_needs_no_restart(kernel, server):
    kernel.run("for name in ('BASE_URL', 'MODEL', 'API_KEY'):\n    del os.environ['HERMES_NB_' + name]", SECONDS)
    says(ask(kernel), "No model is connected", "1. ", "2. ", "3. ", "HERMES_NB_NO_PROBE")
    assert "No model is connected" in kernel.run("%hermes", SECONDS).plain
    assert "blocked" in kernel.run("%hermes doctor", SECONDS).markdown
    kernel.run(f"os.environ['HERMES_NB_BASE_URL'] = {server.url!r}", SECONDS)
    assert fine(kernel, server)["model"] == "scripted-model"


def test_a_refused_key_names_its_variable_and_the_session_goes_on_with_another(kernel, server, home):
    server.enqueue(error(401, "Incorrect API key provided: test-key", "invalid_api_key"))
    says(ask(kernel, "first question"), "HERMES_NB_API_KEY", "401", "Incorrect API key provided: [key]")
    kernel.run("os.environ['HERMES_NB_API_KEY'] = 'second-key'", SECONDS)
    sent = fine(kernel, server)
    assert server.requests[-1].headers["authorization"] == "Bearer second-key"
    assert "first question" in json.dumps(sent["messages"])
    assert [role for role, _, _ in stored(home)] == ["user", "assistant"] * 2


def test_a_key_that_is_gone_is_told_before_anything_is_sent(kernel, server):
    fine(kernel, server)
    server.clear()
    kernel.run("key = os.environ.pop('HERMES_NB_API_KEY'); os.environ['OPENAI_API_KEY'] = 'not-for-this-host'", SECONDS)
    says(ask(kernel), "HERMES_NB_API_KEY", "is not set")
    assert not server.requests
    kernel.run("os.environ['HERMES_NB_API_KEY'] = key", SECONDS)
    fine(kernel, server)


def test_an_unknown_model_lists_those_there_are(kernel, server):
    server.enqueue(error(404, "The model `scripted` does not exist", "model_not_found"), say("x"))
    says(ask(kernel), "'scripted'", "scripted-model", "another-model", "%hermes model")
    assert kernel.run("%hermes model another-model", SECONDS).status == "ok"
    assert fine(kernel, server)["model"] == "another-model"


def test_a_server_that_is_down_is_told_at_once_and_found_when_it_is_back(kernel, server):
    with ModelServer() as gone:
        port, url = gone.port, gone.url
    kernel.run(f"os.environ['HERMES_NB_BASE_URL'] = {url!r}", SECONDS)
    cell = kernel.send("%%hermes\nhi")
    cell.until_text("cannot be reached", SECONDS)
    kernel.interrupt()
    says(cell.wait(SECONDS), "interrupted")
    with ModelServer(port=port) as back:
        fine(kernel, back)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (html(), ("a web page", "/v1")),
        (status(200, {"answer": 42}), ("no chat completion",)),
        (error(400, "messages.0.name is too long"), ("refused the request", "messages.0.name is too long")),
        (error(402, "insufficient credits"), ("credit",)),
        (error(400, "maximum context length is 4096 tokens", "context_length_exceeded"), ("no longer fits",)),
        (status(403, b"\xff\xfe not UTF-8"), ("403", "HERMES_NB_API_KEY")),
    ],
    ids=["html", "no completion", "bad request", "no credit", "overflow", "bytes"],
)
def test_a_useless_answer_fails_the_cell_and_not_the_session(kernel, server, home, reply, words):
    server.enqueue(reply)
    says(ask(kernel, "lost?"), *words)
    assert "lost?" in json.dumps(fine(kernel, server)["messages"])
    assert stored(home)[0] == ("user", "complete", "lost?\n")


def test_an_empty_answer_is_asked_again_and_said(kernel, server):
    server.enqueue(status(200, b""), say("second"))
    cell = ask(kernel)
    assert cell.status == "ok"
    assert "answered with nothing" in cell.plain
    assert "second" in cell.markdown


def test_a_cut_stream_keeps_what_came_and_says_that_it_is_not_all(kernel, server, home):
    server.enqueue(say("half of it", finish=None, usage=None))
    cell = ask(kernel, line="-o partly")
    assert "half of it" in cell.markdown
    assert "cut off" in cell.plain
    assert "incomplete" in cell.plain
    assert kernel.value("(partly.text, str(partly.status))") == "('half of it', 'incomplete')"
    assert stored(home)[-1] == ("assistant", "interrupted", "half of it")
    fine(kernel, server)


def test_waiting_for_a_rate_limit_is_shown_and_can_be_interrupted(kernel, server):
    server.enqueue(error(429, "slow down", headers={"Retry-After": "300"}))
    cell = kernel.send("%%hermes\nhi")
    cell.until_text("300 s", SECONDS)
    kernel.interrupt()
    says(cell.wait(SECONDS), "interrupted")
    fine(kernel, server)


def test_a_rate_limit_that_stays_ends_the_turn_with_the_reason(kernel, server):
    server.enqueue(*[error(429, "slow down", headers={"Retry-After": "0"})] * 4)
    cell = ask(kernel)
    says(cell, "too many requests", "slow down")
    assert "3 of 3" in cell.plain
    fine(kernel, server)


def test_two_failures_of_the_server_cost_a_wait_and_nothing_else(kernel, server, home):
    server.enqueue(error(500, "boom"), error(500, "boom"), say("third time"))
    cell = ask(kernel)
    assert cell.status == "ok"
    assert "2 of 3" in cell.plain
    assert len(set(server.bodies)) == 1
    assert stored(home)[-1] == ("assistant", "complete", "third time")


# -- what a person types --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%hermes --aprove off\nhi", ("--aprove", "Did you mean --approve?")),
        ("%%hermes --approve of\nhi", ("Did you mean off?",)),
        ("%%hermes hello\nhi", ("is not a flag", "lines below")),
        ("%%hermes -s 'a\nhi", ("Close the quotes",)),
        ("%%hermes -s\nhi", ("-s needs a value",)),
        ("%%hermes -s nothing\nhi", ("No session 'nothing'", "%hermes sessions")),
        ("%%hermes -t pyton\nhi", ("pyton", "Did you mean 'python'?")),
        ("%%hermes --without pyton\nhi", ("pyton", "Did you mean 'python'?")),
        ("%%hermes -v tabel\nhi", ("tabel", "Did you mean table?")),
        ("%%hermes -o 1x\nhi", ("'1x' is not a Python name",)),
        ("%%hermes\n \n\t\n", ("The cell is empty",)),
        ("%%hermes", ("The cell is empty",)),
        ("%hermes sesions", ("Did you mean %hermes sessions?",)),
        ("%hermes 'a", ("Close the quotes",)),
        ("%hermes resume nothing", ("No session 'nothing'",)),
        ("%hermes config approvals.mod", ("Did you mean approvals.mode?",)),
        ("%hermes config approvals.mode sometimes", ("ask, safe, deny, off",)),
        ("%hermes model", None),
        ("%hermes undo", ("no session",)),
    ],
)
def test_a_mistake_is_told_with_a_near_name_and_nothing_is_sent(kernel, server, home, cell, words):
    kernel.run("table = 1", SECONDS)
    done = kernel.run(cell, SECONDS)
    if words is None:
        assert done.status == "ok"
    else:
        says(done, *words)
    assert not server.requests
    with hermes_nb.open_store(home / "state.db") as store:
        assert store.sessions() == []


# -- home and store -------------------------------------------------------------------------------------


def test_a_home_that_cannot_be_made_names_the_variable_and_doctor_still_speaks(kernel, server, tmp_path, home):
    (tmp_path / "file").write_text("x")
    use_home(kernel, tmp_path / "file" / "home")
    for cell in ("%%hermes\nhi", "%hermes", "%hermes config model.name x"):
        says(kernel.run(cell, SECONDS), "file/home", "HERMES_NB_HOME")
    assert "blocked Home" in " ".join(kernel.run("%hermes doctor", SECONDS).plain.split())
    assert kernel.run("%hermes help", SECONDS).status == "ok"
    kernel.run(f"os.environ['HERMES_NB_HOME'] = {str(home)!r}", SECONDS)
    fine(kernel, server)
    assert (tmp_path / "file").read_text() == "x"


def test_a_store_of_a_newer_version_is_refused_unchanged(kernel, server, home):
    fine(kernel, server, "before")

    def set_version(number: int) -> None:
        connection = sqlite3.connect(home / "state.db")
        connection.execute(f"PRAGMA user_version={number}")
        connection.close()

    set_version(99)
    says(ask(kernel), "newer", "restart this kernel")
    use_home(kernel, home)
    says(ask(kernel), "newer", "pip install -U hermes-nb")
    assert "newer" in kernel.run("%hermes doctor", SECONDS).plain
    set_version(1)
    assert [text for _, _, text in stored(home)] == ["before\n", "All is well."]
    fine(kernel, server)


def test_a_damaged_store_is_moved_aside_and_said_once(kernel, server, home):
    home.mkdir()
    (home / "state.db").write_bytes(b"this is no database" * 1000)
    server.enqueue(say("ok"), say("ok"))
    first, second = ask(kernel), ask(kernel)
    assert first.status == second.status == "ok"
    assert "was damaged" in first.plain
    assert "damaged" not in second.plain
    (aside,) = [path for path in home.iterdir() if ".damaged-" in path.name]
    assert str(aside) in first.plain
    assert aside.read_bytes() == b"this is no database" * 1000


def test_a_store_damaged_under_an_open_kernel_is_told_and_healed_by_a_reload(kernel, server, home):
    fine(kernel, server)
    connection = sqlite3.connect(home / "state.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with (home / "state.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 100_000)
    says(ask(kernel), "is damaged", "Restart")
    use_home(kernel, home)
    assert "was damaged" in ask_ok(kernel, server).plain


def ask_ok(kernel: Kernel, server: ModelServer) -> Cell:
    server.enqueue(say("ok"))
    cell = ask(kernel)
    assert cell.status == "ok", cell.outputs
    return cell


def test_a_mistake_in_the_settings_names_file_and_line(kernel, server, home):
    home.mkdir()
    (home / "config.toml").write_text("[model\nname = 1")
    says(ask(kernel), "config.toml", "line 1")
    assert "config.toml" in kernel.run("%hermes", SECONDS).plain
    assert "blocked Settings" in " ".join(kernel.run("%hermes doctor", SECONDS).plain.split())
    (home / "config.toml").write_text('[approvals]\nmode = "sometimes"\n')
    says(ask(kernel), "config.toml", "line 2", "ask, safe, deny, off")
    (home / "config.toml").write_text("")
    fine(kernel, server)


TMPFS = """
def fill():
    file = os.open(os.environ['HERMES_NB_HOME'] + '/filler', os.O_CREAT | os.O_WRONLY)
    try:
        while os.write(file, b'x' * 4096):
            pass
    except OSError:
        os.close(file)
def free():
    os.unlink(os.environ['HERMES_NB_HOME'] + '/filler')
"""
LIMIT = """
import resource
def fill():
    size = max(os.path.getsize(os.environ['HERMES_NB_HOME'] + '/state.db' + end) for end in ('', '-wal'))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
def free():
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.fixture(params=["tmpfs", "limit"])
def small_disk(request: pytest.FixtureRequest, home: Path) -> Iterator[str]:
    """Code that defines ``fill()`` and ``free()`` in a kernel, for a full disk under ``home``."""
    home.mkdir(exist_ok=True)
    if request.param == "limit":
        if sys.platform == "win32":
            pytest.skip("no file size limits here")
        yield LIMIT
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(home)]
    if not ROOT or not shutil.which("mount") or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield TMPFS
    finally:
        subprocess.run(["umount", "-l", str(home)], check=True)


@pytest.mark.parametrize("moment", ["tool", "answer"])
def test_a_disk_that_fills_up_in_a_turn_stops_it_and_loses_nothing(small_disk, kernel, server, home, moment):
    fine(kernel, server, "stored before")
    kernel.run(small_disk, SECONDS)
    server.clear()
    if moment == "tool":
        server.enqueue(call("python", {"code": "fill(); ran = 'yes'"}), say("never sent"))
        says(ask(kernel, "fill it", "--approve off"), "no room", "free some space")
        assert len(server.requests) == 1
        assert kernel.value("ran") == "'yes'"
    else:
        server.enqueue(say("shown only", chunks=2, delay=1.0))
        cell = kernel.send("%%hermes\nfill it")
        cell.until(lambda _: len(server.requests) == 1, SECONDS)
        kernel_fill(kernel, small_disk, home)
        cell.wait(SECONDS)
        assert "shown only" in cell.markdown
        says(cell, "could not be stored", "free some space")
    says(ask(kernel, "while full"), "no room", "free some space")
    kernel.run("free()", SECONDS)
    sent = fine(kernel, server)["messages"]
    text = json.dumps(sent)
    assert "stored before" in text
    assert "fill it" in text
    assert "while full" not in text
    if moment == "tool":
        assert [m["role"] for m in sent[-4:]] == ["user", "assistant", "tool", "user"]
        assert "may have had effects" in text
    assert [row[2] for row in stored(home)][:2] == ["stored before\n", "All is well."]


def kernel_fill(kernel: Kernel, code: str, home: Path) -> None:
    """Fill the disk while a cell of the kernel runs: from outside where that is possible."""
    if code is TMPFS:
        file = os.open(home / "filler", os.O_CREAT | os.O_WRONLY)
        with contextlib.suppress(OSError):
            while os.write(file, b"x" * 4096):
                pass
        os.close(file)
    else:
        import resource  # not on Windows

        size = max((home / f"state.db{end}").stat().st_size for end in ("", "-wal"))
        process = kernel.manager.provisioner.process.pid
        resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


# -- folders --------------------------------------------------------------------------------------------


def test_a_home_elsewhere_leaves_nothing_under_home(server, tmp_path):
    """Case 019."""
    server.clear()
    server.enqueue(call("memory", {"target": "memory", "action": "add", "content": "x"}), say("ok"))
    user, chosen = tmp_path / "user", tmp_path / "local-disk" / "hermes"
    user.mkdir()
    other = {name: str(tmp_path / name) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")}
    with hermes_kernel(chosen, server.url, HOME=str(user), **other) as kernel:
        kernel.run("import os\nfor name in list(os.environ):\n    if name.startswith('XDG_'): del os.environ[name]")
        assert ask(kernel, "hi", "--approve off").status == "ok"
        for word in ("", "doctor", "config model.name x", "sessions", "memory"):
            assert kernel.run(f"%hermes {word}", SECONDS).status == "ok"
        assert {"state.db", "state.db-wal", "state.db-shm", "config.toml"} <= {p.name for p in chosen.iterdir()}
    assert list(user.rglob("*")) == []


def test_a_notebook_in_a_read_only_folder_is_no_trouble(server, tmp_path):
    server.clear()
    folder = tmp_path / "read-only"
    folder.mkdir()
    notebook = folder / "report.ipynb"
    notebook.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    bound = ROOT and not subprocess.run(["mount", "--bind", str(folder), str(folder)], check=False).returncode
    try:
        if bound:
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        folder.chmod(0o500) if not bound else None
        with hermes_kernel(tmp_path / "home", server.url, cwd=folder, JPY_SESSION_NAME=str(notebook)) as kernel:
            assert "Read-only" in kernel.run("open('x', 'w')").error or not ROOT
            server.enqueue(call("write_file", {"path": "out.txt", "content": "x"}), say("I may not."))
            assert ask(kernel, "hi", "--approve off").status == "ok"
            result = json.loads(server.bodies[-1])["messages"][-1]["content"]
            assert "out.txt" in result
            kernel.restart()
            kernel.run("%load_ext hermes_nb")
            assert "hi" in json.dumps(fine(kernel, server)["messages"])
        assert [path.name for path in folder.iterdir()] == ["report.ipynb"]
    finally:
        if bound:
            subprocess.run(["umount", str(folder)], check=True)
        folder.chmod(0o700)


# -- the command line -----------------------------------------------------------------------------------


def cli(*words: str, wrapper: tuple[str, ...] = (), **environment: str) -> str:
    """Return what ``hermes-nb`` writes to stderr when it fails."""
    done = subprocess.run(
        [*wrapper, sys.executable, "-m", "hermes_nb", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_the_command_line_says_the_same_in_one_message(server, tmp_path):
    server.clear()
    model = {"HERMES_NB_BASE_URL": server.url, "HERMES_NB_MODEL": "scripted", "HERMES_NB_API_KEY": "test-key"}
    server.enqueue(error(401, "no"), error(404, "no such model", "model_not_found"), html())
    assert "HERMES_NB_API_KEY" in cli("ask", "hi", **model)
    assert "another-model" in cli("ask", "hi", **model)
    assert "web page" in cli("ask", "hi", **model)
    (tmp_path / "file").write_text("x")
    assert "HERMES_NB_HOME" in cli("ask", "hi", HERMES_NB_HOME=str(tmp_path / "file" / "home"), **model)
    newer = tmp_path / "newer"
    with hermes_nb.open_store(newer / "state.db"):
        pass
    connection = sqlite3.connect(newer / "state.db")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    assert "pip install -U" in cli("sessions", "list", HERMES_NB_HOME=str(newer))


@pytest.mark.skipif(not ROOT or not shutil.which("setpriv"), reason="only root can become another user")
def test_a_home_of_another_user_is_told_and_left_alone(server, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    reads = subprocess.run([*nobody, sys.executable, "-c", "import click"], check=False, capture_output=True)
    if reads.returncode:
        pytest.skip("another user cannot run this Python")
    said = cli("ask", "hi", wrapper=nobody, HERMES_NB_HOME=str(theirs / "home"), HOME="/nonexistent")
    assert str(theirs) in said
    assert "HERMES_NB_HOME" in said
    assert list(theirs.iterdir()) == []
