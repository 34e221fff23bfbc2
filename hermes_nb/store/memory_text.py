"""The text of a memory file: bytes to entries and back, and the block that a prompt shows. Pure.

Entries are separated by a line that holds only ``§``. People edit these files by hand, so reading accepts what an
editor makes of them (CRLF, blanks around the sign, no separators at all, another encoding) and says what it found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SIGN = "§"
DELIMITER = f"\n{SIGN}\n"
_RULE = "═" * 46
_SEPARATOR = re.compile(rf"^[^\S\n]*{SIGN}[^\S\n]*$", re.MULTILINE)
_BLANK = re.compile(r"\n[^\S\n]*\n")
_HEADER = re.compile(rf"{_RULE}\n[^\n]+\n{_RULE}\n")
_NOTICES = re.compile(r"(?:\n\[[^\n]*(?:are left out or cut|bytes that are not UTF-8)[^\n]*\])+\Z")
_ITEM = re.compile(r"^(?=#{1,6} |[-*+] |\d+[.)] )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MemoryText:
    """A file as it was read. ``plain`` is true when writing ``entries`` back gives the same text."""

    entries: tuple[str, ...]
    plain: bool = True
    warnings: tuple[str, ...] = ()


def read(raw: bytes, name: str, limit: int) -> MemoryText:
    """Return the entries of a file: stripped, without empty ones, exact duplicates once."""
    warnings: list[str] = []
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("utf-8-sig", "replace")
        warnings.append(
            f"{name} has bytes that are not UTF-8; they are shown as \ufffd. The file stays as it is until the next "
            "write, which keeps a copy of it. Save it as UTF-8 to cure this."
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    parts = _SEPARATOR.split(text)
    if len(parts) == 1 and len(text.strip()) > limit:
        # The memory tool never writes such a file; a person did. Its paragraphs and items become entries.
        parts = _sections(text, limit)
    entries = tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
    return MemoryText(entries, not warnings and text.strip() == DELIMITER.join(entries), tuple(warnings))


def write(entries: Iterable[str]) -> bytes:
    """Return the file's bytes."""
    text = DELIMITER.join(entries)
    return f"{text}\n".encode() if text else b""


def size(entries: Iterable[str]) -> int:
    """Return what a budget counts: the characters of the joined entries."""
    return len(DELIMITER.join(entries))


def refusal(content: str) -> str | None:
    """Return why ``content`` cannot be one entry, or None."""
    if not content.strip():
        return "The content is empty; say what to remember."
    if _SEPARATOR.search(content.replace("\r\n", "\n").replace("\r", "\n")):
        return (
            f"The content has a line with only {SIGN}, the sign between entries. Remove that line, or add two entries."
        )
    if "\0" in content:
        return "The content has a zero byte; leave it out."
    return None


def diff(name: str, before: Sequence[str], after: Sequence[str]) -> str:
    """Return the change of a file's entries as a unified diff; "" when there is none."""
    old, new = write(before).decode().splitlines(), write(after).decode().splitlines()
    return "\n".join(difflib.unified_diff(old, new, name, name, n=1, lineterm=""))


def entries_shown(part: str) -> tuple[str, ...]:
    """Return the entries in a block as ``block`` made it for a prompt; () for an empty one."""
    found = _HEADER.match(part.strip())
    if found is None:
        return ()
    text = _NOTICES.sub("", part.strip()[found.end() :])
    return tuple(entry.strip() for entry in _SEPARATOR.split(text) if entry.strip())


def usage(used: int, limit: int) -> str:
    """Return the budget as people and models read it."""
    percent = min(100, round(100 * used / limit)) if limit else 100
    return f"{percent}% — {used:,}/{limit:,} chars"


def block(title: str, name: str, text: MemoryText, limit: int) -> str:
    """Return the block of one file for the prompt, "" when there is nothing to show.

    Never longer than the budget (and the notices): entries that no longer fit are left out, and the block says so.
    """
    if not text.entries:
        return "\n".join(f"[{warning}]" for warning in text.warnings)
    shown, left = _fitting(text.entries, limit)
    used = size(text.entries)
    notices = list(text.warnings)
    if left:
        notices.append(
            f"{left} of {len(text.entries)} entries of {name} are left out or cut: it holds {used:,} characters, "
            f"{limit:,} fit. Shorten it with the memory tool or by hand"
        )
    header = f"{_RULE}\n{title} [{usage(used, limit)}]\n{_RULE}"
    return "\n".join([header, DELIMITER.join(shown), *(f"[{notice}]" for notice in notices)])


def _fitting(entries: Sequence[str], limit: int) -> tuple[list[str], int]:
    if size(entries) <= limit:
        return list(entries), 0
    shown: list[str] = []
    left = 0
    for entry in entries:
        if size([*shown, entry]) <= limit:
            shown.append(entry)
            continue
        left += 1
        room = limit - size([*shown, ""])
        if len(entry) > limit and room > 80:
            shown.append(f"{entry[: room - 6]} [cut]")
    return shown, left


def _sections(text: str, limit: int) -> list[str]:
    parts: list[str] = []
    for paragraph in _BLANK.split(text):
        parts += [paragraph] if len(paragraph) <= limit else _ITEM.split(paragraph)
    return parts
