"""Plug-ins for tools: every documented form, and none that can stop the product."""

from __future__ import annotations

import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from support.agents import echo

from hermes_nb.tools.plugins import GROUP, add_plugins
from hermes_nb.tools.registry import Registry

MODULE = textwrap.dedent(
    """
    from hermes_nb.tools.schema import tool, tool_of
    def browse(url: str) -> str:
        "Open a page."
        return url
    @tool
    def marked(x: int) -> int:
        "Marked."
        return x
    one = tool_of(browse, toolset="browser")
    many = [one]
    def made():
        return many
    wrong = [1]
    def fails():
        raise RuntimeError("no license")
    """
)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "plug_in_of_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "plug_in_of_tests"


def entry(value: str) -> EntryPoint:
    return EntryPoint(name="probe", value=value, group=GROUP)


@pytest.mark.parametrize(
    ("value", "name"), [("one", "browse"), ("many", "browse"), ("made", "browse"), ("marked",) * 2]
)
def test_a_plug_in_brings_its_tools(module: str, value: str, name: str) -> None:
    registry = Registry()
    assert add_plugins(registry, [entry(f"{module}:{value}")]) == ()
    assert registry.names() == (name,)


@pytest.mark.parametrize("value", ["{}:wrong", "{}:missing", "{}:fails", "no_such_module_here:x"])
def test_a_broken_plug_in_is_one_warning(module: str, value: str) -> None:
    registry = Registry([echo()])
    warnings = add_plugins(registry, [entry(value.format(module)), entry(f"{module}:one")])
    assert len(warnings) == 1
    assert "probe" in warnings[0]
    assert registry.names() == ("browse", "echo")


def test_a_name_that_is_taken_is_a_warning(module: str) -> None:
    registry = Registry()
    assert len(add_plugins(registry, [entry(f"{module}:one"), entry(f"{module}:many")])) == 1
