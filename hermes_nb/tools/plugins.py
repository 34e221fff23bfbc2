"""Tools that other distributions bring through the entry-point group ``hermes_nb.tools``.

A plug-in that cannot be loaded, or whose tool has a name that is taken, is one warning and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

from hermes_nb.tools.registry import Registry
from hermes_nb.tools.schema import declared
from hermes_nb.tools.tool import Tool

log = logging.getLogger(__name__)

GROUP = "hermes_nb.tools"
"""An entry point names a Tool, a function marked with ``@tool``, an iterable of Tools, or a function that returns
one of these."""


def add_plugins(registry: Registry, entries: Iterable[EntryPoint]) -> tuple[str, ...]:
    """Add the tools of all ``entries``, and return one warning for each that could not be used."""
    warnings: list[str] = []
    for entry in sorted(entries, key=lambda entry: (entry.name, entry.value)):
        try:
            for made in _tools_of(entry.load()):
                registry.add(made)
        except Exception as exc:  # the border of plug-in loading
            log.warning("plug-in %s could not be loaded", entry.value, exc_info=True)
            owner = entry.dist.name if entry.dist is not None else entry.value
            warnings.append(
                f"The plug-in {entry.name!r} of the distribution {owner!r} could not be used "
                f"({type(exc).__name__}: {exc}). Its tools are missing; update or uninstall it."
            )
    return tuple(warnings)


def _tools_of(value: Any) -> list[Tool]:
    for one in (value, declared(value)):
        if isinstance(one, Tool):
            return [one]
    made: Any = value() if callable(value) else value
    tools: list[Any] = [made] if isinstance(made, Tool) else list(made)
    for one in tools:
        if not isinstance(one, Tool):
            raise TypeError(f"it gives {type(one).__name__} where a Tool is expected")
    return tools
