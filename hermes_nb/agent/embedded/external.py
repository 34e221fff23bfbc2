"""Engine states of a llama.cpp server that the user runs with ``--slot-save-path``.

The provider's owner asks ``detect`` once per endpoint, calls ``restore`` before the first request of a prefix and
``save`` after its answer. The request itself does not change: the server finds the restored slot by the
longest common prefix. Limits: slot 0 only, so one prefix at a time gains; the files lie in the server's own
folder, which only its owner can clean; models whose state cannot be cut back to the prefix gain nothing.
"""

from __future__ import annotations

from typing import Any, cast

from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.agent.embedded.states import state_name
from hermes_nb.core.errors import ProviderError

_LOOK_SECONDS = 1.0
"""A server on this machine that does not say in this time what it is, is not asked further."""


class ExternalSlots:
    """Slot saving of one server. Turns itself off at the first refusal; never raises ProviderError."""

    def __init__(self, server: LlamaServer, identity: tuple[str, ...]) -> None:
        self._server = server
        self._identity = identity
        self._kept: set[str] = set()
        self.enabled = True

    def restore(self, prefix: str) -> int | None:
        """Load the state of ``prefix``; return its tokens, or None. A prefix is asked for once."""
        name = self._name(prefix)
        if not self.enabled or name in self._kept:
            return None
        try:
            restored = self._server.slot("restore", name).get("n_restored")
        except ProviderError:
            # Not saved yet, or saving is off: the first save will tell.
            return None
        self._kept.add(name)
        return restored if isinstance(restored, int) else None

    def save(self, prefix: str) -> bool:
        """Keep slot 0 as the state of ``prefix``; return whether the server has it now."""
        name = self._name(prefix)
        if self.enabled and name not in self._kept:
            try:
                self._server.slot("save", name)
            except ProviderError:
                self.enabled = False
            else:
                self._kept.add(name)
        return name in self._kept

    def _name(self, prefix: str) -> str:
        return f"hermes-nb-{state_name(prefix, *self._identity)}"


def detect(base_url: str, key: str | None) -> ExternalSlots | None:
    """Return slot saving for the chat endpoint at ``base_url``, or None when it is no llama.cpp server.

    Only for an endpoint that the user configured: the key is sent to it, as with every request.
    Whether saving is on, the first ``save`` tells.
    """
    root = base_url.rstrip("/").removesuffix("/v1")
    server = LlamaServer(root, key)
    try:
        props = server.get("/props", timeout=_LOOK_SECONDS)
    except (ProviderError, ValueError):
        # ValueError: an address that http.client cannot read; the chat request will say so.
        return None
    settings: Any = props.get("default_generation_settings")
    if "model_path" not in props or not isinstance(settings, dict):
        return None
    context = cast("dict[str, Any]", settings).get("n_ctx")
    return ExternalSlots(server, (str(props["model_path"]), str(props.get("build_info")), str(context)))
