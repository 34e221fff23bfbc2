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


def join(head: bytes, prefix: Prefix, wires: Sequence[str]) -> bytes:
    """Return one request body: ``wires`` are the stored JSON texts, in order."""
    parts = [head]
    if prefix.tools not in (b"", b"[]"):
        parts += [b'"tools":', prefix.tools, b","]
    parts += [b'"messages":[', prefix.system]
    if wires:
        parts += [b"," if prefix.system else b"", ",".join(wires).encode("utf-8")]
    parts.append(b"]}")
    return b"".join(parts)
