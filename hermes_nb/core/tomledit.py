"""Edits one value in a TOML text and leaves every other line as the user wrote it.

Works on text only: it knows no file and no setting. Every edit is parsed again and compared with what
was asked for, so a layout this module does not understand gives an error and never a damaged file.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

from hermes_nb.core.errors import ConfigError

Path = tuple[str, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# A quoted string (longest delimiter first) or a comment: enough to tell a ``#`` that is text from one that is not.
_LEXEME = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|(?P<comment>\#[^\n]*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One ``key = value`` of the text: its lines (first, one past the last), table, whole key and value."""

    first: int
    end: int
    table: Path
    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class _Block:
    """A table header and where its statements end; the root block has ``first`` -1."""

    first: int
    end: int
    table: Path
    array: bool


def set_in(text: str, path: Path, value: Any) -> str:
    """Return ``text`` with ``path`` set to ``value`` (a string, number, boolean or list of strings).

    Raises ConfigError when the text is laid out in a way that cannot be edited safely.
    """
    wanted = _with(tomllib.loads(text), path, value)
    for candidate in _set_candidates(text, path, value):
        if _parses_to(candidate, wanted):
            return candidate
    raise ConfigError(f"{'.'.join(path)} cannot be set without rearranging the file; please edit it by hand.")


def unset_in(text: str, path: Path) -> str:
    """Return ``text`` without ``path``; the same text when it is not there. Raises ConfigError as ``set_in``."""
    document = tomllib.loads(text)
    if lookup(document, path) is None:
        return text
    wanted = _without(document, path)
    for statement in statements(text):
        if statement.path == path:
            candidate = _replace(text, statement, [])
        elif statement.path == path[: len(statement.path)]:
            candidate = _revalued(text, statement, _without(statement.value, path[len(statement.path) :]))
        else:
            continue
        # A header that has become empty stays, so the tables are compared without their empty ones.
        if _parses_to(candidate, wanted):
            return candidate
    raise ConfigError(f"{'.'.join(path)} cannot be removed without rearranging the file; please edit it by hand.")


def lookup(document: Mapping[str, Any], path: Path) -> Any:
    """Return the value at ``path``, or None."""
    here: Any = document
    for part in path:
        if not isinstance(here, dict) or part not in here:
            return None
        here = cast("dict[str, Any]", here)[part]
    return here


def statements(text: str) -> list[Statement]:
    """Return every ``key = value`` of a text that is valid TOML, in order."""
    return [item for item in _scan(text) if isinstance(item, Statement)]


def line_of(text: str, path: Path) -> int | None:
    """Return the 1-based line on which ``path``, or the table that holds it, stands."""
    for item in _scan(text):
        if isinstance(item, Statement):
            if item.path == path or (item.path == path[: len(item.path)] and isinstance(item.value, dict)):
                return item.first + 1
            if item.path[: len(path)] == path:
                return item.first + 1
        elif item.first >= 0 and item.table[: len(path)] == path:
            return item.first + 1
    return None


def render(value: Any) -> str:
    """Return ``value`` as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, except that TOML also wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(render(item) for item in cast("list[Any]", value)) + "]"
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{_key((name,))} = {render(item)}" for name, item in pairs) + " }" if pairs else "{}"
    raise ConfigError(f"A value of type {type(value).__name__} cannot be written here; please edit the file by hand.")


def _scan(text: str) -> Iterator[Statement | _Block]:
    """Yield the root block, then headers and statements in order; block ends are filled by ``_blocks``."""
    # tomllib takes a carriage return only before its newline, which the split removes.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    table: Path = ()
    yield _Block(-1, 0, (), False)
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        if not line or line.startswith("#"):
            number += 1
            continue
        if line.startswith("["):
            table = _only_path(tomllib.loads(line))
            yield _Block(number, number + 1, table, line.startswith("[["))
            number += 1
            continue
        end = number + 1
        while True:
            # The text as a whole is valid, so the shortest run of lines that parses is the statement.
            try:
                parsed = tomllib.loads("\n".join(lines[number:end]))
                break
            except tomllib.TOMLDecodeError:
                end += 1
                if end > len(lines):
                    raise
        key = _only_path(parsed, keep_value=_key_depth("\n".join(lines[number:end])))
        yield Statement(number, end, table, table + key, lookup(parsed, key))
        number = end


def _key_depth(chunk: str) -> int:
    """Return how many parts the dotted key before ``=`` has."""
    depth = 1
    position = 0
    while position < len(chunk):
        quoted = _LEXEME.match(chunk, position)
        if quoted:
            position = quoted.end()
            continue
        if chunk[position] == "=":
            break
        if chunk[position] == ".":
            depth += 1
        position += 1
    return depth


def _only_path(parsed: Mapping[str, Any], keep_value: int | None = None) -> Path:
    """Return the chain of single keys in ``parsed``, at most ``keep_value`` of them."""
    path: list[str] = []
    here: Any = parsed
    while isinstance(here, dict | list) and here and (keep_value is None or len(path) < keep_value):
        if isinstance(here, list):
            here = cast("list[Any]", here)[0]
            continue
        name, here = next(iter(cast("dict[str, Any]", here).items()))
        path.append(name)
    return tuple(path)


def _blocks(text: str) -> list[_Block]:
    """Return the blocks with ``end`` after their last statement."""
    found: list[_Block] = []
    for item in _scan(text):
        if isinstance(item, _Block):
            found.append(item)
        else:
            last = found[-1]
            found[-1] = _Block(last.first, item.end, last.table, last.array)
    return found


def _set_candidates(text: str, path: Path, value: Any) -> Iterator[str]:
    """Yield edits, the most natural first; the caller takes the first that means what was asked."""
    known = statements(text)
    for statement in known:
        if statement.path == path:
            yield _revalued(text, statement, value)
        elif statement.path == path[: len(statement.path)]:
            # The document holds ``path``, or could, so this value is a table.
            yield _revalued(text, statement, _with(statement.value, path[len(statement.path) :], value))
    blocks = _blocks(text)
    for block in blocks:
        if block.table == path[:-1] and block.first >= 0 and not block.array:
            yield _insert(text, block.end, f"{_key(path[-1:])} = {render(value)}")
    for statement in reversed(known):
        if statement.path[: len(path) - 1] == path[:-1] and statement.table == path[: len(statement.table)]:
            yield _insert(text, statement.end, f"{_key(path[len(statement.table) :])} = {render(value)}")
    yield _append(text, f"[{_key(path[:-1])}]\n{_key(path[-1:])} = {render(value)}")
    yield _insert(text, blocks[0].end, f"{_key(path)} = {render(value)}")


def _revalued(text: str, statement: Statement, value: Any) -> str:
    """Replace the statement's value; comments inside a multi-line value move above it."""
    lines = text.split("\n")
    chunk = "\n".join(lines[statement.first : statement.end])
    equals = _first_equals(chunk)
    comments = [match for match in _LEXEME.finditer(chunk) if match["comment"]]
    last_line = chunk.rfind("\n") + 1
    trailing = ""
    above: list[str] = []
    for match in comments:
        if match.start() >= last_line:
            trailing = "  " + match["comment"].rstrip()
        else:
            above.append(match["comment"].rstrip())
    return _replace(text, statement, [*above, f"{chunk[:equals]}= {render(value)}{trailing}"])


def _first_equals(chunk: str) -> int:
    position = 0
    while chunk[position] != "=":
        quoted = _LEXEME.match(chunk, position)
        position = quoted.end() if quoted else position + 1
    return position


def _replace(text: str, statement: Statement, new: list[str]) -> str:
    lines = text.split("\n")
    ending = "\r" if lines[statement.end - 1].endswith("\r") else ""
    lines[statement.first : statement.end] = [line + ending for line in new]
    return "\n".join(lines)


def _insert(text: str, at: int, line: str) -> str:
    lines = text.split("\n")
    if at >= len(lines):
        return _append(text, line, blank=False)
    lines.insert(at, line + ("\r" if "\r\n" in text else ""))
    return "\n".join(lines)


def _append(text: str, block: str, *, blank: bool = True) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    if text.strip() and blank:
        text += newline
    return text + block.replace("\n", newline) + newline


def _key(path: Path) -> str:
    return ".".join(part if _BARE.fullmatch(part) else render(part) for part in path)


def _with(document: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    copy = deepcopy(dict(document))
    here: dict[str, Any] = copy
    for part in path[:-1]:
        inner = here.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{part} has a plain value in the file, so {'.'.join(path)} cannot be set below it.")
        here = cast("dict[str, Any]", inner)
    here[path[-1]] = list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
    return copy


def _without(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    copy = deepcopy(dict(document))
    here: Any = copy
    for part in path[:-1]:
        here = here[part]
    del here[path[-1]]
    return copy


def _parses_to(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return _pruned(tomllib.loads(text)) == _pruned(wanted)
    except tomllib.TOMLDecodeError:
        return False


def _pruned(value: Any) -> Any:
    """Drop empty tables, which say nothing."""
    if not isinstance(value, dict):
        return value
    pairs = {name: _pruned(item) for name, item in cast("dict[str, Any]", value).items()}
    return {name: item for name, item in pairs.items() if item != {}}
