"""A process that is killed at any moment loses nothing that was acknowledged and repeats no act."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.agents import echo, make_agent, make_store, tool
from support.model_server import ModelServer, Reply, Request, calls, say

SUPPORT = Path(__file__).parent.parent
PROGRAM = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from support.agents import echo, make_agent, make_store, tool
    folder, url = Path(sys.argv[2]), sys.argv[3]

    def act(context):
        with (folder / "effects").open("a") as file:
            file.write("x")
        return "acted"

    store = make_store(folder)
    found = store.sessions()
    agent = make_agent(store, url, [echo(), tool("act", act)], session=found[0] if found else None)
    agent.run("first")  # loads the client
    print("ready", flush=True)
    for n in range(10_000):
        agent.run(f"turn {n}")
    """
)


def answer(request: Request) -> Reply:
    if request.messages[-1]["role"] == "user":
        return calls([("echo", {"text": "1"}), ("act", {}), ("act", {})])
    return say("a b c", chunks=3, pause=0.001)


@pytest.mark.slow
def test_kills_at_random_moments_leave_a_whole_history(
    tmp_path: Path, size: Callable[[int, int], int], figure: Callable[[str, object], None]
) -> None:
    random.seed(11)
    with ModelServer([answer] * 100_000) as server:
        rounds = size(20, 200)
        for _ in range(rounds):
            command = [sys.executable, "-c", PROGRAM, str(SUPPORT), str(tmp_path), server.url]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(random.random() * 0.4)  # the moment of the kill is what is tested
            child.kill()
            child.wait()
            child.stdout.close()
        store = make_store(tmp_path)
        (session,) = store.sessions()
        make_agent(store, server.url, [echo(), tool("act", lambda context: "acted")], session=session).run("last")
        whole = [body for body in server.bodies if body.endswith(b"]}")]
        for one, following in itertools.pairwise(whole):
            assert following.startswith(one[:-2])
        waiting: list[str] = []
        for message in json.loads(whole[-1])["messages"]:
            if message["role"] == "tool":
                waiting.remove(message["tool_call_id"])
            else:
                assert not waiting
                waiting = [one["id"] for one in message.get("tool_calls") or []]
        effects = len((tmp_path / "effects").read_text())
        stored = [json.loads(row.wire)["content"] for row in store.rows(session.id) if row.tool_name == "act"]
        acted = stored.count("acted") - 2  # the last turn's calls run in this process, without an effect
        assert acted <= effects <= len(stored)
        assert store.problems() == []
        figure("kill -9 in a turn with tools: rounds, rows lost, calls repeated", f"{rounds}, 0, 0")
