"""llama.cpp's HTTP interface as far as we use it, over the standard library.

Owns one connection per request, cancellation and the mapping of failures to ProviderError. Knows no prompt.
Interface: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    RequestRejected,
    ResponseInvalid,
    StreamBroken,
)

_TRANSPORT = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """Where a llama.cpp server listens. ``key`` is never shown."""

    url: str
    key: str | None

    def __repr__(self) -> str:
        return f"LlamaServer({self.url!r})"

    def get(self, path: str, *, timeout: float = 5.0) -> dict[str, Any]:
        """Return the JSON object at ``path``. Raises ProviderError."""
        with _opened(self, "GET", path, None, timeout, None) as response:
            return _object(response)

    def post(
        self, path: str, body: dict[str, Any], *, timeout: float = 30.0, cancel: Cancel | None = None
    ) -> dict[str, Any]:
        """Post ``body`` and return the JSON object that comes back. Raises ProviderError or Cancelled."""
        with _opened(self, "POST", path, body, timeout, cancel) as response:
            return _object(response)

    def stream(self, path: str, body: dict[str, Any], *, timeout: float, cancel: Cancel) -> Generator[dict[str, Any]]:
        """Post ``body`` and yield the objects of the event stream; close it to stop the generation.

        ``timeout`` bounds the silence between two events. Raises ProviderError or Cancelled.
        """
        with _opened(self, "POST", path, body, timeout, cancel) as response:
            while line := response.readline():
                cancel.check()
                name, _, data = line.strip().partition(b":")
                if name == b"error":
                    raise _status_error(500, data)
                if name == b"data" and data.strip() != b"[DONE]":
                    yield _parsed(data)

    def tokens(self, text: str) -> int:
        """Return how many tokens the engine counts in ``text``, with its special marks. Raises ProviderError."""
        body = {"content": text, "add_special": False, "parse_special": True}
        return len(cast("list[int]", self.post("/tokenize", body).get("tokens", [])))

    def slot(self, action: str, filename: str) -> dict[str, Any]:
        """Save or restore the state of slot 0 in the server's own folder. Raises ProviderError."""
        return self.post(f"/slots/0?action={action}", {"filename": filename})


@contextmanager
def _opened(
    server: LlamaServer, method: str, path: str, body: dict[str, Any] | None, timeout: float, cancel: Cancel | None
) -> Generator[http.client.HTTPResponse, None, None]:
    """Send one request and give its open response; every failure comes out as our own error."""
    switch = cancel or Cancel()
    switch.check()
    connection = _connection(server, timeout)
    headers = {"content-type": "application/json"}
    if server.key:
        headers["authorization"] = f"Bearer {server.key}"
    begun = False
    try:
        connection.connect()
        sock = connection.sock
        with switch.on_cancel(lambda: _shut(sock)):
            connection.request(method, path, json.dumps(body).encode() if body is not None else None, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise _status_error(response.status, response.read())
            begun = True
            yield response
        switch.check()
    except _TRANSPORT as exc:
        # A shut socket is how a cancel reaches a blocked read.
        switch.check()
        if begun:
            raise StreamBroken(f"The connection to the model engine broke: {_words(exc)}.") from exc
        raise ProviderUnavailable(f"The model engine at {server.url} does not answer: {_words(exc)}.") from exc
    finally:
        connection.close()


def _connection(server: LlamaServer, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(server.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=timeout)


def _shut(sock: socket.socket) -> None:
    # The other side may be gone already.
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _words(exc: BaseException) -> str:
    return str(exc) or type(exc).__name__


def _object(response: http.client.HTTPResponse) -> dict[str, Any]:
    return _parsed(response.read())


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        value: Any = json.loads(data)
    except ValueError as exc:
        raise ResponseInvalid(f"The model engine sent something that is not JSON: {data[:80]!r}") from exc
    if not isinstance(value, dict):
        raise ResponseInvalid(f"The model engine sent no JSON object: {data[:80]!r}")
    found = cast("dict[str, Any]", value)
    if "error" in found:
        raise _error_of(500, found)
    return found


def _status_error(status: int, data: bytes) -> ProviderError:
    try:
        value: Any = json.loads(data)
    except ValueError:
        value = None
    return _error_of(status, cast("dict[str, Any]", value) if isinstance(value, dict) else {})


def _error_of(status: int, body: dict[str, Any]) -> ProviderError:
    detail: Any = body.get("error", body)
    fields = cast("dict[str, Any]", detail) if isinstance(detail, dict) else {"message": str(detail)}
    code, message = fields.get("code", status), str(fields.get("message") or f"status {status}")
    status = code if isinstance(code, int) else status
    kind = str(fields.get("type") or "")
    if kind == "exceed_context_size_error":
        return ContextOverflow(
            f"The conversation has {fields.get('n_prompt_tokens', '?')} tokens and the model's window holds "
            f"{fields.get('n_ctx', '?')}. Begin a new session: %hermes new",
            status=status,
            code=kind,
        )
    by_status: dict[int, type[ProviderError]] = {
        400: RequestRejected,
        401: AuthenticationFailed,
        403: AuthenticationFailed,
        404: ModelNotFound,
    }
    error = by_status.get(status, ProviderUnavailable)
    return error(f"The model engine refused the request: {message}", status=status, code=kind or None)
