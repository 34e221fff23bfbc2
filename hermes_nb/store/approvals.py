"""Questions to the user as rows, and the rules that answer some of them for good. Asks nobody itself.

pending ──answer (first wins)──▶ approved | denied | cancelled
   └──── reap: asking process dead ──▶ cancelled     its time is over ──▶ expired
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hermes_nb.core.errors import InvalidTransition, LeaseLost, StoreError
from hermes_nb.core.ids import new_id
from hermes_nb.core.names import ALLOWANCE, APPROVAL_SECONDS, ApprovalState
from hermes_nb.core.types import ApprovalRequest, Lease
from hermes_nb.core.wirejson import dumps
from hermes_nb.store.database import Database
from hermes_nb.store.people import People
from hermes_nb.store.process import is_dead, this_process
from hermes_nb.store.sessions import root_of

_CONTENT_HASH = re.compile("[0-9a-f]{16}")

_SELECT: Final = """
SELECT a.id, coalesce((SELECT id FROM sessions s WHERE s.root=a.root ORDER BY s.sid LIMIT 1), ''), a.tool, a.arguments,
       a.args_hash, a.reason, a.diff, a.state, a.answered_by, a.asked, a.expires_at
FROM approvals a
"""


def arguments_hash(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what an answer is bound to: the tool and its arguments, whatever the order of their keys."""
    text = json.dumps([tool, arguments], sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class Approvals:
    """Questions of all lineages."""

    def __init__(self, database: Database, user: str) -> None:
        self._database, self._user = database, user

    def ask(
        self,
        root_id: str,
        tool: str,
        arguments: Mapping[str, Any],
        reason: str,
        diff: str | None = None,
        lease: Lease | None = None,
        seconds: float = APPROVAL_SECONDS,
    ) -> ApprovalRequest:
        """Write a question and return it. Raises LeaseLost when the turn that asks may no longer write."""
        request_id, now = new_id(), time.time()
        with self._database.write() as connection:
            root = root_of(connection, root_id)
            values = (
                request_id, root, this_process(), tool, dumps(dict(arguments)), arguments_hash(tool, arguments),
                reason, diff, ApprovalState.PENDING, now, now + seconds, lease.fence if lease else None,
            )  # fmt: skip
            sql = (
                "INSERT INTO approvals(id, root, holder, tool, arguments, args_hash, reason, diff, state, asked,"
                " expires_at, fence) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
            )
            if lease is None:
                written = connection.execute(sql, values).rowcount
            else:
                written = connection.execute(
                    sql + " WHERE EXISTS(SELECT 1 FROM leases WHERE root=? AND holder=? AND fence=?)",
                    (*values, root, lease.holder, lease.fence),
                ).rowcount
            if written != 1:
                raise LeaseLost("This turn no longer holds the session, so it may not ask anything.")
        return self.get(request_id)

    def get(self, request_id: str) -> ApprovalRequest:
        """Return the question in its present state."""
        row = self._database.one(_SELECT + "WHERE a.id=?", (request_id,))
        if row is None:
            raise StoreError(f"No question {request_id!r}; its session may have been deleted.")
        return _request(row)

    def answer(
        self,
        request_id: str,
        state: ApprovalState,
        by: str,
        args_hash: str | None = None,
        *,
        user: str | None = None,
    ) -> bool:
        """Give a pending question its final state; False when it has one, is too old, or asks something else.

        Only the session's owner can approve: ``user`` (default: the store's own) must be that.
        """
        if state is ApprovalState.PENDING:
            raise InvalidTransition("An answer must be approved, denied, cancelled or expired.")
        now = time.time()
        with self._database.write() as connection:
            cursor = connection.execute(
                "UPDATE approvals SET state=?1, answered_by=?2, answered=?3 WHERE id=?4 AND state='pending'"
                " AND (?5 IS NULL OR args_hash=?5) AND (?1<>'approved' OR (expires_at>?3 AND EXISTS("
                "SELECT 1 FROM sessions s JOIN users u ON u.id=s.user WHERE s.root=approvals.root AND u.name=?6)))",
                (state, by, now, request_id, args_hash, user or self._user),
            )
            return cursor.rowcount == 1

    def pending(self, user: str | None = None) -> list[ApprovalRequest]:
        """Return this user's open questions, oldest first."""
        rows = self._database.query(
            _SELECT + "WHERE a.state='pending' AND a.expires_at>? AND EXISTS(SELECT 1 FROM sessions s JOIN users u"
            " ON u.id=s.user WHERE s.root=a.root AND u.name=?) ORDER BY a.asked, a.id",
            (time.time(), user or self._user),
        )
        return [_request(row) for row in rows]

    def reap(self) -> int:
        """Close the questions that nobody waits for any more; return how many.

        Those of dead processes of this host become cancelled, those whose time is over expired.
        """
        now, closed = time.time(), 0
        waiting = self._database.query("SELECT id, holder, expires_at FROM approvals WHERE state='pending'")
        ends = [(ApprovalState.CANCELLED if is_dead(holder) else ApprovalState.EXPIRED, request_id)
                for request_id, holder, expires_at in waiting if expires_at <= now or is_dead(holder)]  # fmt: skip
        if ends:
            with self._database.write() as connection:
                for state, request_id in ends:
                    closed += connection.execute(
                        "UPDATE approvals SET state=?, answered=? WHERE id=? AND state='pending'",
                        (state, now, request_id),
                    ).rowcount
        return closed


class Rules:
    """What a user has allowed for good: a tool with one exact pattern or content hash."""

    def __init__(self, database: Database, people: People, user: str) -> None:
        self._database, self._people, self._user = database, people, user

    def add(self, tool: str, pattern: str, user: str | None = None, *, kind: str = "always") -> None:
        """Remember the allowance; a second time changes nothing."""
        with self._database.write() as connection:
            owner = self._people.user(connection, user or self._user)
            connection.execute(
                "INSERT OR IGNORE INTO rules(user, kind, tool, pattern, created) VALUES(?, ?, ?, ?, ?)",
                (owner, kind, tool, pattern, time.time()),
            )

    def matches(self, tool: str, pattern: str, user: str | None = None, *, kind: str = "always") -> bool:
        """Whether exactly this was allowed."""
        return bool(
            self._database.query(
                "SELECT 1 FROM rules r JOIN users u ON u.id=r.user"
                " WHERE u.name=? AND r.kind=? AND r.tool=? AND r.pattern=?",
                (user or self._user, kind, tool, pattern),
            )
        )

    def list(self, user: str | None = None) -> Sequence[tuple[str, str, str]]:
        """Return (kind, tool, pattern) of everything this user allowed."""
        rows = self._database.query(
            "SELECT r.kind, r.tool, r.pattern FROM rules r JOIN users u ON u.id=r.user WHERE u.name=? ORDER BY r.id",
            (user or self._user,),
        )
        return [(str(kind), str(tool), str(pattern)) for kind, tool, pattern in rows]

    def remove(self, tool: str, pattern: str, user: str | None = None, *, kind: str = "always") -> bool:
        """Forget an allowance; False when there was none."""
        with self._database.write() as connection:
            owner = self._people.user(connection, user or self._user)
            cursor = connection.execute(
                "DELETE FROM rules WHERE user=? AND kind=? AND tool=? AND pattern=?", (owner, kind, tool, pattern)
            )
            return cursor.rowcount == 1


class Allowed:
    """The passages that one user has let through the scan, by content hash."""

    def __init__(self, rules: Rules, user: str) -> None:
        self._rules, self._user = rules, user

    def allowed(self, content_hash: str) -> bool:
        """Return whether the user allowed exactly the content with this hash."""
        return self._rules.matches(ALLOWANCE, content_hash, self._user, kind=ALLOWANCE)

    def allow(self, content_hash: str) -> None:
        """Let the content with this hash through from now on. Raises StoreError when it is no such hash."""
        if not _CONTENT_HASH.fullmatch(content_hash):
            raise StoreError(
                f"{content_hash!r} is not a content hash: 16 digits from 0 to f, as the notice shows them. Copy it "
                "from there."
            )
        self._rules.add(ALLOWANCE, content_hash, self._user, kind=ALLOWANCE)


def _request(row: Sequence[Any]) -> ApprovalRequest:
    return ApprovalRequest(
        id=row[0],
        root_id=row[1],
        tool=row[2],
        arguments=json.loads(row[3]),
        args_hash=row[4],
        reason=row[5],
        diff=row[6],
        state=ApprovalState(row[7]),
        answered_by=row[8],
        asked=row[9],
        expires_at=row[10],
    )
