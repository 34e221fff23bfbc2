"""Server-sent events out of raw bytes. Owns line ends, split characters and fields; knows no chat format.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation, except that an
event at the end of the stream counts although its empty line is missing: some servers leave it out.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

MAX_LINE = 32 * 1024 * 1024
"""Characters of one line; a peer that sends more without a line end is no event stream."""


class NotAnEventStream(ValueError):
    """The bytes are something else (a page, a JSON document, an endless line)."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event that has data."""

    data: str
    name: str = "message"


class EventDecoder:
    """Feed bytes as they arrive, get whole events. Bytes that are no UTF-8 become U+FFFD."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max_line = max_line
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial: list[str] = []
        """Pieces of the line that has no end yet; a list, so that a long line is not copied per piece."""
        self._partial_size = 0
        self._carriage = False
        self._data: list[str] = []
        self._name = ""
        self._first = True
        self.fields_seen = False
        """Whether any line was a field or a comment of the format."""

    def feed(self, raw: bytes) -> list[ServerEvent]:
        """Return the events that ``raw`` completes. Raises NotAnEventStream for an endless line."""
        return self._take(self._decoder.decode(raw))

    def close(self) -> list[ServerEvent]:
        """Return the event that the end of the stream completes, if any."""
        events = self._take(self._decoder.decode(b"", final=True))
        line, self._partial, self._partial_size = "".join(self._partial), [], 0
        if line:
            self._line(line)
        return events + self._dispatch()

    def _take(self, text: str) -> list[ServerEvent]:
        if not text:
            return []
        if self._first:
            text, self._first = text.removeprefix("\ufeff"), False
        if self._carriage:
            # The line feed of a CR LF pair that two reads have split.
            text, self._carriage = text.removeprefix("\n"), False
        self._carriage = text.endswith("\r")
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        *lines, rest = text.split("\n")
        events: list[ServerEvent] = []
        for line in lines:
            if self._partial:
                line = "".join([*self._partial, line])
                self._partial, self._partial_size = [], 0
            if line:
                self._line(line)
            else:
                events += self._dispatch()
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
            if self._partial_size > self._max_line:
                raise NotAnEventStream(f"a line of more than {self._max_line} characters")
        return events

    def _line(self, line: str) -> None:
        if line.startswith(":"):
            self.fields_seen = True
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name not in ("id", "retry"):
            return
        self.fields_seen = True

    def _dispatch(self) -> list[ServerEvent]:
        data, name = self._data, self._name
        self._data, self._name = [], ""
        return [ServerEvent("\n".join(data), name or "message")] if data else []
