"""Engine states on disk: what a model has read of a prefix, so that a new engine need not read it again.

A file is named by the hash of the rendered prefix, the weights and the engine's version; a second file beside it
holds the first one's hash. What does not fit is ignored and made again. Knows no prompt and no process.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.core.errors import ProviderError
from hermes_nb.core.wirejson import dumps

LIMIT: Final = 512 * 1_000_000
"""Bytes that all states together may have; the longest unused go first."""

_STATE: Final = ".state"
_SEAL: Final = ".seal"
_PART: Final = ".part"
_STALE_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class States:
    """The states in one folder, which is also the engine's ``slot_save_path``."""

    folder: Path
    limit: int = LIMIT

    def restore(self, server: LlamaServer, name: str) -> int | None:
        """Load state ``name`` into the engine's slot; return its tokens, or None when there is no good one.

        Raises Cancelled never; an engine that refuses the file counts as "no good one".
        """
        state, seal = self._paths(name)
        try:
            sealed: Any = json.loads(seal.read_bytes())
            if not isinstance(sealed, dict) or cast("dict[str, Any]", sealed).get("sha256") != _hash(state):
                raise ValueError(name)
            restored = server.slot("restore", state.name)
        except (OSError, ValueError, ProviderError):
            # Absent, cut, damaged or of a foreign engine: each means to read the prefix anew.
            self._drop(name)
            return None
        with suppress(OSError):
            # The time of the last use decides what goes first; a read-only folder only loses that order.
            state.touch()
        return int(restored.get("n_restored", 0)) or None

    def save(self, server: LlamaServer, name: str) -> str | None:
        """Keep the slot's state as ``name``; return why that failed, or None.

        A state is a convenience: a full disk must not end a turn, so the reason is returned, not raised.
        """
        part = self.folder / f"{name}-{secrets.token_hex(4)}{_PART}"
        state, seal = self._paths(name)
        try:
            written = server.slot("save", part.name).get("n_written")
            if part.stat().st_size != written:
                raise OSError(f"{written} bytes expected, {part.stat().st_size} written")
            seal_part = part.with_suffix(_SEAL + _PART)
            seal_part.write_text(dumps({"sha256": _hash(part), "size": written}), encoding="utf-8")
            part.replace(state)
            seal_part.replace(seal)
            self._trim(keep=name)
        except (OSError, ProviderError) as exc:
            part.unlink(missing_ok=True)
            return f"the engine's state was not kept ({exc})"
        return None

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self.folder / f"{name}{_STATE}", self.folder / f"{name}{_SEAL}"

    def _drop(self, name: str) -> None:
        for path in self._paths(name):
            # It may be gone already, or in a read-only home; it is never used in either case.
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _trim(self, keep: str) -> None:
        for part in self.folder.glob(f"*{_PART}"):
            if time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink(missing_ok=True)
        found = [(path.stat().st_mtime, path.stat().st_size, path) for path in self.folder.glob(f"*{_STATE}")]
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                return
            if path.stem != keep:
                self._drop(path.stem)
                total -= size


def state_name(prefix: str, *parts: str) -> str:
    """Return the name of the state for ``prefix`` under everything else that decides it."""
    digest = hashlib.sha256()
    for part in (prefix, *parts):
        digest.update(part.encode("utf-8") + b"\0")
    return digest.hexdigest()[:40]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
