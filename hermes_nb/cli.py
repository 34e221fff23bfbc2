"""``hermes-nb``: finds the command and turns errors into one line. Commands stand in ``commands/``."""

from __future__ import annotations

import sys

import click

from hermes_nb import __version__
from hermes_nb.commands.approvals import approvals
from hermes_nb.commands.ask import ask
from hermes_nb.commands.config import config
from hermes_nb.commands.doctor import doctor
from hermes_nb.commands.enable import enable
from hermes_nb.commands.lab import demo, lab
from hermes_nb.commands.memory import memory
from hermes_nb.commands.model import model
from hermes_nb.commands.sessions import search, sessions
from hermes_nb.core.errors import Cancelled, HermesError

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hermes-nb")
def cli() -> None:
    """An agent that lives in your notebook. Settings and conversations lie in HERMES_NB_HOME."""


for command in (ask, lab, demo, enable, config, doctor, sessions, search, approvals, memory, model):
    cli.add_command(command)


def main() -> None:
    """Run the command line."""
    try:
        status = cli.main(prog_name="hermes-nb", standalone_mode=False)
    except click.ClickException as exc:
        exc.show()
        sys.exit(exc.exit_code)
    except (click.Abort, KeyboardInterrupt, Cancelled):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of a pipe has gone (``| head``); Python would complain once more while closing stdout.
        sys.stderr.close()
        sys.exit(1)
    except HermesError as exc:
        click.echo(f"hermes-nb: {exc}", err=True)
        sys.exit(1)
    sys.exit(status if isinstance(status, int) else 0)
