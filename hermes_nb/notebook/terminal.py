"""Shows a turn's events as plain text: in a terminal's IPython and in consoles, which cannot replace an output.

The same face as render.TurnView. What has been printed stays; nothing is printed twice.
"""

from __future__ import annotations

from collections.abc import Callable

from hermes_nb.agent import events
from hermes_nb.core.terminal import terminal_text
from hermes_nb.core.types import ToolCall, ToolResult
from hermes_nb.notebook.render import footer_line, gist, shown_arguments


def _print(text: str) -> None:
    print(text, end="", flush=True)


class TerminalView:
    """The view of one turn in one cell. Every method runs on the thread that owns the cell's output."""

    def __init__(self, write: Callable[[str], None] = _print) -> None:
        self._write = write
        self._fresh = True
        """Whether the cursor stands at the start of a line."""
        self._endpoint = ""

    def handle(self, event: events.Event) -> None:
        """Show one event at once."""
        match event:
            case events.TurnStarted():
                self._endpoint = event.endpoint
                self._line(f"asking {event.endpoint} …")
            case events.TextDelta():
                self._put(event.text)
            case events.Notice():
                self.note(event.text, event.level)
            case events.ToolStarted():
                self._line(f"> {event.call.name}: {gist(shown_arguments(event.call))}")
            case events.ToolFinished():
                self._tool_finished(event.call, event.result, event.seconds)
            case events.TurnFinished():
                self._line(footer_line(event.result, self._endpoint, live=True))
            case _:
                pass

    def flush(self) -> None:
        """Nothing waits: text is printed as it comes."""

    def freeze(self) -> None:
        """End the line, so that what is shown next stands below it."""
        if not self._fresh:
            self._put("\n")

    def note(self, text: str, level: str = "info") -> None:
        """Show one line that is not the model's."""
        self._line(text if level == "info" else f"{level}: {text}")

    def closed(self) -> None:
        """End the last line."""
        self.freeze()

    def _tool_finished(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        outcome = "failed" if result.is_error else "ok"
        note = f" — {result.note}" if result.note and not outcome.startswith(result.note) else ""
        self._line(f"> {call.name}: {outcome}{note} · {seconds:.1f} s")

    def _line(self, text: str) -> None:
        self.freeze()
        self._put(text + "\n")

    def _put(self, text: str) -> None:
        if text:
            self._write(terminal_text(text))
            self._fresh = text.endswith("\n")
