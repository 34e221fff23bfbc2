"""``%hermes memory``: live entries beside this session's frozen ones, staged edits, and edits by hand.

Only a person decides here: inside a tool call of the model every subcommand that changes something is refused.
"""

from __future__ import annotations

import json
from datetime import date

from hermes_nb.core.secrets import mask
from hermes_nb.core.types import Session
from hermes_nb.notebook import memory_form
from hermes_nb.notebook.arguments import ArgumentsInvalid
from hermes_nb.notebook.cell import CellRunner
from hermes_nb.notebook.frontend import AnswerBy, front_end
from hermes_nb.prompt.builder import split_parts
from hermes_nb.store.memory import MEMORY, USER, MemoryOutcome
from hermes_nb.store.memory_text import entries_shown, usage

USAGE = (
    "Use: %hermes memory, or %hermes memory edit | add [-u] TEXT | replace [-u] OLD => NEW | remove [-u] TEXT"
    " | accept ID | reject ID. -u means the profile of you (USER.md)."
)
_NAMES = {MEMORY: "Memory", USER: "About you"}
_LATER = "from the next session or compaction"


def memory_command(runner: CellRunner, line: str) -> str:
    """Run ``%hermes memory LINE`` and return Markdown. Raises ArgumentsInvalid and StoreError."""
    verb, _, rest = line.partition(" ")
    rest = rest.strip()
    if not verb:
        return overview(runner)
    if verb not in ("edit", "add", "replace", "remove", "accept", "reject") or (not rest and verb != "edit"):
        raise ArgumentsInvalid(USAGE)
    runner.refuse_nested()
    if verb == "edit":
        return _form(runner)
    if verb in ("accept", "reject"):
        return _decide(runner, verb, rest)
    target = MEMORY
    if rest.startswith("-u "):
        target, rest = USER, rest[3:].strip()
    store = runner.runtime.memory()
    if verb == "add":
        return said(store.add(target, _unquoted(rest)))
    if verb == "remove":
        return said(store.remove(target, _unquoted(rest)))
    old, arrow, new = rest.partition("=>")
    if not arrow:
        raise ArgumentsInvalid(USAGE)
    return said(store.replace(target, _unquoted(old), _unquoted(new)))


def overview(runner: CellRunner) -> str:
    """Return live entries, what this session's prompt holds of them, and what waits for a yes."""
    store, session = runner.runtime.memory(), runner.sessions.look()
    frozen = _frozen(runner, session)
    lines: list[str] = []
    for target, title in _NAMES.items():
        live = store.entries(target)
        used = usage(len("\n§\n".join(live)), store.limit(target))
        lines += [f"**{title}** (`{store.path(target).name}`, {used})", ""]
        shown = None if frozen is None else frozen[target]
        rows = [_row(entry, shown, session) for entry in live]
        rows += [
            f"| ~~{_cell(entry)}~~ | not on disk any more; in this session's prompt until it ends or is compacted |"
            for entry in shown or ()
            if entry not in [mask(one) for one in live]
        ]
        lines += ["| entry | in effect |", "|---|---|", *rows] if rows else ["Nothing is remembered yet."]
        lines.append("")
    lines += [f"- {warning}" for warning in store.warnings()]
    for edit in runner.runtime.store.staged.list(kind="memory"):
        lines += [f"Waits for your yes: `{edit.id}` ({edit.action}, {edit.target})", f"```diff\n{edit.diff}\n```", ""]
    lines.append("Edit: `%hermes memory edit` (a form), or `add`, `replace OLD => NEW`, `remove`; `accept`, `reject`.")
    return "\n".join(lines)


def said(outcome: MemoryOutcome) -> str:
    """Return what an edit did, for people. Raises ArgumentsInvalid when it was refused."""
    if not outcome.success:
        listed = [f"- {entry}" for entry in (outcome.matches or outcome.current_entries or ())]
        raise ArgumentsInvalid("\n".join([outcome.message, *listed]))
    lines = [outcome.message + (f" In effect {_LATER}." if outcome.changed else "")]
    lines += [f"- was: {old}\n- now: {new}" for old, new in outcome.replaced]
    lines += [f"- removed: {entry}" for entry in outcome.removed]
    return "\n".join([*lines, *outcome.warnings])


def _row(entry: str, shown: tuple[str, ...] | None, session: Session | None) -> str:
    if shown is not None and session is not None and mask(entry) in shown:
        return f"| {_cell(entry)} | in this session's prompt since {date.fromtimestamp(session.started).isoformat()} |"
    return f"| {_cell(entry)} | {_LATER} |"


def _frozen(runner: CellRunner, session: Session | None) -> dict[str, tuple[str, ...]] | None:
    """Return the entries in the frozen prompt of the notebook's session; None when it has none yet."""
    prefix = None if session is None else runner.runtime.store.prefix(session.id)
    if prefix is None:
        return None
    parts = split_parts(json.loads(prefix.system)["content"])
    return {target: entries_shown(parts.get(target, "")) for target in _NAMES}


def _decide(runner: CellRunner, verb: str, ref: str) -> str:
    staged = runner.runtime.store.staged
    edit = staged.find(ref)
    if verb == "accept":
        return said(staged.accept(edit.id, runner.runtime.memory()))
    return (
        f"Rejected `{edit.id}`; nothing was written." if staged.reject(edit.id) else "It was decided elsewhere first."
    )


def _form(runner: CellRunner) -> str:
    if front_end(runner.shell).answer_by is not AnswerBy.WIDGET:
        raise ArgumentsInvalid("There is no form here. " + USAGE)
    memory_form.show(runner.runtime.memory(), runner.runtime.store.staged, overview_text=lambda: overview(runner))
    return "Changes are written at once; running sessions see them after a compaction, new ones from the start."


def _unquoted(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")
