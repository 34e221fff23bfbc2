"""What a call would change, as a unified diff for the question to the user. Reads files, changes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_nb.core.errors import ToolArgumentsInvalid
from hermes_nb.core.names import Risk
from hermes_nb.core.secrets import mask
from hermes_nb.tools.clip import clip
from hermes_nb.tools.tool import Tool
from hermes_nb.tools.workspace import resolve

MAX_DIFF = 40_000
_MAX_FILE = 2_000_000


def diff_of(tool: Tool, arguments: Mapping[str, Any], *, cwd: Path) -> str | None:
    """Return the diff of a tool that writes ``content`` to ``path``, secrets masked; None for any other call."""
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
    return clip(mask("".join(lines)), MAX_DIFF)


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines
