"""``hermes-nb memory``: what is remembered, edits by hand, and the yes or no to staged ones."""

from __future__ import annotations

import os

import click

from hermes_nb import app
from hermes_nb.commands.output import as_json_option, note, print_json, terminal_text, when
from hermes_nb.core.errors import ConfigError
from hermes_nb.store.memory import MEMORY, USER, MemoryOutcome
from hermes_nb.store.memory_text import size, usage
from hermes_nb.tools.kernel import IN_TOOL_CALL

_of_user = click.option("-u", "--user", "of_user", is_flag=True, help="The profile of you (USER.md).")


@click.group()
def memory() -> None:
    """What every session knows. New sessions see a change; running ones after a compaction."""


@memory.command("list")
@as_json_option
def list_(as_json: bool) -> None:
    """List the entries as they are on disk."""
    runtime = app.runtime()
    store = runtime.memory()
    data = {
        target: {
            "file": str(store.path(target)),
            "used": size(store.entries(target)),
            "limit": store.limit(target),
            "entries": list(store.entries(target)),
        }
        for target in (MEMORY, USER)
    }
    waiting = len(runtime.store.staged.list(kind="memory"))
    if as_json:
        print_json({**data, "pending": waiting})
        return
    for target, found in data.items():
        click.echo(f"{target}  {usage(found['used'], found['limit'])}  {found['file']}")
        for entry in found["entries"]:
            click.echo(terminal_text("  - " + entry.replace("\n", "\n    ")))
    for warning in store.warnings():
        note(warning)
    if waiting:
        note(f"{waiting} edits wait for your yes: hermes-nb memory pending")


@memory.command("add")
@click.argument("text")
@_of_user
@as_json_option
def add(text: str, of_user: bool, as_json: bool) -> None:
    """Remember TEXT."""
    _done(app.runtime().memory().add(USER if of_user else MEMORY, text), as_json)


@memory.command("remove")
@click.argument("text")
@_of_user
@as_json_option
def remove(text: str, of_user: bool, as_json: bool) -> None:
    """Forget the entry that contains TEXT."""
    _done(app.runtime().memory().remove(USER if of_user else MEMORY, text), as_json)


@memory.command("pending")
@as_json_option
def pending(as_json: bool) -> None:
    """List the edits that wait for your yes, with their diffs."""
    waiting = app.runtime().store.staged.list(kind="memory")
    if as_json:
        print_json(
            [
                {
                    "id": edit.id,
                    "target": edit.target,
                    "action": edit.action,
                    "diff": edit.diff,
                    "reason": edit.reason,
                    "created": edit.created,
                    "session": edit.session_id,
                }
                for edit in waiting
            ]
        )
        return
    if not waiting:
        note("No edit waits for you.")
    for edit in waiting:
        click.echo(f"{edit.id}  {edit.action} {edit.target}  {when(edit.created)}")
        click.echo(terminal_text(edit.diff) + "\n")


@memory.command("accept")
@click.argument("id")
@as_json_option
def accept(id: str, as_json: bool) -> None:
    """Write a staged edit. ID is the id or its beginning."""
    _refuse_tool_calls()
    runtime = app.runtime()
    edit = runtime.store.staged.find(id)
    _done(runtime.store.staged.accept(edit.id, runtime.memory()), as_json)


@memory.command("reject")
@click.argument("id")
@as_json_option
def reject(id: str, as_json: bool) -> None:
    """Drop a staged edit."""
    _refuse_tool_calls()
    staged = app.runtime().store.staged
    edit = staged.find(id)
    if not staged.reject(edit.id):
        raise ConfigError(f"{edit.id} was decided elsewhere first.")
    if as_json:
        print_json({"id": edit.id, "state": "rejected"})
    else:
        click.echo(f"{edit.id}: rejected")


def _refuse_tool_calls() -> None:
    if os.environ.get(IN_TOOL_CALL):
        raise ConfigError("A tool call of the model cannot decide about staged edits; run this yourself.")


def _done(outcome: MemoryOutcome, as_json: bool) -> None:
    if as_json:
        print_json(outcome.as_dict())
    elif outcome.success:
        click.echo(terminal_text(outcome.message))
        for old, new in outcome.replaced:
            click.echo(terminal_text(f"- {old}\n+ {new}"))
        for entry in outcome.removed:
            click.echo(terminal_text(f"- {entry}"))
    for warning in outcome.warnings:
        note(terminal_text(warning))
    if not outcome.success:
        if not as_json:
            listed = "".join(f"\n- {entry}" for entry in (outcome.matches or outcome.current_entries or ()))
            raise ConfigError(terminal_text(outcome.message + listed))
        raise SystemExit(1)
