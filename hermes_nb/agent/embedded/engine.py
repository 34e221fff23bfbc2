"""The engine's process as its users see it: started at first use, shared, stopped with the last user.

Owns the child's life in this process and the order of its one slot. Knows no prompt and no state files.
Every process (kernel) that uses the demo model has its own child; nothing is shared between processes but files.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from hermes_nb.agent.embedded import weights
from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ConfigError, ExtraMissing, ProviderError, ProviderUnavailable
from hermes_nb.core.paths import Home

CONTEXT: Final = 4096
"""Tokens of the engine's window."""

_SERVER: Final = Path(__file__).with_name("server.py")
_START_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05
_LOG_TAIL: Final = 600


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """One thread is the default: on a busy machine two threads were measured to collapse to a tenth."""

    threads: int = 1
    context: int = CONTEXT
    cache_mib: int = 256
    batch: int = 256


def version() -> str:
    """Return the version of the installed engine library. Raises ExtraMissing."""
    try:
        return importlib.metadata.version("xllamacpp")
    except importlib.metadata.PackageNotFoundError:
        raise ExtraMissing.for_extra("The offline demo model", "local") from None


def available(home: Home) -> str | None:
    """Return why the demo model cannot run here, with the next step, or None when it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return str(ExtraMissing.for_extra("The offline demo model", "local"))
    if weights.locate(home) is None:
        size = weights.SIZE // 1_000_000
        return f"The offline demo model's weights are not installed ({size} MB). Run: hermes-nb model install"
    return None


class Engine:
    """One running child. ``loaded`` names the prefix that its slot holds; its owner keeps it true."""

    def __init__(self, process: subprocess.Popen[bytes], server: LlamaServer) -> None:
        self.server = server
        self.loaded: str | None = None
        self._process = process
        self._slot = threading.Lock()
        self._lost = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._lost and self._process.poll() is None

    def lost(self) -> None:
        """Take the child for dead: its connection broke. A killed process counts as running until its last thread
        has gone, and a request in that moment would find nobody.
        """
        self._lost = True

    @contextmanager
    def exclusive(self, cancel: Cancel) -> Generator[None, None, None]:
        """Hold the one slot; wait for it in turn. Raises Cancelled."""
        while not self._slot.acquire(timeout=_POLL_SECONDS):
            cancel.check()
        try:
            yield
        finally:
            self._slot.release()

    def stop(self) -> None:
        """End the child at once; it holds nothing that needs saving."""
        _end(self._process)


class EngineUser:
    """One user of the home's engine. The child runs while at least one user is open."""

    def __init__(self, home: Home, options: EngineOptions | None = None) -> None:
        self._shared = _shared_for(home, options or EngineOptions())
        self._shared.join()
        self._open = True

    def engine(self, cancel: Cancel) -> Engine:
        """Return the running engine, started when it is not. Raises ConfigError, ProviderUnavailable, Cancelled."""
        if not self._open:
            raise ProviderUnavailable("This demo model was closed. Open a new one.")
        return self._shared.running(cancel)

    def close(self) -> None:
        """Let the engine go; the last user stops it. A second call does nothing."""
        if self._open:
            self._open = False
            self._shared.leave()


class _Shared:
    """The engine of one home and one set of options in this process."""

    def __init__(self, home: Home, options: EngineOptions) -> None:
        self._home = home
        self._options = options
        self._lock = threading.Lock()
        self._users = 0
        self._engine: Engine | None = None
        self._pid = os.getpid()

    def join(self) -> None:
        with self._lock:
            self._users += 1

    def leave(self) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._stop()

    def running(self, cancel: Cancel) -> Engine:
        if os.getpid() != self._pid:
            raise ProviderUnavailable(
                "This process is a fork of the one that opened the demo model. Open it anew here."
            )
        while not self._lock.acquire(timeout=_POLL_SECONDS):
            cancel.check()
        try:
            if self._engine is None or not self._engine.alive:
                self._stop()
                self._engine = _start(self._home, self._options, cancel)
            return self._engine
        finally:
            self._lock.release()

    def stop(self) -> None:
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._engine is not None:
            self._engine.stop()
            self._engine = None


_all: dict[tuple[Path, EngineOptions], _Shared] = {}
_all_lock = threading.Lock()


def _shared_for(home: Home, options: EngineOptions) -> _Shared:
    with _all_lock:
        return _all.setdefault((home.root, options), _Shared(home, options))


def _stop_all() -> None:
    for shared in list(_all.values()):
        shared.stop()


def _forget() -> None:
    """In a fork: the engines belong to the parent, and its locks may be held by threads that are not here."""
    global _all_lock
    _all.clear()
    _all_lock = threading.Lock()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _start(home: Home, options: EngineOptions, cancel: Cancel) -> Engine:
    why_not = available(home)
    path = weights.locate(home)
    if why_not is not None or path is None:
        raise ConfigError(why_not or "The offline demo model's weights are not installed.")
    weights.verify(path)
    home.ensure()
    home.engine_states.mkdir(mode=0o700, exist_ok=True)
    key = secrets.token_urlsafe(32)
    settings = {
        "model": str(path),
        "key": key,
        "states": str(home.engine_states),
        "threads": options.threads,
        "context": options.context,
        "cache_mib": options.cache_mib,
        "batch": options.batch,
    }
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            # -P: a module of the user's folder must not take a library's place.
            [sys.executable, "-P", str(_SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            # Its own session: the interrupt of a cell goes to the kernel's whole process group.
            start_new_session=True,
        )
        try:
            stdin = cast("IO[bytes]", process.stdin)
            stdin.write(json.dumps(settings).encode() + b"\n")
            stdin.flush()
            server = LlamaServer(_announced(process, cancel), key)
            _wait_healthy(process, server, cancel)
        except (ProviderUnavailable, OSError) as exc:
            _end(process)
            raise ProviderUnavailable(f"The offline demo model did not start. {_tail(log) or exc}") from exc
        except BaseException:
            _end(process)
            raise
    return Engine(process, server)


def _announced(process: subprocess.Popen[bytes], cancel: Cancel) -> str:
    lines: queue.Queue[bytes] = queue.Queue()
    stdout = cast("IO[bytes]", process.stdout)
    threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        cancel.check()
        try:
            line = lines.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            continue
        try:
            return str(json.loads(line)["url"])
        except (ValueError, TypeError, KeyError):
            raise ProviderUnavailable(f"Its process ended or said {line[:80]!r} instead of its address.") from None
    raise ProviderUnavailable(f"It gave no address within {_START_SECONDS:.0f} s.")


def _wait_healthy(process: subprocess.Popen[bytes], server: LlamaServer, cancel: Cancel) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            server.get("/health")
        except ProviderError:
            # 503 while the weights are being loaded.
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProviderUnavailable("It loaded no model.") from None
        else:
            return
        cancel.check()
        cancel.wait(_POLL_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                # Unsent settings of a child that died while starting.
                continue


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    text = log.read().decode("utf-8", errors="replace").strip()
    return text[-_LOG_TAIL:]
