"""Markdown cells that the user tagged for the model, read from the saved notebook.

Owns whose cells are believed: those of a notebook in which nobody asked anything before may come from somebody
else, and stay out until the user allowed exactly this text. A passage that reads like an injection is blocked in
any notebook until then. Must not know how a turn tells them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_nb.core.secrets import mask
from hermes_nb.prompt.blocking import screen
from hermes_nb.prompt.recall import CONTEXT_CELLS, NO_CELLS
from hermes_nb.store.store import Store

TAG = "hermes-context"
LIMIT = 1_800
"""Characters that are told of all tagged cells together; a recall fact holds 2,000."""
_CONFIRMED, _FOREIGN = "confirmed", "foreign"


@dataclass(frozen=True, slots=True)
class Cells:
    """The tagged cells of one notebook now. ``told`` is what the model may see; ``said`` a line for the user."""

    text: str = ""
    told: str = NO_CELLS
    said: str | None = None

    @property
    def fact(self) -> str:
        """The line for the recall block."""
        return f"{CONTEXT_CELLS}: {self.told}"


class ContextCells:
    """Of one kernel. Reads a notebook again only when its file changed."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store
        self._read: dict[Path, tuple[tuple[int, int], str]] = {}
        self._said: set[str] = set()

    def look(self, notebook: Path | None) -> Cells:
        """Return the cells of a notebook.

        Call it before the notebook is bound to a session: that is how a notebook from elsewhere is known.
        """
        text = "" if notebook is None else self._text(notebook)
        if notebook is None or not text:
            return Cells()
        allowed = self._store().rules.matches(TAG, _digest(text), kind=_CONFIRMED)
        if self._is_foreign(notebook) and not allowed:
            return Cells(text, said=_not_told(text))
        told, said = (text, "") if allowed else _screened(text)
        told = mask(told)
        if len(told) > LIMIT:
            cut = len(told) - LIMIT
            told = f"{told[:LIMIT].rstrip()}\n[{cut:,} more characters left out]"
            said += f" The cells tagged {TAG} are too long: the last {cut:,} characters are not told to the model."
        return Cells(text, told, said.strip() or None)

    def allow(self, notebook: Path | None) -> Cells:
        """Let the model be told the tagged cells as they are saved now, and return them."""
        text = "" if notebook is None else self._text(notebook)
        if text:
            self._store().rules.add(TAG, _digest(text), kind=_CONFIRMED)
        return self.look(notebook)

    def _is_foreign(self, notebook: Path) -> bool:
        """Whether the notebook came from elsewhere, as far as can be known; remembered, for it is bound soon."""
        store, path = self._store(), str(notebook)
        if store.rules.matches(TAG, path, kind=_FOREIGN):
            return True
        if store.notebook_session(path) is not None:
            return False
        store.rules.add(TAG, path, kind=_FOREIGN)
        return True

    def news(self, cells: Cells) -> str | None:
        """Return what is to be said of them, once per kernel."""
        if cells.said is None or (key := cells.said + _digest(cells.text)) in self._said:
            return None
        self._said.add(key)
        return cells.said

    def _text(self, notebook: Path) -> str:
        try:
            state = notebook.stat()
            stamp = (state.st_mtime_ns, state.st_size)
            known = self._read.get(notebook)
            if known is None or known[0] != stamp:
                known = self._read[notebook] = (stamp, tagged(notebook.read_bytes()))
            return known[1]
        except OSError:
            return ""  # not saved yet


def tagged(raw: bytes) -> str:
    """Return the tagged Markdown cells of a notebook file as one text, "" for none or another kind of file."""
    try:
        cells: Any = json.loads(raw)["cells"]
        found = [_source(cell) for cell in cells if cell["cell_type"] == "markdown" and TAG in _tags(cell)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return "\n\n".join(source for source in found if source)


def _tags(cell: dict[str, Any]) -> list[str]:
    tags = (cell.get("metadata") or {}).get("tags")
    return tags if isinstance(tags, list) else []


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source") or ""
    text = "".join(source) if isinstance(source, list) else str(source)
    return text.encode("utf-8", "replace").decode("utf-8").strip()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _screened(text: str) -> tuple[str, str]:
    """Return the text with a placeholder for each passage that reads like an injection, and what to say of them."""
    found = screen(text, "a context cell")
    if not found.blocked:
        return found.text, ""
    passages = "; ".join(f"“{one.passage}” ({one.rule})" for one in found.blocked)
    return found.text, (
        f"Parts of the cells tagged {TAG} read like an attempt to give the model other instructions and are not told: "
        f"{passages}. Read them; if they are meant like that: %hermes context allow"
    )


def _not_told(text: str) -> str:
    return (
        f"This notebook has cells tagged {TAG} ({len(text):,} characters) and may come from somebody else: nothing was "
        "asked in it before. The model is not told what stands there. Read them, then: %hermes context allow"
    )
