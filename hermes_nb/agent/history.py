"""The rows of one session as this process read them last, and the request bytes that were joined from them.

A turn of a long session then costs what is new, not what is old. Nothing here is the truth: the store is, and its
revision says when the rows must be read anew. Knows no provider and no front end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hermes_nb.agent.body import Growing
from hermes_nb.agent.dialect import Projection
from hermes_nb.core.types import Message, Prefix
from hermes_nb.store.store import Store


class History:
    """Of one agent. Thread-safe: the worker of an interrupted turn may still be in here when the next turn begins."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._of: tuple[str, int] | None = None
        """Session and revision of the rows."""
        self._rows: list[Message] = []
        self._bodies = Bodies()

    def read(self, session_id: str) -> list[Message]:
        """Return the visible rows of the session as they are in the store now. The caller holds the lease."""
        with self._lock:
            of = (session_id, self._store.session(session_id).revision)
            if of != self._of:
                # An undo, a redo or a compaction changed rows that were read before.
                self._of, self._rows, self._bodies = None, [], Bodies()
            after = self._rows[-1].id if self._rows else 0
            self._rows += self._store.rows(session_id, after=after)
            self._of = of
            return list(self._rows)

    def body(self, head: bytes, prefix: Prefix, rows: Sequence[Message], dialect: str) -> bytes:
        """Return the request body for these rows, from stored bytes."""
        with self._lock:
            return self._bodies.body(head, prefix, rows, dialect)


class Bodies:
    """Request bodies for one growing list of rows; another list, prefix or dialect begins anew. Not thread-safe."""

    def __init__(self) -> None:
        self._of: tuple[bytes, Prefix, str] | None = None
        self._count = 0
        self._last = 0
        self._projection = Projection("")
        self._growing: Growing | None = None

    def body(self, head: bytes, prefix: Prefix, rows: Sequence[Message], dialect: str) -> bytes:
        """Return the body for ``rows``."""
        of, known = (head, prefix, dialect), self._count
        growing = self._growing
        if growing is None or of != self._of or (known and (len(rows) < known or rows[known - 1].id != self._last)):
            self._of, known = of, 0
            self._projection, growing = Projection(dialect), Growing(head, prefix)
        # None while it is being changed: after an exception in between it is joined anew.
        self._growing = None
        growing.add(self._projection.add(rows[known:]))
        self._count, self._last = len(rows), rows[-1].id if rows else 0
        self._growing = growing
        return growing.closed(self._projection.ending())
