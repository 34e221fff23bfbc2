"""``hermes-nb sessions list|show|rename|archive|delete`` and ``hermes-nb search``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from hermes_nb import app
from hermes_nb.commands.output import as_json_option, note, on_terminal, print_json, print_table, terminal_text, when
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.types import Session


@click.group()
def sessions() -> None:
    """List, read and change stored conversations. SESSION is an id, its beginning, or a title."""


@sessions.command("list")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many.")
@click.option("--archived", is_flag=True, help="The archived ones too.")
@as_json_option
def list_(limit: int, archived: bool, as_json: bool) -> None:
    """List conversations, the last active first."""
    with app.open_store() as store:
        found = store.sessions(limit=limit, archived=archived)
    if as_json:
        print_json([_data(session) for session in found])
        return
    if not found:
        note("There is no session yet. Begin one: hermes-nb ask TEXT, or %%hermes in a notebook.")
        return
    print_table(
        ("SESSION", "LAST ACTIVE", "MESSAGES", "MODEL", "TITLE"),
        [(s.id, when(s.last_active), str(s.message_count), s.model or "", s.title or "") for s in found],
    )


@sessions.command("show")
@click.argument("session")
@as_json_option
def show(session: str, as_json: bool) -> None:
    """Print a conversation; with --json the messages exactly as they are sent to a model."""
    with app.open_store() as store:
        found = store.find_session(session)
        if as_json:
            print_json({"session": _data(found), "messages": store.messages(found.id)})
            return
        rows = store.rows(found.id)
    note(f"{found.id}  {found.title or 'untitled'}")
    for row in rows:
        name = f"{row.role} {row.tool_name}" if row.tool_name else row.role
        click.echo(click.style(f"\n{name}  {when(row.timestamp)}", bold=True))
        click.echo(terminal_text(row.text))


@sessions.command("rename")
@click.argument("session")
@click.argument("title")
def rename(session: str, title: str) -> None:
    """Give a conversation another title."""
    if not title.strip():
        raise ConfigError("A title must not be empty.")
    with app.open_store() as store:
        found = store.find_session(session)
        store.update_session(found.id, title=title.strip(), title_by="user")
    click.echo(f"{found.id}  {title.strip()}")


@sessions.command("archive")
@click.argument("session")
@click.option("--undo", is_flag=True, help="Take it back into the list.")
def archive(session: str, undo: bool) -> None:
    """Hide a conversation from the list; nothing is deleted."""
    with app.open_store() as store:
        found = store.find_session(session)
        store.update_session(found.id, archived=not undo)
    click.echo(f"{found.id} is {'back in the list' if undo else 'archived'}.")


@sessions.command("delete")
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(session: str, yes: bool) -> None:
    """Delete a conversation for good."""
    with app.open_store() as store:
        found = store.find_session(session)
        if not yes:
            question = f"Delete {found.id} ({found.title or 'untitled'}, {found.message_count} messages) for good?"
            if not on_terminal():
                raise ConfigError(f"{question} Say so with --yes.")
            if not click.confirm(question, err=True):
                raise ConfigError("Nothing was deleted.")
        store.delete_session(found.id)
    click.echo(f"{found.id} is deleted.")


@click.command()
@click.argument("query")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@click.option("--sort", type=click.Choice(["rank", "newest", "oldest"]), default="rank", show_default=True)
@click.option("--source", "sources", multiple=True, help="Only conversations that began there; may be repeated.")
@as_json_option
def search(query: str, limit: int, sort: str, sources: tuple[str, ...], as_json: bool) -> None:
    """Find what was said, in all your conversations."""
    with app.open_store() as store:
        found = store.search(query, limit, sort, list(sources) or None)
    if as_json:
        print_json({"hits": [asdict(hit) for hit in found.hits], "notice": found.notice})
        return
    if found.notice:
        note(found.notice)
    elif not found.hits:
        note("Nothing was found.")
    if found.hits:
        print_table(
            ("SESSION", "WHEN", "WHO", "TEXT"),
            [(hit.session_id, when(hit.timestamp), hit.role, hit.snippet) for hit in found.hits],
        )


def _data(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "root_id": session.root_id,
        "parent_id": session.parent_id,
        "parent_kind": session.parent_kind,
        "title": session.title,
        "source": session.source,
        "model": session.model,
        "notebook": session.notebook,
        "cwd": session.cwd,
        "started": session.started,
        "last_active": session.last_active,
        "ended": session.ended,
        "end_reason": session.end_reason,
        "archived": session.archived,
        "message_count": session.message_count,
    }
