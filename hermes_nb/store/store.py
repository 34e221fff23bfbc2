"""The store as the rest of the product sees it. Composes the parts, each of which owns its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from hermes_nb.core.errors import StoreError
from hermes_nb.core.ids import boot_id
from hermes_nb.core.names import MessageStatus
from hermes_nb.core.types import Lease, Message, NewMessage, Prefix, SearchResult, Session, Wire
from hermes_nb.store import index
from hermes_nb.store.accounts import Accounts
from hermes_nb.store.approvals import Approvals, Rules
from hermes_nb.store.branching import Branching
from hermes_nb.store.database import Connect, Database, connect
from hermes_nb.store.deletion import Deletion
from hermes_nb.store.deliveries import Deliveries, Inbox
from hermes_nb.store.handoffs import Handoff, Handoffs
from hermes_nb.store.holders import Holders
from hermes_nb.store.leases import Leases
from hermes_nb.store.messages import Messages
from hermes_nb.store.migrations import migrate
from hermes_nb.store.people import People, system_user
from hermes_nb.store.prefixes import Prefixes
from hermes_nb.store.queue import Queue
from hermes_nb.store.recovery import open_or_replace
from hermes_nb.store.routes import Routes
from hermes_nb.store.search import Search
from hermes_nb.store.sessions import Sessions
from hermes_nb.store.staged import Staged
from hermes_nb.store.tokeniser import TOKENISER
from hermes_nb.store.usage import UsageBook


def open_store(path: Path, *, kind: str = "process", user: str | None = None, connect: Connect = connect) -> Store:
    """Open the store, made and upgraded as needed.

    ``kind`` says what this process is (``kernel``, ``gateway``, …) to whoever waits for it. Raises ConfigError when
    the file cannot be made there, StoreNewer, StoreBusy, StoreFull, and StoreError for another program's database.
    A damaged file is moved aside; ``Store.notices`` then says where.
    """
    path = Path(path).expanduser().absolute()

    def opened() -> Database:
        database = Database(path, connect=connect)
        try:
            migrate(database)
        except BaseException:
            database.close()
            raise
        return database

    database, notice = open_or_replace(path, opened)
    if notice:
        database.notices.insert(0, notice)
    try:
        return Store(database, kind, user or system_user())
    except BaseException:
        database.close()
        raise


class Store:
    """One open store, for one user unless another is named. Every method may be called from any thread.

    A write is committed when its method returns. Methods that take ``user=None`` mean the store's own user; nobody
    sees another user's rows without naming that user.
    """

    def __init__(self, database: Database, kind: str, user: str) -> None:
        self._database = database
        self.user = user
        people = People(database)
        self._sessions = Sessions(database, people, user)
        self._messages = Messages(database)
        self._prefixes = Prefixes(database)
        self._routes = Routes(database, self._sessions)
        self._search = Search(database, people, user)
        self._branching = Branching(database, self._sessions)
        self._deletion = Deletion(database)
        self.leases = Leases(database)
        self.approvals = Approvals(database, user)
        self.rules = Rules(database, people, user)
        self.staged = Staged(database, people, user)
        self.usage = UsageBook(database)
        self.accounts = Accounts(database, people, user)
        self.handoffs = Handoffs(database)
        self.deliveries = Deliveries(database)
        self.inbox = Inbox(database)
        self.queue = Queue(database)
        self.holders = Holders(database)
        self.holders.register(kind)
        self._renew_index()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        return self._database.path

    @property
    def journal_mode(self) -> str:
        """``wal``, or ``delete`` where the write-ahead log cannot be used."""
        return self._database.journal_mode

    @property
    def notices(self) -> list[str]:
        """What the user should be told about this store once."""
        return self._database.notices

    def close(self) -> None:
        """Close the store; a second call does nothing."""
        if self._database.usable:
            try:
                # A file that is gone, full or newer keeps our entry; whoever reads it sees when this process has ended.
                with suppress(StoreError):
                    self.holders.leave()
            finally:
                self._database.close()

    def data_version(self) -> int:
        """Return a number that changes whenever anything was committed; cheap enough to poll."""
        return self._database.data_version()

    def problems(self) -> list[str]:
        """Return what SQLite's own checks find wrong; empty when the file is sound. Reads the whole file."""
        return self._database.problems()

    def rebuild_search(self) -> None:
        """Make the search tables anew from the messages; about 0.3 ms a row, during which nobody can write."""
        with self._database.write() as connection:
            index.rebuild(connection)

    def _renew_index(self) -> None:
        if not self._database.query("SELECT 1 FROM meta WHERE key='tokeniser' AND value=?", (TOKENISER,)):
            self.rebuild_search()

    # Sessions

    def create_session(
        self,
        source: str = "notebook",
        title: str | None = None,
        user: str | None = None,
        parent: str | None = None,
        parent_kind: str = "branch",
        *,
        cwd: str | None = None,
        notebook: str | None = None,
        kernel: str | None = None,
        model: str | None = None,
        base_url: str | None = None,
        key_env: str | None = None,
    ) -> Session:
        """Begin a session. A child takes over its parent's places and model where none is given.

        A ``compaction`` child continues the parent's lineage and ends the parent; ``branch`` and ``delegate``
        children begin lineages of their own. Raises SessionNotFound for an unknown parent, InvalidTransition for a
        parent that was compacted before.
        """
        places = {
            "cwd": cwd,
            "notebook": notebook,
            "kernel": kernel,
            "kernel_boot": boot_id() if kernel else None,
            "model": model,
            "base_url": base_url,
            "key_env": key_env,
        }
        return self._sessions.create(source, title, user, parent, parent_kind, places)

    def branch(
        self, session_id: str, *, at: int | None = None, title: str | None = None, source: str | None = None
    ) -> Session:
        """Begin a lineage with this session's visible messages (up to message ``at``) and its prefix.

        What either side does later does not touch the other. Raises SessionNotFound.
        """
        return self._branching.branch(session_id, at, title, source)

    def session(self, session_id: str) -> Session:
        """Return exactly this session. Raises SessionNotFound."""
        return self._sessions.get(session_id)

    def find_session(self, ref: str, user: str | None = None) -> Session:
        """Return the live tip of what a person named: an id, a title, or a unique beginning of either.

        Raises SessionNotFound naming near ones, or all that fit.
        """
        return self._sessions.find(ref, user)

    def sessions(
        self,
        user: str | None = None,
        *,
        limit: int = 50,
        sources: Sequence[str] | None = None,
        archived: bool = False,
    ) -> list[Session]:
        """Return one session per lineage (its tip), last active first, without delegates.

        ``archived`` adds the archived ones.
        """
        return self._sessions.list(user, limit, sources, archived)

    def tip(self, session_id: str) -> Session:
        """Return the session in which this lineage goes on: compactions are followed, branches not."""
        return self._sessions.tip(session_id)

    def lineage(self, session_id: str) -> list[Session]:
        """Return the sessions from the very first ancestor to the tip."""
        return self._sessions.lineage(session_id)

    def update_session(self, session_id: str, **fields: Any) -> Session:
        """Change title, title_by, model, base_url, key_env, cwd, notebook, kernel, kernel_boot or archived."""
        return self._sessions.update(session_id, fields)

    def end_session(self, session_id: str, reason: str) -> None:
        """Mark a session as ended; the first reason stays."""
        self._sessions.end(session_id, reason)

    def delete_session(self, session_id: str) -> None:
        """Delete a session with its whole lineage and its delegates. Branches stay, with their parent cleared."""
        self._deletion.delete(session_id)

    def prune_sessions(self, session_ids: Sequence[str]) -> int:
        """Delete just these sessions; what followed them is kept, with its parent cleared. Return how many."""
        return self._deletion.prune(session_ids)

    # Messages

    def append(
        self,
        session_id: str,
        wire: Wire,
        *,
        text: str | None = None,
        dialect: str = "openai",
        status: MessageStatus | str = MessageStatus.COMPLETE,
        tool_name: str | None = None,
        turn_id: str | None = None,
        lease: Lease | None = None,
        platform_message_id: str | None = None,
    ) -> int:
        """Store one message and return its id. See append_rows."""
        row = NewMessage(wire, dialect, text, tool_name, MessageStatus(status), turn_id, platform_message_id)
        return self._messages.append(session_id, [row], lease)[0]

    def append_rows(self, session_id: str, rows: Sequence[NewMessage], *, lease: Lease | None = None) -> list[int]:
        """Store messages in one transaction, all or none, and return their ids.

        With a lease they are stored only while it is held; else they are kept in ``late_results`` and LeaseLost is
        raised.
        """
        return self._messages.append(session_id, rows, lease)

    def messages(self, session_id: str) -> list[Wire]:
        """Return the wires of the visible rows in order, as a model would get them."""
        return self._messages.wires(session_id)

    def rows(self, session_id: str, *, after: int = 0, hidden: bool = False) -> list[Message]:
        """Return the rows with an id above ``after``; ``hidden`` adds those that were undone or compacted."""
        return self._messages.rows(session_id, after, hidden)

    def neighbours(self, message_ids: Iterable[int], before: int = 5, after: int = 5) -> dict[int, list[Message]]:
        """Return for each message the visible rows around it in its session, itself included, in order."""
        return self._messages.neighbours(message_ids, before, after)

    def late_results(self, session_id: str) -> list[Message]:
        """Return the rows that came after their turn had lost the right to write, oldest first."""
        return self._messages.late_results(session_id)

    def undo(self, session_id: str, turns: int = 1, *, lease: Lease | None = None) -> int:
        """Hide the last turns of this session and return how many rows that were.

        Raises SessionLeased while a turn runs (unless ``lease`` is that turn's).
        """
        return self._messages.undo(session_id, turns, lease)

    def redo(self, session_id: str, *, lease: Lease | None = None) -> int:
        """Show again what the last undo hid and return how many rows that were; 0 when nothing is hidden.

        Raises InvalidTransition when something was said since, SessionLeased while a turn runs.
        """
        return self._messages.redo(session_id, lease)

    # Search

    def search(
        self,
        query: str,
        limit: int = 20,
        sort: str = "rank",
        sources: Sequence[str] | None = None,
        user: str | None = None,
        *,
        session: str | None = None,
        exclude_root: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> SearchResult:
        """Find messages of one user. Never raises for what the query says; ``notice`` tells what was not searched.

        ``sort`` is ``rank``, ``newest`` or ``oldest``. Words are joined by AND; ``AND OR NOT ( ) "phrase" prefix*``
        work in every script. ``session`` searches one session, ``exclude_root`` leaves one lineage out.
        """
        return self._search.search(
            query, limit, sort, sources, user, session=session, exclude_root=exclude_root, roles=roles
        )

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Return in about how many messages each word (or pair of unspaced characters) stands, whoever's they are."""
        return self._search.frequencies(words)

    # Prefixes

    def freeze_prefix(self, session_id: str, prefix: Prefix, head: bytes, *, replace: bool = False) -> Prefix:
        """Set the session's prefix and head if it has none (or ``replace``); return what is stored now."""
        return self._prefixes.freeze(session_id, prefix, head, replace)

    def prefix(self, session_id: str) -> Prefix | None:
        """Return the session's frozen prefix, or None."""
        return self._prefixes.get(session_id)

    # Places

    def bind(self, session_key: str, session_id: str) -> str | None:
        """Bind a session key to the session's lineage; return the root id it was bound to before."""
        return self._routes.bind(session_key, session_id)

    def unbind(self, session_key: str) -> bool:
        """Remove a binding; False when there was none."""
        return self._routes.unbind(session_key)

    def resolve(self, session_key: str) -> Session | None:
        """Return the live session of a key, or None."""
        return self._routes.resolve(session_key)

    def session_keys(self, session_id: str) -> list[str]:
        """Return the keys that lead to this session's lineage."""
        return self._routes.keys(session_id)

    def bind_notebook(self, path: str, session_id: str) -> None:
        """Bind a notebook file to the session's lineage."""
        self._routes.bind_notebook(path, session_id)

    def notebook_session(self, path: str) -> Session | None:
        """Return the live session bound to a notebook file, or None."""
        return self._routes.notebook_session(path)

    def notebook_path(self, root_id: str) -> str | None:
        """Return the notebook file that was bound to the lineage last, or None."""
        return self._routes.notebook_path(root_id)

    # Handoffs

    def request_handoff(
        self,
        session_id: str,
        platform: str,
        target: str | None = None,
        *,
        seconds: float = 60.0,
        options: Mapping[str, Any] | None = None,
    ) -> Handoff:
        """Ask for the session to be carried to a platform; see Handoffs."""
        return self.handoffs.request(session_id, platform, target, seconds=seconds, options=options)

    def claim_handoff(self, worker: str, *, seconds: float = 30.0) -> Handoff | None:
        """Take the oldest free request, or None."""
        return self.handoffs.claim(worker, seconds=seconds)

    def complete_handoff(self, handoff: Handoff) -> None:
        """End a claimed handoff well. Raises InvalidTransition when the claim was lost."""
        self.handoffs.complete(handoff)

    def fail_handoff(self, handoff: Handoff, reason: str) -> None:
        """End a claimed handoff with a reason. Raises InvalidTransition when the claim was lost."""
        self.handoffs.fail(handoff, reason)
