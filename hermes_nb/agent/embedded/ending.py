"""Where the demo model's words end: at the first repetition, and never in the middle of a sentence.

So small a model often does not find the end by itself: it says a sentence again, or counts on for ever. Owns that
judgement and what of the text is shown. Knows no engine, no prompt and no chunk.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_UNIT: Final = re.compile(r'\n\s*|(?<!\d)[.!?]["\')*]*\s+')
"""The end of a sentence or of a line; the point of a numbered list ends nothing."""
_LINE: Final = re.compile(r"\n")
_FENCE: Final = "```"
_SAME_SHAPE: Final = 4
"""So many lines in a row that differ in their numbers only are a count, not a list."""
_SAME_IN_CODE: Final = 3
"""Code may say a line twice."""
_PERIODS: Final = range(1, 13)
_ROUNDS: Final = 3
_LOOP_WORDS: Final = 6
_SAME_WORD: Final = 24
"""A list of numbers in one line may be long."""
_NUMBER: Final = re.compile(r"\d+")


class Ending:
    """Feed the words as they come; show what it gives. ``ended`` says that the rest is not wanted.

    The first sentence is given piece by piece, so that an answer begins at once; each later one when it is whole,
    so that one which repeats an earlier one never shows.
    """

    def __init__(self) -> None:
        self.ended = False
        self._held = ""
        self._space = ""
        """White space is given with what follows it: an answer does not end with it."""
        self._given = 0
        """How much of the held text was shown already: all of it in the first sentence."""
        self._whole = 0
        self._in_code = False
        self._seen: Counter[str] = Counter()
        self._shape = ""
        self._run = 0

    def feed(self, piece: str) -> str:
        """Return the text that may be shown now."""
        self._held += piece
        shown = ""
        while (found := self._boundary()) is not None:
            unit, self._held = self._held[: found.end()], self._held[found.end() :]
            given, self._given = self._given, 0
            if self._repeats(unit):
                self.ended = True
                return shown + self._closed()
            shown += self._shown(unit[given:])
            self._whole += 1
        if _loops(self._held):
            self.ended = True
            return shown + self._closed()
        if self._whole == 0:
            shown += self._shown(self._held[self._given :])
            self._given = len(self._held)
        return shown

    def finish(self) -> str:
        """Return what is still held, after the model itself found the end."""
        if self.ended:
            return ""
        if self._whole and self._repeats(self._held):
            return self._closed()
        return self._shown(self._held[self._given :])

    def cut(self) -> str | None:
        """Drop an unfinished sentence, as at a token limit; return the last text, or None if it is the first one."""
        return self._closed() if self._whole else None

    def _boundary(self) -> re.Match[str] | None:
        in_code = self._in_code or self._held.lstrip().startswith(_FENCE)
        return (_LINE if in_code else _UNIT).search(self._held)

    def _repeats(self, unit: str) -> bool:
        said = " ".join(unit.split()).casefold()
        if said.startswith(_FENCE):
            self._in_code = not self._in_code
            self._run = 0
            return False
        if not said:
            return False
        self._seen[said] += 1
        shape = _NUMBER.sub("#", said)
        self._run = self._run + 1 if shape == self._shape else 1
        self._shape = shape
        few = 1 if len(said.split()) >= 3 and not self._in_code else _SAME_IN_CODE
        trivial = len(said) < 3
        return self._run >= _SAME_SHAPE or (self._seen[said] > few and not trivial)

    def _shown(self, text: str) -> str:
        body = text.rstrip()
        if not body:
            self._space += text
            return ""
        text, self._space = self._space + body, text[len(body) :]
        return text

    def _closed(self) -> str:
        return f"\n{_FENCE}" if self._in_code else ""


def _loops(text: str) -> bool:
    """Return whether ``text``, one sentence so far, ends with the same few words again and again."""
    words = _NUMBER.sub("#", text).split()
    for period in _PERIODS:
        rounds = _SAME_WORD if period == 1 else max(_ROUNDS, -(-_LOOP_WORDS // period))
        tail = words[-period * rounds :]
        one_word = len(set(tail)) == 1
        if len(tail) == period * rounds and tail == tail[:period] * rounds and one_word == (period == 1):
            return True
    return False
