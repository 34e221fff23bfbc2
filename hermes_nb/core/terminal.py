"""Text of others on its way to a terminal. Knows nothing of who prints it."""

from __future__ import annotations

import unicodedata


def terminal_text(text: str) -> str:
    """Return text that cannot steer the terminal: it may come from a model or a file."""
    return "".join(char if char in "\n\t" or unicodedata.category(char) != "Cc" else "\ufffd" for char in text)
