"""The scripted server as a process of its own, as kernels and browsers use it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import support.model_server as server_module

from hermes_nb.agent.body import head, join
from hermes_nb.agent.fold import Fold
from hermes_nb.agent.provider import Endpoint
from hermes_nb.agent.provider_openai import OpenAIProvider
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ProviderUnavailable
from hermes_nb.core.types import Prefix, Wire


@pytest.fixture
def served(tmp_path: Path) -> Iterator[OpenAIProvider]:
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"rules": [{"match": "^weather", "steps": [{"say": "sunny"}]}]}))
    command = [sys.executable, str(server_module.__file__), "--script", str(rules), "--capture", str(tmp_path / "seen")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield OpenAIProvider(Endpoint(process.stdout.readline().strip(), "m", None, "test"))
        process.terminate()


def ask(provider: OpenAIProvider, messages: list[Wire]) -> Fold:
    fold = Fold()
    body = join(head("m"), Prefix("p", b"", b""), [json.dumps(message) for message in messages])
    for chunk in provider.stream(body, Cancel()):
        fold.feed(chunk)
    fold.close()
    return fold


def test_the_users_message_or_a_rule_carries_the_script(served: OpenAIProvider, tmp_path: Path) -> None:
    script = [{"call": "python", "args": {"code": "1+1"}}, {"status": 500, "times": 1}, {"say": "It is 2."}]
    messages: list[Wire] = [{"role": "user", "content": f"sum it. SCRIPT {json.dumps(script)} please"}]
    first = ask(served, messages)
    assert (first.tool_calls[0].name, json.loads(first.tool_calls[0].arguments)) == ("python", {"code": "1+1"})
    messages += [first.wire(), {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "2"}]
    with pytest.raises(ProviderUnavailable):
        ask(served, messages)
    last = ask(served, messages)
    assert last.text == "It is 2."
    messages += [last.wire(), {"role": "user", "content": "weather?"}]
    assert ask(served, messages).text == "sunny"
    messages += [{"role": "user", "content": "and now?"}]
    assert ask(served, messages).text == "Done."
    assert len(list((tmp_path / "seen").glob("*.json"))) == 5
