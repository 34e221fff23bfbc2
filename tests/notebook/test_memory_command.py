"""``%hermes memory`` in a real kernel: live beside frozen, staged edits, the form, and masked tool output."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import pytest
from support.kernels import Kernel, hermes_kernel
from support.model_server import ModelServer, call, say

pytestmark = [pytest.mark.kernel, pytest.mark.slow]
KEY = "sk-test-1234567890abcdef"


def memory(home: Path, name: str = "MEMORY.md") -> str:
    path = home / "memories" / getpass.getuser() / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def type_into(kernel: Kernel, value: str, text: str) -> None:
    """Type into the text area that shows ``value``, as a front end does."""
    comm = next(c for c, s in kernel.widgets.items() if s.get("_model_name") == "TextareaModel" and s["value"] == value)
    data = {"method": "update", "state": {"value": text}, "buffer_paths": []}
    kernel.client.shell_channel.send(kernel.client.session.msg("comm_msg", {"comm_id": comm, "data": data}))


def test_live_and_frozen_stand_side_by_side_and_staged_edits_are_decided(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = [say("hello"), call("memory", {"action": "add", "content": "likes tea"}), say("staged")]
    with ModelServer(script) as server, hermes_kernel(home, server.url) as kernel:
        assert kernel.run("%hermes memory add it's in the user's \"notes\" | here").status == "ok"
        assert memory(home) == "it's in the user's \"notes\" | here\n"
        assert kernel.run("%hermes memory add -u is called Ada").status == "ok"
        assert memory(home, "USER.md") == "is called Ada\n"
        assert kernel.run("%%hermes\nhi").status == "ok"
        kernel.run("%hermes memory replace called Ada => nothing")
        kernel.run("%hermes config memory.write stage")
        assert kernel.run("%hermes memory add added later").status == "ok"
        shown = kernel.run("%hermes memory").markdown
        assert "added later | from the next session" in shown
        assert "notes" in shown and "in this session's prompt since 20" in shown
        kernel.run("%hermes new")
        cell = kernel.run("%%hermes\nremember that I like tea")
        assert "staged" in cell.markdown and "not written" in cell.markdown
        assert "likes tea" not in memory(home)
        shown = kernel.run("%hermes memory").markdown
        assert "+likes tea" in shown
        id = shown.split("Waits for your yes: `")[1].split("`")[0]
        assert kernel.run("%hermes memory accept nope").status == "error"
        assert kernel.run(f"%hermes memory accept {id[:8]}").status == "ok"
        assert "likes tea" in memory(home)
        assert kernel.run(f"%hermes memory accept {id}").status == "error"
        for wrong in ("add", "replace one two", "drop x", "remove nothing-like-this", "edit"):
            cell = kernel.run(f"%hermes memory {wrong}", cell_id=None)
            assert cell.status == "error", wrong
            assert "Traceback" not in cell.error


def test_a_tool_call_of_the_model_cannot_accept_or_edit(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code = "get_ipython().run_line_magic('hermes', 'memory add from the model')"
    with (
        ModelServer([call("python", {"code": code}), say("done")]) as server,
        hermes_kernel(home, server.url) as kernel,
    ):
        assert kernel.run("%%hermes --approve off\ngo").status == "ok"
        assert "from the model" not in memory(home)


def test_the_form_edits_and_leaves_no_widget_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with hermes_kernel(home, None) as kernel:
        kernel.run("%hermes memory add first")
        before = set(kernel.widgets)
        cell = kernel.run("%hermes memory edit")
        assert cell.status == "ok", cell.error
        type_into(kernel, "first", "first, corrected")
        delete = cell.buttons()["Delete"]
        kernel.click(cell.buttons()["Save"])
        kernel.until(lambda: "corrected" in memory(home))
        kernel.until(lambda: cell.buttons().get("Delete", delete) != delete and "Close" in cell.buttons())
        path = home / "memories" / getpass.getuser() / "MEMORY.md"
        path.write_text("changed by hand\n", encoding="utf-8")
        kernel.click(cell.buttons()["Delete"])
        kernel.until(lambda: any("No entry contains" in str(s.get("value")) for s in kernel.widgets.values()))
        assert memory(home) == "changed by hand\n"
        kernel.click(cell.buttons()["Close"])
        kernel.until(lambda: set(kernel.widgets) <= before, seconds=20)
        assert "changed by hand" in cell.plain
        assert not cell.of_type("application/vnd.jupyter.widget-view+json")


@pytest.mark.skipif(sys.platform == "win32", reason="reads the database file while the kernel lives")
def test_a_secret_of_the_namespace_reaches_neither_cell_nor_model(tmp_path: Path) -> None:
    home = tmp_path / "home"
    code = f"print('key', api_key, '{'x' * 3}')\nprint(1 + 1)"
    script = [call("python", {"code": code}), say("The key is live-value-abc.", chunks=5)]
    with ModelServer(script) as server, hermes_kernel(home, server.url) as kernel:
        kernel.run("api_key = 'live-value-abc'")
        cell = kernel.run(f"%%hermes --approve off\nlook at live-value-abc and {KEY}")
        assert cell.status == "ok"
        everything = repr(cell.outputs) + "".join(map(str, server.bodies))
        for secret in ("live-value-abc", KEY):
            assert secret not in everything
            for file in home.glob("state.db*"):
                assert secret.encode() not in file.read_bytes()
        assert "key [masked] xxx" in everything
