"""Before a turn: which session, which endpoint, which frozen prefix. Owns the rules of a session's identity.

- A session keeps the model it began with. Another model for one turn gets the same prefix and changes nothing.
- The prefix is built once, at the first turn, stored, and used byte for byte ever after.
- The offline demo model and real models never share a session: its prefix is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Protocol

from hermes_nb.agent.body import head
from hermes_nb.agent.endpoint import explicit
from hermes_nb.agent.preview import Preview, history_of
from hermes_nb.agent.provider import Endpoint, Provider
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ParentKind
from hermes_nb.core.types import Message, Prefix, Session
from hermes_nb.prompt.blocking import Screened
from hermes_nb.prompt.builder import SHORT_IDENTITY, PromptParts, build_prefix
from hermes_nb.store.store import Store
from hermes_nb.tools.toolsets import Selection, wire_schemas

EMBEDDED_SCHEME = "embedded:"
"""How the base URL of a session of the offline demo model begins."""
EMBEDDED_NAME = "embedded"
"""The name that ``-m`` takes for the offline demo model."""
_TITLE_LENGTH = 60
_REBUILT = (
    "The stored prompt of this session was lost; it was built anew and stored. The next answer reads the whole "
    "conversation again."
)


class Models(Protocol):
    """Where endpoints come from. Implemented by the composition root."""

    def primary(self) -> Endpoint:
        """Return the endpoint that settings, environment or a probe give. Raises NoEndpoint, ConfigError."""
        ...

    def named(self, model: str) -> Endpoint:
        """Return the endpoint for a model that the user named. Raises ConfigError, NoEndpoint."""
        ...

    def open(self, endpoint: Endpoint) -> Provider:
        """Return the provider of an endpoint; the same one for the same endpoint."""
        ...


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a new session is created with."""

    source: str = "notebook"
    title: str | None = None
    notebook: str | None = None
    kernel: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that is ready for a turn. ``notices`` are lines for the user on what was decided."""

    session: Session
    endpoint: Endpoint
    prefix: Prefix
    head: bytes
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opening:
    """Opens sessions of one agent. ``memory`` renders the snapshot of one user."""

    store: Store
    models: Models
    identity: str | Callable[[], Screened]
    memory: Callable[[str], str | Screened]
    facts: SessionFacts
    user: str
    today: Callable[[], date]
    context: Callable[[Path, str], Screened] | None = None
    """The project's context files for a folder and a user."""

    def open(self, session: Session | None, selection: Selection, first_text: str, model: str | None) -> Opened:
        """Return the session, created when there is none, with its endpoint and frozen prefix.

        ``model`` holds for this turn; in a session without a first turn it becomes the session's own.
        """
        if session is not None:
            session = self.store.tip(session.id)
        if session is None or session.model is None:
            endpoint = self.models.named(model) if model else self.models.primary()
            session = self._begun(session, endpoint, first_text)
            opened = self._frozen(session, endpoint, selection)
            return replace(opened, notices=(endpoint.reason, *opened.notices)) if endpoint.reason else opened
        if model is None or model == session.model:
            return self._frozen(session, self.own_endpoint(session), selection)
        endpoint = self.models.named(model)
        check_kind(session, endpoint)
        own = self._frozen(session, endpoint, selection)
        return replace(own, head=head(endpoint.model))

    def own_endpoint(self, session: Session) -> Endpoint:
        """Return where this session's model is served now.

        The address may have changed since (another port, another key); the model may not.
        """
        if is_embedded(session):
            return self.models.named(EMBEDDED_NAME)
        assert session.model is not None
        try:
            primary = self.models.primary()
        except ConfigError:
            # Nothing is configured, or it does not answer: the session still knows its own address.
            if not session.base_url:
                raise
            primary = None
        if primary is not None and not primary.embedded:
            if primary.model == session.model:
                return primary
            if primary.base_url == session.base_url or not session.base_url:
                return replace(primary, model=session.model)
        return explicit(session.model, session.base_url or "", session.key_env or "", {}, "the session's own")

    def refreeze(self, session: Session, endpoint: Endpoint, selection: Selection) -> Prefix:
        """Build a new prefix for an explicit change of model or tools, and make it the session's."""
        prefix, _ = self._built(session.user, _day(session), endpoint, selection, session.cwd)
        return self.store.freeze_prefix(session.id, prefix, head(endpoint.model), replace=True)

    def fresh(self, session: Session | None, selection: Selection, model: str | None) -> tuple[bytes, Prefix]:
        """Return head and prefix that a new session on this one's model would get now; stores nothing.

        Raises NoEndpoint, ConfigError.
        """
        if session is not None and session.model is not None:
            endpoint = self.own_endpoint(session)
        else:
            endpoint = self.models.named(model) if model else self.models.primary()
        user = self.user if session is None else session.user
        return head(endpoint.model), self._built(user, self.today(), endpoint, selection, None)[0]

    def preview(
        self,
        session: Session | None,
        rows: Sequence[Message],
        selection: Selection,
        model: str | None,
        beside: str,
    ) -> Preview:
        """Return the parts of the next request; what is not frozen yet is built and not stored.

        Raises NoEndpoint, ConfigError.
        """
        prefix = None if session is None else self.store.prefix(session.id)
        if session is None or prefix is None or not prefix.system or not session.head:
            start, prefix = self.fresh(session, selection, model)
            return Preview(start, prefix, False, history_of(rows, rows[-1].dialect if rows else ""), beside)
        try:
            dialect = self.own_endpoint(session).dialect
        except ConfigError:
            # Not reachable now: the rows were last sent as they lie.
            dialect = rows[-1].dialect if rows else ""
        return Preview(session.head, prefix, True, history_of(rows, dialect), beside)

    def _begun(self, session: Session | None, endpoint: Endpoint, first_text: str) -> Session:
        if session is not None:
            fields = {"model": endpoint.model, "base_url": endpoint.base_url, "key_env": endpoint.key_env}
            if session.title is None:
                return self.store.update_session(session.id, title=title_of(first_text), **fields)
            return self.store.update_session(session.id, **fields)
        created = self.store.create_session(
            source=self.facts.source,
            title=self.facts.title or title_of(first_text),
            user=self.user,
            cwd=str(working_folder()),
            notebook=self.facts.notebook,
            kernel=self.facts.kernel,
            model=endpoint.model,
            base_url=endpoint.base_url,
            key_env=endpoint.key_env,
        )
        if self.facts.notebook is not None:
            self.store.bind_notebook(self.facts.notebook, created.id)
        return created

    def _frozen(self, session: Session, endpoint: Endpoint, selection: Selection) -> Opened:
        prefix = self.store.prefix(session.id)
        if prefix is not None and prefix.system and session.head:
            return Opened(session, endpoint, prefix, session.head)
        if prefix is None and session.parent_id is not None and session.parent_kind is ParentKind.BRANCH:
            above = self.store.session(session.parent_id)
            inherited = self.store.prefix(above.id)
            if inherited is not None and above.head and above.model == session.model:
                # A branch goes on with its parent's bytes: the model has read them already.
                prefix = self.store.freeze_prefix(session.id, inherited, above.head)
                return Opened(self.store.session(session.id), endpoint, prefix, above.head)
        lost = session.message_count > 0 and session.prefix_id is not None
        own = endpoint if session.model in (None, endpoint.model) else replace(endpoint, model=str(session.model))
        built, notices = self._built(session.user, _day(session), own, selection, session.cwd)
        prefix = self.store.freeze_prefix(session.id, built, head(own.model), replace=lost)
        session = self.store.session(session.id)
        if lost:
            notices = (_REBUILT, *notices)
        return Opened(session, endpoint, prefix, session.head or head(own.model), notices)

    def _built(
        self, user: str, started: date, endpoint: Endpoint, selection: Selection, cwd: str | None
    ) -> tuple[Prefix, tuple[str, ...]]:
        """Return the prefix that these inputs give, and the lines for the user on what it leaves out."""
        memory = context = Screened("")
        identity = Screened(SHORT_IDENTITY)
        if not endpoint.embedded:
            identity = Screened(self.identity) if isinstance(self.identity, str) else self.identity()
            known = self.memory(user)
            memory = Screened(known) if isinstance(known, str) else known
            if self.context is not None:
                context = self.context(Path(cwd) if cwd else working_folder(), user)
        parts = PromptParts(
            tools=wire_schemas(selection.sent),
            tool_names=[tool.name for tool in selection.sent],
            identity=identity.text,
            memory=memory.text,
            started=started,
            context=context.text,
        )
        return build_prefix(parts, short=endpoint.embedded), (
            *identity.notices,
            *context.notices,
            *memory.notices,
        )


def _day(session: Session) -> date:
    return date.fromtimestamp(session.started)


def is_embedded(session: Session) -> bool:
    """Return whether the session was begun on the offline demo model."""
    return (session.base_url or "").startswith(EMBEDDED_SCHEME)


def check_kind(session: Session, endpoint: Endpoint) -> None:
    """Refuse to mix the offline demo model and a real one in one session. Raises ConfigError."""
    if is_embedded(session) == endpoint.embedded:
        return
    began = "the offline demo model" if is_embedded(session) else session.model
    wanted = EMBEDDED_NAME if endpoint.embedded else endpoint.model
    raise ConfigError(
        f"This session was begun on {began}. The offline demo model has a short prompt of its own and shares no "
        f"session with another model. Begin a new session instead: %%hermes --new -m {wanted}"
    )


def title_of(text: str) -> str | None:
    """Return a session's first title: the first line of the first message, cut to 60 characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1].rstrip() + "…"


def working_folder() -> Path:
    """Return the process's working folder, or the user's home when it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()
