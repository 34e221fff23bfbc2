"""Keeps the recall block's fence ours: takes it out of texts that go into a block, and leaked spans out of answers.

Pure text; must not know what stands in a block.
"""

from __future__ import annotations

import re

HELD = 12_000
"""Characters that are waited for a closing tag; a block of ours is shorter."""

_ANY = re.compile(r"[<\uff1c](\s*[/\uff0f]?\s*recall\b[^<>\uff1c\uff1e\n]{0,40})[>\uff1e]", re.IGNORECASE)
_OPEN = re.compile(r"<\s{0,3}recall\s{0,3}>", re.IGNORECASE)
_CLOSE = re.compile(r"<\s{0,3}/\s{0,3}recall\s{0,3}>", re.IGNORECASE)
_PART = re.compile(r"<\s{0,3}(?:r(?:e(?:c(?:a(?:l(?:l\s{0,3})?)?)?)?)?)?\Z", re.IGNORECASE)
_LINE_END = re.compile(r"[ \t]{0,8}\r?\n")
_PARAGRAPH = re.compile(r"\n[ \t]{0,8}\r?\n")


def defang(text: str) -> str:
    """Return ``text`` so that nothing in it can be taken for the fence of a block."""
    return _ANY.sub("\u2039\\1\u203a", text) if "recall" in text.lower() else text


class Scrubber:
    """Feed an answer's text as it streams, get it without recall spans. How it is split changes nothing.

    A span that opens a line of its own reaches to the closing tag or, when none follows, to the first blank line;
    one inside a line counts only when it is closed in its paragraph. A tag after a backtick is somebody's
    explanation and stays.
    """

    def __init__(self) -> None:
        self._held = ""
        self._last = ""
        self._skip = 0
        """Line ends that still belong to a span that was taken out."""

    def feed(self, text: str) -> str:
        """Return what is decided now; the rest is held back."""
        if not self._held and not self._skip and "<" not in text:
            self._last = text[-1:] or self._last
            return text
        return self._scan(self._held + text, final=False)

    def close(self) -> str:
        """Return what was held back."""
        return self._scan(self._held, final=True)

    def _scan(self, text: str, *, final: bool) -> str:
        kept: list[str] = []
        at = 0
        self._held = ""
        while at < len(text):
            while self._skip and at < len(text) and text[at] in "\r\n":
                self._skip -= text[at] == "\n"
                at += 1
            if at == len(text):
                break
            self._skip = 0
            found = _OPEN.search(text, at)
            if found is None:
                part = None if final else _PART.search(text, max(at, len(text) - 24))
                end = part.start() if part else len(text)
                self._keep(kept, text[at:end])
                self._held = text[end:]
                break
            self._keep(kept, text[at : found.start()])
            at = found.start()
            end, drop = self._span(text, found.end(), final=final)
            if end < 0:
                self._held = text[at:]
                break
            if drop:
                own_line = self._last in ("", "\n")
                self._skip = 2 if own_line and text[end - 1 : end] == ">" else 0
            else:
                self._keep(kept, text[at:end])
            at = end
        return "".join(kept)

    def _keep(self, kept: list[str], text: str) -> None:
        if text:
            kept.append(text)
            self._last = text[-1]

    def _span(self, text: str, inside: int, *, final: bool) -> tuple[int, bool]:
        """Return where the span whose tag ends at ``inside`` ends and whether it goes; -1 when that is open."""
        if self._last == "`":
            return inside, False
        limit = inside + HELD
        whole = final or len(text) >= limit + 24
        block = _LINE_END.match(text, inside) is not None
        closing = _CLOSE.search(text, inside, limit)
        paragraph = _PARAGRAPH.search(text, inside, limit)
        if closing and (block or paragraph is None or closing.start() < paragraph.start()):
            return closing.end(), True
        if not block:
            if paragraph is not None or whole:
                return inside, False
            return -1, False
        if not whole:
            return -1, False
        return (paragraph.end() if paragraph else min(len(text), limit)), True
