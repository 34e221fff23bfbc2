"""An endpoint that speaks chat completions, through the ``openai`` client. The only module that imports it.

Threads: ``stream`` runs in its caller's thread and takes raw bytes from a queue; the request itself runs on the
process's loop thread, where a cancellation reaches it at once even while the model is silent. The body goes out
as the bytes it was given; the stream's lines are read here. The client does authentication, TLS, proxies and
status errors, and never retries: the loop above does, because only it knows what arrived.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import ipaddress
import json
import os
import queue
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from hermes_nb.agent import classify, loop_thread
from hermes_nb.agent.dialect import is_loopback
from hermes_nb.agent.models import served_models
from hermes_nb.agent.provider import CLOUD, LOCAL, Endpoint, Timeouts, shown_url
from hermes_nb.agent.sse import EventDecoder, NotAnEventStream, ServerEvent
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import AuthenticationFailed, Cancelled, ModelNotFound, ProviderError

NO_KEY: Final = "none"
"""What is sent where no key is wanted: the client insists on one, local servers ignore it."""
_KEEPALIVE_SECONDS: Final = 120.0
"""Tools run between two steps; a connection kept that long saves a TLS handshake per step."""
_MAX_PLAIN: Final = 16 * 1024 * 1024
_WAKE_SECONDS: Final = 1.0
_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "text/event-stream",
    # Makes the client hand over the open response instead of reading and parsing it.
    "x-stainless-raw-response": "stream",
}


class _Done:
    """Queue item: the stream ended, or failed with ``error``."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class OpenAIProvider:
    """Streams from one endpoint. Clients are shared per base URL within the process."""

    def __init__(
        self, endpoint: Endpoint, *, timeouts: Timeouts | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self.endpoint = endpoint
        self._timeouts = timeouts or (LOCAL if is_local(endpoint.base_url) else CLOUD)
        self._environ = os.environ if environ is None else environ
        self._pid = os.getpid()
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenAIProvider({shown_url(self.endpoint.base_url)!r}, model={self.endpoint.model!r})"

    def stream(self, body: bytes, cancel: Cancel) -> Iterator[dict[str, Any]]:
        """Send ``body`` as it is and yield each parsed chunk; see Provider.stream."""
        cancel.check()
        if self._pid != os.getpid():
            raise ProviderError(
                "This process is a fork of the one that opened the model connection, which cannot be used here. "
                "Open a new Agent in this process."
            )
        if self._closed:
            raise ProviderError("This model connection was closed. Open a new Agent.")
        key = self._key()
        items: queue.SimpleQueue[bytes | _Done] = queue.SimpleQueue()
        thread = loop_thread.current()
        request = thread.submit(self._pump(body, key, items))
        reader = _Reader(self.endpoint, self._timeouts, items, thread, key)
        stopped = _Done(Cancelled("interrupted"))

        def stop() -> None:
            items.put(stopped)
            request.cancel()

        finished = False
        try:
            with cancel.on_cancel(stop):
                for chunk in reader.chunks():
                    # A cancellation also counts when its item stands behind others in the queue.
                    cancel.check()
                    yield chunk
            finished = True
        except ModelNotFound as exc:
            raise self._with_models(exc, key) from exc.__cause__
        finally:
            if finished:
                # Reading the rest (the end of a chunked body) lets the connection be used again.
                thread.loop.call_soon_threadsafe(thread.loop.call_later, 1.0, request.cancel)
            else:
                request.cancel()

    def close(self) -> None:
        """Refuse further streams. The shared client stays for other users of the same endpoint."""
        self._closed = True

    def _key(self) -> str:
        """Return the key from the environment as it is now. It is never kept on this object."""
        name = self.endpoint.key_env
        if name is None:
            return NO_KEY
        key = self._environ.get(name, "").strip()
        if not key:
            raise AuthenticationFailed(
                f"The environment variable {name}, which should hold the key for "
                f"{shown_url(self.endpoint.base_url)}, is not set in this process. Set it (in a notebook: "
                f"`import os; os.environ[{name!r}] = ...` from a secret store) and run again."
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise AuthenticationFailed(
                f"The environment variable {name} holds characters that no key has. Copy the key again."
            )
        return key

    async def _pump(self, body: bytes, key: str, items: queue.SimpleQueue[bytes | _Done]) -> None:
        """On the loop thread: send the request and put what arrives into ``items``."""
        error: BaseException | None = None
        try:
            client, as_content = await _client(self.endpoint.base_url, self._timeouts)
            # The copy lives for this request only and shares the connections.
            client = client.with_options(api_key=key)
            response = await client.post(
                "/chat/completions",
                **({"content": body} if as_content else {"body": body}),
                cast_to=object,
                options={"headers": dict(_HEADERS)},
            )
            try:
                async for part in response.iter_bytes():
                    items.put(part)
            finally:
                await response.close()
        except asyncio.CancelledError:
            error = Cancelled("interrupted")
            raise
        except Exception as exc:  # noqa: BLE001 - carried to the caller's thread, which raises it
            error = exc
        finally:
            items.put(_Done(error))

    def _with_models(self, error: ModelNotFound, key: str) -> ModelNotFound:
        """Return ``error`` with the names of the models that are there, if the endpoint tells."""
        try:
            names = served_models(self.endpoint.base_url, key if self.endpoint.key_env else None, seconds=3.0)
        except (OSError, ValueError):
            return error
        if not names:
            return error
        if self.endpoint.model in names:
            return error
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        text = f"{str(error).rstrip('.')}. It serves: {', '.join(names[:12])}{more}."
        return ModelNotFound(text, status=error.status, code=error.code)


class _Reader:
    """In the caller's thread: bytes from the queue become chunks, silence becomes an error."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeouts: Timeouts,
        items: queue.SimpleQueue[bytes | _Done],
        thread: loop_thread.LoopThread,
        key: str,
    ) -> None:
        self._endpoint = endpoint
        self._timeouts = timeouts
        self._items = items
        self._thread = thread
        self._key = key if key != NO_KEY else ""
        self._began = False
        self._finished = False
        self._silent = 0.0
        """Seconds spent waiting since the last data; the time that the consumer takes does not count."""
        self._started = time.monotonic()

    def chunks(self) -> Iterator[dict[str, Any]]:
        decoder = EventDecoder()
        start = bytearray()
        while True:
            item = self._next()
            if item is None:
                return
            if isinstance(item, _Done):
                break
            if not decoder.fields_seen and len(start) < _MAX_PLAIN:
                start += item
            for event in self._decode(decoder, item):
                if event.data == "[DONE]":
                    if not self._began:
                        raise classify.no_stream("", self._endpoint)
                    return
                yield self._chunk(event)
        if item.error is not None:
            if self._finished and not isinstance(item.error, Cancelled):
                return
            self._raise(item.error)
        if not decoder.fields_seen:
            yield self._plain(bytes(start))
            return
        for event in decoder.close():
            if event.data != "[DONE]":
                yield self._chunk(event, last=True)
        if not self._began:
            raise classify.no_stream("", self._endpoint)

    def _next(self) -> bytes | _Done | None:
        """Return the next item; None when a finished answer has nothing more to say."""
        while True:
            limit = self._timeouts.after_finish if self._finished else self._timeouts.idle
            left = limit - self._silent
            if self._timeouts.total is not None:
                left = min(left, self._started + self._timeouts.total - time.monotonic())
            before = time.monotonic()
            try:
                # Short waits: on Windows an endless one would hold back Ctrl-C.
                return self._items.get(timeout=max(0.0, min(left, _WAKE_SECONDS)))
            except queue.Empty:
                pass
            finally:
                self._silent += time.monotonic() - before
            if left <= _WAKE_SECONDS:
                if self._finished:
                    return None
                whole = self._silent < limit
                seconds = self._timeouts.total if whole and self._timeouts.total else limit
                raise classify.timed_out(seconds, self._endpoint, began=self._began, whole=whole)
            if not self._thread.alive:
                raise ProviderError("The thread of the model connection has ended. Restart the kernel.")

    def _decode(self, decoder: EventDecoder, raw: bytes) -> list[ServerEvent]:
        try:
            events = decoder.feed(raw)
        except NotAnEventStream as exc:
            raise classify.malformed(str(exc), self._endpoint) from exc
        if events:
            self._silent = 0.0
        return events

    def _chunk(self, event: ServerEvent, *, last: bool = False) -> dict[str, Any]:
        try:
            parsed = json.loads(event.data)
        except (ValueError, RecursionError) as exc:
            if last:
                self._raise(ConnectionError("the last piece is cut"))
            raise classify.malformed(event.data, self._endpoint, key=self._key) from exc
        if not isinstance(parsed, dict):
            raise classify.malformed(event.data, self._endpoint, key=self._key)
        chunk = cast(dict[str, Any], parsed)
        if chunk.get("error") or event.name == "error" or chunk.get("object") == "error":
            raise classify.from_error(chunk, self._endpoint, began=self._began, key=self._key)
        if chunk.get("choices"):
            self._began = True
            self._finished = self._finished or _is_finished(chunk)
        return chunk

    def _plain(self, raw: bytes) -> dict[str, Any]:
        """Return the chunk of an answer that came whole: some servers ignore ``stream``."""
        text = raw.decode("utf-8", "replace")
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            raise classify.no_stream(text, self._endpoint, key=self._key) from None
        if not isinstance(parsed, dict):
            raise classify.no_stream(text, self._endpoint, key=self._key)
        chunk = cast(dict[str, Any], parsed)
        if chunk.get("error") or chunk.get("object") == "error":
            raise classify.from_error(chunk, self._endpoint, key=self._key)
        if not chunk.get("choices"):
            raise classify.no_stream(text, self._endpoint, key=self._key)
        return chunk

    def _raise(self, error: BaseException) -> None:
        if isinstance(error, Cancelled):
            raise error
        ours = classify.classify(error, self._endpoint, began=self._began, key=self._key)
        raise ours from (error if classify.is_safe_cause(error, self._key) else None)


def warm() -> threading.Thread:
    """Import the client library in the background, so that the first turn does not wait for it."""
    thread = threading.Thread(target=_openai, name="hermes-nb-warm", daemon=True)
    thread.start()
    return thread


def is_local(base_url: str) -> bool:
    """Whether the endpoint is this machine or its local network, where silence is normal while a prompt is read."""
    host = (urlsplit(base_url).hostname or "").lower()
    if is_loopback(host) or host.endswith((".local", ".lan", ".internal")) or (host and "." not in host):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


def _is_finished(chunk: Mapping[str, Any]) -> bool:
    choices = chunk["choices"]
    first = cast(list[Any], choices)[0] if isinstance(choices, list) else None
    return isinstance(first, dict) and bool(cast(dict[str, Any], first).get("finish_reason"))


@functools.cache
def _openai() -> Any:
    """Import the client library: 0.5 s and 20 MB that ``%load_ext`` must not cost."""
    import openai  # noqa: PLC0415 - loaded at the first model call

    return openai


async def _client(base_url: str, timeouts: Timeouts) -> tuple[Any, bool]:
    """Return the process's client for a base URL, and whether its ``post`` takes raw bytes as ``content``."""
    clients = loop_thread.current().resources
    slot = (base_url, timeouts.connect)
    if slot not in clients:
        # Off the loop: importing takes long, and other streams are running.
        openai = await asyncio.to_thread(_openai)
        clients.setdefault(slot, _new_client(openai, base_url, timeouts))
    return clients[slot]


def _new_client(openai: Any, base_url: str, timeouts: Timeouts) -> tuple[Any, bool]:
    timeout = openai.Timeout(connect=timeouts.connect, read=None, write=timeouts.idle, pool=timeouts.idle)
    # httpx with 1.x and 2.x, httpx2 with 3.x: the client's own base class tells.
    base = next(kind for kind in openai.DefaultAsyncHttpxClient.__mro__ if kind.__name__ == "AsyncClient")
    http = importlib.import_module(base.__module__.partition(".")[0])

    class RawBody(openai.DefaultAsyncHttpxClient):
        """Sends bytes as they are: clients before 1.100 would encode them as JSON."""

        def build_request(self, *args: Any, **kwargs: Any) -> Any:
            if isinstance(kwargs.get("json"), bytes):
                kwargs["content"] = kwargs.pop("json")
            return super().build_request(*args, **kwargs)  # pyright: ignore

    parts = urlsplit(base_url)
    here = is_loopback((parts.hostname or "").lower())
    # Reading the certificates takes a tenth of the time until the first request, and a plain connection to this
    # machine uses none. A context without any still refuses every TLS connection.
    no_certificates = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)} if here and parts.scheme == "http" else {}

    connections = RawBody(
        **no_certificates,
        timeout=timeout,
        limits=http.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=_KEEPALIVE_SECONDS),
        # A proxy that the environment names cannot reach this machine's own servers.
        trust_env=not here,
    )
    client = openai.AsyncOpenAI(
        api_key=NO_KEY, base_url=base_url, max_retries=0, timeout=timeout, http_client=connections
    )
    return client, "content" in inspect.signature(openai.AsyncOpenAI.post).parameters
