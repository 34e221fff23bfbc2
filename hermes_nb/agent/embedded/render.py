"""From a chat-completions body to the demo model's prompt: a pure, deterministic function.

Owns the short system prompt, the examples and the ChatML text. The body's own system message is not used:
the demo model has one prompt for everybody, so that the engine's saved state fits every session and every
day. Of the conversation it shows the current turn, and what ``talk`` chooses. Must not know the engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from hermes_nb.agent.embedded import talk
from hermes_nb.agent.embedded.grammar import arguments_rule, grammar
from hermes_nb.core.wirejson import clean_text
from hermes_nb.prompt import recall

MAX_TOOLS: Final = 6
MAX_ANSWER_TOKENS: Final = 200
"""An answer always ends here: what so small a model says after that is of no use."""
MAX_TOOL_RESULT: Final = 1_200
"""Characters of a tool result that the demo model reads: head and tail. Its window is 4,096 tokens."""

USER_START: Final = "<|im_start|>user\n"
ASSISTANT_START: Final = "<|im_start|>assistant\n"

_BLOCK_END: Final = "<|im_end|>\n"
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
    verb: str = ""
    arguments: Mapping[str, str] | None = None
    result: str = ""


# Chosen by looking at the answers to 35 plain requests; each word and the order matter to so small a model.
SHOTS: Final[tuple[Shot, ...]] = (
    Shot("Thank you", "You are welcome!"),
    Shot("run this code: a = 1; print(a)", verb="run", arguments={"code": "a = 1; print(a)"}),
    Shot("What is the capital of Italy?", "The capital of Italy is Rome."),
    Shot("which variables are there?", verb="list"),
    Shot("What can you do?", "I can answer questions and run Python code in your notebook."),
    Shot("describe the variable prices", verb="run", arguments={"code": "prices.describe()"}),
    Shot("Write a loop over a list", "```python\nfor item in items:\n    print(item)\n```"),
    Shot("read the file data.csv", verb="read", arguments={"path": "data.csv"}),
    Shot("hello", "Hello! How can I help you?"),
    Shot("remember that I like tea", verb="remember", arguments={"action": "add", "content": "I like tea"}),
    Shot("Who are you?", "I am Hermes, a small assistant in your notebook."),
    Shot("run sum([4, 5])", "The result is 9.", verb="run", arguments={"code": "sum([4, 5])"}, result="9"),
    Shot("What is a list?", "A list is an ordered collection of items, for example [1, 2, 3]."),
    Shot("calculate 15*20 with python", verb="calculate", arguments={"code": "15*20"}),
    Shot("How are you?", "I am fine, thank you. How can I help you?"),
    Shot("hi", "Hi! How can I help you?"),
)


@dataclass(frozen=True, slots=True)
class _Known:
    what: str
    verbs: tuple[str, ...]
    keys: tuple[str, ...] = ()
    asked_with: re.Pattern[str] | None = None
    """What a message must say so that this tool may be called; None: anything."""


def _any(*starts: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(starts)})", re.IGNORECASE)


_KNOWN: Final[Mapping[str, _Known]] = {
    "python": _Known(
        "run Python code",
        ("run", "calculate", "compute", "describe", "execute", "plot", "show"),
        ("code",),
        re.compile(
            r"[()=*+/]|\b(?:run|re-?run|calc|comput|execut|eval|descri|plot|draw|show|print|display|sum|count|mean|aver|again)",
            re.IGNORECASE,
        ),
    ),
    "variables": _Known(
        "list the variables",
        ("list", "variables", "which"),
        asked_with=_any("variable", "namespace", "defined", "names"),
    ),
    "read_file": _Known("read a file", ("read", "open"), ("path",), _any("read", "open", "file", "load")),
    "write_file": _Known("save a file", ("save",), ("path", "content"), _any("save", "file", "store")),
    "memory": _Known(
        "remember something", ("remember", "note"), ("action", "content"), _any("remember", "note", "memor")
    ),
    "session_search": _Known("search old talks", ("search", "find"), ("query",), _any("search", "find", "look")),
}
"""What each tool does in few words, the verbs by which the demo model may call it, and the arguments it gives.

So small a model repeats the user's verb far more reliably than it learns a name: with the tools' own names it chose
the right one half as often. It also calls a tool that nobody spoke of; so a tool whose subject the message does not
name is not offered to it for that message.
"""
_TOOL_OF: Final[Mapping[str, str]] = {verb: name for name, known in _KNOWN.items() for verb in known.verbs}


@dataclass(frozen=True, slots=True)
class DemoTool:
    """A tool as the demo model sees it. ``rule`` is the grammar of its arguments object."""

    name: str
    verbs: tuple[str, ...]
    parameters: tuple[str, ...]
    what: str
    rule: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """``prefix`` is the same for every request with the same tools; ``turn`` is what the model answers.

    With ``recalled`` the message refers back: ``turn`` then decides only whether a tool is called, and words come
    from ``recalled`` instead, which has earlier exchanges before the same message.
    """

    prefix: str
    turn: str
    recalled: str | None
    verbs: Mapping[str, str]
    """The tool that each verb of a call means."""
    grammar: str
    words: str
    """The grammar of words alone, for ``recalled``."""
    max_tokens: int
    own_limit: bool
    """Whether ``max_tokens`` is ours and not the caller's."""


def render(body: Mapping[str, Any]) -> Rendered:
    """Return the prompt for ``body``. The same body gives the same text."""
    tools = _tools(body.get("tools"))
    messages = cast("Sequence[Mapping[str, Any]]", body.get("messages") or ())
    earlier, current = _split(messages)
    choice = body.get("tool_choice")
    # After a result the model would only repeat the call: it answers in words.
    answers = bool(messages) and messages[-1].get("role") == "tool"
    must_call = choice == "required"
    said = _said(current[0]) if current else ""
    own_words = _words(current[0]) if current else ""
    # Reversed: a plug-in's tool that is named like a verb does not take the verb away.
    by_verb = {verb: tool for tool in reversed(tools) for verb in tool.verbs}
    offered = {
        verb: tool.rule
        for verb, tool in by_verb.items()
        if not answers and choice != "none" and (must_call or _fits(tool, own_words))
    }
    turn = "".join(_turn(message) for message in current) + ASSISTANT_START
    if told := _told(earlier, own_words, said):
        turn = turn.replace(USER_START, f"{USER_START}{told}\n\n", 1)
    recalled = None
    if earlier and not answers and not must_call and talk.refers_back(own_words):
        recalled = _recalled(_exchanges(earlier), own_words, turn)
        if not offered:
            turn, recalled = recalled, None
        elif talk.asks_again(own_words):
            turn = _last_call(earlier) + turn
    limits = [value for key in ("max_tokens", "max_completion_tokens") if isinstance(value := body.get(key), int)]
    return Rendered(
        prefix=prefix(tools),
        turn=turn,
        recalled=recalled,
        verbs={verb: tool.name for verb, tool in by_verb.items()},
        grammar=grammar(offered, words=not must_call),
        words=grammar({}, words=True),
        max_tokens=max(1, min([MAX_ANSWER_TOKENS, *limits])),
        own_limit=not limits or min(limits) > MAX_ANSWER_TOKENS,
    )


def render_prefix(tools: bytes) -> str:
    """Return the prefix for the JSON array of tool schemas as sent (b"" for none)."""
    return prefix(_tools(json.loads(tools) if tools else None))


def prefix(tools: Sequence[DemoTool]) -> str:
    """Return everything before the first message of a conversation."""
    lines = [_SYSTEM]
    if tools:
        lines[0] += " " + _TOOLS_START
        lines += [f"{tool.verbs[0]}({', '.join(tool.parameters)}): {tool.what}" for tool in tools]
    names = {tool.name for tool in tools}
    return _block("system", "\n".join(lines)) + "".join(
        part for shot in SHOTS if not shot.verb or _TOOL_OF[shot.verb] in names for part in _shot(shot)
    )


def call_text(verb: str, arguments: Mapping[str, Any]) -> str:
    """Return a call in the one form that examples, history and grammar share."""
    return json.dumps({verb: arguments}, ensure_ascii=False)


def _shot(shot: Shot) -> Iterator[str]:
    yield _block("user", shot.user)
    if shot.verb:
        yield _block("assistant", call_text(shot.verb, shot.arguments or {}))
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
    rank = {name: number for number, name in enumerate(_KNOWN)}
    functions.sort(key=lambda function: rank.get(function["name"], len(rank)))
    found = (_tool(function) for function in functions)
    return tuple([tool for tool in found if tool is not None][:MAX_TOOLS])


def _tool(function: Mapping[str, Any]) -> DemoTool | None:
    """Return the tool with the arguments of its examples, or its required ones; None if it has another signature
    than the examples, or one that no grammar fits.
    """
    name = str(function["name"])
    schema = cast("Mapping[str, Any]", function.get("parameters") or {})
    properties = cast("Mapping[str, Mapping[str, Any]]", schema.get("properties") or {})
    required = cast("Sequence[str]", schema.get("required") or ())
    known = _KNOWN.get(name)
    if known is None:
        description = str(function.get("description") or "").strip().partition("\n")[0].partition(". ")[0]
        known = _Known(_safe(description[:80]), (name,), tuple(required))
    if not set(required) <= set(known.keys) <= set(properties):
        return None
    examples = [shot.arguments for shot in SHOTS if shot.verb and _TOOL_OF[shot.verb] == name]
    example = (examples[0] if examples else None) or {}
    rule = arguments_rule({key: properties[key] for key in known.keys}, example)
    return None if rule is None else DemoTool(name, known.verbs, known.keys, known.what, rule)


def _fits(tool: DemoTool, said: str) -> bool:
    known = _KNOWN.get(tool.name)
    return known is None or known.asked_with is None or known.asked_with.search(said) is not None


def _split(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]:
    """Return the messages before the current turn, and the turn: from the last user message on."""
    last = max((number for number, one in enumerate(messages) if one.get("role") == "user"), default=0)
    return messages[:last], messages[last:]


def _last_call(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the last turn's request and call as an example of what to do again, or nothing when it called nothing."""
    _, turn = _split(messages)
    called = next((one for one in turn if one.get("tool_calls")), None)
    return _turn(turn[0]) + _turn(called) if called is not None else ""


def _exchanges(messages: Sequence[Mapping[str, Any]]) -> list[talk.Exchange]:
    found: list[talk.Exchange] = []
    said = answered = ""
    for message in messages:
        text = _safe(_text(message.get("content"))).strip()
        match message.get("role"):
            case "user":
                found.append(talk.Exchange(said, answered))
                said, answered = _words(message), ""
            case "tool" | "assistant":
                answered = text or answered
            case _:
                continue
    return [*found, talk.Exchange(said, answered)]


def _recalled(exchanges: Sequence[talk.Exchange], words: str, turn: str) -> str:
    """Return ``turn`` with what ``words`` refer back to."""
    if stated := talk.stated(exchanges, words):
        return turn.replace(USER_START, f"{USER_START}{stated}\n\n", 1)
    shown = talk.history(exchanges, words)
    return "".join(_block("user", one.said) + _block("assistant", one.answered) for one in shown) + turn


def _told(messages: Sequence[Mapping[str, Any]], words: str, said: str) -> str:
    """Return what earlier messages told about the variables that ``words`` name, as each fact is told only once.

    A fact that ``said`` has itself is newer.
    """
    facts: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "user":
            facts.update(_parts(_safe(_text(message.get("content"))))[0])
    named = set(re.findall(r"\w+", words))
    return "\n".join(text for name, text in facts.items() if name in named and not f"\n{said}".count(f"\n{name}:"))[
        :_MAX_FACTS
    ]


def _words(message: Mapping[str, Any]) -> str:
    return _parts(_safe(_text(message.get("content"))).strip())[1]


def _said(message: Mapping[str, Any]) -> str:
    """Return a user message's words with its facts. A cell ends with a line end, which the model would notice."""
    facts, said = _parts(_safe(_text(message.get("content"))).strip())
    known = "\n".join(facts.values())[:_MAX_FACTS].strip()
    return f"{known}\n\n{said}" if known else said


def _turn(message: Mapping[str, Any]) -> str:
    role, text = message.get("role"), _safe(_text(message.get("content")))
    match role:
        case "user":
            return _block("user", _said(message))
        case "tool":
            return _block("user", _RESULT_START + _cut(text.strip()))
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
    name = str(function.get("name"))
    verb = _KNOWN[name].verbs[0] if name in _KNOWN else name
    return _safe(call_text(verb, known))


def _text(content: Any) -> str:
    """Return the text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = cast("Sequence[Mapping[str, Any]]", content or ())
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _parts(text: str) -> tuple[dict[str, str], str]:
    """Return the facts about variables in a user message by name, and the user's words."""
    if not text.startswith(recall.OPEN) or recall.CLOSE not in text:
        return {}, text.strip()
    block, _, said = text[len(recall.OPEN) :].partition(recall.CLOSE)
    facts: dict[str, str] = {}
    name = ""
    for line in block.split("\n"):
        if not line.startswith("  "):
            name = line.partition(":")[0]
            facts[name] = line
        elif name:
            facts[name] += f"\n{line}"
    return {name: fact for name, fact in facts.items() if name not in _HARNESS_FACTS}, said.strip()


def _cut(text: str) -> str:
    if len(text) <= MAX_TOOL_RESULT:
        return text
    head = MAX_TOOL_RESULT * 2 // 3
    return f"{text[:head]}\n…\n{text[head - MAX_TOOL_RESULT :]}"


def _safe(text: str) -> str:
    """Return ``text`` with the model's own marks broken, so that no content can end a message."""
    return clean_text(text).replace("<|", "< |")


def _block(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}{_BLOCK_END}"
