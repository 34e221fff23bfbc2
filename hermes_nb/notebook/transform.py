"""The input transformer that turns a ``%%hermes`` cell into an awaited call.

IPython does not await asynchronous magics, and a cell that blocks gets no widget messages on
ipykernel 7.4. An input transformer gives both: the cell awaits, and its body arrives byte for byte.
"""

from __future__ import annotations

import re
import sys

_HEAD = re.compile(r"%%hermes(?=\s|$)([^\n]*)")


def _inside_running_code() -> bool:
    """Return whether IPython is already executing a cell: a magic such as ``%%time`` is transforming its body.

    Reads the stack instead of a flag, because a flag can leak when user code raises.
    """
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame:
        if frame.f_code.co_name == "run_code" and frame.f_globals.get("__name__") == "IPython.core.interactiveshell":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def transform(lines: list[str]) -> list[str]:
    """Replace a cell that starts with ``%%hermes`` (after blank lines and comments) by one call."""
    start = 0
    while start < len(lines) and (not lines[start].strip() or lines[start].lstrip().startswith("#")):
        start += 1
    head = _HEAD.match(lines[start]) if start < len(lines) else None
    if head is None:
        return lines
    if head[1].strip() == "?" and not "".join(lines[start + 1 :]).strip():
        # IPython itself knows only ``%%hermes?`` without the blank.
        return ["get_ipython().run_line_magic('pinfo', '%%hermes')\n"]
    arguments = f"{head[1].strip()!r}, {''.join(lines[start + 1 :])!r}"
    if _inside_running_code():
        return [f"get_ipython().run_cell_magic('hermes', {arguments})\n"]
    return [f"await get_ipython().hermes_nb.run_cell({arguments})\n"]


# Without this mark IPython's is_complete no longer sees the ``%%`` and ends multi-line typing too early.
transform.has_side_effects = True  # type: ignore[attr-defined]
