"""``hermes-nb memory`` as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.store import open_store


def run(*words: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "hermes_nb", "memory", *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_entries_are_added_listed_and_removed() -> None:
    run("add", "likes tea")
    run("add", "-u", "is called Ada")
    listed = json.loads(run("list", "--json").stdout)
    assert listed["memory"]["entries"] == ["likes tea"]
    assert listed["user"]["entries"] == ["is called Ada"]
    assert "likes tea" in run("list").stdout
    assert "likes tea" in run("remove", "nothing like this", status=1).stderr
    assert json.loads(run("remove", "nothing like this", "--json", status=1).stdout)["success"] is False
    run("remove", "tea")
    assert json.loads(run("list", "--json").stdout)["memory"]["entries"] == []


def test_staged_edits_are_listed_accepted_and_rejected_and_not_by_a_tool_call(own_home: Path) -> None:
    run("list")
    with open_store(own_home / "state.db") as store:
        memory = MemoryStore(own_home / "memories" / store.user)
        ids = [
            store.staged.add_memory(memory, memory.preview("memory", [{"action": "add", "content": content}])).id
            for content in ("likes tea", "likes \x1b[31mred")
        ]
    waiting = json.loads(run("pending", "--json").stdout)
    assert [edit["id"] for edit in waiting] == ids
    assert "+likes tea" in waiting[0]["diff"]
    assert "\x1b" not in run("pending").stdout
    assert "cannot decide" in run("accept", ids[0], status=1, HERMES_NB_IN_TOOL_CALL="1").stderr
    run("accept", ids[0][:10])
    assert memory.entries() == ("likes tea",)
    assert json.loads(run("reject", ids[1], "--json").stdout)["state"] == "rejected"
    assert "begin with" in run("accept", ids[0], status=1).stderr
