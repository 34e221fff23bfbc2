"""The project's own instructions, as files beside the work. Finds, reads, screens and caps them; raises nothing.

One kind only, the first that has something to say:

1. ``.hermes.md`` or ``HERMES.md``, the nearest from the working folder up to the root of its git repository
2. ``AGENTS.md``, 3. ``CLAUDE.md``, 4. ``.cursorrules`` and ``.cursor/rules/*.mdc``, in the working folder only

What cannot be used gives a notice. The same files give the same bytes. Must not know sessions or the store.
"""

from __future__ import annotations

import codecs
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_nb.prompt.blocking import Screened, screen

if TYPE_CHECKING:
    from hermes_nb.core.scan import Allowances

MAX_CHARS = 20_000
HEAD_SHARE, TAIL_SHARE = 0.7, 0.2
HEADING = "# Project context"
"""How the block begins in the system message."""
_MAX_BYTES = 4_000_000
_MAX_RULE_FILES = 50
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    name: str
    """The path as people see it: relative to the working folder."""
    front_matter: bool = False


def context_files(cwd: Path, *, allowances: Allowances | None = None, limit: int = MAX_CHARS) -> Screened:
    """Return the block for the prompt ("" for none) and the lines for the user on what is missing from it."""
    root = _git_root(cwd)
    notices: list[str] = []
    for kind in (_hermes(cwd, root), _here(cwd, "AGENTS.md"), _here(cwd, "CLAUDE.md"), _cursor(cwd, notices)):
        parts: list[tuple[str, Screened]] = []
        for file in kind:
            text = _read(file, root or cwd, notices)
            if text.strip():
                parts.append((file.name, screen(text.strip(), file.name, allowances=allowances)))
        if parts:
            notices += [notice for _, part in parts for notice in part.notices]
            blocked = tuple(one for _, part in parts for one in part.blocked)
            return Screened(_block(parts, limit, notices), tuple(notices), blocked)
    return Screened("", tuple(notices))


def cut(text: str, name: str, limit: int) -> tuple[str, str | None]:
    """Return ``text`` with at most ``limit`` characters, head and tail kept, and a notice when something was cut."""
    if len(text) <= limit:
        return text, None
    head, tail = int(limit * HEAD_SHARE), int(limit * TAIL_SHARE)
    marker = (
        f"\n\n[CUT: {name} has {len(text):,} characters; the first {head:,} and the last {tail:,} are shown. Read the "
        "file for the rest.]\n\n"
    )
    notice = (
        f"{name} has {len(text):,} characters, {limit:,} fit into the prompt: {len(text) - head - tail:,} in the "
        "middle were left out. Shorten it, or move details to files that it names."
    )
    return f"{text[:head].rstrip()}{marker}{text[len(text) - tail :].lstrip()}", notice


def _block(parts: Sequence[tuple[str, Screened]], limit: int, notices: list[str]) -> str:
    names = ", ".join(name for name, _ in parts)
    joined = "\n\n".join(f"## {name}\n{part.text}" if len(parts) > 1 else part.text for name, part in parts)
    shown, notice = cut(joined, names if len(parts) <= 3 else f"{parts[0][0]} and {len(parts) - 1} more files", limit)
    if notice is not None:
        notices.append(notice)
    return f"{HEADING}\nWhat the project asks of those who work in it, from {names}:\n\n{shown}"


def _git_root(cwd: Path) -> Path | None:
    for folder in (cwd, *cwd.parents):
        try:
            if (folder / ".git").exists():
                return folder
        except OSError:
            return None
    return None


def _hermes(cwd: Path, root: Path | None) -> Iterator[_File]:
    for folder in (cwd, *cwd.parents) if root is not None else (cwd,):
        for name in (".hermes.md", "HERMES.md"):
            if _is_there(folder / name):
                up = len(cwd.parts) - len(folder.parts)
                yield _File(folder / name, "../" * up + name, front_matter=True)
                return
        if folder == root:
            return


def _here(cwd: Path, name: str) -> Iterator[_File]:
    for spelled in (name, name.lower()):
        if _is_there(cwd / spelled):
            yield _File(cwd / spelled, spelled)
            return


def _cursor(cwd: Path, notices: list[str]) -> Iterator[_File]:
    if _is_there(cwd / ".cursorrules"):
        yield _File(cwd / ".cursorrules", ".cursorrules")
    folder = cwd / ".cursor" / "rules"
    try:
        found = sorted(path for path in folder.rglob("*.mdc")) if folder.is_dir() else []
    except OSError as exc:
        notices.append(f".cursor/rules cannot be listed ({exc.strerror or exc}); its rules are not in the prompt.")
        return
    if len(found) > _MAX_RULE_FILES:
        notices.append(f".cursor/rules has {len(found)} files; the first {_MAX_RULE_FILES} by name are read.")
    for path in found[:_MAX_RULE_FILES]:
        yield _File(path, path.relative_to(cwd).as_posix(), front_matter=True)


def _is_there(path: Path) -> bool:
    # A broken link is there: it gets a notice when it is read.
    try:
        return path.exists() or path.is_symlink()
    except OSError:
        return True


def _read(file: _File, root: Path, notices: list[str]) -> str:
    """Return the text of a file; "" and a notice when it cannot be used."""
    try:
        real, top = file.path.resolve(strict=True), root.resolve()
        if not real.is_relative_to(top):
            notices.append(
                f"{file.name} is a link to {real}, outside of {top}; it is not in the prompt. Copy it instead."
            )
            return ""
        mode = real.stat()
        if not stat.S_ISREG(mode.st_mode):
            notices.append(f"{file.name} is not a file; it is not in the prompt.")
            return ""
        if mode.st_size > _MAX_BYTES:
            notices.append(
                f"{file.name} has {mode.st_size:,} bytes, at most {_MAX_BYTES:,} are read; it is not in the prompt."
            )
            return ""
        raw = real.read_bytes()
    except (OSError, RuntimeError) as exc:
        why = getattr(exc, "strerror", None) or exc
        notices.append(f"{file.name} cannot be read ({why}); it is not in the prompt. Check its owner and mode.")
        return ""
    text = _decoded(raw, file.name, notices)
    return _FRONT_MATTER.sub("", text, count=1) if file.front_matter else text


def _decoded(raw: bytes, name: str, notices: list[str]) -> str:
    encoding = next((encoding for mark, encoding in _ENCODINGS if raw.startswith(mark)), "utf-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = raw.decode(encoding, "replace")
        notices.append(
            f"{name} has bytes that are not {encoding[:6].upper()}; they are shown as \ufffd. Save it as UTF-8."
        )
    if "\0" in text:
        notices.append(f"{name} holds zero bytes and is no text; it is not in the prompt.")
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
