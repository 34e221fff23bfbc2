"""A provider in front of the user's own llama.cpp server: the frozen prefix is read once, not once per start.

The state is restored before the first request of a prefix and saved after its answer. A server of another kind,
or one without ``--slot-save-path``, is asked once and then left alone; the answer never depends on any of this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from hermes_nb.agent.embedded.external import ExternalSlots
from hermes_nb.agent.provider import Endpoint, Provider
from hermes_nb.core.cancel import Cancel

_MESSAGES = '"messages":['


class SlotKeeping:
    """Passes everything on to ``provider``; ``find`` looks once whether its server keeps slots."""

    def __init__(self, provider: Provider, find: Callable[[], ExternalSlots | None]) -> None:
        self._provider = provider
        self._find = find
        self._looked = False
        self._slots: ExternalSlots | None = None

    @property
    def endpoint(self) -> Endpoint:
        return self._provider.endpoint

    def stream(self, body: bytes, cancel: Cancel) -> Iterator[dict[str, Any]]:
        """Yield the answer's chunks; errors as the provider's."""
        if not self._looked:
            self._looked = True
            self._slots = self._find()
        prefix = prefix_of(body) if self._slots is not None else None
        if self._slots is not None and prefix is not None:
            self._slots.restore(prefix)
        yield from self._provider.stream(body, cancel)
        if self._slots is not None and prefix is not None:
            self._slots.save(prefix)

    def close(self) -> None:
        """Let the server go; what it keeps stays in its own folder."""
        self._provider.close()


def prefix_of(body: bytes) -> str | None:
    """Return a request body up to the end of its system message, or None when it begins otherwise."""
    text = body.decode("utf-8", "replace")
    start = text.find(_MESSAGES)
    if start < 0:
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text, start + len(_MESSAGES))
    except ValueError:
        return None
    return text[:end]
