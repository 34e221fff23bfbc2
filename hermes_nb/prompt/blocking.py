"""Keeps passages that read like attacks out of a prompt, and says so. The source keeps its text.

A hit is replaced by a ``[BLOCKED: …]`` line. Where the passage can be cut out (an HTML comment, a list item, a line,
a paragraph) the rest stays; else the whole text is replaced. A user lets a passage through by its content hash. The
same text and the same allowances give the same bytes. Must not know where texts come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_nb.core.scan import Allowances, Finding

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BLANK = re.compile(r"\n[ \t]*\n")
_ITEM = re.compile(r"[ \t]*(?:[-*+|#>]|\d{1,3}[.)])(?:[ \t]|$)")
_MOST_CUTS = 8
"""A text with more hits than this is not material with a blemish."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """One passage that was kept out. ``hash`` is what an allowance names."""

    name: str
    line: int
    rule: str
    passage: str
    hash: str
    whole: bool

    def notice(self) -> str:
        """Return the line for the user: what was blocked, why, and how to review or allow it."""
        what = f"{self.name} was" if self.whole else f"A passage of {self.name} (line {self.line}) was"
        return (
            f"{what} kept out of the prompt: it reads like an instruction to the model (rule {self.rule}, line "
            f"{self.line}): {self.passage!r}. The file itself is unchanged. Review it there; if it is meant, run "
            f"`hermes-nb approvals allow {self.hash}` and begin a new session."
        )


@dataclass(frozen=True, slots=True)
class Screened:
    """Text that may enter a prompt, and the lines for the user on what is missing from it."""

    text: str
    notices: tuple[str, ...] = ()
    blocked: tuple[Blocked, ...] = ()


def screen(text: str, name: str, *, allowances: Allowances | None = None, scope: str = "context") -> Screened:
    """Return ``text`` with what the scan hit replaced. ``name`` is how people know the source."""
    # Two thousand lines of patterns that a prompt without files and memory never needs.
    from hermes_nb.core.scan import content_hash, scan  # noqa: PLC0415

    findings = _unallowed(scan(text, scope), text, allowances)
    if not findings:
        return Screened(text)
    if allowances is not None and allowances.allowed(content_hash(text)):
        return Screened(text)
    cuts = _cuts(text, findings)
    if len(cuts) <= _MOST_CUTS:
        kept: list[str] = []
        at = 0
        for start, end, _ in cuts:
            kept.append(text[at:start])
            at = end
        kept.append(text[at:])
        rest = kept[0]
        for part in kept[1:]:
            rest += part[1:] if rest.endswith("\n") and part.startswith("\n") else part
        # What was apart may read as one sentence when something between is gone.
        if rest.strip() and not _unallowed(scan(rest, scope), rest, allowances):
            marks = [_placeholder(name, finding.line, finding.rule) for _, _, finding in cuts]
            shown = "".join(part for pair in zip(kept, [*marks, ""], strict=True) for part in pair)
            blocked = [_blocked(name, finding, text[start:end], whole=False) for start, end, finding in cuts]
            return Screened(shown, tuple(one.notice() for one in blocked), tuple(blocked))
    first = findings[0]
    rules = ", ".join(dict.fromkeys(finding.rule for finding in findings))
    one = _blocked(name, first, text, whole=True)
    return Screened(_placeholder(name, None, rules), (one.notice(),), (one,))


def _unallowed(findings: list[Finding], text: str, allowances: Allowances | None) -> list[Finding]:
    if allowances is None or not findings:
        return findings
    # As above.
    from hermes_nb.core.scan import content_hash  # noqa: PLC0415

    return [one for one in findings if not allowances.allowed(content_hash(text[slice(*_unit(text, one))]))]


def _cuts(text: str, findings: list[Finding]) -> list[tuple[int, int, Finding]]:
    """Return the units to cut out, in order and apart from each other, each with its first finding."""
    cuts: list[tuple[int, int, Finding]] = []
    for finding in findings:
        start, end = _unit(text, finding)
        if cuts and start < cuts[-1][1]:
            first = cuts[-1]
            cuts[-1] = (first[0], max(first[1], end), first[2])
        else:
            cuts.append((start, end, finding))
    return cuts


def _unit(text: str, finding: Finding) -> tuple[int, int]:
    """Return the smallest part around a finding that can go without breaking a sentence."""
    for comment in _COMMENT.finditer(text):
        if comment.start() <= finding.start and finding.end <= comment.end():
            return comment.span()
    start, end = _paragraph(text, finding.start, finding.end)
    for first, last in _items(text, start, end):
        if first <= finding.start and finding.end <= last:
            return first, last
    return start, end


def _paragraph(text: str, start: int, end: int) -> tuple[int, int]:
    first, last = 0, len(text)
    for blank in _BLANK.finditer(text):
        if blank.end() <= start:
            first = blank.end()
        elif blank.start() >= end:
            last = blank.start()
            break
    while first < start and text[first] in "\r\n":
        first += 1
    while last > end and text[last - 1] in "\r\n":
        last -= 1
    return first, last


def _items(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the list items, table rows and headings of a paragraph; lines that follow an item belong to it."""
    first: int | None = None
    at = start
    for line in text[start:end].splitlines(keepends=True):
        if _ITEM.match(line):
            if first is not None:
                yield first, _without_end(text, at)
            elif at > start:
                yield start, _without_end(text, at)
            first = at
        at += len(line)
    if first is not None:
        yield first, _without_end(text, end)


def _without_end(text: str, end: int) -> int:
    while end > 0 and text[end - 1] in "\r\n":
        end -= 1
    return end


def _placeholder(name: str, line: int | None, rules: str) -> str:
    where = name if line is None else f"{name} line {line}"
    return f"[BLOCKED: {where} held a possible prompt injection ({rules}). The source is unchanged; the user was told.]"


def _blocked(name: str, finding: Finding, unit: str, *, whole: bool) -> Blocked:
    # As above.
    from hermes_nb.core.scan import content_hash  # noqa: PLC0415

    return Blocked(name, finding.line, finding.rule, finding.passage, content_hash(unit), whole)
