"""How commands print: tables for people, JSON for programs, one line for an error."""

from __future__ import annotations

import json
import sys
import time
import unicodedata
from collections.abc import Sequence
from typing import Any

import click

from hermes_nb.core.terminal import terminal_text as terminal_text

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(value: Any) -> None:
    """Print ``value`` as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; line breaks and control characters in cells become blanks."""
    cells = [[_one_line(cell) for cell in row] for row in [headings, *rows]]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(headings))]
    for row in cells:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(padded).rstrip())


def when(moment: float | None) -> str:
    """Return a moment in the user's time zone."""
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def note(text: str) -> None:
    """Print a line that is not the result, so that output can be piped."""
    click.echo(text, err=True)


def on_terminal() -> bool:
    """Say whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _one_line(text: str) -> str:
    return "".join(" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text)


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
