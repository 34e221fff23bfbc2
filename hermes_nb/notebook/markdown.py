"""Where a Markdown text may be cut, so that each part is whole by itself. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.M)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield ``(piece, is_fenced_code)`` in order; joined they are ``text``."""
    start, fence = 0, ""
    for match in _FENCE.finditer(text):
        mark = match[1]
        if not fence:
            yield text[start : match.start()], False
            start, fence = match.start(), mark
        elif mark[0] == fence[0] and len(mark) >= len(fence):
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end + 1
            if text[match.end() : end].strip():
                continue  # a closing fence stands alone on its line
            yield text[start:end], True
            start, fence = end, ""
    yield text[start:], bool(fence)


def safe_cut(text: str, at_least: int) -> int:
    """Return the last index of a blank line outside code fences where ``text`` may be cut, or -1.

    Nothing is cut below ``at_least`` characters: a front end re-renders the open part on every update, but
    hides outputs beyond a certain number of them.
    """
    if len(text) < at_least:
        return -1
    pieces = list(_parts(text))
    fences: list[tuple[int, int]] = []
    position = 0
    for index, (piece, fenced) in enumerate(pieces):
        if fenced:
            # The line end after a closing fence may begin a blank line; an open fence goes on to the end.
            closed = index < len(pieces) - 1 and piece.endswith("\n")
            fences.append((position, position + len(piece) - closed))
        position += len(piece)
    cut = len(text)
    while (cut := text.rfind("\n\n", 0, cut)) > 0:
        if not any(start <= cut < end for start, end in fences):
            return cut
    return -1
