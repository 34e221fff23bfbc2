"""What a model endpoint is to the loop: a name and a stream of chunks for a body. Knows no client library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from hermes_nb.core.cancel import Cancel


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached. Holds the *name* of the key's environment variable, never the key."""

    base_url: str
    model: str
    key_env: str | None
    label: str
    dialect: str = "openai"
    embedded: bool = False
    reason: str = ""
    """The printed line: which endpoint, and why this one."""
    keep_reasoning: bool = True
    """Whether separate reasoning text goes back to this endpoint with the assistant's message."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds of silence that end a stream. Only data counts: keep-alive comments reset nothing."""

    connect: float = 10.0
    idle: float = 180.0
    total: float | None = None
    """Upper limit of one whole answer; None for none."""
    after_finish: float = 5.0
    """How long a finished answer waits for its usage and its end mark."""


CLOUD = Timeouts()
LOCAL = Timeouts(idle=900.0)
"""A model on the user's own machine may read a long prompt for minutes before its first token."""


class Provider(Protocol):
    """One endpoint, ready to stream. Usable from any thread, also for several streams at once."""

    @property
    def endpoint(self) -> Endpoint: ...

    def stream(self, body: bytes, cancel: Cancel) -> Iterator[dict[str, Any]]:
        """Send ``body`` as it is and yield each parsed chunk.

        The iterator ends when the endpoint ends its answer; whether the answer is whole, the chunks' finish
        reason tells. Raises Cancelled at once when ``cancel`` is set, and ProviderError subclasses.
        """
        ...

    def close(self) -> None: ...


def shown_url(url: str) -> str:
    """Return ``url`` for messages: without user, password, query and fragment, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.scheme}://{host}{port}{parts.path}".rstrip("/")
