"""The week's story, through the public names and new processes: what is said once is known later, at no price now."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from support.model_server import ModelServer, call, say

from hermes_nb.agent.reuse import Trail

PROGRAM = textwrap.dedent(
    """
    import sys
    import hermes_nb
    from hermes_nb.agent.options import TurnOptions
    session, surface, *texts = sys.argv[1:]
    agent = hermes_nb.Agent.open(session=None if session == "-" else session)
    for text in texts:
        result = agent.run(text, TurnOptions(surface=surface))
        print(result.session_id, result.persisted)
    """
)
PREFERENCE = "Prefers tables over prose."


def process(home: Path, url: str, session: str, surface: str, *texts: str) -> list[str]:
    """Run turns in a process of their own and return the session's id and what was persisted, a line a turn."""
    variables = {"HERMES_NB_HOME": str(home), "HERMES_NB_BASE_URL": url, "HERMES_NB_MODEL": "scripted-model"}
    command = [sys.executable, "-c", PROGRAM, session, surface, *texts]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def save(text: str, target: str = "user"):
    return call("memory", {"action": "add", "target": target, "content": text})


@pytest.mark.slow
def test_a_preference_said_on_monday_is_known_on_friday(
    tmp_path: Path, own_home: Path, figure: Callable[[str, object], None]
) -> None:
    monday = [say("Hello."), save(PREFERENCE), say("Noted."), say("Here is a table.")]
    tuesday = [call("session_search", {"query": "nothing"}), save("The project is called Larch.", "memory"), say("ok")]
    wednesday = [say("Welcome to another place."), say("still here")]
    friday = [say("A table again.")]
    with ModelServer([*monday, *tuesday, *wednesday, *friday]) as server:
        said = process(
            own_home, server.url, "-", "notebook", "hi", "I prefer tables over prose, always", "show me something"
        )
        session = said[0].split()[0]
        assert "entry added" in said[1]
        written = [file.read_text().strip() for file in (own_home / "memories").rglob("USER.md")]
        assert written == [PREFERENCE]
        process(own_home, server.url, session, "notebook", "search, and remember the project's name")
        process(own_home, server.url, session, "telegram", "I am on my phone now", "and again")
        first = list(server.bodies)
        assert len(first) == 9
        assert PREFERENCE.encode() not in first[0]
        process(own_home, server.url, "-", "notebook", "make an overview of last month")
        opening = server.requests[-1].messages

    system = [request.messages[0]["content"] for request in server.requests]
    assert len(set(system[:9])) == 1
    assert PREFERENCE not in system[0]
    assert PREFERENCE in opening[0]["content"]
    assert "Larch" in opening[0]["content"]
    trail = Trail()
    shares = [trail.measure(body) for body in first]
    assert shares == [None] + [1.0] * 8
    for one, following in itertools.pairwise(first):
        assert following.startswith(one[:-2])
    figure("prefix reuse over 9 requests, 3 processes, 2 memory writes, 2 surfaces (lowest)", min(shares[1:]))  # type: ignore[type-var]
