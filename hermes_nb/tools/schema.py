"""From a Python function to a tool: JSON schema out of signature and docstring, and the ``@tool`` decorator.

Knows types and docstrings only; checking a model's arguments against a schema is ``arguments.py``.
"""

from __future__ import annotations

import enum
import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, Union, cast, overload

from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import Parallel, Risk, Where
from hermes_nb.core.types import ToolResult
from hermes_nb.tools.tool import Tool, ToolContext

_F = TypeVar("_F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SCALARS: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_SECTION = re.compile(r"(?:args|arguments|parameters|params|keyword args|other parameters)\s*:?\s*$", re.IGNORECASE)
_END = re.compile(
    r"(?:returns?|yields?|raises?|examples?|notes?|see also|warnings?|references)\s*:?\s*$|:(?:return|raises?|rtype)",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SPHINX = re.compile(r":param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_ATTRIBUTE = "__hermes_tool__"


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON schema of ``function``'s arguments.

    A first parameter named ``context`` or annotated ToolContext is ours and not in the schema. Descriptions come
    from ``Annotated[..., "text"]`` or from the docstring (Google, NumPy, Sphinx, or plain ``name: text`` lines).
    Raises ConfigError for parameters that cannot be passed by name.
    """
    hints = _hints(function)
    described = describe(function)[1]
    properties: dict[str, Any] = {}
    required: list[str] = []
    extra = False
    for name, parameter in _parameters(function).items():
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ConfigError(
                f"The tool {function.__name__!r} has the parameter {name!r}, which cannot be passed by name. "
                "Give a tool ordinary parameters only."
            )
        optional = parameter.default is None
        field = schema_of_type(hints.get(name, Any), nullable=not optional)
        if name in described and "description" not in field:
            field = {**field, "description": described[name]}
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            default = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
            if default is not None and _is_json(default):
                field = {**field, "default": json.loads(json.dumps(default))}
        properties[name] = field
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": extra}


def schema_of_type(hint: Any, *, nullable: bool = True) -> dict[str, Any]:
    """Return the JSON schema of one annotation; an unknown type gives ``{}``, which means any JSON value.

    ``nullable`` false leaves ``None`` out of a union: leaving the argument out says the same, in a schema that is
    shorter and that more models follow.
    """
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        texts = [extra for extra in inner[1:] if isinstance(extra, str)]
        return {**schema_of_type(inner[0], nullable=nullable), **({"description": texts[0]} if texts else {})}
    if origin is Literal:
        return _choices(inner)
    if origin in (Union, types.UnionType):
        parts = [schema_of_type(part) for part in inner if nullable or part is not type(None)]
        if len(parts) == 1:
            return parts[0]
        simple = [part["type"] for part in parts if set(part) == {"type"}]
        return {"type": simple} if len(simple) == len(parts) else {"anyOf": parts}
    kind = origin or hint
    if not inspect.isclass(kind):
        return {}
    if issubclass(kind, enum.Enum):
        return _choices(tuple(member.value for member in kind))
    if issubclass(kind, PurePath):
        return {"type": "string"}
    if issubclass(kind, tuple) and inner and inner[-1] is not Ellipsis:
        merged = _merge([schema_of_type(part) for part in inner])
        return {"type": "array", "items": merged, "minItems": len(inner), "maxItems": len(inner)}
    if issubclass(kind, (str, bytes)):
        return {"type": "string"}
    if issubclass(kind, (Sequence, AbstractSet)):
        return {"type": "array", **({"items": schema_of_type(inner[0])} if inner else {})}
    if typing.is_typeddict(kind):
        fields = {name: schema_of_type(part) for name, part in typing.get_type_hints(kind).items()}
        return {"type": "object", "properties": fields, "required": sorted(cast(Any, kind).__required_keys__)}
    if issubclass(kind, Mapping):
        return {"type": "object", **({"additionalProperties": schema_of_type(inner[1])} if len(inner) == 2 else {})}
    return {}


def describe(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description and the text of each parameter, as the docstring gives them."""
    names = set(_parameters(function))
    lines = (inspect.getdoc(function) or "").splitlines()
    text: list[str] = []
    found: dict[str, str] = {}
    current: str | None = None
    state = "text"
    depth: int | None = None
    for index, line in enumerate(lines):
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        underlined = index + 1 < len(lines) and set(lines[index + 1].strip()) == {"-"}
        if _SECTION.fullmatch(bare) and (bare.endswith(":") or underlined):
            state, current, depth = ("numpy" if underlined else "list"), None, None
        elif _END.match(bare) and (bare.endswith(":") or underlined or bare.startswith(":")):
            state, current = "end", None
        elif state == "end" or (bare and set(bare) == {"-"}):
            continue
        elif sphinx := _SPHINX.match(bare):
            current, state, depth = sphinx[1], "list", indent
            found[sphinx[1]] = sphinx[2]
        elif state == "numpy":
            head = bare.split(":")[0].strip().lstrip("*")
            if bare and (depth is None or indent <= depth):
                depth, current = indent, head if head in names else None
            elif bare and current:
                found[current] = f"{found.get(current, '')} {bare}".strip()
        elif (entry := _ENTRY.match(bare)) and entry[1] in names and (depth is None or indent <= depth):
            current, depth = entry[1], indent
            found[entry[1]] = entry[2]
        elif current and bare and depth is not None and indent > depth:
            found[current] = f"{found[current]} {bare}".strip()
        elif state == "text":
            current = None
            text.append(line)
    return _unwrapped(text), {name: value for name, value in found.items() if name in names and value}


def _unwrapped(lines: Sequence[str]) -> str:
    """Join the lines of each paragraph; lists and indented lines keep theirs."""
    text = ""
    for line in (line.rstrip() for line in lines):
        starts_anew = not text or text.endswith("\n") or not line or re.match(r"\s|[-*] |\d+[.)] ", line)
        text += f"\n{line}" if starts_anew else f" {line}"
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def tool_of(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    toolset: str = "user",
    risk: Risk | str = Risk.EXECUTE,
    parallel: Parallel | str = Parallel.NEVER,
    where: Where | str = Where.PROCESS,
    check: Callable[[], str | None] | None = None,
    aliases: Sequence[Mapping[str, Any]] = (),
) -> Tool:
    """Build the Tool of ``function``. What the function returns becomes text: JSON where it can, else ``str``.

    Raises ConfigError when the name or the signature cannot be offered to a model.
    """
    called = name or function.__name__
    if not _NAME.fullmatch(called):
        raise ConfigError(f"{called!r} cannot be a tool's name. Use a named function, or letters, digits, _ and -.")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"The tool {called!r} is an async function. Make it an ordinary function.")
    return Tool(
        name=called,
        description=description or describe(function)[0] or called.replace("_", " "),
        parameters=schema_of(function),
        handler=_handler(function),
        toolset=toolset,
        risk=Risk(risk),
        parallel=Parallel(parallel),
        where=Where(where),
        check=check,
        aliases=tuple(aliases),
    )


@overload
def tool(function: _F, /) -> _F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    toolset: str = "user",
    risk: Risk | str = Risk.EXECUTE,
    parallel: Parallel | str = Parallel.NEVER,
) -> Callable[[_F], _F]: ...
def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    toolset: str = "user",
    risk: Risk | str = Risk.EXECUTE,
    parallel: Parallel | str = Parallel.NEVER,
) -> Any:
    """Make a plain function a tool; the function itself stays as it is and can be called as before."""

    def mark(target: _F) -> _F:
        made = tool_of(
            target,
            name=name,
            description=description,
            toolset=toolset,
            risk=risk,
            parallel=parallel,
        )
        setattr(target, _ATTRIBUTE, made)
        return target

    return mark if function is None else mark(function)


def declared(value: Any) -> Tool | None:
    """Return the Tool that ``@tool`` made of a function, or None."""
    # Only a function's own dictionary is looked at: objects that invent attributes would answer anything.
    made = getattr(value, "__dict__", {}).get(_ATTRIBUTE) if inspect.isfunction(value) else None
    return made if isinstance(made, Tool) else None


def _handler(function: Callable[..., Any]) -> Callable[..., ToolResult | str]:
    takes_context = _takes_context(function)
    hints = _hints(function)
    enums = {name: hint for name, hint in hints.items() if inspect.isclass(hint) and issubclass(hint, enum.Enum)}
    paths = {name: hint for name, hint in hints.items() if inspect.isclass(hint) and issubclass(hint, PurePath)}

    @functools.wraps(function)
    def call(context: ToolContext, /, **arguments: Any) -> ToolResult | str:
        for name, kind in {**enums, **paths}.items():
            if name in arguments and not isinstance(arguments[name], kind):
                arguments[name] = kind(arguments[name])
        value = function(context, **arguments) if takes_context else function(**arguments)
        if isinstance(value, (ToolResult, str)):
            return value
        if value is None:
            return "Done; the function returned nothing."
        return json.dumps(value, ensure_ascii=False, indent=1) if _is_json(value) else str(value)

    return call


def _takes_context(function: Callable[..., Any]) -> bool:
    first = next(iter(inspect.signature(function).parameters.values()), None)
    return first is not None and (first.name == "context" or first.annotation in (ToolContext, "ToolContext"))


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    if _takes_context(function):
        del parameters[next(iter(parameters))]
    return parameters


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError):
        # A forward reference that cannot be resolved here: every parameter then accepts any JSON value.
        return {}


def _choices(values: Sequence[Any]) -> dict[str, Any]:
    kinds = sorted({name for value in values for kind, name in _SCALARS.items() if type(value) is kind})
    return {**({"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}), "enum": list(values)}


def _merge(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    distinct = [part for index, part in enumerate(parts) if part not in parts[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
