"""Which tools a session gets: includes, circles, disabled last, checks, and the schemas as sent."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hermes_nb.core.errors import ConfigError, ToolNotFound
from hermes_nb.tools.builtin import files, history, memory, python
from hermes_nb.tools.registry import Registry
from hermes_nb.tools.tool import Tool
from hermes_nb.tools.toolsets import Selection, mask_for, resolve, wire_schemas


def tool(name: str, toolset: str, check: Callable[[], str | None] | None = None) -> Tool:
    return Tool(name, name, {"type": "object", "properties": {}}, lambda context: "", toolset, check=check)


def names(selection: Selection) -> list[str]:
    return [tool.name for tool in selection.sent]


@pytest.fixture
def registry() -> Registry:
    registry = Registry(
        [
            tool("web_search", "web"),
            tool("web_extract", "web"),
            tool("read_file", "file"),
            tool("browse", "browser"),
        ]
    )
    registry.toolset("research", tools=["browse"], includes=["web"])
    registry.toolset("all_in_one", includes=["research", "file"])
    return registry


def test_everything_is_enabled_by_default_and_sorted(registry: Registry) -> None:
    assert names(resolve(registry)) == ["browse", "read_file", "web_extract", "web_search"]
    assert names(resolve(registry, ["all"])) == names(resolve(registry, ["*"])) == names(resolve(registry))
    assert names(resolve(registry, [])) == []


def test_case_139_disabled_is_subtracted_last_through_nested_includes(registry: Registry) -> None:
    selection = resolve(registry, ["all_in_one"], ["web"])
    assert names(selection) == ["browse", "read_file"]
    assert "disabled" in selection.masked["web_search"]
    assert b"web_" not in wire_schemas(selection.sent)
    assert names(resolve(registry, ["all"], ["all_in_one"])) == []
    assert names(resolve(registry, ["web", "file"], ["web_search"])) == ["read_file", "web_extract"]


def test_case_139_a_circle_is_reported_and_ends(registry: Registry) -> None:
    registry.toolset("a", tools=["read_file"], includes=["b"])
    registry.toolset("b", includes=["c"])
    registry.toolset("c", tools=["browse"], includes=["a", "c"])
    selection = resolve(registry, ["a"])
    assert names(selection) == ["browse", "read_file"]
    assert any("a > b > c > a" in warning for warning in selection.warnings)
    assert any("c > c" in warning for warning in selection.warnings)


def test_a_diamond_is_taken_once_and_is_no_circle(registry: Registry) -> None:
    registry.toolset("left", includes=["web"])
    registry.toolset("right", includes=["web"])
    registry.toolset("top", includes=["left", "right", "web"])
    selection = resolve(registry, ["top", "web"])
    assert names(selection) == ["web_extract", "web_search"]
    assert selection.warnings == ()


def test_a_tool_of_a_plug_in_joins_a_declared_toolset(registry: Registry) -> None:
    registry.add(tool("extra", "web"))
    assert "extra" in names(resolve(registry, ["research"]))


def test_unknown_names_warn_with_the_nearest(registry: Registry) -> None:
    registry.toolset("bad", tools=["web_serch"], includes=["fil"])
    selection = resolve(registry, ["wbe", "bad"], ["nothing-like-it"])
    text = "\n".join(selection.warnings)
    for word in ("'web'", "'web_search'", "'file'", "nothing-like-it"):
        assert word in text


def test_a_tool_that_cannot_work_here_is_not_offered_and_says_why(registry: Registry) -> None:
    registry.add(tool("shell", "terminal", check=lambda: "no bash"))
    registry.add(tool("fine", "terminal", check=lambda: None))
    registry.add(tool("broken", "terminal", check=lambda: str(1 // 0)))
    selection = resolve(registry, ["terminal"])
    assert names(selection) == ["fine"]
    assert "no bash" in selection.masked["shell"]
    assert "ZeroDivisionError" in selection.masked["broken"]


def test_every_tool_is_either_sent_or_masked(registry: Registry) -> None:
    selection = resolve(registry, ["research"], ["browse"])
    assert {*names(selection), *selection.masked} == set(registry.names())


def test_masks_of_one_turn(registry: Registry) -> None:
    sent = registry.names()
    masked, warnings = mask_for(registry, sent, only=["web"], without=["web_search"])
    assert set(masked) == {"browse", "read_file", "web_search"}
    assert "--without" in masked["web_search"]
    assert warnings == ()
    assert mask_for(registry, sent) == ({}, ())
    assert mask_for(registry, sent, without=["wbe"])[1]


def test_two_tools_of_one_name_are_refused_and_a_user_may_define_anew(registry: Registry) -> None:
    with pytest.raises(ConfigError, match="Rename one"):
        registry.add(tool("browse", "other"))
    registry.add(tool("browse", "other"), replace=True)
    assert registry.get("browse").toolset == "other"
    with pytest.raises(ToolNotFound, match="Did you mean 'browse'"):
        registry.get("brwose")


def test_schemas_are_the_same_bytes_in_any_order_of_registration() -> None:
    tools = [*python.TOOLS, *files.TOOLS, *memory.TOOLS, *history.TOOLS]
    sent = wire_schemas(tools)
    assert sent == wire_schemas(reversed(tools))
    assert [one["function"]["name"] for one in json.loads(sent)] == sorted(one.name for one in tools)
    assert all(list(one["function"]) == ["name", "description", "parameters"] for one in json.loads(sent))
    assert wire_schemas([]) == b""
