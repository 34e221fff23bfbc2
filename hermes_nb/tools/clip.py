"""Cutting long text for the model: the head and the tail stay, the middle is named."""

from __future__ import annotations

from hermes_nb.core.names import MAX_TOOL_RESULT


def clip(text: str, limit: int = MAX_TOOL_RESULT, head: float = 0.6) -> str:
    """Return ``text`` in at most ``limit`` characters, cut in the middle at line ends where that costs little."""
    if len(text) <= limit:
        return text
    room = max(0, limit - 80)
    first = int(room * head)
    last = room - first
    if (cut := text.rfind("\n", first - first // 10, first)) > 0:
        first = cut + 1
    start = len(text) - last
    if (cut := text.find("\n", start, start + last // 10)) > 0:
        start = cut + 1
    return f"{text[:first]}\n[... {start - first:,} of {len(text):,} characters are left out ...]\n{text[start:]}"
