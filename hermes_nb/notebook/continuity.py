"""Which session a cell continues. One function with its rules in order, and what it says to the user."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hermes_nb.core.errors import SessionNotFound
from hermes_nb.core.names import MIME_TURN
from hermes_nb.core.types import Session


class Sessions(Protocol):
    """What the rules need of the store."""

    def tip(self, session_id: str) -> Session: ...

    def find_session(self, ref: str, user: str | None = None) -> Session: ...

    def notebook_session(self, path: str) -> Session | None: ...

    def notebook_path(self, root_id: str) -> str | None: ...

    def branch(self, session_id: str) -> Session: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """``session`` None means a new one. ``said`` is a line for the user, or None when nothing is to be said."""

    session: Session | None
    said: str | None = None


def choose(
    store: Sessions,
    *,
    named: str | None,
    new: bool,
    current: str | None,
    notebook: Path | None,
    headless: bool,
) -> Choice:
    """Return the session for this cell, by the first rule that applies:

    1. ``--new``, or the session that ``-s`` names;
    2. the one this kernel already continues for this notebook;
    3. headless or replayed: a new one per kernel;
    4. the one that the last turn in the notebook file names (a copied notebook branches off);
    5. the one bound to the notebook's path;
    6. a new one.

    Raises SessionNotFound when ``-s`` names none.
    """
    if new:
        return Choice(None)
    if named is not None:
        return Choice(store.find_session(named))
    if current is not None:
        try:
            return Choice(store.tip(current))
        except SessionNotFound:
            return Choice(None, "The session of this notebook was deleted; this is a new one.")
    if headless or notebook is None:
        return Choice(None)
    in_file = last_session_in(notebook)
    if in_file is not None:
        try:
            found = store.tip(in_file)
        except SessionNotFound:
            found = None
        if found is not None:
            return _from_file(store, found, notebook)
    bound = store.notebook_session(str(notebook))
    return _continuing(bound) if bound is not None else Choice(None)


def _from_file(store: Sessions, found: Session, notebook: Path) -> Choice:
    other = store.notebook_path(found.root_id)
    if other is not None and Path(other) != notebook and Path(other).exists():
        branch = store.branch(found.id)
        return Choice(
            branch,
            f"This notebook is a copy of {Path(other).name}: it goes on in a branch of that session "
            f"(new: %hermes new).",
        )
    return _continuing(found)


def _continuing(session: Session) -> Choice:
    title = f" “{session.title}”" if session.title else ""
    return Choice(session, f"continuing session{title} {session.id[-8:]} (new: %hermes new)")


def last_session_in(notebook: Path) -> str | None:
    """Return the session id that the last turn output of a notebook file names, or None."""
    try:
        content: Any = json.loads(notebook.read_text(encoding="utf-8"))
        cells = content["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not saved yet, or not a notebook of version 4: there is no turn to continue
    for cell in reversed(cells):
        for output in reversed(cell.get("outputs") or []):
            facts = (output.get("metadata") or {}).get("hermes_nb") or (output.get("data") or {}).get(MIME_TURN)
            if isinstance(facts, dict) and isinstance(facts.get("session"), str):
                return facts["session"]
    return None
