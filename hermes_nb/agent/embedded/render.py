"""From a chat-completions body to the demo model's prompt: a pure, deterministic function.

Owns the short system prompt, the examples and the ChatML text. The body's own system message is not used:
the demo model has one prompt for everybody, so that the engine's saved state fits every session and every
day. Must not know the engine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from hermes_nb.agent.embedded.grammar import arguments_rule, grammar
from hermes_nb.prompt import recall

MAX_TOOLS: Final = 6
MAX_ANSWER_TOKENS: Final = 400
"""The model may repeat itself; an answer always ends here."""
MAX_TOOL_RESULT: Final = 1_200
"""Characters of a tool result that the demo model reads: head and tail. Its window is 4,096 tokens."""

ASSISTANT_START: Final = "<|im_start|>assistant\n"

_SYSTEM: Final = "You are Hermes, a small assistant inside a Jupyter notebook. You answer briefly."
_TOOLS_START: Final = "You have these tools:"
_RESULT_START: Final = "Tool result:\n"
_HARNESS_FACTS: Final = frozenset({"date", "surface", "masked", "approvals"})
_MAX_FACTS: Final = 400


@dataclass(frozen=True, slots=True)
class Shot:
    """One example exchange: what the user says, then words or a call (and, after its result, words)."""

    user: str
    text: str = ""
    tool: str = ""
    arguments: Mapping[str, str] | None = None
    result: str = ""


# Chosen by looking at the answers to 35 plain requests; each word and the order matter to so small a model.
SHOTS: Final[tuple[Shot, ...]] = (
    Shot("hello", "Hello! How can I help you?"),
    Shot("run len([1, 2, 3])", tool="python", arguments={"code": "len([1, 2, 3])"}),
    Shot("Thank you", "You are welcome!"),
)

_WHAT: Final[Mapping[str, str]] = {
    "python": "run Python code",
    "variables": "list the variables",
    "read_file": "read a file",
    "write_file": "write a file",
    "memory": "remember something",
    "session_search": "search old talks",
}
"""The tools that the examples know, in their order, in fewer words than their own descriptions."""


@dataclass(frozen=True, slots=True)
class DemoTool:
    """A tool as the demo model sees it. ``rule`` is the grammar of its arguments object."""

    name: str
    parameters: tuple[str, ...]
    what: str
    rule: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """``prefix`` is the same for every request with the same tools; ``turns`` is the conversation."""

    prefix: str
    turns: str
    grammar: str
    max_tokens: int


def render(body: Mapping[str, Any]) -> Rendered:
    """Return the prompt for ``body``. The same body gives the same text; a longer one begins with it."""
    tools = _tools(body.get("tools"))
    messages = cast("Sequence[Mapping[str, Any]]", body.get("messages") or ())
    turns = "".join(_turn(message) for message in messages)
    choice = body.get("tool_choice")
    # After a result the model would only repeat the call: it answers in words.
    words_only = not tools or choice == "none" or (bool(messages) and messages[-1].get("role") == "tool")
    asked = [value for key in ("max_tokens", "max_completion_tokens") if isinstance(value := body.get(key), int)]
    return Rendered(
        prefix=prefix(tools),
        turns=turns + ASSISTANT_START,
        grammar=grammar(
            {} if words_only else {tool.name: tool.rule for tool in tools},
            words=words_only or choice != "required",
        ),
        max_tokens=max(1, min([MAX_ANSWER_TOKENS, *asked])),
    )


def render_prefix(tools: bytes) -> str:
    """Return the prefix for the JSON array of tool schemas as sent (b"" for none)."""
    return prefix(_tools(json.loads(tools) if tools else None))


def prefix(tools: Sequence[DemoTool]) -> str:
    """Return everything before the first message of a conversation."""
    lines = [_SYSTEM]
    if tools:
        lines[0] += " " + _TOOLS_START
        lines += [f"{tool.name}({', '.join(tool.parameters)}): {tool.what}" for tool in tools]
    names = {tool.name for tool in tools}
    return _block("system", "\n".join(lines)) + "".join(
        part for shot in SHOTS if not shot.tool or shot.tool in names for part in _shot(shot)
    )


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in the one form that examples, history and grammar share."""
    return json.dumps({"tool": name, "args": arguments}, ensure_ascii=False)


def _shot(shot: Shot) -> Iterator[str]:
    yield _block("user", shot.user)
    if shot.tool:
        yield _block("assistant", call_text(shot.tool, shot.arguments or {}))
    if shot.result:
        yield _block("user", _RESULT_START + shot.result)
    if shot.text:
        yield _block("assistant", shot.text)


def _tools(schemas: Any) -> tuple[DemoTool, ...]:
    """Return at most six tools: those of the examples first, then others in the body's order."""
    functions = [
        cast("Mapping[str, Any]", schema["function"])
        for schema in cast("Sequence[Mapping[str, Any]]", schemas or ())
        if "function" in schema
    ]
    rank = {name: number for number, name in enumerate(_WHAT)}
    functions.sort(key=lambda function: rank.get(function["name"], len(rank)))
    found = (_tool(function) for function in functions)
    return tuple([tool for tool in found if tool is not None][:MAX_TOOLS])


def _tool(function: Mapping[str, Any]) -> DemoTool | None:
    """Return the tool with the arguments of its example, or its required ones; None if no grammar fits them."""
    name = str(function["name"])
    schema = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
    required = cast("Sequence[str]", schema.get("required") or ())
    example = next((shot.arguments or {} for shot in SHOTS if shot.tool == name), None)
    if example is not None and not (set(required) <= set(example) <= set(properties)):
        # The tool's signature is another one than the example's, which must then not be shown.
        return None
    keys = tuple(required) if example is None else tuple(example)
    rule = arguments_rule({key: properties.get(key, {}) for key in keys}, example or {})
    if rule is None:
        return None
    description = str(function.get("description") or "").strip().partition("\n")[0].partition(". ")[0]
    return DemoTool(name, keys, _WHAT.get(name) or _safe(description[:80]), rule)


def _turn(message: Mapping[str, Any]) -> str:
    role, text = message.get("role"), _safe(_text(message.get("content")))
    match role:
        case "user":
            return _block("user", _without_harness(text))
        case "tool":
            return _block("user", _RESULT_START + _cut(text))
        case "assistant":
            calls = cast("Sequence[Mapping[str, Any]]", message.get("tool_calls") or ())
            said = [text] if text else []
            return _block("assistant", "\n".join(said + [_call(call) for call in calls]))
        case _:
            return ""


def _call(call: Mapping[str, Any]) -> str:
    function = cast("Mapping[str, Any]", call.get("function") or {})
    raw = str(function.get("arguments") or "{}")
    try:
        arguments: Any = json.loads(raw)
    except ValueError:
        arguments = {}
    known = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    return _safe(call_text(str(function.get("name")), known))


def _text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = cast("Sequence[Mapping[str, Any]]", content or ())
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _without_harness(text: str) -> str:
    """Return the user's words with the facts about variables, without those that the demo model cannot use."""
    if not text.startswith(recall.OPEN) or recall.CLOSE not in text:
        return text
    block, _, said = text[len(recall.OPEN) :].partition(recall.CLOSE)
    facts: list[str] = []
    wanted = False
    for line in block.split("\n"):
        if not line.startswith("  "):
            wanted = line.partition(":")[0] not in _HARNESS_FACTS
        if wanted:
            facts.append(line)
    known = "\n".join(facts)[:_MAX_FACTS].strip()
    return f"{known}\n\n{said}" if known else said


def _cut(text: str) -> str:
    if len(text) <= MAX_TOOL_RESULT:
        return text
    head = MAX_TOOL_RESULT * 2 // 3
    return f"{text[:head]}\n…\n{text[head - MAX_TOOL_RESULT :]}"


def _safe(text: str) -> str:
    """Return ``text`` with the model's own marks broken, so that no content can end a message."""
    return text.replace("<|", "< |")


def _block(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"
