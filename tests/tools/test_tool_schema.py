"""From a function to a schema, and from raw argument text to values."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core.errors import ConfigError, ToolArgumentsInvalid
from hermes_nb.core.names import Parallel, Risk
from hermes_nb.core.types import ToolResult
from hermes_nb.tools.arguments import parse, signature
from hermes_nb.tools.schema import declared, describe, schema_of, tool, tool_of
from hermes_nb.tools.tool import Tool, ToolContext


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def everything(
    context: ToolContext,
    text: str,
    number: int,
    ratio: float,
    flag: bool,
    items: list[int],
    table: dict[str, float],
    choice: Literal["a", "b"],
    colour: Colour = Colour.BLUE,
    maybe: int | None = None,
    either: int | str = 3,
    noted: Annotated[str, "with a note"] = "x",
    pair: tuple[int, str] = (1, "a"),
    where: Path = Path(),
    free: Any = None,
) -> str:
    """Do everything."""
    return f"{text} {colour} {maybe} {where!r}"


def test_every_supported_annotation_has_its_schema() -> None:
    schema = schema_of(everything)
    assert schema["required"] == ["text", "number", "ratio", "flag", "items", "table", "choice"]
    assert schema["additionalProperties"] is False
    assert schema["properties"] == {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "items": {"type": "array", "items": {"type": "integer"}},
        "table": {"type": "object", "additionalProperties": {"type": "number"}},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
        "maybe": {"type": "integer"},
        "either": {"type": ["integer", "string"], "default": 3},
        "noted": {"type": "string", "description": "with a note", "default": "x"},
        "pair": {
            "type": "array",
            "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "minItems": 2,
            "maxItems": 2,
            "default": [1, "a"],
        },
        "where": {"type": "string"},
        "free": {},
    }


def google(path: str, count: int = 1) -> str:
    """Count words.

    Longer text that
    goes on.

    Args:
        path (str): The file
            to look at.
        count: How many: at most 9.

    Returns:
        path: not a parameter text
    """
    return ""


def numpy_style(path: str, count: int = 1) -> str:
    """Count words.

    Parameters
    ----------
    path : str
        The file
        to look at.
    count : int, optional
        How many.

    Returns
    -------
    str
        Something.
    """
    return ""


def sphinx(path: str, count: int = 1) -> str:
    """Count words.

    :param path: The file
        to look at.
    :param int count: How many.
    :returns: something
    """
    return ""


def plain(path: str, count: int = 1) -> str:
    """Count words.

    path: The file
      to look at.
    count: How many.
    """
    return ""


@pytest.mark.parametrize("function", [google, numpy_style, sphinx, plain])
def test_parameter_texts_come_from_every_docstring_style(function: Callable[..., str]) -> None:
    text, found = describe(function)
    assert text.startswith("Count words.")
    assert "look at" not in text
    assert "How many" not in text
    assert found["path"] == "The file to look at."
    assert found["count"].startswith("How many")
    assert schema_of(function)["properties"]["path"]["description"] == "The file to look at."


def test_the_lines_of_a_paragraph_are_joined() -> None:
    assert describe(google)[0] == "Count words.\n\nLonger text that goes on."


def test_functions_that_cannot_be_called_by_name_are_refused() -> None:
    def positional(a: int, /) -> None: ...
    def star(*a: int) -> None: ...
    async def later(a: int) -> None: ...

    for function in (positional, star, later, lambda a: a):
        with pytest.raises(ConfigError):
            tool_of(function)


def test_keyword_arguments_open_the_schema() -> None:
    def free(a: int, **rest: str) -> None: ...

    assert schema_of(free)["additionalProperties"] is True


def test_the_decorator_leaves_the_function_as_it_is_and_its_values_become_text(context: ToolContext) -> None:
    @tool
    def double(x: int) -> dict[str, int]:
        """Double x."""
        return {"x": x * 2}

    @tool(name="dye", risk="read", toolset="paint")
    def dye_it(colour: Colour = Colour.RED, folder: Path = Path()) -> Any:
        assert isinstance(colour, Colour)
        assert isinstance(folder, Path)
        return None if colour is Colour.RED else object

    assert double(2) == {"x": 4}
    made = declared(double)
    assert made is not None
    assert (made.name, made.toolset, made.risk, made.parallel) == ("double", "user", Risk.EXECUTE, Parallel.NEVER)
    assert made.handler(context, **parse(made, '{"x": 4}')) == '{\n "x": 8\n}'
    dye = declared(dye_it)
    assert dye is not None
    assert (dye.name, dye.risk, dye.toolset, dye.description) == ("dye", Risk.READ, "paint", "dye")
    assert dye.handler(context, colour="blue", folder="a") == str(object)
    assert "nothing" in str(dye.handler(context))
    assert declared(len) is None
    assert declared(object()) is None


def made(function: Callable[..., Any], aliases: Sequence[dict[str, Any]] = ()) -> Tool:
    return tool_of(function, aliases=aliases)


def nothing() -> str:
    return "ran"


@pytest.mark.parametrize("raw", ["", "  ", "\n", "null", "{}", " {} ", '"{}"'])
def test_case_056_no_arguments_in_any_form_are_no_arguments(raw: str) -> None:
    assert parse(made(nothing), raw) == {}


@pytest.mark.parametrize(
    "raw",
    ['{"path": "a.txt", ', "{", "{'path': 'a'}", "[1]", "3", '"a.txt"', "true", '{"path": NaN}', '{"path": "a"} x',
     "[" * 100_000, '{"path": ' + "9" * 5_000 + "}", "path=a"],
)  # fmt: skip
def test_case_058_broken_arguments_are_refused_with_the_signature(raw: str) -> None:
    def delete(path: str) -> None: ...

    with pytest.raises(ToolArgumentsInvalid, match=r"Nothing was run. Call it as delete\(path: string\)"):
        parse(made(delete), raw)


def test_broken_json_says_where() -> None:
    with pytest.raises(ToolArgumentsInvalid, match=r"not valid JSON .* at character"):
        parse(made(google), '{"path": "a.txt", ')


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"path": "a", "count": "5"}', {"path": "a", "count": 5}),
        ('{"path": "a", "count": 5.0}', {"path": "a", "count": 5}),
        ('{"path": "a", "count": "5.0"}', {"path": "a", "count": 5}),
        ('{"path": "a", "count": null}', {"path": "a"}),
        ('{"path": 5}', {"path": "5"}),
        ('{"path": "line\nbreak"}', {"path": "line\nbreak"}),
        ('{"path": "\\ud800x"}', {"path": "\ufffdx"}),
        ('{"path": "\\ud83d\\ude00"}', {"path": "\U0001f600"}),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
    ],
)
def test_small_slips_with_one_meaning_are_accepted(raw: str, expected: dict[str, Any]) -> None:
    assert parse(made(google), raw) == expected


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ('{"count": 1}', ["'path' is missing"]),
        ('{"path": "a", "cuont": 1}', ["'cuont'", "Did you mean 'count'"]),
        ('{"path": "a", "zzz": 1}', ["'zzz'", "path, count"]),
        ('{"path": "a", "count": "five"}', ["'count'", "an integer is needed"]),
        ('{"path": "a", "count": true}', ["'count'", "a boolean"]),
        ('{"path": "a", "count": 1.5}', ["'count'"]),
        ('{"path": ["a"]}', ["'path'", "an array"]),
        ('{"path": null}', ["'path'", "null"]),
    ],
)
def test_arguments_that_do_not_fit_are_named(raw: str, words: list[str]) -> None:
    with pytest.raises(ToolArgumentsInvalid) as caught:
        parse(made(google), raw)
    for word in words:
        assert word in str(caught.value)


def test_lists_objects_choices_and_unions_are_checked() -> None:
    def many(
        xs: list[int] | None = None,
        table: dict[str, float] | None = None,
        pick: Literal["rank", "newest"] = "rank",
        either: int | list[str] = 1,
    ) -> None: ...

    tool = made(many)
    assert parse(tool, '{"xs": "[1, 2]"}') == {"xs": [1, 2]}
    assert parse(tool, '{"xs": ["1"]}') == {"xs": [1]}
    assert parse(tool, '{"table": {"a": "1.5"}}') == {"table": {"a": 1.5}}
    assert parse(tool, '{"either": ["a"]}') == {"either": ["a"]}
    with pytest.raises(ToolArgumentsInvalid, match=r"'xs\[1\]'"):
        parse(tool, '{"xs": [1, "b"]}')
    with pytest.raises(ToolArgumentsInvalid, match="Did you mean 'newest'"):
        parse(tool, '{"pick": "newst"}')


def test_arguments_of_an_older_schema_are_accepted() -> None:
    old = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
    assert parse(made(google, [old]), '{"file": "a"}') == {"file": "a"}
    with pytest.raises(ToolArgumentsInvalid, match=r"'path'|'files'"):
        parse(made(google, [{**old, "additionalProperties": False}]), '{"files": "a"}')


def test_a_schema_of_a_plug_in_with_open_properties_passes_what_it_does_not_name() -> None:
    tool = Tool("x", "", {"type": "object"}, lambda context: ToolResult(""), "t")
    assert parse(tool, '{"a": 1, "b": null}') == {"a": 1, "b": None}
    assert signature(tool) == "x()"


@given(st.text(max_size=80))
def test_no_text_makes_parsing_fail_otherwise(raw: str) -> None:
    with suppress(ToolArgumentsInvalid):
        assert isinstance(parse(made(google), raw), dict)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_no_value_makes_checking_fail_otherwise(value: Any) -> None:
    for name in schema_of(everything)["properties"]:
        with suppress(ToolArgumentsInvalid):
            parse(made(everything), json.dumps({name: value}))
