"""Request bodies as joins of stored bytes. Nothing here parses or re-serialises a message.

    {"model":…,"stream":true,…params,  "tools":[…],  "messages":[{system},  {message},{message}…  ]}
    └────────────── head ───────────┘ └───────── prefix ─────────────────┘ └───── wires ──────┘

Parts that grow stand last, so a body without its closing ``]}`` is a byte prefix of the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_nb.core.errors import ConfigError
from hermes_nb.core.types import Prefix
from hermes_nb.core.wirejson import dumpb

_OURS = frozenset(("model", "messages", "tools", "stream", "stream_options", "n"))


def head(model: str, *, stream: bool = True, params: Mapping[str, Any] | None = None) -> bytes:
    """Return the start of every body of a session, up to and including the comma before tools or messages.

    Raises ConfigError when ``params`` names a field that the loop itself decides.
    """
    given = dict(params or {})
    taken = sorted(_OURS & given.keys())
    if taken:
        raise ConfigError(f"The model parameter {taken[0]!r} is set by hermes-nb itself; remove it.")
    fields: dict[str, Any] = {"model": model, "stream": stream}
    if stream:
        fields["stream_options"] = {"include_usage": True}
    return dumpb({**fields, **given})[:-1] + b","


class Growing:
    """A body that grows at its end; what was added once is not encoded again. Not thread-safe."""

    def __init__(self, head: bytes, prefix: Prefix) -> None:
        tools = b"" if prefix.tools in (b"", b"[]") else b'"tools":' + prefix.tools + b","
        self._bytes = bytearray(head + tools + b'"messages":[' + prefix.system)
        self._bare = not prefix.system

    def add(self, wires: Sequence[str]) -> None:
        """Append messages, given as their stored JSON texts."""
        if wires:
            self._bytes += self._joined(wires)
            self._bare = False

    def closed(self, last: Sequence[str] = ()) -> bytes:
        """Return the whole body with ``last`` as its end, which does not stay."""
        return bytes(self._bytes) + (self._joined(last) if last else b"") + b"]}"

    def _joined(self, wires: Sequence[str]) -> bytes:
        return (b"" if self._bare else b",") + ",".join(wires).encode("utf-8")


def join(head: bytes, prefix: Prefix, wires: Sequence[str]) -> bytes:
    """Return one request body: ``wires`` are the stored JSON texts, in order."""
    return Growing(head, prefix).closed(wires)
