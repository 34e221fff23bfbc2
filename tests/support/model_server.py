"""A scripted OpenAI-compatible chat server on loopback: answers as told, keeps every request's raw bytes.

In a test:      with ModelServer([call("python", {"code": "1+1"}), say("2")]) as server: ... server.url, server.bodies
As a process:   python tests/support/model_server.py [--script FILE] [--port 0] [--capture DIR]   (prints its URL)

A process takes its replies from the script file, or from the user's own message, so that a kernel or a browser
can drive it: the last user message may hold ``SCRIPT [step, ...]``; the step is found by counting the assistant
messages after it. A message without a script gets ``Done.``. A step is a JSON object:

    {"say": "text", "chunks": 3, "pause": 0.1, "delay": 1, "reasoning": "...", "finish": "stop", "usage": null}
    {"call": "python", "args": {"code": "1+1"}, "say": "..."}      {"calls": [{"name": "a", "args": {}}, ...]}
    {"stall": "text before"}   {"ping": 0.1}   {"cut": "text before", "how": "fin|reset|clean|hangup"}
    {"status": 500, "body": {...}, "headers": {...}}   {"html": "<p>no"}   {"json": {...}}   {"sse": [{...}, "raw"]}

``"times": 2`` on a step lets only its first two hits have that behaviour; later hits get the step after it.
A script file is a list of steps, used once each in order, or {"rules": [{"match": REGEX, "steps": [...]}]}.
"""

from __future__ import annotations

import argparse
import json
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, Self

_IDS = count(1)
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@dataclass(frozen=True)
class Reply:
    """One answer: stream events (dicts become chunks, bytes go out verbatim) and how the stream ends."""

    events: Sequence[dict[str, Any] | bytes] = ()
    delay: float = 0.0
    pause: float = 0.0
    status: int = 200
    body: bytes | None = None
    """A plain body instead of a stream."""
    headers: Mapping[str, str] = field(default_factory=dict)
    end: str = "done"
    """``done`` ([DONE]), ``clean`` (no [DONE]), ``fin``, ``reset``, ``stall`` (until released), ``hangup``."""
    ping: float = 0.0
    """While stalled, send ``: ping`` this often."""
    piece: int = 0
    """Write the stream in pieces of this many bytes, which splits characters and line ends."""
    newline: bytes = b"\n"


def delta(fields: Mapping[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return one chunk with ``fields`` as its delta."""
    return {"choices": [{"index": 0, "delta": dict(fields), "finish_reason": finish}], **more}


def _answer(
    text: str,
    tool_calls: Sequence[dict[str, Any]] = (),
    *,
    chunks: int | Sequence[str] = 1,
    reasoning: str | None = None,
    reasoning_field: str = "reasoning_content",
    finish: str | None = "stop",
    usage: Mapping[str, Any] | None = USAGE,
    **reply: Any,
) -> Reply:
    pieces = [text] if isinstance(chunks, int) else list(chunks)
    if isinstance(chunks, int) and chunks > 1:
        size = max(1, -(-len(text) // chunks))
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
    events: list[dict[str, Any] | bytes] = [delta({"role": "assistant", "content": ""})]
    if reasoning is not None:
        events.append(delta({reasoning_field: reasoning}))
    events += [delta({"content": piece}) for piece in pieces if piece]
    for index, one in enumerate(tool_calls):
        function = one["function"]
        middle = len(function["arguments"]) // 2
        events.append(delta({"tool_calls": [{"index": index, **one, "function": {**function, "arguments": ""}}]}))
        for part in (function["arguments"][:middle], function["arguments"][middle:]):
            events.append(delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
    if finish is not None:
        events.append(delta({}, finish))
    if usage is not None:
        events.append({"choices": [], "usage": dict(usage)})
    return Reply(events, **reply)


def say(text: str, **options: Any) -> Reply:
    """Answer with text. Options: chunks, reasoning, reasoning_field, finish, usage and the fields of Reply."""
    return _answer(text, **options)


def tool_call(name: str, arguments: Any, id: str | None = None) -> dict[str, Any]:
    """Return one whole call as it stands in a message; a ``str`` is taken as the raw arguments."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {
        "id": id or f"call_{next(_IDS)}",
        "type": "function",
        "function": {"name": name, "arguments": raw},
    }


def call(name: str, arguments: Any = None, *, id: str | None = None, text: str = "", **options: Any) -> Reply:
    """Answer with one tool call."""
    return calls([tool_call(name, {} if arguments is None else arguments, id)], text=text, **options)


def calls(wanted: Iterable[dict[str, Any] | tuple[str, Any]], *, text: str = "", **options: Any) -> Reply:
    """Answer with several tool calls in one message."""
    whole = [tool_call(*one) if isinstance(one, tuple) else one for one in wanted]
    return _answer(text, whole, **{"finish": "tool_calls", **options})


def sse(*events: dict[str, Any] | bytes, **options: Any) -> Reply:
    """Answer with exactly these events."""
    return Reply(events, **options)


def status(code: int, body: Any = None, **options: Any) -> Reply:
    """Answer with an HTTP status and a body (a dict becomes JSON)."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return Reply(status=code, body=raw, **options)


def error(code: int, message: str, kind: str | None = None, **options: Any) -> Reply:
    """Answer with an OpenAI error object."""
    return status(code, {"error": {"message": message, "type": kind, "param": None, "code": kind}}, **options)


def html(page: str = "<!doctype html><p>Sign in", code: int = 200) -> Reply:
    """Answer with a web page, as captive portals and wrong base URLs do."""
    return Reply(status=code, body=page.encode(), headers={"Content-Type": "text/html"})


def stall(text: str = "", *, ping: float = 0.0, **options: Any) -> Reply:
    """Send ``text`` and then nothing (or pings) until released or until the client goes away."""
    return replace(_answer(text, finish=None, usage=None, **options), end="stall", ping=ping)


def silence(*, ping: float = 0.0) -> Reply:
    """Send headers and no event at all until released or until the client goes away."""
    return Reply(end="stall", ping=ping)


def cut(text: str = "", how: str = "fin", **options: Any) -> Reply:
    """Send ``text`` and end the stream without a finish: ``fin``, ``reset``, ``clean`` or ``hangup``."""
    return replace(_answer(text, finish=None, usage=None, **options), end=how)


def from_step(step: Mapping[str, Any]) -> Reply:
    """Return the reply that a JSON step describes."""
    options = {k: v for k, v in step.items() if k in _STEP_OPTIONS}
    text = str(step.get("say", ""))
    if "call" in step:
        return call(step["call"], step.get("args", {}), text=text, **options)
    if "calls" in step:
        return calls([(c["name"], c.get("args", {})) for c in step["calls"]], text=text, **options)
    if "stall" in step:
        return stall(step["stall"], ping=step.get("ping", 0.0), **options)
    if "ping" in step:
        return silence(ping=step["ping"])
    if "cut" in step:
        return cut(step["cut"], step.get("how", "fin"), **options)
    if "html" in step:
        return html(step["html"])
    if "json" in step:
        return status(step.get("status", 200), step["json"])
    if "status" in step:
        return status(step["status"], step.get("body"), headers=step.get("headers", {}))
    if "sse" in step:
        return sse(*(e if isinstance(e, dict) else e.encode() for e in step["sse"]))
    return say(text, **options)


_STEP_OPTIONS = frozenset(
    ("chunks", "reasoning", "reasoning_field", "finish", "usage", "delay", "pause", "piece", "end")
)


def text_of(content: Any) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(str(p.get("text", "")) for p in content or [] if isinstance(p, dict))


@dataclass(frozen=True)
class Request:
    """One request as it arrived; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    time: float

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.json["messages"]


class ModelServer:
    """The server. ``replies`` are used once each in order; a callable gets the Request and returns a Reply.

    With ``replies=None`` the user's own message carries the script, as in a process.
    """

    def __init__(
        self,
        replies: Iterable[Reply | Callable[[Request], Reply]] | None = None,
        *,
        models: Sequence[str] = ("scripted-model",),
        rules: Sequence[Mapping[str, Any]] = (),
        gets: Mapping[str, Any] | None = None,
        capture: Path | None = None,
        port: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        """POST requests in the order of arrival."""
        self.gets: list[Request] = []
        self.disconnects = 0
        """Streams whose client went away while the server was stalled."""
        self.stalled = 0
        self.connections = 0
        self._replies = None if replies is None else list(replies)
        self._rules = rules
        self._get_answers = {"/v1/models": {"object": "list", "data": [{"id": m, "object": "model"} for m in models]}}
        self._get_answers.update(gets or {})
        self._capture = capture
        self._hits: dict[str, int] = {}
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._http = _Http(("127.0.0.1", port), _handler(self))
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        if capture:
            capture.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; streams that are still open end."""
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def bodies(self) -> list[bytes]:
        return [request.body for request in self.requests]

    def enqueue(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        """Add replies to the end of the script."""
        self._replies = [*(self._replies or []), *replies]

    def clear(self) -> None:
        """Forget the script and what was recorded, for the next test on the same server."""
        with self._changed:
            self._replies = []
            self.requests.clear()

    def release(self) -> None:
        """Let all stalled streams end (now and later ones)."""
        self._released.set()

    def wait(self, condition: Callable[[ModelServer], bool], seconds: float = 20.0) -> None:
        """Wait until ``condition(self)`` holds, e.g. ``lambda s: s.disconnects``; AssertionError after the deadline."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), seconds), "the model server waited in vain"

    def note(self, name: str, request: Request | None = None) -> None:
        """Record that something happened and wake the waiters."""
        with self._changed:
            if request is not None:
                (self.requests if request.method == "POST" else self.gets).append(request)
                if self._capture and request.method == "POST":
                    (self._capture / f"{len(self.requests):05d}.json").write_bytes(request.body)
            else:
                setattr(self, name, getattr(self, name) + 1)
            self._changed.notify_all()

    def choose(self, request: Request) -> Reply:
        """Return the reply to one chat request."""
        with self._changed:
            if self._replies is not None:
                if not self._replies:
                    return error(400, "the test's script has no reply left for this request", "script_exhausted")
                reply = self._replies.pop(0)
                return reply if isinstance(reply, Reply) else reply(request)
            messages = request.messages
            users = [i for i, m in enumerate(messages) if m.get("role") == "user"]
            last = users[-1] if users else -1
            text = text_of(messages[last].get("content")) if users else ""
            steps = self._steps(text)
            at = sum(1 for m in messages[last + 1 :] if m.get("role") == "assistant")
            while at < len(steps) and "times" in steps[at]:
                key = f"{last}:{at}:{text}"
                self._hits[key] = self._hits.get(key, 0) + 1
                if self._hits[key] <= steps[at]["times"]:
                    break
                at += 1
            return from_step(steps[at]) if at < len(steps) else say("Done.")

    def _steps(self, text: str) -> list[dict[str, Any]]:
        # The last one: what is recalled from other talks stands above the message itself.
        found = text.rfind("SCRIPT [")
        if found >= 0:
            return json.JSONDecoder().raw_decode(text[found + len("SCRIPT ") :])[0]
        return next((list(r["steps"]) for r in self._rules if re.search(r["match"], text)), [])


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that goes away is part of the tests."""


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 65536

        def setup(self) -> None:
            super().setup()
            server.note("connections")

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            request = Request(
                "GET", self.path, {name.lower(): value for name, value in self.headers.items()}, b"", time.monotonic()
            )
            server.note("gets", request)
            answer = server._get_answers.get(self.path, error(404, "no such path"))
            self.plain(answer if isinstance(answer, Reply) else status(200, answer))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(
                "POST", self.path, {name.lower(): value for name, value in self.headers.items()}, body, time.monotonic()
            )
            server.note("requests", request)
            if not self.path.endswith("/chat/completions"):
                return self.plain(error(404, "only /chat/completions is here"))
            reply = server.choose(request)
            if reply.delay:
                server._released.wait(reply.delay)
            if reply.end == "hangup":
                self.close_connection = True
            elif reply.body is not None:
                self.plain(reply)
            elif request.json.get("stream"):
                self.stream(reply, request.json.get("model", ""))
            else:
                self.plain(status(200, _collected(reply)))

        def plain(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body or b"")))
            self.end_headers()
            self.wfile.write(reply.body or b"")

        def stream(self, reply: Reply, model: str) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Type": "text/event-stream", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            base = {"id": f"chatcmpl-{next(_IDS)}", "object": "chat.completion.chunk", "created": 1, "model": model}
            for event in reply.events:
                raw = event
                if isinstance(event, dict):
                    # ASCII escapes, as most servers send; ``piece`` tests want real UTF-8 to split.
                    text = json.dumps({**base, **event}, ensure_ascii=not reply.piece)
                    raw = b"data: " + text.encode("utf-8", "surrogatepass") + reply.newline * 2
                self.send(raw, reply.piece)
                if reply.pause and server._released.wait(reply.pause):
                    break
            if reply.end == "stall":
                self.wfile.flush()
                self.stall(reply.ping)
                return
            if reply.end == "reset":
                self.wfile.flush()
                # SO_LINGER with zero seconds makes close() send RST.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            elif reply.end == "fin":
                self.wfile.write(b"40\r\ndata: {")
            else:
                if reply.end == "done":
                    self.send(b"data: [DONE]" + reply.newline * 2, reply.piece)
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = reply.end in ("reset", "fin")

        def send(self, raw: bytes, piece: int) -> None:
            for i in range(0, len(raw), piece or len(raw) or 1):
                part = raw[i : i + piece] if piece else raw
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.flush()

        def stall(self, ping: float) -> None:
            self.close_connection = True
            server.note("stalled")
            next_ping = time.monotonic() + ping
            while not server._released.wait(0.01):
                try:
                    if ping and time.monotonic() >= next_ping:
                        self.send(b": ping\n\n", 0)
                        next_ping += ping
                    readable, _, _ = select.select([self.connection], [], [], 0)
                    gone = bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
                except OSError:
                    gone = True  # it went while we wrote
                if gone:
                    return server.note("disconnects")

        def finish(self) -> None:
            try:
                super().finish()
            except OSError:
                self.connection.close()

    return Handler


def _collected(reply: Reply) -> dict[str, Any]:
    """Return the reply as one chat.completion object, for a request without ``stream``."""
    text, made, finish, usage = "", {}, "stop", None
    for event in (e for e in reply.events if isinstance(e, dict)):
        usage = event.get("usage") or usage
        for choice in event.get("choices") or []:
            fields = choice.get("delta") or {}
            text += fields.get("content") or ""
            finish = choice.get("finish_reason") or finish
            for part in fields.get("tool_calls") or []:
                one = made.setdefault(part["index"], tool_call("", ""))
                one["id"] = part.get("id", one["id"])
                one["function"]["name"] += part["function"].get("name", "")
                one["function"]["arguments"] += part["function"].get("arguments", "")
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if made:
        message["tool_calls"] = list(made.values())
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": choices, "usage": usage}


def main() -> None:
    """Serve until the process is ended; the first line of output is the URL."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--script", type=Path, help="JSON file: a list of steps, or {'rules': [...]}")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--capture", type=Path, help="folder for request bodies, byte for byte")
    options.add_argument("--model", action="append", help="a model that /v1/models lists; may be repeated")
    given = options.parse_args()
    script = json.loads(given.script.read_text(encoding="utf-8")) if given.script else {}
    server = ModelServer(
        [from_step(step) for step in script] if isinstance(script, list) else None,
        rules=[] if isinstance(script, list) else script.get("rules", []),
        models=given.model or ("scripted-model",),
        capture=given.capture,
        port=given.port,
    )
    with server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
