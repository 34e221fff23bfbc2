"""A scripted llama.cpp server on loopback: completions as told, slots saved as files, every failure we map."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self


def words(*pieces: str, stop_type: str = "eos", cached: int = 0, prompt: int = 5) -> list[dict[str, Any]]:
    """Return the events of an answer in ``pieces``."""
    timings = {"cache_n": cached, "prompt_n": prompt, "predicted_n": len(pieces)}
    events: list[dict[str, Any]] = [{"content": piece, "stop": False} for piece in pieces]
    return [*events, {"content": "", "stop": True, "stop_type": stop_type, "timings": timings}]


@dataclass
class LlamaScript:
    """What the server does. ``status``/``body`` answer every request with a failure."""

    events: Sequence[dict[str, Any] | bytes] = ()
    status: int = 200
    body: Any = None
    hang_after: int | None = None
    """Send this many events, then stay silent until the server closes."""
    first: str = ""
    """The text of an answer that is not streamed; it counts as one token."""
    saving: bool = True
    write_short: bool = False
    props: dict[str, Any] = field(default_factory=dict)


class FakeLlama:
    """Use as a context manager; ``url`` and ``requests`` (path, parsed body) are its face."""

    def __init__(self, folder: Path, script: LlamaScript | None = None) -> None:
        self.script = script or LlamaScript()
        self.folder = folder
        self.requests: list[tuple[str, Any]] = []
        self.closing = threading.Event()
        self.silent = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


def _handler(fake: FakeLlama) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self.answer(None)

        def do_POST(self) -> None:
            self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def answer(self, body: Any) -> None:
            script = fake.script
            fake.requests.append((self.path, body))
            if script.status != 200:
                self.send(script.status, script.body)
            elif self.path.startswith("/slots/0"):
                self.slot(self.path.rpartition("=")[2], body["filename"])
            elif self.path == "/props":
                self.send(200, script.props)
            elif self.path == "/tokenize":
                self.send(200, {"tokens": list(range(len(body["content"])))})
            elif body and body.get("stream"):
                self.stream()
            else:
                self.send(200, {"content": script.first, "stop": True, "timings": {"predicted_n": 1}})

        def slot(self, action: str, name: str) -> None:
            path = fake.folder / name
            if not fake.script.saving:
                self.send(501, {"error": {"message": "start it with --slot-save-path", "code": 501}})
            elif action == "save":
                path.write_bytes(b"state" * (1 if fake.script.write_short else 2))
                self.send(200, {"n_saved": 7, "n_written": 10})
            elif path.exists():
                self.send(200, {"n_restored": 7, "n_read": 10})
            else:
                self.send(400, {"error": {"message": "no such file", "code": 400}})

        def send(self, status: int, body: Any) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for number, event in enumerate(fake.script.events):
                if number == fake.script.hang_after:
                    break
                line = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode()
                self.wfile.write(line + b"\n\n")
            if fake.script.hang_after is not None:
                fake.silent.set()
                fake.closing.wait(60)

    return Handler
