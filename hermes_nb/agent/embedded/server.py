"""The demo engine's process: llama.cpp's own HTTP server on loopback, for one parent.

Run as a script, so that it starts without the rest of the package. It reads one JSON line of settings from
stdin (the key travels there: a command line is visible to every user of the machine), prints one JSON line
with its URL, and ends when stdin ends or its parent is gone. Must not know the home, prompts or sessions.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

_PARENT_POLL_SECONDS = 1.0
_QUIET = 1
"""llama.cpp's verbosity: errors only, so that no prompt can reach the log."""


def main() -> int:
    """Serve until stdin ends; return the exit status."""
    # An interrupt of the notebook's cell or a Ctrl-C in the terminal is for the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    server = _serve(json.loads(line))
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    # Nobody reads stdout after this line; what the engine may still write must not fill the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    while sys.stdin.buffer.read(4096):
        pass
    return 0


def _serve(settings: dict[str, Any]) -> Any:
    # An optional extra, needed in this process only; it has no type information.
    xllamacpp: Any = importlib.import_module("xllamacpp")

    params: Any = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.ui = False
    params.n_ctx = settings["context"]
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    # Small batches: a cancelled request gives the slot back after one batch, not after the whole prompt.
    params.n_batch = params.n_ubatch = settings["batch"]
    params.cache_ram_mib = settings["cache_mib"]
    params.slot_save_path = settings["states"] + os.sep
    params.verbosity = _QUIET
    return xllamacpp.Server(params)


def _end_with_parent(parent: int) -> None:
    """Exit when the parent is gone, even while a fork of it still holds our stdin open."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    status = main()
    # llama.cpp's threads do not end by themselves; nothing here needs a clean-up.
    os._exit(status)
