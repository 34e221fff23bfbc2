"""From the raw argument text of a tool call to checked values; nothing here runs a tool.

Small models write small mistakes: empty text for no arguments, numbers as text, null for an omitted option. Those
are accepted where only one meaning is possible. Anything else is refused with what is wrong and the signature.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from hermes_nb.core.errors import ToolArgumentsInvalid
from hermes_nb.core.wirejson import clean_text
from hermes_nb.tools.tool import Tool


class _Unfit(ValueError):
    """A value does not fit its schema; the text says how."""


def parse(tool: Tool, raw: str) -> dict[str, Any]:
    """Return the arguments of one call, checked against every schema the tool has ever published.

    ``""``, blanks and ``null`` mean no arguments. Raises ToolArgumentsInvalid; the tool must then not run.
    """
    value = _load(tool, raw)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _load(tool, value)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise _invalid(tool, f"they are {_kind(value)}, not a JSON object")
    return check(tool, cast("dict[str, Any]", value))


def check(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``arguments`` with safe coercions applied; raises ToolArgumentsInvalid when no schema fits."""
    cleaned = cast("dict[str, Any]", _clean(dict(arguments)))
    first: _Unfit | None = None
    for schema in (tool.parameters, *tool.aliases):
        try:
            return _object(cleaned, schema, "")
        except _Unfit as unfit:
            first = first or unfit
    raise _invalid(tool, str(first)) from first


def signature(tool: Tool) -> str:
    """Return the call's form as one line, e.g. ``read_file(path: string, start: integer = 1)``."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    parts: list[str] = []
    for name, field in properties.items():
        default = "" if name in required else f" = {json.dumps(field.get('default'), ensure_ascii=False)}"
        parts.append(f"{name}: {_name_of(field)}{default}")
    return f"{tool.name}({', '.join(parts)})"


def near(name: str, known: Sequence[str]) -> str:
    """Return `` Did you mean …?`` with the nearest known names, or an empty text."""
    found = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(one) for one in found)}?" if found else ""


def _load(tool: Tool, raw: str) -> Any:
    if not raw.strip():
        return None
    try:
        # strict=False: a raw line break inside a string is a frequent slip with one possible meaning.
        return json.loads(raw, strict=False, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        raise _invalid(tool, f"they are not valid JSON ({exc.msg} at character {exc.pos} of {len(raw)})") from exc
    except (ValueError, RecursionError) as exc:
        raise _invalid(tool, f"they are not usable JSON ({exc})") from exc


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON value")


def _invalid(tool: Tool, what: str) -> ToolArgumentsInvalid:
    return ToolArgumentsInvalid(
        f"The arguments of {tool.name} cannot be used: {what}. Nothing was run. Call it as {signature(tool)}."
    )


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {clean_text(str(name)): _clean(item) for name, item in cast("dict[Any, Any]", value).items()}
    return value


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required: Sequence[str] = schema.get("required", ())
    extra: Any = schema.get("additionalProperties", not properties)
    fitted: dict[str, Any] = {}
    for name, item in value.items():
        path = f"{where}.{name}" if where else name
        if name in properties:
            if item is None and name not in required and not _allows_null(properties[name]):
                continue
            fitted[name] = _fit(item, properties[name], path)
        elif extra is False:
            free = [known for known in properties if known not in value]
            hint = near(name, free) or (f" It has: {', '.join(properties)}." if properties else " It takes none.")
            raise _Unfit(f"there is no argument {path!r}.{hint}".rstrip("."))
        else:
            fitted[name] = _fit(item, cast("Mapping[str, Any]", extra), path) if isinstance(extra, dict) else item
    missing = [name for name in required if name not in value]
    if missing:
        raise _Unfit(f"{' and '.join(repr(name) for name in missing)} is missing{f' in {where}' if where else ''}")
    return fitted


def _fit(value: object, schema: Mapping[str, Any], where: str) -> object:
    if "anyOf" in schema:
        reasons: list[str] = []
        # A part that fits as it stands wins over one that fits after coercion.
        for option in schema["anyOf"]:
            if "type" in option and _is(value, option["type"]):
                try:
                    return _fit(value, option, where)
                except _Unfit as unfit:
                    reasons.append(str(unfit))
        for option in schema["anyOf"]:
            try:
                return _fit(value, option, where)
            except _Unfit as unfit:
                reasons.append(str(unfit))
        raise _Unfit(reasons[0])
    declared = schema.get("type")
    kinds: list[str] = [declared] if isinstance(declared, str) else list(declared or ())
    if kinds and not any(_is(value, kind) for kind in kinds):
        value = _coerce(value, kinds, where)
    if "enum" in schema and value not in schema["enum"]:
        choices: list[Any] = list(schema["enum"])
        hint = near(str(value), [str(choice) for choice in choices])
        raise _Unfit(f"{where!r} is {_short(value)}; it can be {', '.join(map(_short, choices))}.{hint}".rstrip("."))
    if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
        return _object(cast("dict[str, Any]", value), schema, where)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if len(items) < low or (high is not None and len(items) > high):
            raise _Unfit(f"{where!r} has {len(items)} items; it needs {low if low == high else f'at least {low}'}")
        if isinstance(schema.get("items"), dict):
            return [_fit(item, schema["items"], f"{where}[{index}]") for index, item in enumerate(items)]
        return items
    return cast(object, value)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, (list, tuple)):
        return any(_is(value, one) for one in cast("list[Any]", kind))
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return True


def _coerce(value: Any, kinds: Sequence[str], where: str) -> Any:
    """Return the one JSON value of ``kinds`` that ``value`` can mean."""
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return int(value)
    if isinstance(value, str):
        try:
            meant = json.loads(value.strip().lower() if "boolean" in kinds else value, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            meant = value
        if isinstance(meant, float) and meant.is_integer() and "integer" in kinds and "number" not in kinds:
            meant = int(meant)
        if any(_is(meant, kind) for kind in kinds):
            return meant
        if kinds == ["array"]:
            return [value]
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and kinds == ["string"]:
        return json.dumps(value)
    raise _Unfit(f"{where!r} is {_kind(value)} ({_short(value)}), but {_article(' or '.join(kinds))} is needed")


def _allows_null(schema: Mapping[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_allows_null(option) for option in schema["anyOf"])
    kind = schema.get("type")
    return kind is None or kind == "null" or (not isinstance(kind, str) and "null" in kind)


def _name_of(field: Mapping[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in field["enum"])
    if "anyOf" in field:
        return " | ".join(_name_of(option) for option in field["anyOf"])
    kind = field.get("type", "any")
    return kind if isinstance(kind, str) else " | ".join(kind)


def _kind(value: Any) -> str:
    kinds = ("string", "boolean", "integer", "number", "array", "object")
    return "null" if value is None else _article(next((kind for kind in kinds if _is(value, kind)), "value"))


def _article(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
