"""Which session a cell continues: one function with its rules in order, and what one kernel remembers of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hermes_nb.core.errors import SessionNotFound
from hermes_nb.core.names import MIME_TURN
from hermes_nb.core.types import Session
from hermes_nb.notebook.frontend import FrontEnd, front_end, notebook_path


class Sessions(Protocol):
    """What is needed of the store; only the last two change anything."""

    def session(self, session_id: str) -> Session: ...

    def tip(self, session_id: str) -> Session: ...

    def find_session(self, ref: str, user: str | None = None) -> Session: ...

    def notebook_session(self, path: str) -> Session | None: ...

    def notebook_path(self, root_id: str) -> str | None: ...

    def branch(self, session_id: str) -> Session: ...

    def bind_notebook(self, path: str, session_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """``session`` None means a new one. ``said`` is a line for the user, or None when nothing is to be said."""

    session: Session | None
    said: str | None = None
    branch: bool = False
    """The notebook is a copy: go on in a branch of ``session``, which belongs to another notebook."""


def choose(
    store: Sessions,
    *,
    named: str | None,
    new: bool,
    current: str | None,
    notebook: Path | None,
    headless: bool,
) -> Choice:
    """Return the session for this cell, by the first rule that applies; changes nothing.

    1. ``--new``, or the session that ``-s`` names;
    2. the one this kernel already continues for this notebook;
    3. headless or replayed: a new one per kernel;
    4. the one that the latest turn in the notebook file names (a copied notebook branches off);
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
    bound = store.notebook_session(str(notebook))
    in_file = last_session_in(notebook)
    if in_file is not None:
        try:
            return _from_file(store, store.tip(in_file), bound, notebook)
        except SessionNotFound:
            if bound is None:
                return Choice(None, "The session that this notebook names is not in this store; this is a new one.")
    return _continuing(bound) if bound is not None else Choice(None)


def _from_file(store: Sessions, found: Session, bound: Session | None, notebook: Path) -> Choice:
    if bound is not None and (bound.root_id == found.root_id or _branch_of(store, bound, found)):
        return _continuing(bound)
    other = store.notebook_path(found.root_id)
    if other is not None and Path(other) != notebook and Path(other).exists():
        said = (
            f"This notebook is a copy of {Path(other).name}: it goes on in a branch of that session (new: %hermes new)."
        )
        return Choice(found, said, branch=True)
    return _continuing(found)


def _branch_of(store: Sessions, session: Session, above: Session) -> bool:
    """Return whether ``session`` branched off ``above``'s lineage; a copy's file names that until it is saved."""
    root = store.session(session.root_id)
    return root.parent_id is not None and _root_of(store, root.parent_id) == above.root_id


def _root_of(store: Sessions, session_id: str) -> str | None:
    try:
        return store.tip(session_id).root_id
    except SessionNotFound:
        return None  # the original is deleted; its branch stands alone


def _continuing(session: Session) -> Choice:
    title = f" “{session.title}”" if session.title else ""
    return Choice(session, f"continuing session{title} {session.id[-8:]} (new: %hermes new)")


def last_session_in(notebook: Path) -> str | None:
    """Return the session id that the latest turn output of a notebook file names, or None.

    The latest in time, not in place: people run the upper cells again.
    """
    try:
        content: Any = json.loads(notebook.read_text(encoding="utf-8"))
        outputs = [output for cell in content["cells"] for output in cell.get("outputs") or []]
        named = [facts for output in outputs if (facts := _facts(output)) is not None]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # not saved yet, or not a notebook of version 4: there is no turn to continue
    if not named:
        return None
    return max(enumerate(named), key=lambda item: (_moment(item[1]), item[0]))[1]["session"]


def _facts(output: dict[str, Any]) -> dict[str, Any] | None:
    for facts in ((output.get("metadata") or {}).get("hermes_nb"), (output.get("data") or {}).get(MIME_TURN)):
        if isinstance(facts, dict) and isinstance(facts.get("session"), str):
            return facts
    return None


def _moment(facts: dict[str, Any]) -> float:
    at = facts.get("at")
    return at if isinstance(at, int | float) else 0.0


class Continuity:
    """What one kernel continues, by notebook. A kernel serves one notebook, but its name may change."""

    def __init__(
        self, shell: Any, store: Callable[[], Sessions], before_bind: Callable[[Path], object] = lambda path: None
    ) -> None:
        self._shell = shell
        self._store = store
        self._before_bind = before_bind
        self.current: dict[Path | None, str] = {}
        """Lineage root by notebook."""

    def choose(self, seen: FrontEnd, *, named: str | None = None, new: bool = False) -> Choice:
        """Return the session for the next cell; changes nothing."""
        notebook = notebook_path(self._shell)
        return choose(
            self._store(),
            named=named,
            new=new,
            current=self.current.get(notebook),
            notebook=notebook,
            headless=seen.headless,
        )

    def take(self, choice: Choice, seen: FrontEnd) -> Session | None:
        """Make the chosen session this notebook's own: branch off where it is a copy, and bind it to the path."""
        session = choice.session
        if session is None:
            return None
        if choice.branch:
            session = self._store().branch(session.id)
        notebook = notebook_path(self._shell)
        # A run that nobody watches may have inherited the notebook of the kernel that started it.
        if notebook is not None and not seen.headless:
            bound = self._store().notebook_session(str(notebook))
            if bound is None or bound.root_id != session.root_id:
                self._before_bind(notebook)
                self._store().bind_notebook(str(notebook), session.id)
        return session

    def look(self) -> Session | None:
        """Return the session that the next cell would continue (for a copy: the original). Changes nothing."""
        return self.choose(front_end(self._shell)).session

    def here(self) -> Session | None:
        """Return the session that the next cell continues, made this notebook's own now."""
        choice = self.choose(front_end(self._shell))
        return None if choice.session is None else self.go_on_with(choice)

    def go_on_with(self, chosen: Choice | Session) -> Session:
        """Let the next cells of this notebook continue a session, also after a restart of the kernel."""
        choice = chosen if isinstance(chosen, Choice) else Choice(chosen)
        session = self.take(choice, front_end(self._shell))
        assert session is not None
        self.current[notebook_path(self._shell)] = session.root_id
        return session
