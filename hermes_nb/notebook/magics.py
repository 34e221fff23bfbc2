"""``%hermes``: a person's commands on sessions, questions, memory and background turns.

Each subcommand is one small function that returns Markdown; the magic only finds and shows it.
"""

from __future__ import annotations

import difflib
import shlex
import time
from collections.abc import Callable

from IPython.core.error import UsageError
from IPython.display import display

from hermes_nb.core.config import Settings, set_value
from hermes_nb.core.errors import ConfigError, HermesError
from hermes_nb.core.inert import inert
from hermes_nb.core.names import ApprovalState
from hermes_nb.core.types import Session
from hermes_nb.notebook import look
from hermes_nb.notebook.approvers import question
from hermes_nb.notebook.arguments import ArgumentsInvalid
from hermes_nb.notebook.cell import CellRunner
from hermes_nb.notebook.display import short_traceback
from hermes_nb.notebook.frontend import notebook_path
from hermes_nb.notebook.memory_command import memory_command
from hermes_nb.tools.toolsets import resolve

Command = Callable[[CellRunner, list[str]], str]

_NEW_PREFIX = "The prefix is built anew, so the model's cache begins anew too."


def hermes_magic(runner: CellRunner, line: str, cell: str | None) -> None:
    """Run ``%hermes LINE``, or a ``%%hermes`` cell whose event loop is blocked."""
    if cell is not None:
        runner.run_magic(line, cell)
        return
    try:
        before = dict(runner.sessions.current)
        text = _command(runner, line)
        _show(text, None if runner.sessions.current == before else runner.sessions.look())
    except (ArgumentsInvalid, ConfigError) as exc:
        raise UsageError(str(exc)) from None
    except HermesError as exc:
        exc.__dict__["_render_traceback_"] = short_traceback(exc)
        raise


def _command(runner: CellRunner, line: str) -> str:
    name, _, rest = line.strip().partition(" ")
    if name == "memory":
        # What is to be remembered is plain text; its quotes are not a shell's.
        return memory_command(runner, rest.strip())
    try:
        words = shlex.split(line)
    except ValueError as exc:
        raise ArgumentsInvalid(f"The line cannot be read ({exc}). Close the quotes.") from exc
    if not words:
        return status(runner, [])
    command = COMMANDS.get(words[0])
    if command is None:
        near = difflib.get_close_matches(words[0], COMMANDS, n=1, cutoff=0.5)
        hint = f" Did you mean %hermes {near[0]}?" if near else ""
        raise ArgumentsInvalid(f"There is no %hermes {words[0]}.{hint} All commands: %hermes help")
    return command(runner, words[1:])


def _show(markdown: str, session: Session | None) -> None:
    """Display a command's answer. When it changed the notebook's session, the saved file says so."""
    plain = markdown.replace("`", "").replace("**", "")
    metadata = {} if session is None else {"hermes_nb": {"session": session.id, "at": int(time.time())}}
    # Titles, messages and what is remembered are texts of others.
    display({"text/plain": plain, "text/markdown": inert(markdown)}, raw=True, metadata=metadata)


def _session(runner: CellRunner) -> Session | None:
    return runner.sessions.look()


def _need_session(runner: CellRunner) -> Session:
    found = runner.sessions.here()
    if found is None:
        raise ArgumentsInvalid("This notebook has no session yet: ask something with %%hermes, or %hermes resume.")
    return found


def _count(words: list[str], otherwise: int) -> int:
    if not words:
        return otherwise
    if len(words) > 1 or not words[0].isdecimal() or not int(words[0]):
        raise ArgumentsInvalid(f"{' '.join(words)!r} is not a number of 1 or more.")
    return int(words[0])


def _cells(*columns: str) -> str:
    return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in columns) + " |"


def _ago(moment: float) -> str:
    seconds = max(0.0, time.time() - moment)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "now"


# -- subcommands ----------------------------------------------------------------------------------------


def status(runner: CellRunner, _words: list[str]) -> str:
    """Where you are and what to do next."""
    lines = [f"**hermes-nb** · {runner.runtime.endpoint_line()}"]
    session = _session(runner)
    if session is None:
        lines.append("This notebook has no session yet. Ask in a cell that starts with `%%hermes`.")
    else:
        title = session.title or "untitled"
        lines.append(f"Session “{title}” `{session.id}` · {session.message_count} messages")
    waiting = runner.runtime.store.approvals.pending()
    if waiting:
        lines.append(f"**{len(waiting)} question(s) wait for you**: `%hermes approvals`")
    running = [t for t in runner.turns.values() if t.background]
    if running:
        lines.append(f"{len(running)} turn(s) in the background: `%hermes ps`, `%hermes stop`")
    lines += runner.runtime.store.notices
    lines.append("Next: `%%hermes?` for flags and examples · `%hermes sessions` · `%hermes help`")
    return "\n\n".join(lines)


def new(runner: CellRunner, words: list[str]) -> str:
    """[TITLE] · the next cell begins a new session."""
    notebook = notebook_path(runner.shell)
    session = runner.runtime.store.create_session(
        source="notebook", title=" ".join(words) or None, notebook=None if notebook is None else str(notebook)
    )
    runner.sessions.go_on_with(session)
    return f"New session `{session.id}`. Your next `%%hermes` cell begins it."


def resume(runner: CellRunner, words: list[str]) -> str:
    """SESSION · this notebook continues that session (id, start of an id, or title)."""
    if not words:
        return sessions(runner, []) + "\n\nContinue one with `%hermes resume SESSION`."
    store = runner.runtime.store
    session = store.find_session(" ".join(words))
    runner.sessions.go_on_with(session)
    said = []
    for row in store.rows(session.id)[-4:]:
        if row.role in ("user", "assistant") and row.text.strip():
            text = " ".join(row.text.split())
            said.append(f"> **{row.role}** {text if len(text) < 300 else text[:300] + '…'}")
    return "\n\n".join([f"Continuing “{session.title or 'untitled'}” `{session.id}`.", *said])


def sessions(runner: CellRunner, words: list[str]) -> str:
    """[N] · your last sessions."""
    rows = runner.runtime.store.sessions(limit=_count(words, 20))
    if not rows:
        return "There are no sessions yet. Ask in a cell that starts with `%%hermes`."
    here = _session(runner)
    table = [_cells("session", "title", "from", "messages", "last active"), "|---|---|---|--:|---|"]
    for row in rows:
        mark = " ◀" if here is not None and row.root_id == here.root_id else ""
        count, seen = str(row.message_count), _ago(row.last_active)
        table.append(_cells(f"`{row.id}`{mark}", row.title or "", row.source, count, seen))
    return "\n".join(table)


def undo(runner: CellRunner, words: list[str]) -> str:
    """[N] · take the last N of your messages back, with everything after them."""
    turns = _count(words, 1)
    count = runner.runtime.store.undo(_need_session(runner).id, turns)
    return f"{count} message(s) taken back; `%hermes redo` brings them again." if count else "Nothing to take back."


def redo(runner: CellRunner, _words: list[str]) -> str:
    """· bring back what the last undo took."""
    count = runner.runtime.store.redo(_need_session(runner).id)
    return f"{count} message(s) are back." if count else "Nothing was taken back."


def ps(runner: CellRunner, _words: list[str]) -> str:
    """· background turns of this kernel."""
    running = [turn for turn in runner.turns.values() if turn.background]
    if not running:
        return "No turn runs in the background."
    lines = [_cells("id", "question"), "|---|---|"]
    return "\n".join([*lines, *(_cells(f"`{turn.id}`", turn.question[:80]) for turn in running)])


def stop(runner: CellRunner, words: list[str]) -> str:
    """[ID] · stop background turns."""
    stopped = runner.stop(words[0] if words else None)
    return "Stopped " + ", ".join(f"`{id}`" for id in stopped) if stopped else "No turn runs in the background."


def approvals(runner: CellRunner, words: list[str]) -> str:
    """[approve|deny ID | allow HASH] · questions that wait for you, in any notebook."""
    answers = runner.runtime.store.approvals
    if words and words[0] == "allow" and len(words) == 2:
        runner.runtime.allowed().allow(words[1])
        return "Allowed. New sessions see the passage; it is asked again when its text changes."
    if words and words[0] in ("approve", "deny") and len(words) == 2:
        state = ApprovalState.APPROVED if words[0] == "approve" else ApprovalState.DENIED
        found = [row for row in answers.pending() if row.id.startswith(words[1])]
        if len(found) != 1:
            raise ArgumentsInvalid(f"{len(found)} waiting questions begin with {words[1]!r}. See %hermes approvals")
        done = answers.answer(found[0].id, state, "notebook", found[0].args_hash)
        return f"{found[0].tool}: {state.value}" if done else "It was answered elsewhere first."
    if words:
        raise ArgumentsInvalid("Use: %hermes approvals, or %hermes approvals approve|deny ID, or allow HASH")
    waiting = answers.pending()
    if not waiting:
        return "No question waits for you."
    parts = []
    for row in waiting:
        asked, body = question(row)
        parts.append(f"`{row.id}` {asked}\n\n```\n{body}\n```")
    return "\n\n".join(parts) + "\n\nAnswer with `%hermes approvals approve ID` or `deny ID`."


def memory(runner: CellRunner, words: list[str]) -> str:
    """[edit | add TEXT | replace OLD => NEW | remove TEXT | accept ID | reject ID] · what is remembered; `-u`: you."""
    return memory_command(runner, " ".join(words))


def tools(runner: CellRunner, words: list[str]) -> str:
    """[only NAME… | without NAME…] · the tools of this session; a change builds a new prefix."""
    agent = runner.agent_here()
    if words:
        if words[0] not in ("only", "without") or len(words) == 1:
            raise ArgumentsInvalid("Use: %hermes tools, %hermes tools only NAME…, or %hermes tools without NAME…")
        names = words[1:]
        chosen = resolve(agent.registry, names if words[0] == "only" else None, names if words[0] == "without" else ())
        if chosen.warnings:
            raise ArgumentsInvalid(" ".join(chosen.warnings))
        agent.use(selection=chosen)
    rows = [_cells("tool", "toolset", "what it does"), "|---|---|---|"]
    for tool in agent.selection.sent:
        rows.append(_cells(f"`{tool.name}`", tool.toolset, tool.description.partition(". ")[0]))
    left_out = [f"- {reason}" for reason in agent.selection.masked.values()]
    said = ["", _NEW_PREFIX] if words else []
    return "\n".join([*rows, "", *left_out, *said])


def model(runner: CellRunner, words: list[str]) -> str:
    """[NAME] · the model of this session; a change builds a new prefix."""
    if not words:
        session = _session(runner)
        used = f"This session uses `{session.model}`. " if session is not None and session.model else ""
        return used + runner.runtime.endpoint_line()
    endpoint = runner.agent_here().use(model=" ".join(words))
    return f"From the next turn on: `{endpoint.model}` at {endpoint.label}. {_NEW_PREFIX}"


def branch(runner: CellRunner, words: list[str]) -> str:
    """[TITLE] · go on in a copy of this session; the original stays as it is."""
    before = _need_session(runner)
    made = runner.runtime.store.branch(before.id, title=" ".join(words) or None)
    runner.sessions.go_on_with(made)
    return f"This notebook goes on in the branch `{made.id}` of `{before.id}`."


def config(runner: CellRunner, words: list[str]) -> str:
    """[KEY [VALUE]] · show or set settings."""
    home = runner.runtime.home
    if len(words) > 1:
        stored = set_value(home, words[0], " ".join(words[1:]))
        return f"`{stored.key}` = `{stored.shown}` in {home.config}. Sessions begun from now on use it."
    settings = Settings.load(home)
    if words:
        value = settings.value(words[0])
        return f"`{value.key}` = `{value.shown}` ({value.origin})"
    rows = [_cells("setting", "value", "from"), "|---|---|---|"]
    return "\n".join([*rows, *(_cells(f"`{v.key}`", v.shown, v.origin) for v in settings.values.values())])


def doctor(runner: CellRunner, _words: list[str]) -> str:
    """· check this installation."""
    return f"```\n{runner.doctor()}\n```"


def help_(_runner: CellRunner, _words: list[str]) -> str:
    """· this list."""
    lines = ["`%%hermes` asks the agent; `%%hermes?` shows its flags.", ""]
    for name, command in COMMANDS.items():
        lines.append(f"- `%hermes {name}` {(command.__doc__ or '').strip()}")
    return "\n".join(lines)


COMMANDS: dict[str, Command] = {
    "status": status,
    "new": new,
    "resume": resume,
    "sessions": sessions,
    "undo": undo,
    "redo": redo,
    "ps": ps,
    "stop": stop,
    "approvals": approvals,
    "memory": memory,
    "tools": tools,
    "model": model,
    "branch": branch,
    "usage": look.usage,
    "prefix": look.prefix,
    "context": look.context,
    "config": config,
    "doctor": doctor,
    "help": help_,
}
