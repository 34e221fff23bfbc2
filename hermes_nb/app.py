"""The composition root: settings to store, endpoints, tools and agents. Everything above the layers meets here.

No logic of its own. Front ends get a ``Runtime`` as a value; scripts use ``Agent.open`` and ``open_store``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hermes_nb.agent.agent import Agent as _Agent
from hermes_nb.agent.agent import Policy, SessionFacts
from hermes_nb.agent.ambient import ambient, set_ambient
from hermes_nb.agent.dialect import is_loopback
from hermes_nb.agent.endpoint import choose
from hermes_nb.agent.provider import Endpoint, Provider
from hermes_nb.agent.reuse import Trail
from hermes_nb.core.config import ModelSettings, Settings, set_value
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.paths import Home
from hermes_nb.core.secrets import remember
from hermes_nb.core.types import Session
from hermes_nb.prompt.builder import screened_identity
from hermes_nb.prompt.context_files import context_files
from hermes_nb.prompt.memory_snapshot import memory_snapshot
from hermes_nb.prompt.recall_plugins import find_provider
from hermes_nb.prompt.recall_provider import GROUP as RECALL_GROUP
from hermes_nb.prompt.recall_provider import RecallProvider
from hermes_nb.store.approvals import Allowed
from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.store import Store
from hermes_nb.store.store import open_store as _open_store
from hermes_nb.tools import schema
from hermes_nb.tools.approval import Approver
from hermes_nb.tools.builtin import files, history, memory, python
from hermes_nb.tools.kernel import KernelPort
from hermes_nb.tools.plugins import GROUP, add_plugins
from hermes_nb.tools.registry import Registry
from hermes_nb.tools.tool import Tool
from hermes_nb.tools.toolsets import resolve

if TYPE_CHECKING:
    from hermes_nb.doctor import Check

__all__ = [
    "Agent",
    "Endpoints",
    "Runtime",
    "ambient",
    "doctor_text",
    "examine",
    "open_store",
    "runtime",
    "set_ambient",
    "tool",
    "warm",
]

_BUILTIN = (*python.TOOLS, *files.TOOLS, *memory.TOOLS, *history.TOOLS)
_user_tools: dict[str, Tool] = {}


def open_store(path: str | os.PathLike[str] | None = None, *, user: str | None = None) -> Store:
    """Open the session store at ``path``, or the one of the home folder. Errors as in ``store.open_store``."""
    return _open_store(Path(path) if path is not None else Home.find().ensure().database, user=user)


def tool(function: Any = None, /, **options: Any) -> Any:
    """Make a plain function a tool that every session begun from now on offers to the model.

    The schema comes from its signature and docstring. The function itself stays as it is.
    """
    if function is None:
        return lambda target: tool(target, **options)
    marked = schema.tool(**options)(function) if options else schema.tool(function)
    made = schema.declared(marked)
    assert made is not None
    _user_tools[made.name] = made
    return marked


class Endpoints:
    """Where models are found, by settings and environment; one provider per endpoint for the whole process."""

    def __init__(self, home: Home, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        self._home = home
        self._settings = settings
        self._environ = environ
        self._found: Endpoint | None = None
        self._providers: dict[tuple[str, str, str | None], Provider] = {}

    def primary(self) -> Endpoint:
        """Return the endpoint that settings, environment or a probe give, found once."""
        if self._found is None:
            self._found = self._choose(self._settings)
        return self._found

    def named(self, model: str) -> Endpoint:
        """Return the endpoint for a model that the user named: the demo model, or one of the primary endpoint."""
        return self._choose(replace(self._settings, name=model))

    def open(self, endpoint: Endpoint) -> Provider:
        """Return the provider of an endpoint; the same one for the same endpoint."""
        key = (endpoint.base_url, endpoint.model, endpoint.key_env)
        if key not in self._providers:
            self._providers[key] = self._new(endpoint)
        return self._providers[key]

    def close(self) -> None:
        """Close every provider."""
        for provider in self._providers.values():
            provider.close()
        self._providers.clear()

    def _choose(self, settings: ModelSettings) -> Endpoint:
        return choose(settings, self._environ, probe=True, embedded=self._embedded)

    def _embedded(self) -> Endpoint | None:
        # Who has another endpoint never needs the demo model's ten modules.
        from hermes_nb.agent.embedded.engine import available  # noqa: PLC0415
        from hermes_nb.agent.embedded.provider import embedded_endpoint  # noqa: PLC0415

        return embedded_endpoint() if available(self._home) is None else None

    def _new(self, endpoint: Endpoint) -> Provider:
        if endpoint.embedded:
            # As above.
            from hermes_nb.agent.embedded.provider import EmbeddedProvider  # noqa: PLC0415

            return EmbeddedProvider(self._home)
        # The client library takes half a second of CPU; it is loaded when a model is used.
        from hermes_nb.agent.provider_openai import OpenAIProvider  # noqa: PLC0415

        provider = OpenAIProvider(endpoint, environ=self._environ)
        if not is_loopback(urlsplit(endpoint.base_url).hostname or ""):
            return provider
        # Only a server on this machine can be a llama.cpp that keeps its slots for us.
        from hermes_nb.agent.embedded.external import detect  # noqa: PLC0415
        from hermes_nb.agent.embedded.slot_keeping import SlotKeeping  # noqa: PLC0415

        key = self._environ.get(endpoint.key_env) if endpoint.key_env else None
        return SlotKeeping(provider, lambda: detect(endpoint.base_url, key))


class Runtime:
    """Everything that agents of one home share in one process. Settings are read anew for each agent."""

    def __init__(self, home: Home, store: Store, environ: Mapping[str, str]) -> None:
        self.home = home
        self.store = store
        self._environ = environ
        self._tools = Registry(_BUILTIN)
        self._warnings = list(add_plugins(self._tools, entry_points(group=GROUP)))
        self._seen: dict[str, int] = {}
        self._trails: dict[tuple[str, str, str], Trail] = {}
        self._recall: tuple[str, RecallProvider | None] = ("", None)
        self._endpoints: tuple[tuple[ModelSettings, tuple[tuple[str, str], ...]], Endpoints] | None = None

    @property
    def settings(self) -> Settings:
        """Return the settings as file and environment are now."""
        return Settings.load(self.home, self._environ)

    def endpoints(self) -> Endpoints:
        """Return the endpoints; chosen again when a setting or a variable that matters has changed."""
        settings = self.settings.model
        signs = tuple(sorted(pair for pair in self._environ.items() if _is_sign(pair[0])))
        if self._endpoints is None or self._endpoints[0] != (settings, signs):
            self._endpoints = ((settings, signs), Endpoints(self.home, settings, self._environ))
        return self._endpoints[1]

    def registry(self) -> Registry:
        """Return the tools there are now: built-ins, plug-ins, and functions that the user marked."""
        registry = Registry(self._tools.get(name) for name in self._tools.names())
        for made in _user_tools.values():
            registry.add(made, replace=True)
        return registry

    def agent(
        self,
        *,
        session: Session | None = None,
        title: str | None = None,
        kernel: KernelPort | None = None,
        approver: Approver | None = None,
        surface: str = "notebook",
        notebook: str | None = None,
        kernel_id: str | None = None,
        model: str | None = None,
        toolsets: Sequence[str] | None = None,
        disabled: Sequence[str] | None = None,
    ) -> Agent:
        """Return an agent that continues ``session``, or begins a new one at its first turn.

        Raises ConfigError when a setting or SOUL.md cannot be used.
        """
        settings = self.settings
        self._remember_keys(settings, session)
        registry = self.registry()
        selection = resolve(
            registry,
            settings.toolsets.enabled if toolsets is None else toolsets,
            [*settings.toolsets.disabled, *(disabled or ())],
        )
        owner = session.user if session is not None else self.store.user
        return Agent(
            store=self.store,
            models=self.endpoints(),
            registry=registry,
            selection=selection,
            identity=lambda: screened_identity(self.home.root, self.allowed(owner)),
            memory=lambda user: memory_snapshot(self.memory(user), self.allowed(user)),
            context=lambda folder, user: context_files(folder, allowances=self.allowed(user)),
            services={
                "store": self.store,
                "memory": self.memory(owner),
                "memory_write": settings.memory.write,
            },
            session=session,
            facts=SessionFacts(source=surface, title=title, notebook=notebook, kernel=kernel_id),
            model=model,
            kernel=kernel,
            approver=approver,
            policy=self._policy,
            surface=surface,
            recall_provider=self._recall_provider(settings.recall.provider),
            notices=self._taken_warnings(),
            seen=self._seen,
            trails=self._trails,
        )

    def memory(self, user: str | None = None) -> MemoryStore:
        """Return the memory files of a user (default: the store's), with the budgets that are set now."""
        limits = self.settings.memory
        return MemoryStore(self.home.memories(user or self.store.user), limits.char_limit, limits.user_char_limit)

    def _remember_keys(self, settings: Settings, session: Session | None) -> None:
        """Have the configured keys masked wherever they turn up, whatever their variables are called."""
        for name in (settings.model.key_env, None if session is None else session.key_env):
            remember(self._environ.get(name) if name else None)
        for value in settings.values.values():
            if value.secret and isinstance(value.value, str):
                remember(value.value)

    def allowed(self, user: str | None = None) -> Allowed:
        """Return what a user (default: the store's) has let through the scan."""
        return Allowed(self.store.rules, user or self.store.user)

    def _policy(self) -> Policy:
        approvals = self.settings.approvals
        return Policy(approvals.mode, approvals.chosen, tuple(approvals.allow))

    # --- lines for people, the same in every front end

    def endpoint_line(self) -> str:
        """Return which model answers and why, or what is missing, on one line."""
        try:
            return self.endpoints().primary().reason
        except ConfigError as exc:
            return str(exc).splitlines()[0]

    def memory_text(self) -> str:
        """Return what is remembered about this user, as it is now on disk."""
        return self.memory().snapshot() or "Nothing is remembered yet."

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that a new session gets."""
        chosen = self.settings.toolsets
        return resolve(self.registry(), chosen.enabled, chosen.disabled).sent

    def config_text(self, words: Sequence[str]) -> str:
        """Show or change settings: nothing, ``path``, ``[get] KEY``, or ``[set] KEY VALUE``. Raises ConfigError."""
        verb, *rest = words or [""]
        if verb in ("get", "set") and (rest or verb == "set"):
            words = rest
        elif verb in ("path", "get"):
            return str(self.home.config) if verb == "path" else self.config_text(())
        if not words:
            return "\n".join(f"{v.key} = {v.shown}  ({v.origin})" for v in self.settings.values.values())
        if len(words) == 1:
            return self.settings.value(words[0]).shown
        stored = set_value(self.home, words[0], " ".join(words[1:]))
        return f"{stored.key} = {stored.shown} ({self.home.config})"

    def close(self) -> None:
        """Let go of the providers and the store."""
        if self._endpoints is not None:
            self._endpoints[1].close()
        self.store.close()
        with _lock:
            for key in [key for key, value in _runtimes.items() if value is self]:
                del _runtimes[key]

    def _recall_provider(self, name: str) -> RecallProvider | None:
        """Return the provider of that name, loaded once; what is wrong with it is said once."""
        if name != self._recall[0]:
            provider, problem = find_provider(name, entry_points(group=RECALL_GROUP))
            self._recall = (name, provider)
            self._warnings += [problem] if problem else []
        return self._recall[1]

    def _taken_warnings(self) -> list[str]:
        """Return what has to be said once per process: plug-ins that failed, notices of the store."""
        said, self._warnings = [*self._warnings, *self.store.notices], []
        self.store.notices.clear()
        return said


_lock = threading.Lock()
_runtimes: dict[tuple[Path, int], Runtime] = {}


def runtime(home: Home | None = None, *, kind: str = "process", environ: Mapping[str, str] | None = None) -> Runtime:
    """Return this process's runtime of a home, made at first use. A fork gets its own.

    ``kind`` says what this process is to others that wait for it. Raises ConfigError and StoreError.
    """
    found = home or Home.find()
    key = (found.root, os.getpid())
    with _lock:
        if key not in _runtimes:
            found.ensure()
            _runtimes[key] = Runtime(
                found, _open_store(found.database, kind=kind), os.environ if environ is None else environ
            )
        return _runtimes[key]


def examine(home: Home | None = None, environ: Mapping[str, str] | None = None) -> list[Check]:
    """Examine this installation. Opens no runtime, so that it also speaks where home, store or settings fail."""
    # Looked at rarely, and not before the first turn.
    from hermes_nb import doctor  # noqa: PLC0415
    from hermes_nb.agent.embedded.engine import available  # noqa: PLC0415

    found, seen = home or Home.find(), os.environ if environ is None else environ
    return doctor.examine(
        found,
        endpoint=lambda: Endpoints(found, Settings.load(found, seen).model, seen).primary(),
        embedded_problem=lambda: available(found),
        environ=seen,
    )


def doctor_text() -> str:
    """Return the lines of ``hermes-nb doctor``."""
    # As above.
    from hermes_nb import doctor  # noqa: PLC0415

    return doctor.as_text(examine())


def warm() -> None:
    """Import, in a thread of its own, what the first turn needs. Touches no network."""
    # The point of this function: the client library is not loaded before.
    from hermes_nb.agent import provider_openai  # noqa: PLC0415

    provider_openai.warm()


class Agent(_Agent):
    """An agent with everything composed; see ``hermes_nb.agent.agent.Agent`` for what it does."""

    @classmethod
    def open(
        cls,
        store: Store | str | os.PathLike[str] | None = None,
        session: Session | str | None = None,
        model: str | None = None,
        toolsets: Sequence[str] | None = None,
        disabled: Sequence[str] | None = None,
        approver: Approver | None = None,
    ) -> Agent:
        """Open an agent on a store (default: the home's) and a session (default: a new one).

        ``session`` is a Session, an id or its beginning, or a title. In a notebook where the extension is
        loaded it sees the live namespace and asks in the cell. Raises ConfigError, SessionNotFound, StoreError.
        """
        here = ambient()
        shared = runtime()
        if isinstance(store, Store):
            shared = Runtime(shared.home, store, os.environ)
        elif store is not None:
            shared = Runtime(shared.home, open_store(store), os.environ)
        found = shared.store.find_session(session) if isinstance(session, str) else session
        return shared.agent(
            session=found,
            kernel=here.kernel,
            approver=approver or here.approver,
            surface=here.surface,
            model=model,
            toolsets=toolsets,
            disabled=disabled,
        )


def _is_sign(name: str) -> bool:
    """Return whether an environment variable can change which endpoint is chosen."""
    return name.startswith(("HERMES_NB_", "OPENAI_")) or name.endswith("_API_KEY") or name == "OLLAMA_HOST"
