"""What a call would do, as the user sees it in the question. Reads files, changes nothing.

The user must see what will run or be written: nothing of it is hidden behind a mask that its writer could aim, and
no character of it is invisible or moves others.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_nb.core.errors import ToolArgumentsInvalid
from hermes_nb.core.names import Risk
from hermes_nb.core.secrets import MASK, mask, mask_keys
from hermes_nb.tools.clip import clip
from hermes_nb.tools.tool import Tool
from hermes_nb.tools.workspace import resolve

MAX_DIFF = 40_000
_MAX_FILE = 2_000_000


# Letters by their category, blank to the eye.
_BLANK = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def readable(text: str) -> str:
    """Return ``text`` with keys masked and every character visible; what is not becomes an escape such as \\u202e."""
    return "".join(char if _seen(char) else _escape(char) for char in mask_keys(text))


def diff_of(tool: Tool, arguments: Mapping[str, Any], *, cwd: Path) -> str | None:
    """Return the diff of a tool that writes ``content`` to ``path``; None for any other call.

    Secrets of the present file are masked; of what will be written, only keys.
    """
    path, content = arguments.get("path"), arguments.get("content")
    if tool.risk is not Risk.WRITE or not isinstance(path, str) or not isinstance(content, str):
        return None
    try:
        target = resolve(cwd, path)
        size = target.stat().st_size
        if not target.is_file() or size > _MAX_FILE or len(content) > _MAX_FILE:
            return f"{target}: {size:,} bytes now, {len(content):,} characters afterwards (too large for a diff)"
        old = target.read_bytes().decode("utf-8", "replace")
        before = str(target)
    except FileNotFoundError:
        target, old, before = resolve(cwd, path), "", "/dev/null"
    except (OSError, ToolArgumentsInvalid) as exc:
        return f"{path}: the present content cannot be read ({exc})"
    if old == content:
        return f"{target}: no change"
    lines = difflib.unified_diff(_lines(old), _lines(content), before, str(target), n=3)
    harmless = set(_lines(mask(old)))
    return clip("".join(_shown(line, harmless) for line in lines), MAX_DIFF)


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines


def _shown(line: str, harmless: set[str]) -> str:
    """Return a line of a diff; one that is in the present file only as far as it is no secret."""
    if line.startswith(("+", "@@")) or line[1:] in harmless or line.startswith(("---", "\\")):
        return readable(line)
    masked = mask(line)
    return readable(masked) if masked != line else f"{line[0]}{MASK}\n"


def _seen(char: str) -> bool:
    if char.isascii():
        return char.isprintable() or char in "\n\t"
    category = unicodedata.category(char)
    return category not in _UNSEEN and category != "Zs" and char not in _BLANK


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
