"""``hermes-nb doctor``."""

from __future__ import annotations

import os

import click

from hermes_nb import app
from hermes_nb.agent.embedded.engine import available
from hermes_nb.commands.output import as_json_option, print_json
from hermes_nb.core.config import Settings
from hermes_nb.core.paths import Home
from hermes_nb.doctor import as_data, as_text, blocked, examine


@click.command()
@as_json_option
def doctor(as_json: bool) -> None:
    """Check this installation; each line says ok, warn or blocked, and the next step."""
    home = Home.find()
    checks = examine(
        home,
        # Not through the runtime: it opens the store, and doctor must speak when that fails.
        endpoint=lambda: app.Endpoints(home, Settings.load(home).model, os.environ).primary(),
        embedded_problem=lambda: available(home),
    )
    if as_json:
        print_json(as_data(checks))
    else:
        click.echo(as_text(checks))
    if blocked(checks):
        raise SystemExit(1)
