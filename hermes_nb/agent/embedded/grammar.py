"""The grammar of one step of the demo model: words, or one tool call as JSON. Knows no tool by name.

Notation: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
Words stay plain text: inside a JSON string the same model was measured to answer far worse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, cast

_WORDS: Final = r'[^{"<\n\t ] ([^<] | "<" [^|])*'
_RULES: Final[Mapping[str, str]] = {
    "string": r'"\"" ([^"\\\x00-\x1f] | "\\" ["\\/nrt])* "\""',
    "integer": r'"-"? ("0" | [1-9] [0-9]?[0-9]?[0-9]?[0-9]?[0-9]?)',
    "number": r'integer ("." [0-9] [0-9]?[0-9]?)?',
    "boolean": r'"true" | "false"',
    "strings": r'"[" (string (", " string)*)? "]"',
}


def grammar(calls: Mapping[str, str], *, words: bool) -> str:
    """Return the grammar of a step: one of ``calls`` (verb → rule of its arguments), or words, or either."""
    ways = ["call"] * bool(calls) + ["words"] * (words or not calls)
    lines = [f"root ::= {' | '.join(ways)}"]
    if calls:
        heads = " | ".join(_literal(f"{json.dumps(verb)}: ") + " " + rule for verb, rule in calls.items())
        lines.append(f"call ::= {_CALL_START} ({heads}) {_CALL_END}")
        lines += [f"{name} ::= {rule}" for name, rule in _RULES.items()]
    if "words" in ways:
        lines.append(f"words ::= {_WORDS}")
    return "\n".join(lines) + "\n"


def arguments_rule(properties: Mapping[str, Mapping[str, Any]], fixed: Mapping[str, str]) -> str | None:
    """Return the rule of an object with exactly these properties in order, or None if a type has no rule.

    A property with a closed list of values takes the one in ``fixed``, or any of the list.
    """
    parts: list[str] = []
    for key, schema in properties.items():
        rule = _value_rule(schema, fixed.get(key))
        if rule is None:
            return None
        separator = ", " if parts else ""
        parts.append(_literal(f"{separator}{json.dumps(key)}: ") + " " + rule)
    return " ".join([_literal("{"), *parts, _literal("}")])


def _value_rule(schema: Mapping[str, Any], fixed: str | None) -> str | None:
    values: list[Any] = [schema["const"]] if "const" in schema else list(schema.get("enum") or ())
    if values:
        chosen = [fixed] if fixed in values else values
        return f"({' | '.join(_literal(json.dumps(value)) for value in chosen)})"
    kind: Any = schema.get("type")
    if isinstance(kind, list):
        # "string or null": the value that says something.
        kind = next((one for one in cast("list[Any]", kind) if one != "null"), None)
    if kind == "array":
        items: Any = schema.get("items") or {}
        return "strings" if items.get("type") == "string" else None
    return str(kind) if kind in _RULES else None


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_CALL_START: Final = _literal("{")
_CALL_END: Final = _literal("}")
