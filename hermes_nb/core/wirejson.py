"""The one JSON encoder of everything that is stored as wire or sent to a model.

Key order is the order of insertion, text is UTF-8 and not escapes, no blanks: the same object always
gives the same bytes. Lone surrogates, which UTF-8 cannot carry, become U+FFFD here and nowhere else.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return ``text`` with lone surrogates replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def dumps(value: Any) -> str:
    """Return ``value`` as compact JSON text that is valid UTF-8 when encoded."""
    return clean_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def dumpb(value: Any) -> bytes:
    """Return ``value`` as compact JSON bytes."""
    return dumps(value).encode("utf-8")
