"""``hermes-nb ask``: one turn from a terminal. The answer goes to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import threading
from dataclasses import asdict

import click

from hermes_nb import app
from hermes_nb.agent.agent import TurnOptions
from hermes_nb.agent.events import Event, Notice, TextDelta, ToolFinished, ToolStarted, TurnFinished
from hermes_nb.commands.approvals import question_text
from hermes_nb.commands.output import as_json_option, note, on_terminal, print_json, terminal_text
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ApprovalMode, ApprovalState, TurnStatus
from hermes_nb.core.types import ApprovalRequest, TurnResult
from hermes_nb.store.store import Store

_WIDTH = 100


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("-m", "--model", help="Another model.")
@click.option("-s", "--session", help="Continue this conversation: an id, its beginning, or a title.")
@click.option("--new", "title", metavar="TITLE", help="Begin a conversation with this title.")
@click.option("--approve", type=click.Choice([mode.value for mode in ApprovalMode]), help="How much you are asked.")
@as_json_option
def ask(
    text: tuple[str, ...], model: str | None, session: str | None, title: str | None, approve: str | None, as_json: bool
) -> None:
    """Ask the agent TEXT and print its answer. TEXT - reads standard input.

    Without -s a new conversation begins. On a terminal you are asked before the agent acts; elsewhere what
    needs a question is refused.
    """
    if session and title:
        raise ConfigError("-s continues a conversation and --new begins one; use only one of them.")
    message = sys.stdin.read() if text == ("-",) else " ".join(text)
    runtime = app.runtime()
    agent = runtime.agent(
        session=runtime.store.find_session(session) if session else None,
        title=title,
        approver=TerminalApprover(runtime.store) if on_terminal() and text != ("-",) else None,
        surface="cli",
        model=model if not session else None,
    )
    options = TurnOptions(model=model, mode=ApprovalMode(approve) if approve else None)
    result: TurnResult | None = None
    printer = Printer(quiet=as_json)
    try:
        for event in agent.stream(message, options):
            printer.show(event)
            if isinstance(event, TurnFinished):
                result = event.result
    finally:
        printer.end()
        runtime.close()
    assert result is not None, "a turn that raises nothing ends with TurnFinished"
    if as_json:
        print_json({name: value for name, value in asdict(result).items() if name != "messages"})
    else:
        used = f"{result.usage.prompt} tokens in, {result.usage.completion} out"
        note(f"{result.model} · session {result.session_id} · {used}")
        for line in result.persisted:
            note(line)
    if result.status not in (TurnStatus.COMPLETE, TurnStatus.LIMIT):
        raise SystemExit(1)


class Printer:
    """Writes a turn's events as they come: the answer to stdout, one line for the rest to stderr."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._in_line = False

    def show(self, event: Event) -> None:
        """Write one event."""
        match event:
            case TextDelta(text) if not self._quiet:
                # A stream may cut between any two characters, so only control characters are dealt with.
                click.echo(terminal_text(text), nl=False)
                self._in_line = not text.endswith("\n") if text else self._in_line
            case Notice(text):
                self._say(text)
            case ToolStarted(call):
                self._say(f"→ {call.name} {_short(call.arguments)}")
            case ToolFinished(call, result):
                self._say(f"{'✗' if result.is_error else '✓'} {call.name} {_short(result.note or result.content)}")
            case _:
                pass

    def end(self) -> None:
        """Finish a line of the answer that is still open."""
        if self._in_line:
            click.echo()
            self._in_line = False

    def _say(self, text: str) -> None:
        self.end()
        note(terminal_text(text))


class TerminalApprover:
    """Asks on the terminal. The answer goes into the row, where one from elsewhere may already stand."""

    surface = "terminal"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._closed: dict[str, threading.Event] = {}

    def open(self, request: ApprovalRequest) -> None:
        """Show the question and read the answer in a thread of its own, so that the turn can be interrupted."""
        closed = self._closed[request.id] = threading.Event()
        note("\n" + question_text(request))
        threading.Thread(target=self._read, args=(request, closed), name="hermes-question", daemon=True).start()

    def close(self, request: ApprovalRequest) -> None:
        """Say how it ended when somebody else answered."""
        self._closed.pop(request.id, threading.Event()).set()
        if request.answered_by != self.surface:
            note(f"\n{request.tool}: {request.state} ({request.answered_by or 'time'})")

    def _read(self, request: ApprovalRequest, closed: threading.Event) -> None:
        while not closed.is_set():
            click.echo("Run it? [y/n] ", nl=False, err=True)
            line = _line(closed)
            if line is None:
                return
            word = line.strip().lower()
            if word in ("y", "yes"):
                state = ApprovalState.APPROVED
            elif word in ("n", "no") or not line:  # an empty read is the end of input: nobody is there
                state = ApprovalState.DENIED
            else:
                continue
            self._store.approvals.answer(request.id, state, self.surface, request.args_hash)
            return


def _line(closed: threading.Event) -> str | None:
    """Read a line, or return None as soon as the question is closed, so that no later input is swallowed."""
    try:
        # Only POSIX can wait for a terminal and for something else at the same time.
        import select  # noqa: PLC0415

        while not select.select([sys.stdin], [], [], 0.1)[0]:
            if closed.is_set():
                return None
    except (ImportError, OSError, ValueError):
        pass
    return sys.stdin.readline()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
