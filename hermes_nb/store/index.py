"""Writing the two search tables: rows in, rows out. Knows no query.

Both tables are contentless, so SQLite cannot check a removal: it must repeat the very tokens of the insertion.
They are therefore always made from the stored row by the same function.
"""

from __future__ import annotations

import json
import sqlite3

from hermes_nb.store.tokeniser import TOKENISER, Tokens, content_text, tokens_of, tool_text

_ROW = """
SELECT m.id, m.wire, m.text, m.tool, m.role, s.user, s.source FROM messages m JOIN sessions s ON s.sid=m.sid
"""
VISIBLE_IN_INDEX = "m.status<3"
"""What the index holds: everything but undone rows."""


def scope_tokens(user: int, source: int, role: str) -> str:
    """Return the words by which a search is narrowed to a user, a source, a role."""
    return f"u{user} s{source} r{role}"


def add(connection: sqlite3.Connection, message_id: int, tokens: Tokens, scope: str) -> None:
    """Put one row into the index, inside the transaction that stores or restores it."""
    connection.execute(
        "INSERT INTO w(rowid, body, tool, scope) VALUES(?, ?, ?, ?)", (message_id, tokens.body, tokens.tool, scope)
    )
    if tokens.characters:
        connection.execute("INSERT INTO c(rowid, g) VALUES(?, ?)", (message_id, tokens.characters))


def add_stored(connection: sqlite3.Connection, where: str, parameters: tuple[object, ...]) -> None:
    """Put stored rows back into the index; ``where`` names them in terms of ``m`` and ``s``."""
    for message_id, tokens, scope in _stored(connection, where, parameters):
        add(connection, message_id, tokens, scope)


def remove_stored(connection: sqlite3.Connection, where: str, parameters: tuple[object, ...]) -> None:
    """Take stored rows out of the index, before they are hidden or deleted."""
    for message_id, tokens, scope in _stored(connection, where, parameters):
        connection.execute(
            "INSERT INTO w(w, rowid, body, tool, scope) VALUES('delete', ?, ?, ?, ?)",
            (message_id, tokens.body, tokens.tool, scope),
        )
        if tokens.characters:
            connection.execute("INSERT INTO c(c, rowid, g) VALUES('delete', ?, ?)", (message_id, tokens.characters))


def rebuild(connection: sqlite3.Connection) -> None:
    """Empty both tables and fill them from the rows (about 0.3 ms a row)."""
    for table in ("w", "c"):
        connection.execute(f"INSERT INTO {table}({table}) VALUES('delete-all')")
    add_stored(connection, "1", ())
    for table in ("w", "c"):
        connection.execute(f"INSERT INTO {table}({table}) VALUES('optimize')")
    connection.execute("INSERT OR REPLACE INTO meta(key, value) VALUES('tokeniser', ?)", (TOKENISER,))


def row_tokens(wire: str, text: str | None, tool: str | None) -> Tokens:
    """Return the tokens of a stored row."""
    value = json.loads(wire)
    return tokens_of(content_text(value) if text is None else text, tool_text(value, tool))


def _stored(
    connection: sqlite3.Connection, where: str, parameters: tuple[object, ...]
) -> list[tuple[int, Tokens, str]]:
    rows = connection.execute(f"{_ROW} WHERE {VISIBLE_IN_INDEX} AND ({where})", parameters).fetchall()
    return [
        (message_id, row_tokens(wire, text, tool), scope_tokens(user, source, role))
        for message_id, wire, text, tool, role, user, source in rows
    ]
