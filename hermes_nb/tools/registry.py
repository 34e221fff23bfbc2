"""Which tools exist and how they are grouped. Built-ins and plug-ins come through the same ``add``.

Choosing which of them a session gets is ``toolsets.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hermes_nb.core.errors import ConfigError, ToolNotFound
from hermes_nb.tools.arguments import near
from hermes_nb.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Toolset:
    """A named group: its own tools and the groups it includes."""

    name: str
    description: str = ""
    tools: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()


class Registry:
    """All tools of one process. Filled while the composition root starts; later only user tools are added."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._toolsets: dict[str, Toolset] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool, *, replace: bool = False) -> None:
        """Register ``tool`` and make it part of its toolset, which need not exist yet.

        Raises ConfigError when the name is taken and ``replace`` is false: a plug-in never takes the place of
        another tool unseen.
        """
        known = self._tools.get(tool.name)
        if known is not None and not replace:
            raise ConfigError(
                f"Two tools are named {tool.name!r} (toolsets {known.toolset!r} and {tool.toolset!r}). Rename one."
            )
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool:
        """Return the tool; raises ToolNotFound naming near ones."""
        try:
            return self._tools[name]
        except KeyError:
            hint = near(name, self.names()) or f" There are: {', '.join(self.names()) or 'none'}."
            raise ToolNotFound(f"There is no tool {name!r}.{hint}") from None

    def names(self) -> tuple[str, ...]:
        """Return all tool names, sorted."""
        return tuple(sorted(self._tools))

    def toolset(
        self, name: str, description: str = "", tools: Iterable[str] = (), includes: Iterable[str] = ()
    ) -> Toolset:
        """Declare a toolset, or extend one that is declared already; its members need not exist yet."""
        old = self._toolsets.get(name, Toolset(name))
        made = Toolset(
            name,
            description or old.description,
            tuple(dict.fromkeys((*old.tools, *tools))),
            tuple(dict.fromkeys((*old.includes, *includes))),
        )
        self._toolsets[name] = made
        return made

    def toolsets(self) -> Mapping[str, Toolset]:
        """Return every toolset by name, with the tools that named it as theirs merged in."""
        merged: dict[str, Toolset] = dict(self._toolsets)
        for tool in self._tools.values():
            old = merged.get(tool.toolset, Toolset(tool.toolset))
            if tool.name not in old.tools:
                merged[tool.toolset] = Toolset(old.name, old.description, (*old.tools, tool.name), old.includes)
        return {name: merged[name] for name in sorted(merged)}
