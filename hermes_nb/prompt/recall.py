"""The recall block: what a turn must know that the frozen prefix cannot say.

It stands at the head of the user message's wire; the stored ``text`` stays what the user wrote. Each
fact is told in the turn in which it changed and not again: what was told before is read from the stored
rows themselves, so undo, a restart or another process never leads to a wrong guess.

::

    <recall>
    date: 2026-11-30 (Monday)
    surface: notebook
    masked: python
    df: DataFrame 3 rows x 2 columns
      a  int64
    </recall>
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from hermes_nb.core.types import Message
from hermes_nb.prompt.fence import defang

OPEN = "<recall>\n"
CLOSE = "\n</recall>\n\n"
_WIRE_START = '{"role":"user","content":"<recall>\\n'
_ENTRY_LIMIT = 2_000
_TOTAL_LIMIT = 8_000
_NOTHING_MASKED = "none"
_APPROVALS_ON = "on"
CONTEXT_CELLS = "context cells"
"""Fact of the Markdown cells that the user tagged for the model; no variable can have this name."""
NO_CELLS = "none"


def facts(
    *,
    today: date,
    surface: str,
    masked: Sequence[str],
    extra: Sequence[str] = (),
    approvals_off: bool = False,
) -> dict[str, str]:
    """Return the facts of this turn by name. ``extra`` are lines ``name: value``, or blocks that begin with one."""
    found = {
        "date": _day(today),
        "surface": surface,
        "masked": ", ".join(masked) or _NOTHING_MASKED,
        "approvals": "off (nothing will be asked)" if approvals_off else _APPROVALS_ON,
    }
    for number, block in enumerate(extra, start=1):
        name, colon, value = block.strip().partition(":")
        if not colon or "\n" in name:
            name, value = f"note {number}", block
        found[defang(name.strip())] = value.strip()
    return {name: _cut(value) for name, value in found.items()}


def told(rows: Iterable[Message], started: date) -> dict[str, str]:
    """Return the newest told value of every fact in ``rows``. The prefix itself told the start date."""
    known = {
        "date": _day(started),
        "masked": _NOTHING_MASKED,
        "approvals": _APPROVALS_ON,
        CONTEXT_CELLS: NO_CELLS,
    }
    for row in rows:
        if row.wire.startswith(_WIRE_START):
            known.update(_parse(json.loads(row.wire)["content"]))
    return known


def lines_told(rows: Iterable[Message], name: str) -> set[str]:
    """Return every line that a fact ever had in ``rows``."""
    lines: set[str] = set()
    for row in rows:
        if row.wire.startswith(_WIRE_START):
            lines.update(_parse(json.loads(row.wire)["content"]).get(name, "").split("\n"))
    return lines


def compose(text: str, now: Mapping[str, str], known: Mapping[str, str]) -> str:
    """Return the user message's content: a block with the changed facts, if any, then ``text``."""
    lines: list[str] = []
    left = _TOTAL_LIMIT
    for name, value in now.items():
        if known.get(name) == value:
            continue
        entry = f"{name}: {value}".replace("\n", "\n  ")
        if len(entry) > left:
            lines.append("(more left out: the block is full)")
            break
        left -= len(entry)
        lines.append(entry)
    if not lines and text.startswith(OPEN):
        # The user's own words must not be taken for a block of ours at the next turn.
        lines.append(f"surface: {now['surface']}")
    return OPEN + "\n".join(lines) + CLOSE + text if lines else text


def _day(day: date) -> str:
    # English whatever the process's locale is, as in the prefix.
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return f"{day.isoformat()} ({names[day.weekday()]})"


def _cut(value: str) -> str:
    # A value cannot end the block early, whatever a variable holds.
    lines = [line.rstrip() for line in defang(value).splitlines()]
    safe = "\n".join(lines)
    return safe if len(safe) <= _ENTRY_LIMIT else safe[: _ENTRY_LIMIT - 2].rstrip() + " …"


def _parse(content: str) -> dict[str, str]:
    block, closed, _ = content[len(OPEN) :].partition(CLOSE)
    if not closed:
        return {}
    found: dict[str, str] = {}
    name = ""
    for line in block.split("\n"):
        if line.startswith("  ") and name:
            found[name] += "\n" + line[2:]
        else:
            name, colon, value = line.partition(": ")
            if colon:
                found[name] = value
            else:
                name = ""
    return found
