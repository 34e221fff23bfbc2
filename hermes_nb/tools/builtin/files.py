"""The toolset ``file``: read and write text files, relative to the workspace.

Whether a path needs a yes is decided by policy before these functions run.
"""

from __future__ import annotations

import codecs
import os
import secrets as random_source
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated, BinaryIO

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ToolArgumentsInvalid, ToolError
from hermes_nb.core.names import MAX_TOOL_RESULT, Parallel, Risk
from hermes_nb.core.secrets import MASK
from hermes_nb.core.types import ToolResult
from hermes_nb.core.wirejson import clean_text
from hermes_nb.tools.arguments import near
from hermes_nb.tools.schema import tool_of
from hermes_nb.tools.tool import ToolContext
from hermes_nb.tools.workspace import resolve

MAX_LINES = 2_000
MAX_LINE = 2_000
_ROOM = MAX_TOOL_RESULT - 1_000
_SNIFF = 8_192
_WIDE = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"))


def read_file(
    context: ToolContext,
    path: Annotated[str, "Path, relative to the workspace or absolute."],
    start: Annotated[int, "First line, counted from 1."] = 1,
    lines: Annotated[int, "How many lines, at most 2000."] = MAX_LINES,
) -> ToolResult:
    """Read a text file. Long files come in pages: the last line says how to go on."""
    if start < 1 or lines < 1:
        raise ToolArgumentsInvalid("start and lines count from 1.")
    target = resolve(context.cwd, path)
    size = _regular(target, path)
    with _opened(target, "rb") as file:
        head = file.read(_SNIFF)
        file.seek(0)
        encoding = _encoding(head)
        if encoding is None:
            raise ToolError(
                f"{target} is a binary file of {size:,} bytes ({head[:8].hex(' ')} ...). Read it with code."
            )
        if encoding == "utf-8":
            page = _page(file, start, min(lines, MAX_LINES), context.cancel)
        else:
            page = _page_wide(file.read(), encoding, start, min(lines, MAX_LINES))
    taken, more, replaced, cut = page
    notes: list[str] = []
    end = start + len(taken) - 1
    if not taken:
        notes.append("the file is empty" if start == 1 else f"the file has fewer than {start} lines")
    elif more:
        notes.append(f"lines {start} to {end}; go on with start={end + 1}")
    elif start > 1:
        notes.append(f"lines {start} to {end}, the end of the file")
    if cut:
        notes.append(f"lines over {MAX_LINE:,} characters are cut")
    if replaced:
        notes.append("bytes that are not UTF-8 are shown as \ufffd; do not write this text back")
    text = context.mask(clean_text("\n".join(taken)))
    if MASK in text:
        notes.append(f"secrets are shown as {MASK}")
    footer = f"[{path}: {'; '.join(notes)}]" if notes else ""
    return ToolResult("\n".join(part for part in (text, footer) if part), note=f"{_lines(len(taken))} of {target.name}")


def write_file(
    context: ToolContext,
    path: Annotated[str, "Path, relative to the workspace or absolute."],
    content: Annotated[str, "The whole new content."],
) -> ToolResult:
    """Write a text file as a whole: a new one, or in place of what is there. Folders are made when missing."""
    target = resolve(context.cwd, path)
    data = clean_text(content).encode("utf-8")
    mode = _present_mode(target)
    if mode is not None and MASK in content and MASK.encode() not in _opened_bytes(target):
        raise ToolError(
            f"Nothing was written: the content has {MASK} where {target} holds a secret, which would be lost. "
            "Change the file with code that leaves that line alone."
        )
    context.cancel.check()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, data, mode)
    except OSError as exc:
        raise ToolError(f"{target} was not written ({exc.strerror or exc}); what was there is unchanged.") from exc
    done = "written" if mode is None else "replaced"
    count = content.count("\n") + (not content.endswith("\n") and bool(content))
    return ToolResult(
        f"{target}: {done}, {_lines(count)}, {len(data):,} bytes.", note=f"{target.name} {done}, {_lines(count)}"
    )


def _lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"


def _regular(target: Path, asked: str) -> int:
    try:
        found = target.stat()
    except FileNotFoundError:
        siblings = _names(target.parent)
        hint = near(target.name, siblings) if siblings else ""
        raise ToolError(f"There is no file {asked!r} ({target}).{hint}") from None
    except OSError as exc:
        raise ToolError(f"{target} cannot be read: {exc.strerror or exc}.") from exc
    if stat.S_ISDIR(found.st_mode):
        names = _names(target)
        listing = ", ".join(names[:100]) or "nothing"
        raise ToolError(
            f"{target} is a folder. It holds {len(names)} entries: {listing}{' ...' if names[100:] else ''}"
        )
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{target} is not a regular file but a device, pipe or socket.")
    return found.st_size


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(folder))
    except OSError:
        # Only for the hint in an error that is raised anyway.
        return []


def _opened(target: Path, mode: str) -> BinaryIO:
    try:
        return target.open(mode)  # type: ignore[return-value]
    except OSError as exc:
        raise ToolError(f"{target} cannot be read: {exc.strerror or exc}.") from exc


def _opened_bytes(target: Path) -> bytes:
    with _opened(target, "rb") as file:
        return file.read()


def _encoding(head: bytes) -> str | None:
    """Return how to decode the file, or None for a binary one."""
    for mark, name in _WIDE:
        if head.startswith(mark):
            return name
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16"
    return None if b"\0" in head else "utf-8"


def _page(file: BinaryIO, start: int, lines: int, cancel: Cancel) -> tuple[list[str], bool, bool, bool]:
    """Return (lines, more follows, bytes were replaced, lines were cut), reading no further than needed."""
    taken: list[str] = []
    room = _ROOM
    replaced = cut = False
    number = 0
    limit = MAX_LINE * 4
    while True:
        raw = file.readline(limit)
        if not raw:
            return taken, False, replaced, cut
        number += 1
        if number % 1_000 == 0:
            cancel.check()
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        whole = raw.endswith(b"\n") or len(raw) < limit
        while not whole:
            # The rest of an overlong line is skipped in pieces: one line may be the whole file.
            rest = file.readline(1 << 20)
            whole = rest.endswith(b"\n") or not rest
            cancel.check()
        if number < start:
            continue
        if len(taken) >= lines:
            return taken, True, replaced, cut
        line, bad, long = _line(raw.rstrip(b"\r\n"), len(raw) >= limit)
        if len(line) + 1 > room:
            return taken, True, replaced, cut
        room -= len(line) + 1
        replaced, cut = replaced or bad, cut or long
        taken.append(line)


def _line(raw: bytes, truncated: bool) -> tuple[str, bool, bool]:
    text = raw.decode("utf-8", "replace")
    bad = "\ufffd" in text[: len(text) - 1 if truncated else None] and "\ufffd".encode() not in raw
    if truncated or len(text) > MAX_LINE:
        return f"{text[:MAX_LINE]} [line cut]", bad, True
    return text, bad, False


def _page_wide(data: bytes, encoding: str, start: int, lines: int) -> tuple[list[str], bool, bool, bool]:
    text = data.decode(encoding, "replace")
    every = text.splitlines()
    taken: list[str] = []
    room = _ROOM
    cut = False
    for line in every[start - 1 : start - 1 + lines]:
        shown = line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [line cut]"
        cut = cut or shown is not line
        if len(shown) + 1 > room:
            break
        room -= len(shown) + 1
        taken.append(shown)
    return taken, start - 1 + len(taken) < len(every), "\ufffd" in text, cut


def _present_mode(target: Path) -> int | None:
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise ToolError(f"{target} cannot be written: {exc.strerror or exc}.") from exc
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{target} is {'a folder' if stat.S_ISDIR(found.st_mode) else 'not a regular file'}.")
    return stat.S_IMODE(found.st_mode)


def _replace(target: Path, data: bytes, mode: int | None) -> None:
    temporary = target.with_name(f".{target.name[:100]}.{random_source.token_hex(4)}.tmp")
    # os.open lets the kernel apply the umask to a new file; reading the umask in Python is not thread-safe.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


TOOLS = (
    tool_of(read_file, toolset="file", risk=Risk.READ, parallel=Parallel.PATH),
    tool_of(write_file, toolset="file", risk=Risk.WRITE, parallel=Parallel.PATH),
)
