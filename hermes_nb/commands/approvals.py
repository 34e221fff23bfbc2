"""``hermes-nb approvals list|approve|deny``: answer from a terminal what a running turn asks."""

from __future__ import annotations

import json

import click

from hermes_nb import app
from hermes_nb.commands.output import as_json_option, note, print_json, when
from hermes_nb.core.errors import ConfigError, StoreError
from hermes_nb.core.names import ApprovalState
from hermes_nb.core.types import ApprovalRequest
from hermes_nb.store.approvals import Allowed
from hermes_nb.store.store import Store
from hermes_nb.tools.preview import readable

SURFACE = "command line"


@click.group()
def approvals() -> None:
    """Questions that running turns wait for. ID is the id or its beginning."""


@approvals.command("list")
@as_json_option
def list_(as_json: bool) -> None:
    """List the questions that wait for an answer."""
    with app.open_store() as store:
        store.approvals.reap()
        waiting = store.approvals.pending()
    if as_json:
        print_json([_data(request) for request in waiting])
        return
    if not waiting:
        note("No question waits for you.")
    for request in waiting:
        click.echo(question_text(request))
        click.echo()


@approvals.command("approve")
@click.argument("id")
def approve(id: str) -> None:
    """Let the call run, exactly as it was shown."""
    _answer(id, ApprovalState.APPROVED)


@approvals.command("deny")
@click.argument("id")
def deny(id: str) -> None:
    """Refuse the call."""
    _answer(id, ApprovalState.DENIED)


@approvals.command("allow")
@click.argument("hash")
def allow(hash: str) -> None:
    """Let a passage into prompts that the injection scan kept out. HASH is the one that its notice shows."""
    with app.open_store() as store:
        try:
            Allowed(store.rules, store.user).allow(hash)
        except StoreError as exc:
            raise click.ClickException(str(exc)) from exc
    note("Allowed. New sessions see it; it is asked again when the text changes.")


def question_text(request: ApprovalRequest) -> str:
    """Return a question for a terminal: what would run, and why it is asked."""
    lines = [f"{request.id}  {request.tool}  {when(request.asked)}", f"  asks because: {request.reason}"]
    if request.diff:
        lines += ["  " + line for line in readable(request.diff).splitlines()]
    else:
        for name, value in request.arguments.items():
            text = readable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            lines += (
                [f"  {name}:", *("    " + line for line in text.splitlines())]
                if "\n" in text
                else [f"  {name}: {text}"]
            )
    return readable("\n".join(lines))


def _answer(id: str, state: ApprovalState) -> None:
    with app.open_store() as store:
        request = _find(store, id)
        # Bound to the arguments that this process read: a row that changed since is not answered.
        if not store.approvals.answer(request.id, state, SURFACE, request.args_hash):
            final = store.approvals.get(request.id)
            raise ConfigError(f"{request.id} is {final.state} already, answered by {final.answered_by or 'time'}.")
    click.echo(f"{request.id} {request.tool}: {state}")


def _find(store: Store, id: str) -> ApprovalRequest:
    store.approvals.reap()
    found = [request for request in store.approvals.pending() if request.id.startswith(id)]
    if len(found) == 1:
        return found[0]
    problem = (
        f"{len(found)} waiting questions begin with {id!r}" if found else f"No waiting question begins with {id!r}"
    )
    raise ConfigError(f"{problem}. See: hermes-nb approvals list")


def _data(request: ApprovalRequest) -> dict[str, object]:
    return {
        "id": request.id,
        "root_id": request.root_id,
        "tool": request.tool,
        "arguments": dict(request.arguments),
        "args_hash": request.args_hash,
        "reason": request.reason,
        "diff": request.diff,
        "asked": request.asked,
        "expires_at": request.expires_at,
    }
