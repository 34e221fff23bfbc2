"""Which session a cell continues: the rules on a real store, and kernels that are restarted, killed and copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from support.kernels import Cell, Kernel, hermes_kernel
from support.model_server import ModelServer, call, calls, say

import hermes_nb
from hermes_nb.core.errors import SessionNotFound
from hermes_nb.core.names import MIME_TURN
from hermes_nb.notebook.continuity import Choice, choose, last_session_in
from hermes_nb.store.store import Store

# -- the rules ------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with hermes_nb.open_store(tmp_path / "state.db") as store:
        yield store


def saved(path: Path, *sessions: str, at: list[int] | None = None, where: str = "metadata") -> Path:
    """Write a notebook with one turn output for each session."""
    cells = []
    for index, session in enumerate(sessions):
        facts = {"session": session, "at": (at or list(range(len(sessions))))[index]}
        data = {MIME_TURN: facts} if where == "data" else {}
        metadata = {"hermes_nb": facts} if where == "metadata" else {}
        output = nbformat.v4.new_output("display_data", data={"text/plain": "x", **data}, metadata=metadata)
        cells.append(nbformat.v4.new_code_cell("%%hermes", outputs=[output]))
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def chosen(store: Store, notebook: Path | None, **how) -> Choice:
    defaults = {"named": None, "new": False, "current": None, "headless": False}
    return choose(store, notebook=notebook, **{**defaults, **how})


def test_new_wins_then_the_named_then_the_kernels_own(store: Store, tmp_path: Path):
    named, own, filed = (store.create_session(title=title) for title in ("named", "own", "filed"))
    notebook = saved(tmp_path / "a.ipynb", filed.id)
    assert chosen(store, notebook, new=True, current=own.id).session is None
    assert chosen(store, notebook, named="named", current=own.id).session == named
    assert chosen(store, notebook, current=own.id) == Choice(own)
    assert chosen(store, notebook).session == filed


def test_a_named_session_that_is_not_there_is_an_error(store: Store):
    with pytest.raises(SessionNotFound):
        chosen(store, None, named="nothing like it")


def test_headless_and_without_a_path_it_is_a_new_one(store: Store, tmp_path: Path):
    notebook = saved(tmp_path / "a.ipynb", store.create_session().id)
    assert chosen(store, notebook, headless=True) == Choice(None)
    assert chosen(store, None) == Choice(None)


@pytest.mark.parametrize("where", ["metadata", "data"])
def test_the_latest_turn_of_the_file_counts_and_not_the_lowest(tmp_path: Path, where: str):
    assert last_session_in(saved(tmp_path / "a.ipynb", "one", "two", "three", at=[5, 9, 7], where=where)) == "two"
    assert last_session_in(saved(tmp_path / "b.ipynb", "one", "two", at=[3, 3], where=where)) == "two"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"cells": 5}',
        b'{"cells": [7]}',
        b'{"cells": [{"outputs": null}]}',
        b'{"cells": [{"outputs": [{"metadata": {"hermes_nb": {"session": 5}}}, "x"]}]}',
        b'{"worksheets": [{"cells": []}], "nbformat": 3}',
    ],
)
def test_a_file_that_says_nothing_is_no_error(store: Store, tmp_path: Path, content: bytes):
    notebook = tmp_path / "a.ipynb"
    notebook.write_bytes(content)
    assert chosen(store, notebook) == Choice(None)
    bound = store.create_session()
    store.bind_notebook(str(notebook), bound.id)
    assert chosen(store, notebook).session == bound


def test_a_copy_branches_and_what_it_branched_to_is_found_again(store: Store, tmp_path: Path):
    original = store.create_session(title="work")
    first = saved(tmp_path / "first.ipynb", original.id)
    store.bind_notebook(str(first), original.id)
    copy = saved(tmp_path / "copy.ipynb", original.id)
    choice = chosen(store, copy)
    assert choice.branch and choice.session == original and "copy of first.ipynb" in str(choice.said)
    branch = store.branch(original.id)
    store.bind_notebook(str(copy), branch.id)
    again = chosen(store, copy)  # the copy was not saved since, and still names the original
    assert again.session == branch and not again.branch
    assert chosen(store, first).session == original


def test_a_renamed_notebook_goes_on(store: Store, tmp_path: Path):
    session = store.create_session()
    store.bind_notebook(str(tmp_path / "before.ipynb"), session.id)
    choice = chosen(store, saved(tmp_path / "after.ipynb", session.id))
    assert choice.session == session and not choice.branch


def test_a_notebook_that_shares_its_session_by_name_is_no_copy(store: Store, tmp_path: Path):
    """-s in a second notebook binds both; neither branches off when its kernel starts again."""
    session = store.create_session()
    one, two = saved(tmp_path / "one.ipynb", session.id), saved(tmp_path / "two.ipynb", session.id)
    for path in (one, two):
        store.bind_notebook(str(path), session.id)
    assert not chosen(store, one).branch and not chosen(store, two).branch


def test_a_deleted_session_is_said_once_and_a_new_one_begins(store: Store, tmp_path: Path):
    session = store.create_session()
    notebook = saved(tmp_path / "a.ipynb", session.id)
    store.bind_notebook(str(notebook), session.id)
    store.delete_session(session.id)
    for current in (None, session.id):
        choice = chosen(store, notebook, current=current)
        assert choice.session is None and "this is a new one" in str(choice.said)


# -- kernels --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with ModelServer() as server:
        yield server


class Notebook:
    """A notebook file with a kernel: cells are sent, and saved when told so."""

    def __init__(self, kernel: Kernel, path: Path) -> None:
        self.kernel, self.path = kernel, path
        self.cells: list[tuple[str, Cell]] = []

    def run(self, code: str) -> Cell:
        cell = self.kernel.run(code, 30)
        self.cells.append((code, cell))
        return cell

    def save(self) -> None:
        cells = []
        for code, cell in self.cells:
            outputs = [
                nbformat.v4.new_output("display_data", data=o["data"], metadata=o.get("metadata", {}))
                for o in cell.outputs
                if "data" in o
            ]
            cells.append(nbformat.v4.new_code_cell(code, outputs=outputs))
        nbformat.write(nbformat.v4.new_notebook(cells=cells), self.path)

    def session(self) -> str:
        shown = self.kernel.run("%hermes", 20).plain
        return shown.split("Session “")[1].split("” ")[1].split(" ")[0]


@contextmanager
def opened(home: Path, server: ModelServer, path: Path) -> Iterator[Notebook]:
    with hermes_kernel(home, server.url, cwd=path.parent, JPY_SESSION_NAME=str(path)) as kernel:
        yield Notebook(kernel, path)


def load(notebook: Notebook) -> None:
    assert notebook.kernel.run("%load_ext hermes_nb", 30).status == "ok"


@pytest.fixture
def place(tmp_path: Path, server: ModelServer):
    server.clear()
    return tmp_path / "home", tmp_path / "work.ipynb"


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.parametrize("how", ["killed", "unsaved"])
def test_a_restarted_kernel_continues_with_the_same_bytes(place, server: ModelServer, how: str):
    """case 173: the second kernel knows the first, and every body is a byte prefix of the next."""
    home, path = place
    server.enqueue(calls([("variables", {}), ("python", {"code": "1+1"})]), say("noted 中文"), say("seven"), say("on"))
    with opened(home, server, path) as notebook:
        notebook.run("%%hermes\nremember 7")
        before = notebook.session()
        if how == "killed":
            notebook.save()
            notebook.kernel.kill()
        notebook.kernel.restart()
        load(notebook)
        assert notebook.session() == before, "%hermes knows it before the first cell"
        cell = notebook.run("%%hermes\nwhat number?")
        assert cell.status == "ok" and "continuing session" in cell.plain
        assert "continuing session" not in notebook.run("%%hermes\ngo on").plain
        assert notebook.session() == before
    bodies = server.bodies
    assert len(bodies) == 4 and b"remember 7" in bodies[2]
    assert any(message["role"] == "tool" for message in json.loads(bodies[2])["messages"])
    for earlier, later in pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}"))


@pytest.mark.kernel
@pytest.mark.slow
def test_a_kernel_killed_within_a_turn_goes_on_after_it(place, server: ModelServer):
    home, path = place
    server.enqueue(call("python", {"code": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"}))
    server.enqueue(say("I see it was cut off."), say("yes"))
    with opened(home, server, path) as notebook:
        cell = notebook.kernel.send("%%hermes --approve off\nend it")
        notebook.kernel.until(lambda: not notebook.kernel.manager.is_alive(), None, 20)
        assert cell.reply is None
        notebook.kernel.restart()
        load(notebook)
        assert "cut off" in notebook.run("%%hermes\nwhat happened?").markdown
        assert "yes" in notebook.run("%%hermes\nsure?").markdown
    first, second, third = server.bodies
    assert second.startswith(first.removesuffix(b"]}"))
    assert third.startswith(second.removesuffix(b"]}"))
    roles = [message["role"] for message in json.loads(second)["messages"]]
    assert roles[-3:] == ["assistant", "tool", "user"] or roles[-4:-1] == ["assistant", "tool", "assistant"]


@pytest.mark.kernel
@pytest.mark.slow
def test_a_copied_notebook_branches_off_and_says_it_once(place, server: ModelServer, tmp_path: Path):
    home, path = place
    server.enqueue(say("ok"), say("in the copy"), say("again"), say("restarted"), say("in the original"))
    with opened(home, server, path) as notebook:
        notebook.run("%%hermes\nremember 7")
        notebook.save()
        original = notebook.session()
        copy = Path(shutil.copy(path, tmp_path / "copy.ipynb"))
        with opened(home, server, copy) as other:
            assert "is a copy of work.ipynb" in other.run("%%hermes\nin the copy").plain
            branch = other.session()
            assert branch != original
            assert "copy" not in other.run("%%hermes\nagain").plain
            other.kernel.restart()
            load(other)
            said = other.run("%%hermes\nafter a restart, unsaved").plain
            assert "is a copy" not in said and "continuing session" in said
            assert other.session() == branch
        notebook.run("%%hermes\nin the original")
        assert notebook.session() == original
    assert server.bodies[1].startswith(server.bodies[0].removesuffix(b"]}"))
    assert b"in the copy" not in server.bodies[4] and b"remember 7" in server.bodies[4]


@pytest.mark.kernel
@pytest.mark.slow
def test_commands_choose_the_session_and_the_file_remembers_it(place, server: ModelServer, tmp_path: Path):
    home, path = place
    server.enqueue(*[say(f"answer {n}") for n in range(1, 9)])
    with opened(home, server, path) as notebook:
        notebook.run('%%hermes --new "the first talk"\nmango')
        first = notebook.session()
        notebook.run("%hermes new second talk")
        second = notebook.session()
        assert second != first
        notebook.save()

        # Nothing was asked in it yet; the saved file names it all the same.
        notebook.kernel.restart()
        load(notebook)
        assert notebook.session() == second
        notebook.run("%%hermes\ntwo")
        assert b"mango" not in server.bodies[1]

        assert "answer 1" in notebook.run("%hermes resume the first talk").markdown
        notebook.run("%%hermes\nthree")
        assert notebook.session() == first and b"answer 1" in server.bodies[2]
        listed = notebook.run("%hermes sessions").plain
        assert "the first talk" in listed and "second talk" in listed and first in listed

        notebook.run(f"%%hermes -s {second}\nfour")
        assert notebook.session() == second, "what -s names is what the notebook goes on with"
        notebook.save()
        path.rename(tmp_path / "renamed.ipynb")
    with opened(home, server, tmp_path / "renamed.ipynb") as notebook:
        assert notebook.session() == second
        cell = notebook.run("%%hermes\nfive")
        assert "continuing session" in cell.plain and b"answer 4" in server.bodies[4]

        assert "taken back" in notebook.run("%hermes undo").markdown
        notebook.run("%%hermes\nsix")
        assert b"five" not in server.bodies[5]
        assert "taken back" in notebook.run("%hermes undo 2").markdown
        assert "are back" in notebook.run("%hermes redo").markdown
        assert notebook.run("%hermes undo all").status == "error"

        with hermes_nb.open_store(home / "state.db") as store:
            store.delete_session(second)
        assert notebook.run("%hermes").status == notebook.run("%hermes sessions").status == "ok"
        cell = notebook.run("%%hermes\nwho are you?")
        assert cell.status == "ok" and "was deleted" in cell.plain
        assert b"two" not in server.bodies[6]
