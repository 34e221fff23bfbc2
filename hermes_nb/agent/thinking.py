"""Takes inline thinking tags out of streamed text. Knows tags and Markdown code; knows no chat format.

Some models write their reasoning into the answer between ``<think>`` and ``</think>``. A tag counts when it
opens a line, or anywhere when its end follows; inside code it is the user's own text and stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMES = ("think", "thinking", "thought", "reasoning", "reasoning_scratchpad")
_TAG = rf"<(?P<end>/?)(?:{'|'.join(NAMES)})\s*>"
_TOKEN = re.compile(rf"\n|`+|~{{3,}}|{_TAG}", re.IGNORECASE)
_END = re.compile(rf"</(?:{'|'.join(NAMES)})\s*>", re.IGNORECASE)
_LINES = re.compile(r"(?<=\n)")
_OPEN_TAIL = re.compile(r"(?:<(?P<tag>/?[a-z_]*\s*)|`+|~+)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of visible text or of reasoning."""

    text: str
    reasoning: bool = False


class ThinkingFilter:
    """Feed text, get visible text and reasoning. ``close`` must be called once at the end."""

    def __init__(self) -> None:
        self._held = ""
        self._inside: str | None = None
        """``line`` in a block that opens a line, ``inline`` in one that only counts if it ends."""
        self._fence = ""
        self._fence_info = False
        """On the line that opened a backtick fence."""
        self._fence_may_end = False
        self._code = 0
        """Length of the backtick run that opened an inline code span; 0 outside."""
        self._blank = True
        """Only white space was seen since the last line end."""
        self._visible = False
        self._after_block = False
        self.unclosed = False
        """Set by ``close``: the text ended inside a thinking block."""

    def feed(self, text: str) -> list[Piece]:
        """Return what is decided now; an undecided end of the text is held back."""
        if not self._held and self._inside is None and not ("<" in text or "`" in text or "~" in text):
            return self._plain(text)
        return self._scan(self._held + text, final=False)

    def close(self) -> list[Piece]:
        """Return what was held back."""
        pieces = self._scan(self._held, final=True)
        if self._inside == "line":
            self.unclosed = True
        return pieces

    def _plain(self, text: str) -> list[Piece]:
        """Return text without tokens but line ends, and keep the line state."""
        pieces: list[Piece] = []
        for line in _LINES.split(text):
            pieces += self._shown(line)
            if line.endswith("\n"):
                self._line_end()
        return _joined(pieces)

    def _scan(self, text: str, *, final: bool) -> list[Piece]:
        pieces: list[Piece] = []
        self._held = ""
        at = 0
        end = len(text) if final else len(text) - _undecided(text)
        while at < end:
            if self._inside is not None:
                stop = _END.search(text, at, end)
                if stop is None:
                    if self._inside == "line":
                        pieces.append(Piece(text[at:end], reasoning=True))
                        at = end
                        break
                    if not final:
                        break
                    # It never ended, so it was not a block: the tag and what follows are text.
                    self._inside = None
                    pieces += self._shown(text[at:end])
                    at = end
                    break
                start = at if self._inside == "line" else text.index(">", at) + 1
                pieces.append(Piece(text[start : stop.start()], reasoning=True))
                at, self._inside, self._after_block = stop.end(), None, True
                continue
            token = _TOKEN.search(text, at, end)
            if token is None:
                pieces += self._shown(text[at:end])
                at = end
                break
            if token.start() > at:
                pieces += self._shown(text[at : token.start()])
            at = self._token(token, pieces)
        self._held = text[at:]
        return _joined(pieces)

    def _token(self, token: re.Match[str], pieces: list[Piece]) -> int:
        """Handle one token and return where scanning goes on."""
        run = token.group()
        if run == "\n":
            pieces += self._shown(run)
            self._line_end()
        elif run[0] in "`~":
            self._backticks(run)
            pieces += self._shown(run, marker=True)
        elif self._fence or self._code:
            pieces += self._shown(run)
        elif token.group("end"):
            # An end without a beginning: some templates open the block in the prompt.
            pass
        elif self._blank:
            self._inside = "line"
        else:
            self._inside = "inline"
            return token.start()
        return token.end()

    def _backticks(self, run: str) -> None:
        if self._fence_info and run[0] == "`":
            # The info line of a fence has no backticks: this was code within its line.
            self._fence, self._fence_info = "", False
        elif self._fence:
            self._fence_may_end = self._blank and run[0] == self._fence[0] and len(run) >= len(self._fence)
        elif self._code:
            if len(run) == self._code and run[0] == "`":
                self._code = 0
        elif len(run) >= 3 and self._blank:
            self._fence, self._fence_info = run, run[0] == "`"
        elif run[0] == "`":
            self._code = len(run)

    def _line_end(self) -> None:
        if self._fence_may_end:
            self._fence = ""
        self._fence_may_end = self._fence_info = False
        # A span that is still open at the end of its line was a lone backtick far more often than code.
        self._code = 0
        self._blank = True

    def _shown(self, text: str, *, marker: bool = False) -> list[Piece]:
        if self._after_block and not self._visible:
            # The blank lines between a leading block and the answer belong to neither.
            text = text.lstrip()
        if not text:
            return []
        if text.strip():
            self._visible, self._blank = True, False
            if not marker:
                self._fence_may_end = False
        return [Piece(text)]


def _undecided(text: str) -> int:
    """Return how many characters at the end may still become a token."""
    tail = _OPEN_TAIL.search(text)
    if tail is None:
        return 0
    tag = tail.group("tag")
    if tag is not None:
        name = tag.removeprefix("/").lower()
        bare = name.rstrip()
        if not (bare in NAMES if bare != name else any(known.startswith(name) for known in NAMES)):
            return 0
    return len(tail.group())


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Return neighbours of one kind as one piece, without empty ones."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].reasoning == piece.reasoning:
            joined[-1] = Piece(joined[-1].text + piece.text, piece.reasoning)
        elif piece.text:
            joined.append(piece)
    return joined
