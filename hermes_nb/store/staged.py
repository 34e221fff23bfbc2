"""Edits of memory and skills that wait for the user's yes. Decides nothing; no tool of the model reaches ``accept``.

::

    pending ──accept──▶ accepted    the edit is applied in the same transaction; if it cannot be, it stays pending
       └─────reject───▶ rejected
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hermes_nb.core.errors import InvalidTransition, StoreError
from hermes_nb.core.ids import new_id
from hermes_nb.core.wirejson import dumps
from hermes_nb.store.database import Database
from hermes_nb.store.memory import MemoryOutcome, MemoryPreview, MemoryStore
from hermes_nb.store.memory_text import DELIMITER
from hermes_nb.store.people import People

MEMORY_KIND: Final = "memory"
_SELECT: Final = (
    "SELECT g.id, g.kind, g.target, g.action, g.content, g.diff, g.reason, g.state, g.created, g.decided,"
    " (SELECT id FROM sessions s WHERE s.sid=g.sid) FROM staged g JOIN users u ON u.id=g.user WHERE u.name=?"
)
DRIFT: Final = "The memory has changed since this edit was staged; it was applied to what is there now."


@dataclass(frozen=True, slots=True)
class StagedEdit:
    """One edit that waits, or waited. ``content`` is what its kind applies; for memory ``operations`` and ``base``."""

    id: str
    kind: str
    target: str
    action: str
    content: Mapping[str, Any]
    diff: str
    reason: str | None
    state: str
    created: float
    decided: float | None
    session_id: str | None


class Staged:
    """Staged edits of one user unless another is named."""

    def __init__(self, database: Database, people: People, user: str) -> None:
        self._database, self._people, self._user = database, people, user

    def add(
        self,
        kind: str,
        target: str,
        action: str,
        content: Mapping[str, Any],
        diff: str,
        *,
        reason: str | None = None,
        session: str | None = None,
        user: str | None = None,
    ) -> StagedEdit:
        """Keep an edit until it is decided. The same edit waiting already is returned instead of a second one."""
        owner, text = user or self._user, dumps(dict(content))
        with self._database.write() as connection:
            number = self._people.user(connection, owner)
            row = connection.execute(
                "SELECT id FROM staged WHERE user=? AND state='pending' AND kind=? AND target=? AND content=?",
                (number, kind, target, text),
            ).fetchone()
            id = row[0] if row else new_id()
            if row is None:
                connection.execute(
                    "INSERT INTO staged(id, user, sid, kind, target, action, content, diff, reason, state, created)"
                    " VALUES(?, ?, (SELECT sid FROM sessions WHERE id=?), ?, ?, ?, ?, ?, ?, 'pending', ?)",
                    (id, number, session, kind, target, action, text, diff, reason, time.time()),
                )
        return self.get(id, owner)

    def add_memory(
        self,
        memory: MemoryStore,
        preview: MemoryPreview,
        *,
        reason: str | None = None,
        session: str | None = None,
        user: str | None = None,
    ) -> StagedEdit:
        """Keep an edit of the memory files that ``memory.preview`` found possible."""
        target, operations = preview.outcome.target, [dict(one) for one in preview.operations]
        action = operations[0]["action"] if len(operations) == 1 else "batch"
        content = {"operations": operations, "base": _base(memory, target)}
        return self.add(MEMORY_KIND, target, action, content, preview.diff, reason=reason, session=session, user=user)

    def list(self, user: str | None = None, *, kind: str | None = None) -> Sequence[StagedEdit]:
        """Return the edits that wait, oldest first."""
        rows = self._database.query(
            f"{_SELECT} AND g.state='pending' AND (?2 IS NULL OR g.kind=?2) ORDER BY g.created, g.id",
            (user or self._user, kind),
        )
        return [_edit(row) for row in rows]

    def get(self, id: str, user: str | None = None) -> StagedEdit:
        """Return one edit by its id in whatever state. Raises StoreError when this user has none of this id."""
        row = self._database.one(f"{_SELECT} AND g.id=?", (user or self._user, id))
        if row is None:
            raise StoreError(f"There is no staged edit {id!r}.")
        return _edit(row)

    def find(self, ref: str, user: str | None = None) -> StagedEdit:
        """Return the waiting edit whose id begins with ``ref``. Raises StoreError naming what fits."""
        waiting = self.list(user)
        found = [edit for edit in waiting if ref and edit.id.startswith(ref)]
        if len(found) == 1:
            return found[0]
        ids = ", ".join(edit.id for edit in found or waiting) or "none"
        raise StoreError(f"{len(found)} staged edits begin with {ref!r}. Waiting: {ids}.")

    def accept(self, id: str, memory: MemoryStore, user: str | None = None) -> MemoryOutcome:
        """Apply a waiting memory edit and mark it accepted, or return why it cannot be applied (it then still waits).

        The same checks as for any edit hold, on what the file holds now; ``old_text`` must still be there as the whole
        entry that the diff shows. Raises InvalidTransition when it was decided already.
        """
        edit = self.get(id, user)
        if edit.kind != MEMORY_KIND:
            raise StoreError(f"The staged edit {id} is of kind {edit.kind}, not of memory.")
        with self._database.write() as connection:
            # The row is held while the file is written, so nobody else decides meanwhile. A process that dies between
            # the two leaves a waiting edit that is in the file; accepting it again finds it done.
            row = connection.execute("SELECT state FROM staged WHERE id=?", (id,)).fetchone()
            if row is None or row[0] != "pending":
                raise InvalidTransition(f"The staged edit {id} is {row[0] if row else 'gone'} already.")
            drifted = edit.content.get("base") != _base(memory, edit.target)
            outcome = memory.apply(edit.target, _exact(memory, edit))
            if outcome.success:
                connection.execute("UPDATE staged SET state='accepted', decided=? WHERE id=?", (time.time(), id))
        return replace(outcome, warnings=(*outcome.warnings, DRIFT)) if drifted and outcome.success else outcome

    def reject(self, id: str, user: str | None = None) -> bool:
        """Drop a waiting edit; False when it was decided already. Its text is not kept."""
        with self._database.write() as connection:
            number = self._people.user(connection, user or self._user)
            cursor = connection.execute(
                "UPDATE staged SET state='rejected', decided=?, content='{}', diff=NULL"
                " WHERE id=? AND user=? AND state='pending'",
                (time.time(), id, number),
            )
            return cursor.rowcount == 1


def _exact(memory: MemoryStore, edit: StagedEdit) -> Sequence[Mapping[str, Any]]:
    """Return the operations; those that act on an entry which is gone name it so that nothing else is taken for it."""
    operations: Sequence[Mapping[str, Any]] = edit.content["operations"]
    live = set(memory.entries(edit.target))
    added = [one["content"] for one in operations if "content" in one]
    if added and live.issuperset(added) and all(one.get("old_text") not in live for one in operations):
        # It is in the file: an accept before this one did not come to its end.
        return [{"action": "add", "content": content} for content in added]
    for one in operations:
        old = one.get("old_text")
        if old is not None and old not in live and any(old in entry for entry in live):
            raise StoreError(
                f"The entry that this edit changes was itself changed since: {old[:80]!r}. Reject it, and edit by hand."
            )
    return operations


def _base(memory: MemoryStore, target: str) -> str:
    return hashlib.sha256(DELIMITER.join(memory.entries(target)).encode()).hexdigest()[:16]


def _edit(row: Sequence[Any]) -> StagedEdit:
    id, kind, target, action, content, diff, reason, state, created, decided, session = row
    return StagedEdit(
        id, kind, target, action, json.loads(content), diff or "", reason, state, created, decided, session
    )
