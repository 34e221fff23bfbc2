"""``hermes-nb doctor``."""

from __future__ import annotations

import click

from hermes_nb import app
from hermes_nb.commands.output import as_json_option, print_json
from hermes_nb.doctor import as_data, as_text, blocked


@click.command()
@as_json_option
def doctor(as_json: bool) -> None:
    """Check this installation; each line says ok, warn or blocked, and the next step."""
    checks = app.examine()
    if as_json:
        print_json(as_data(checks))
    else:
        click.echo(as_text(checks))
    if blocked(checks):
        raise SystemExit(1)
