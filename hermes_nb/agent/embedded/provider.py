"""The offline demo model as a Provider: the same body in, the same chunks out, no network.

Owns the order of one request: engine, state of the prefix, answer. Prompt, grammar, process and files stand
in their own modules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final, cast

from hermes_nb.agent.embedded import engine, render, weights
from hermes_nb.agent.embedded.engine import Engine, EngineOptions, EngineUser
from hermes_nb.agent.embedded.jsonstep import CALL_START, chunks, tokens_of
from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.agent.embedded.render import Rendered
from hermes_nb.agent.embedded.states import States, state_name
from hermes_nb.agent.provider import Endpoint
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ProviderUnavailable, RequestRejected, StreamBroken
from hermes_nb.core.paths import Home

LABEL: Final = "offline demo model"
DIALECT: Final = "embedded"

_SILENCE_SECONDS: Final = 900.0
"""A full window on a loaded machine takes minutes before its first token."""
_SLOT: Final = 0


def embedded_endpoint(reason: str = "") -> Endpoint:
    """Return the endpoint's description; ``base_url`` is a name, because the port changes with each start."""
    return Endpoint(
        base_url="embedded://local",
        model=weights.MODEL_NAME,
        key_env=None,
        label=LABEL,
        dialect=DIALECT,
        embedded=True,
        reason=reason or f"{LABEL} ({weights.MODEL_NAME}), because no other model is configured or found",
    )


class EmbeddedProvider:
    """Implements Provider. The engine starts with the first stream and ends with the last open provider.

    ``state_note`` says why the engine's state could not be kept, or None; it never fails an answer.
    """

    def __init__(self, home: Home, *, endpoint: Endpoint | None = None, options: EngineOptions | None = None) -> None:
        self._endpoint = endpoint or embedded_endpoint()
        self._options = options or EngineOptions()
        self._states = States(home.engine_states)
        self._user = EngineUser(home, self._options)
        self.state_note: str | None = None

    @property
    def endpoint(self) -> Endpoint:
        return self._endpoint

    def stream(self, body: bytes, cancel: Cancel) -> Iterator[dict[str, Any]]:
        """Yield the answer's chunks. One answer at a time; a second stream waits for the first.

        Raises Cancelled at once when ``cancel`` is set, ContextOverflow when the 4,096 tokens are full,
        ConfigError when the engine or the weights are missing, ProviderError for the rest.
        """
        cancel.check()
        asked = render.render(_parsed(body))
        begun = False
        for last in (False, True):
            running = self._user.engine(cancel)
            with running.exclusive(cancel):
                try:
                    self._read_prefix(running, asked.prefix, cancel)
                    for chunk in answer(running.server, asked, self._endpoint.model, cancel):
                        begun = True
                        yield chunk
                    return
                except (ProviderUnavailable, StreamBroken):
                    # Whoever killed it did so before anything was said: a new one answers.
                    running.lost()
                    if begun or last:
                        raise

    def prefix_tokens(self, tools: bytes, cancel: Cancel | None = None) -> int:
        """Return how many tokens the engine counts in the prefix for the JSON array ``tools``."""
        return self._user.engine(cancel or Cancel()).server.tokens(render.render_prefix(tools))

    def warm(self, tools: bytes, progress: Callable[[str], None], cancel: Cancel | None = None) -> None:
        """Read the prefix for the JSON array ``tools`` once and keep the engine's state, so that answers begin fast."""
        switch = cancel or Cancel()
        progress("Starting the demo model's engine")
        running = self._user.engine(switch)
        with running.exclusive(switch):
            progress("Reading its prompt once (5 to 40 seconds)")
            restored = self._read_prefix(running, render.render_prefix(tools), switch)
        progress(self.state_note or ("Already read" if restored else "Read and kept"))

    def close(self) -> None:
        """Let the engine go. A second call does nothing."""
        self._user.close()

    def _read_prefix(self, running: Engine, prefix: str, cancel: Cancel) -> bool:
        """Bring the prefix into the engine's slot; return whether that needed no reading."""
        name = state_name(prefix, weights.SHA256, engine.version(), str(self._options.context))
        if running.loaded == name:
            return True
        # Not known to hold anything until one of the two ways has ended well.
        running.loaded = None
        restored = self._states.restore(running.server, name) is not None
        if not restored:
            body = {"prompt": prefix, "n_predict": 0, "cache_prompt": True, "id_slot": _SLOT}
            running.server.post("/completion", body, timeout=_SILENCE_SECONDS, cancel=cancel)
            self.state_note = self._states.save(running.server, name)
        running.loaded = name
        return restored


def answer(server: LlamaServer, asked: Rendered, model: str, cancel: Cancel) -> Iterator[dict[str, Any]]:
    """Yield the chunks of one answer, after one token that decides between words and a call where that needs it.

    Both requests begin with the prefix in slot 0, so that the second one reads only what differs.
    """
    request = {
        "prompt": asked.prefix + asked.turn,
        "grammar": asked.grammar,
        "n_predict": asked.max_tokens,
        "temperature": 0,
        "cache_prompt": True,
        "id_slot": _SLOT,
    }
    spent = 0
    if asked.recalled is not None:
        # Without the history: with it, so small a model hardly ever calls a tool.
        first = server.post("/completion", {**request, "n_predict": 1}, timeout=_SILENCE_SECONDS, cancel=cancel)
        spent = tokens_of(first)
        if not str(first.get("content") or "").startswith(CALL_START):
            request |= {"prompt": asked.prefix + asked.recalled, "grammar": asked.words}
    # With the timings of each token the usage is true also when we end the answer ourselves.
    request |= {"stream": True, "timings_per_token": True}
    with closing(server.stream("/completion", request, timeout=_SILENCE_SECONDS, cancel=cancel)) as events:
        yield from chunks(events, model=model, verbs=asked.verbs, own_limit=asked.own_limit, spent=spent)


def warm(home: Home, tools: bytes, progress: Callable[[str], None]) -> None:
    """Warm the demo model of ``home`` for a tool list; for the installer. Raises as ``EmbeddedProvider.stream``."""
    provider = EmbeddedProvider(home)
    try:
        provider.warm(tools, progress)
    finally:
        provider.close()


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        value: Any = json.loads(body)
    except ValueError as exc:
        raise RequestRejected(f"The request to the demo model is not JSON ({exc}).") from exc
    if not isinstance(value, dict):
        raise RequestRejected("The request to the demo model is not a JSON object.")
    return cast("dict[str, Any]", value)
