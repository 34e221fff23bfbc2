"""Which tools a session is offered, and their schemas as sent.

enabled → expanded with includes → plug-ins' tools merged → disabled subtracted (always last) → checks. The result
is decided once, when a prefix is built; afterwards tools are only masked for a turn (``mask_for``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hermes_nb.core.wirejson import dumpb
from hermes_nb.tools.arguments import near
from hermes_nb.tools.registry import Registry, Toolset
from hermes_nb.tools.tool import Tool

EVERYTHING = frozenset({"all", "*"})


@dataclass(frozen=True, slots=True)
class Selection:
    """``sent`` is what the model sees, sorted by name; ``masked`` says why each other tool is not there."""

    sent: tuple[Tool, ...]
    masked: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def resolve(registry: Registry, enabled: Sequence[str] | None = None, disabled: Sequence[str] = ()) -> Selection:
    """Choose the tools of a session; names may be toolsets or single tools, None or ``all`` means everything."""
    warnings: list[str] = []
    wanted = expand(registry, ["all"] if enabled is None else enabled, warnings, "toolsets.enabled")
    unwanted = expand(registry, disabled, warnings, "toolsets.disabled")
    sent: list[Tool] = []
    masked: dict[str, str] = {}
    for name in registry.names():
        if name in unwanted:
            masked[name] = f"The tool {name} is disabled in this session (toolsets.disabled)."
        elif name not in wanted:
            masked[name] = f"The tool {name} is not enabled in this session (toolsets.enabled)."
        else:
            tool = registry.get(name)
            reason = _problem(tool)
            if reason:
                masked[name] = f"The tool {name} cannot work here: {reason}"
            else:
                sent.append(tool)
    return Selection(tuple(sent), masked, tuple(dict.fromkeys(warnings)))


def _problem(tool: Tool) -> str | None:
    if tool.check is None:
        return None
    try:
        return tool.check()
    except Exception as exc:  # noqa: BLE001 - a check may be a plug-in's; one that fails must not take all tools along
        return f"its check failed ({type(exc).__name__}: {exc})"


def mask_for(
    registry: Registry, sent: Iterable[str], *, only: Sequence[str] = (), without: Sequence[str] = ()
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the refusals that hold for one turn (``-t``, ``--without``) over the tools ``sent``, and warnings."""
    warnings: list[str] = []
    kept = expand(registry, only, warnings, "-t") if only else None
    dropped = expand(registry, without, warnings, "--without")
    masked: dict[str, str] = {}
    for name in sent:
        if name in dropped:
            masked[name] = f"The tool {name} is switched off for this turn (--without)."
        elif kept is not None and name not in kept:
            masked[name] = f"The tool {name} is switched off for this turn (only: {', '.join(only)})."
    return masked, tuple(dict.fromkeys(warnings))


def expand(registry: Registry, names: Iterable[str], warnings: list[str], origin: str) -> set[str]:
    """Return the tool names that ``names`` stand for; unknown names and include cycles go to ``warnings``."""
    toolsets = registry.toolsets()
    tools = set(registry.names())
    found: set[str] = set()
    done: set[str] = set()
    for name in names:
        if name in EVERYTHING:
            found |= tools
        elif name in toolsets:
            _walk(name, toolsets, tools, found, done, (), warnings)
        elif name in tools:
            found.add(name)
        else:
            warnings.append(_unknown(name, toolsets, tools, origin))
    return found


def first_unknown(registry: Registry, names: Iterable[str], origin: str) -> str | None:
    """Return what is wrong with the first of ``names`` that is no toolset or tool, with a near one, or None."""
    toolsets, tools = registry.toolsets(), set(registry.names())
    known = {*toolsets, *tools, *EVERYTHING}
    return next((_unknown(name, toolsets, tools, origin) for name in names if name not in known), None)


def _unknown(name: str, toolsets: Mapping[str, Toolset], tools: set[str], origin: str) -> str:
    hint = near(name, list({*toolsets, *tools})) or f" There are: {', '.join(toolsets) or 'none'}."
    return f"{origin} names {name!r}, which is no toolset or tool.{hint}"


def _walk(
    name: str,
    toolsets: Mapping[str, Toolset],
    tools: set[str],
    found: set[str],
    done: set[str],
    path: tuple[str, ...],
    warnings: list[str],
) -> None:
    if name in path:
        circle = " > ".join((*path[path.index(name) :], name))
        warnings.append(f"The toolsets include each other in a circle ({circle}); each is taken once.")
        return
    if name in done:
        return
    done.add(name)
    here = toolsets[name]
    for member in here.tools:
        if member in tools:
            found.add(member)
        else:
            warnings.append(
                f"The toolset {name!r} names the tool {member!r}, which does not exist.{near(member, list(tools))}"
            )
    for include in here.includes:
        if include in EVERYTHING:
            found |= tools
        elif include in toolsets:
            _walk(include, toolsets, tools, found, done, (*path, name), warnings)
        else:
            hint = near(include, list(toolsets))
            warnings.append(f"The toolset {name!r} includes {include!r}, which does not exist.{hint}")


def wire_schemas(tools: Iterable[Tool]) -> bytes:
    """Return the ``tools`` array of a request, sorted by name, as the bytes to store and send; b"" for none."""
    functions = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in sorted(tools, key=lambda tool: tool.name)
    ]
    return dumpb(functions) if functions else b""
