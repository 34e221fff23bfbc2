"""The real demo model in its real child process. Structure only: what it says is nobody's promise."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.agent.embedded import engine, render, weights
from hermes_nb.agent.embedded.provider import LABEL, EmbeddedProvider
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import Cancelled, ContextOverflow, ProviderError, ProviderUnavailable
from hermes_nb.core.paths import Home

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
]

_STRING = {"type": "string"}
_SIGNATURES: dict[str, dict[str, Any]] = {
    "python": {"code": _STRING},
    "variables": {},
    "read_file": {"path": _STRING},
    "write_file": {"path": _STRING, "content": _STRING},
    "memory": {"action": {"type": "string", "enum": ["add", "replace", "remove"]}, "content": _STRING},
    "session_search": {"query": _STRING},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "A tool.",
            "parameters": {"type": "object", "properties": properties, "required": list(properties)},
        },
    }
    for name, properties in _SIGNATURES.items()
]


@pytest.fixture(scope="session")
def models() -> Path:
    """Install the weights once into a folder that outlives the run."""
    folder = os.environ.get("HERMES_NB_TEST_MODELS") or Path.home() / ".cache" / "hermes-nb-tests"
    return weights.install(Home(Path(folder)), print).parent


@pytest.fixture
def home(own_home: Path, models: Path) -> Home:
    own_home.mkdir()
    (own_home / "models").symlink_to(models)
    return Home(own_home)


@pytest.fixture
def provider(home: Home) -> Iterator[EmbeddedProvider]:
    one = EmbeddedProvider(home)
    yield one
    one.close()


def body(*messages: tuple[str, str], **more: Any) -> bytes:
    wires = [{"role": role, "content": text} for role, text in messages]
    return json.dumps({"model": "m", "stream": True, "tools": TOOLS, "messages": wires, **more}).encode()


def ask(provider: EmbeddedProvider, asked: bytes) -> tuple[str, str, dict[str, int]]:
    """Return text, finish reason and usage with the cached tokens."""
    found = list(provider.stream(asked, Cancel()))
    choices = [chunk["choices"][0] for chunk in found if chunk["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    usage = found[-1]["usage"]
    return text, choices[-1]["finish_reason"], {**usage, "cached": usage["prompt_tokens_details"]["cached_tokens"]}


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    try:
        # A zombie that nobody has collected yet is gone too.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def pid_of(provider: EmbeddedProvider) -> int:
    return provider._user.engine(Cancel()).pid


def test_after_a_restart_the_prefix_comes_from_its_kept_state(
    home: Home, figure: Callable[[str, object], None]
) -> None:
    first = EmbeddedProvider(home)
    started = time.monotonic()
    text, finish, usage = ask(first, body(("system", "x"), ("user", "hello")))
    figure("demo model: first answer, prefix not read yet, s", round(time.monotonic() - started, 2))
    old = pid_of(first)
    assert text
    assert finish in {"stop", "length"}
    _, _, usage = ask(first, body(("user", "hello"), ("assistant", text), ("user", "What is 2+2?")))
    assert usage["cached"] >= 0.9 * usage["prompt_tokens"]
    first.close()
    assert gone(old)

    second = EmbeddedProvider(home)
    started = time.monotonic()
    again, _, usage = ask(second, body(("system", "another day"), ("user", "hello")))
    figure("demo model: first answer after a restart of its engine, s", round(time.monotonic() - started, 2))
    assert pid_of(second) != old
    assert usage["cached"] >= 0.9 * usage["prompt_tokens"]
    assert again == text
    second.close()


def test_the_prefix_with_six_tools_has_at_most_600_tokens(
    provider: EmbeddedProvider, figure: Callable[[str, object], None]
) -> None:
    count = provider.prefix_tokens(json.dumps(TOOLS).encode())
    figure("demo model: tokens of its prefix", count)
    assert len(render.render_prefix(json.dumps(TOOLS).encode())) > 1000
    assert 100 < count <= 600


def test_a_request_to_run_code_can_become_a_tool_call(provider: EmbeddedProvider) -> None:
    found = list(provider.stream(body(("user", "run print(6*7)"), tool_choice="required"), Cancel()))
    choices = [chunk["choices"][0] for chunk in found if chunk["choices"]]
    (call,) = [choice["delta"]["tool_calls"][0] for choice in choices if "tool_calls" in choice["delta"]]
    assert call["function"]["name"] in _SIGNATURES
    arguments = json.loads(call["function"]["arguments"])
    assert set(arguments) == set(_SIGNATURES[call["function"]["name"]])
    assert choices[-1]["finish_reason"] == "tool_calls"

    result = [{"role": "tool", "tool_call_id": call["id"], "content": "42"}]
    assistant = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    turn = [{"role": "user", "content": "run print(6*7)"}, *assistant, *result]
    asked = json.dumps({"model": "m", "tools": TOOLS, "messages": turn}).encode()
    text, finish, usage = ask(provider, asked)
    assert text
    assert finish in {"stop", "length"}
    assert usage["cached"] >= 0.9 * usage["prompt_tokens"]


def test_a_second_question_gets_its_tool_and_keeps_the_prefix_in_the_cache(provider: EmbeddedProvider) -> None:
    first = (("user", "My name is Anna\n"), ("assistant", "I'm glad you're here. How can I assist you?"))
    provider.warm(json.dumps(TOOLS).encode(), lambda _line: None)
    _, finish, usage = ask(provider, body(*first, ("user", "run print(6*7)\n")))
    alone = ask(provider, body(("user", "run print(6*7)")))
    assert (finish, usage["prompt_tokens"]) == (alone[1], alone[2]["prompt_tokens"])
    text, finish, usage = ask(provider, body(*first, ("user", "What was my name?")))
    assert text
    assert finish == "stop"
    assert usage["cached"] >= 0.9 * usage["prompt_tokens"]
    # One token of the decision, the others of the answer.
    assert 1 < usage["completion_tokens"] <= render.MAX_ANSWER_TOKENS + 1
    _, _, usage = ask(provider, body(*first, ("user", "What is a list?")))
    assert usage["cached"] >= 0.9 * usage["prompt_tokens"]


def test_a_damaged_state_is_read_anew_and_kept_again(home: Home) -> None:
    lines: list[str] = []
    provider = EmbeddedProvider(home)
    provider.warm(json.dumps(TOOLS).encode(), lines.append)
    provider.close()
    (state,) = home.engine_states.glob("*.state")
    good = state.stat().st_size
    state.write_bytes(state.read_bytes()[: good // 2])
    provider = EmbeddedProvider(home)
    _, _, usage = ask(provider, body(("user", "hello")))
    assert usage["cached"] >= 0.9 * usage["prompt_tokens"]
    assert state.stat().st_size == good
    provider.warm(json.dumps(TOOLS).encode(), lines.append)
    provider.close()
    assert lines[2:] == ["Read and kept", *lines[:2], "Already read"]


def test_a_cancel_while_the_model_reads_ends_at_once_and_the_next_request_works(provider: EmbeddedProvider) -> None:
    pid_of(provider)
    cancel = Cancel()
    ended: list[BaseException] = []

    def run() -> None:
        try:
            list(provider.stream(body(("user", "word " * 2000)), cancel))
        except Cancelled as exc:
            ended.append(exc)

    worker = threading.Thread(target=run)
    worker.start()
    assert not cancel.wait(0.5)
    cancel.cancel()
    worker.join(timeout=1.0)
    assert not worker.is_alive()
    assert len(ended) == 1
    text, _, _ = ask(provider, body(("user", "hello")))
    assert text


def test_a_closed_stream_frees_the_slot(provider: EmbeddedProvider) -> None:
    stream = provider.stream(body(("user", "Write a loop over a list")), Cancel())
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    text, _, _ = ask(provider, body(("user", "hello")))
    assert text


def test_a_full_window_is_an_overflow_with_the_next_step(provider: EmbeddedProvider) -> None:
    with pytest.raises(ContextOverflow, match=r"4096.*%hermes new"):
        ask(provider, body(("user", "word " * 5000)))
    text, finish, _ = ask(provider, body(("user", "hello"), max_tokens=1))
    assert text
    assert finish == "length"


def test_users_share_one_engine_and_the_last_one_ends_it(home: Home) -> None:
    first, second = EmbeddedProvider(home), EmbeddedProvider(home)
    pid = pid_of(first)
    assert pid_of(second) == pid
    first.close()
    first.close()
    assert not gone(pid)
    text, _, _ = ask(second, body(("user", "hello")))
    assert text
    second.close()
    assert gone(pid)
    with pytest.raises(ProviderUnavailable, match="closed"):
        ask(second, body(("user", "hello")))


def test_a_killed_engine_is_started_again(provider: EmbeddedProvider) -> None:
    pid = pid_of(provider)
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: gone(pid))
    text, _, _ = ask(provider, body(("user", "hello")))
    assert text
    assert pid_of(provider) != pid


def test_an_engine_that_dies_while_answering_is_a_retryable_error(provider: EmbeddedProvider) -> None:
    stream = provider.stream(body(("user", "What can you do?")), Cancel())
    next(stream)
    pid = pid_of(provider)
    os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: gone(pid))
    with pytest.raises(ProviderError) as caught:
        list(stream)
    assert caught.value.retryable
    text, _, _ = ask(provider, body(("user", "hello")))
    assert text


def test_two_processes_use_one_home_at_the_same_time(home: Home) -> None:
    code = (
        "import json, sys; from pathlib import Path\n"
        "from hermes_nb.core.paths import Home\n"
        "from hermes_nb.agent.embedded.provider import EmbeddedProvider\n"
        "lines = []\n"
        "provider = EmbeddedProvider(Home(Path(sys.argv[1])))\n"
        "provider.warm(sys.argv[2].encode(), lines.append)\n"
        "print(lines[-1])\n"
    )
    command = [sys.executable, "-c", code, str(home.root), json.dumps(TOOLS)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=200)[0].strip() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert set(said) <= {"Read and kept", "Already read"}
    assert len(list(home.engine_states.glob("*.state"))) == 1
    assert not list(home.engine_states.glob("*.part"))


_PARENT = """
import os, sys, time
from pathlib import Path
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.paths import Home
from hermes_nb.agent.embedded.engine import EngineUser
user = EngineUser(Home(Path(sys.argv[1])))
engine = user.engine(Cancel())
forked = os.fork()
if forked == 0:
    user.close()
    time.sleep(300)
    os._exit(0)
key = engine.server.key
assert key not in Path(f"/proc/{engine.pid}/cmdline").read_text()
assert key not in Path(f"/proc/{engine.pid}/environ").read_text()
print(engine.pid, forked, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("how", ["killed", "ends"])
def test_the_engine_ends_with_its_parent_even_while_a_fork_lives(home: Home, how: str) -> None:
    command = [sys.executable, "-c", _PARENT, str(home.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, forked = (int(word) for word in parent.stdout.readline().split())
        try:
            # The fork has closed its copy of the user: the parent's engine must not care.
            assert not gone(pid)
            if how == "killed":
                parent.kill()
            else:
                # Not communicate: the fork holds stdout open.
                assert parent.stdin is not None
                parent.stdin.close()
                parent.wait(timeout=30)
            assert eventually(lambda: gone(pid))
        finally:
            os.kill(forked, signal.SIGKILL)


def test_an_engine_that_cannot_start_says_why(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise RuntimeError('no such processor')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    provider = EmbeddedProvider(home)
    with pytest.raises(ProviderUnavailable, match=r"(?s)did not start.*no such processor"):
        ask(provider, body(("user", "hello")))
    provider.close()


def test_the_endpoint_is_labelled(provider: EmbeddedProvider) -> None:
    endpoint = provider.endpoint
    assert (endpoint.label, endpoint.dialect, endpoint.embedded) == (LABEL, "embedded", True)
    assert LABEL == "offline demo model"
    assert LABEL in endpoint.reason
    assert engine.available(Home(Path(os.environ["HERMES_NB_HOME"]))) is None
