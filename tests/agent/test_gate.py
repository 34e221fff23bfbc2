"""A yes holds for what was shown: not for another file behind a link, not for what was written meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.agents import make_agent, make_store
from support.model_server import ModelServer, call, say

from hermes_nb.core.names import ApprovalState
from hermes_nb.core.types import ApprovalRequest
from hermes_nb.store.store import Store
from hermes_nb.tools.builtin.files import TOOLS


class YesAfter:
    """Says yes, after something else has happened."""

    surface = "test"

    def __init__(self, store: Store, happens: Callable[[], object]) -> None:
        self._store, self._happens = store, happens

    def open(self, request: ApprovalRequest) -> None:
        self._happens()
        assert self._store.approvals.answer(request.id, ApprovalState.APPROVED, "ann", request.args_hash)

    def close(self, request: ApprovalRequest) -> None: ...


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work" / "a.txt").write_text("old\n")
    return tmp_path / "work"


def written(folder: Path, happens: Callable[[], object]) -> str:
    store = make_store(folder.parent)
    script = [call("write_file", {"path": "a.txt", "content": "new\n"}), say("done")]
    with ModelServer(script) as server:
        make_agent(store, server.url, TOOLS, approver=YesAfter(store, happens)).run("go")
        (result,) = [message for message in server.requests[-1].messages if message["role"] == "tool"]
    store.close()
    return str(result["content"])


def test_a_yes_lets_the_call_run(folder: Path) -> None:
    assert "replaced" in written(folder, lambda: None)
    assert (folder / "a.txt").read_text() == "new\n"


def test_what_was_written_while_the_question_stood_is_not_lost(folder: Path) -> None:
    shown = written(folder, lambda: (folder / "a.txt").write_text("the user's own words\n"))
    assert "changed while the question stood" in shown
    assert (folder / "a.txt").read_text() == "the user's own words\n"


def test_a_link_that_came_meanwhile_leads_nowhere(folder: Path) -> None:
    other = folder.parent / "other.txt"
    other.write_text("old\n")

    def turned() -> None:
        (folder / "a.txt").unlink()
        (folder / "a.txt").symlink_to(other)

    assert "changed while the question stood" in written(folder, turned)
    assert other.read_text() == "old\n"
