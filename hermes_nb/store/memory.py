"""MEMORY.md and USER.md of one user: what every session knows. Files that people may edit by hand.

Two states: the live entries on disk, changed only here and under a lock; and the snapshot, rendered once into a
session's frozen prefix. A write never changes a snapshot. Knows no tool, no approval and no model.

    lock ─► read again ─► edit ─► budget ─► (copy of a hand-made form) ─► temporary file, fsync ─► replace
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hermes_nb.core.errors import StoreBusy, StoreError, StoreFull
from hermes_nb.core.ids import new_id
from hermes_nb.store.memory_edit import Draft, Refused, over_budget
from hermes_nb.store.memory_text import MemoryText, block, diff, read, size, usage, write

MEMORY, USER = "memory", "user"
TARGETS: Mapping[str, tuple[str, str]] = {
    MEMORY: ("MEMORY.md", "MEMORY (your personal notes)"),
    USER: ("USER.md", "USER PROFILE (who the user is)"),
}
_LOCK_SECONDS = 10

# What this process last saw of each file, so that a write can tell that somebody else changed it meanwhile.
# Shared by all MemoryStores: the one that rendered the prompt is not the one that writes.
_seen: dict[Path, bytes] = {}
_seen_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemoryOutcome:
    """What an edit did. On failure ``error`` says why and nothing was written."""

    success: bool
    target: str
    message: str
    used: int
    limit: int
    entry_count: int
    over_budget: bool = False
    current_entries: tuple[str, ...] | None = None
    matches: tuple[str, ...] | None = None
    replaced: tuple[tuple[str, str], ...] = ()
    """Old and new entry in full: a replace takes the whole entry, so nothing is lost unseen."""
    removed: tuple[str, ...] = ()
    added: int = 0
    backup: Path | None = None
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the file was written."""
        return self.success and bool(self.added or self.replaced or self.removed)

    def persisted(self) -> str | None:
        """Return the footer's line, e.g. ``memory: 1 entry added``; None when nothing was written."""
        if not self.changed:
            return None
        counts = ((self.added, "added"), (len(self.replaced), "replaced"), (len(self.removed), "removed"))
        words = [f"{number} {'entry' if number == 1 else 'entries'} {verb}" for number, verb in counts if number]
        return f"{'memory' if self.target == MEMORY else 'user profile'}: {', '.join(words)}"

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as the model gets it. A success does not repeat the entries: they invite re-editing."""
        budget = usage(self.used, self.limit)
        shown: dict[str, Any]
        if self.success:
            shown = {"success": True, "done": True, "target": self.target, "usage": budget}
            shown |= {"entry_count": self.entry_count, "message": self.message}
            if self.changed:
                shown["note"] = "Saved. New sessions see it; the prompt of this one stays as it is."
        else:
            shown = {"success": False, "target": self.target, "error": self.message, "usage": budget}
        if self.replaced:
            shown["replaced"] = [{"old": old, "new": new} for old, new in self.replaced]
        if self.removed:
            shown["removed"] = list(self.removed)
        if self.matches is not None:
            shown["matches"] = list(self.matches)
        if self.current_entries is not None:
            shown["current_entries"] = list(self.current_entries)
        if self.warnings:
            shown["warnings"] = list(self.warnings)
        if self.backup is not None:
            shown["backup"] = str(self.backup)
        return shown


@dataclass(frozen=True, slots=True)
class MemoryPreview:
    """What an edit would do now: its outcome, its diff, and the operations with ``old_text`` as the whole entry."""

    outcome: MemoryOutcome
    diff: str
    operations: tuple[Mapping[str, str], ...]


class MemoryStore:
    """The memory files in one folder (one user). Safe for several processes; nothing is cached between calls."""

    def __init__(self, folder: Path, char_limit: int = 2200, user_char_limit: int = 1375) -> None:
        self.folder = folder
        self._limits = {MEMORY: char_limit, USER: user_char_limit}
        self._failures: tuple[str, int] = ("", 0)

    def path(self, target: str) -> Path:
        """Return the file of ``target``, which need not exist."""
        return self.folder / TARGETS[_target(target)][0]

    def limit(self, target: str) -> int:
        """Return the budget of ``target`` in characters."""
        return self._limits[_target(target)]

    def entries(self, target: str = MEMORY) -> tuple[str, ...]:
        """Return the live entries. Raises StoreError when the file cannot be read."""
        return self._load(target)[1].entries

    def warnings(self) -> tuple[str, ...]:
        """Return what is wrong with the files as they are now."""
        return tuple(warning for target in TARGETS for warning in self._load(target)[1].warnings)

    def snapshot(self, screen: Callable[[str, str], str] | None = None) -> str:
        """Return both blocks as a new session's prompt shows them; "" when nothing is remembered.

        ``screen`` gets each file's name and each entry and returns what the prompt shows of it; the files stay.
        """
        blocks: list[str] = []
        for target, (name, title) in TARGETS.items():
            text = self._load(target)[1]
            if screen is not None:
                text = replace(text, entries=tuple(screen(name, entry) for entry in text.entries))
            blocks.append(block(title, name, text, self.limit(target)))
        return "\n\n".join(part for part in blocks if part)

    def add(self, target: str, content: str) -> MemoryOutcome:
        """Add one entry. A duplicate is a success that writes nothing."""
        return self._edit(target, lambda draft: draft.add(content))

    def replace(self, target: str, old_text: str, content: str) -> MemoryOutcome:
        """Replace the whole entry that contains ``old_text``; the outcome holds old and new in full."""
        return self._edit(target, lambda draft: draft.replace(old_text, content))

    def remove(self, target: str, old_text: str) -> MemoryOutcome:
        """Remove the entry that contains ``old_text``, and every copy of it."""
        return self._edit(target, lambda draft: draft.remove(old_text))

    def batch(self, target: str, operations: Sequence[Mapping[str, Any]]) -> MemoryOutcome:
        """Do several edits as one: all or none, the budget checked on the final state only."""
        return self._edit(target, lambda draft: draft.apply_all(operations))

    def apply(self, target: str, operations: Sequence[Mapping[str, Any]]) -> MemoryOutcome:
        """Do one edit, or several as one."""
        return self._edit(target, lambda draft: draft.apply_these(operations))

    def preview(self, target: str, operations: Sequence[Mapping[str, Any]]) -> MemoryPreview:
        """Return what ``apply`` would do now. Writes nothing and waits for no lock."""
        target = _target(target)
        _, text, outcome, draft = self._tried(target, lambda draft: draft.apply_these(operations))
        return MemoryPreview(outcome, diff(self.path(target).name, text.entries, draft.entries), tuple(draft.done))

    def failed_again(self, turn_id: str) -> int:
        """Count one more edit of this turn that did not fit the budget; return how many there were."""
        turn, count = self._failures
        self._failures = (turn_id, count + 1 if turn == turn_id else 1)
        return self._failures[1]

    def succeeded(self) -> None:
        """Forget the failures of the turn."""
        self._failures = ("", 0)

    def _edit(self, target: str, edit: Callable[[Draft], None]) -> MemoryOutcome:
        target = _target(target)
        path = self.path(target)
        with self._locked(path):
            raw, text, outcome, draft = self._tried(target, edit)
            if not outcome.changed:
                return outcome
            warnings = list(outcome.warnings)
            backup = None
            if raw.strip() and not text.plain:
                backup = _backup(path, raw)
                warnings.append(f"{path.name} was not in the form that this tool writes; a copy is in {backup.name}.")
            data = write(draft.entries)
            _write(path, data)
            _remember(path, data)
            return replace(outcome, backup=backup, warnings=tuple(warnings))

    def _tried(self, target: str, edit: Callable[[Draft], None]) -> tuple[bytes, MemoryText, MemoryOutcome, Draft]:
        """Do an edit on what the file holds now, without writing."""
        path, limit = self.path(target), self.limit(target)
        seen = _last_seen(path)
        raw, text = self._load(target)
        warnings = list(text.warnings)
        if seen is not None and seen != raw:
            warnings.append(
                f"{path.name} had been changed since it was last read here, by hand or by another session; "
                "those changes are kept."
            )
        before = size(text.entries)
        outcome = MemoryOutcome(True, target, "", before, limit, len(text.entries), warnings=tuple(warnings))
        draft = Draft(list(text.entries))
        try:
            edit(draft)
            after = size(draft.entries)
            if after > limit and after >= before:
                raise over_budget(path.name, before, after, limit)
        except Refused as refused:
            outcome = replace(
                outcome,
                success=False,
                message=str(refused),
                over_budget=refused.over_budget,
                current_entries=text.entries if refused.entries else None,
                matches=tuple(refused.matches) if refused.matches is not None else None,
            )
            return raw, text, outcome, Draft(list(text.entries))
        outcome = replace(
            outcome,
            message=draft.message,
            used=after,
            entry_count=len(draft.entries),
            added=draft.added,
            replaced=tuple(draft.replaced),
            removed=tuple(draft.removed),
        )
        return raw, text, outcome, draft

    def _load(self, target: str) -> tuple[bytes, MemoryText]:
        path = self.path(target)
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            raw = b""
        except OSError as exc:
            raise StoreError(f"{path} cannot be read ({exc.strerror or exc}). Correct its permissions.") from exc
        _remember(path, raw)
        return raw, read(raw, path.name, self.limit(target))

    @contextmanager
    def _locked(self, path: Path) -> Generator[None]:
        # Only writing needs it; every first turn reads, and would import its 24 modules.
        from filelock import FileLock, Timeout  # noqa: PLC0415

        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(path.with_name(f"{path.name}.lock"), timeout=_LOCK_SECONDS, mode=0o600)
            with lock:
                yield
        except Timeout as exc:
            raise StoreBusy(
                f"{path.name} is being written by another process; nothing was changed. Try again."
            ) from exc
        except OSError as exc:
            kind = StoreFull if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) else StoreError
            raise kind(f"{path} was not written ({exc.strerror or exc}); what was there is unchanged.") from exc


def _target(target: str | None) -> str:
    found = target or MEMORY
    if found not in TARGETS:
        raise StoreError(f"There is no memory {target!r}. Use 'memory' or 'user'.")
    return found


def _last_seen(path: Path) -> bytes | None:
    with _seen_lock:
        return _seen.get(path.absolute())


def _remember(path: Path, raw: bytes) -> None:
    with _seen_lock:
        _seen[path.absolute()] = raw


def _backup(path: Path, raw: bytes) -> Path:
    stem = f"{path.name}.bak.{int(time.time())}"
    for name in (stem, *(f"{stem}-{number}" for number in range(1, 1000))):
        backup = path.with_name(name)
        try:
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        return backup
    raise StoreError(f"No free name for a copy of {path.name}; remove old {stem}-* files. Nothing was changed.")


def _write(path: Path, data: bytes) -> None:
    # A linked file (kept in a dotfiles folder) is written where it lies, not replaced by a plain one.
    target = path.resolve()
    temporary = target.with_name(f".mem_{new_id()}.tmp")
    try:
        mode = target.stat().st_mode & 0o777
    except FileNotFoundError:
        mode = 0o600
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
