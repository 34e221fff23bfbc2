"""One answer is one request, or two when the message refers back: first the decision, then the words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.agent.embedded.provider import answer
from hermes_nb.agent.embedded.render import Rendered, render
from hermes_nb.core.cancel import Cancel
from tests.support.llama_server import FakeLlama, LlamaScript, words

_PARAMETERS = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
TOOLS = [{"type": "function", "function": {"name": "python", "description": "Run it.", "parameters": _PARAMETERS}}]
BEFORE = [("user", "What is a town?"), ("assistant", "A place.")]


def asked(*messages: tuple[str, str]) -> Rendered:
    return render({"tools": TOOLS, "messages": [{"role": role, "content": text} for role, text in messages]})


def answered(folder: Path, script: LlamaScript, what: Rendered) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the bodies that the engine got, and the chunks."""
    with FakeLlama(folder, script) as fake:
        from_engine = list(answer(LlamaServer(fake.url, "key"), what, "m", Cancel()))
        return [body for _, body in fake.requests], from_engine


def test_a_message_that_stands_alone_is_one_request(tmp_path: Path) -> None:
    what = asked(*BEFORE, ("user", "run print(1)"))
    bodies, found = answered(tmp_path, LlamaScript(words("One.")), what)
    (body,) = bodies
    assert body["prompt"] == what.prefix + what.turn
    assert found[-1]["usage"]["completion_tokens"] == 1


def test_words_after_a_decision_come_from_the_history_with_both_steps_counted(tmp_path: Path) -> None:
    what = asked(*BEFORE, ("user", "Show me more"))
    bodies, found = answered(tmp_path, LlamaScript(words("A big ", "place.", prompt=9), first="It"), what)
    first, second = bodies
    assert (first["n_predict"], first["prompt"]) == (1, what.prefix + what.turn)
    assert second["prompt"] == what.prefix + (what.recalled or "")
    assert "call ::=" not in second["grammar"]
    assert first["id_slot"] == second["id_slot"] == 0
    assert first["cache_prompt"] and second["cache_prompt"]
    assert found[-1]["usage"]["completion_tokens"] == 3
    assert found[-1]["usage"]["prompt_tokens"] == 9


def test_a_decided_call_is_made_without_the_history(tmp_path: Path) -> None:
    what = asked(*BEFORE, ("user", "Show me more"))
    script = LlamaScript(words('{"', 'run": {"code": "1"}}'), first='{"')
    bodies, found = answered(tmp_path, script, what)
    assert [body["prompt"] for body in bodies] == [what.prefix + what.turn] * 2
    assert [one["choices"][0]["finish_reason"] for one in found if one["choices"]][-1] == "tool_calls"
    assert found[-1]["usage"]["completion_tokens"] == 3
