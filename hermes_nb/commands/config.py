"""``hermes-nb config get|set|path``."""

from __future__ import annotations

import click

from hermes_nb.commands.output import as_json_option, print_json, print_table
from hermes_nb.core.config import HIDDEN, Settings, Value, set_value, unset_value
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.paths import Home


@click.group()
def config() -> None:
    """Show and change settings."""


@config.command("path")
def path() -> None:
    """Print where the settings are kept."""
    click.echo(Home.find().config)


@config.command("get")
@click.argument("key", required=False)
@as_json_option
def get(key: str | None, as_json: bool) -> None:
    """Print one setting, or all with where each comes from."""
    settings = Settings.load(Home.find())
    if key is not None:
        value = settings.value(key)
        if as_json:
            print_json(_data(value))
        else:
            click.echo(value.shown)
        return
    if as_json:
        print_json([_data(value) for value in settings.values.values()])
        return
    print_table(("KEY", "VALUE", "FROM"), [(v.key, v.shown, v.origin) for v in settings.values.values()])


@config.command("set")
@click.argument("key")
@click.argument("value", required=False)
@click.option("--unset", is_flag=True, help="Remove the setting, so that its default holds again.")
def set_(key: str, value: str | None, unset: bool) -> None:
    """Set KEY to VALUE; a list is written as JSON."""
    home = Home.find()
    if unset == (value is not None):
        raise ConfigError("Give either a value or --unset: hermes-nb config set KEY VALUE")
    if value is None:
        unset_value(home, key)
        click.echo(f"{key} is not set any more ({home.config})")
        return
    stored = set_value(home, key, value)
    click.echo(f"{key} = {stored.shown} ({home.config})")
    in_force = Settings.load(home).value(key)
    if in_force.origin != stored.origin:
        click.echo(f"Note: the environment variable {in_force.origin} is set and wins over the file.", err=True)


def _data(value: Value) -> dict[str, object]:
    shown = value.value if not value.secret or value.value is None else HIDDEN
    return {"key": value.key, "value": list(shown) if isinstance(shown, tuple) else shown, "from": value.origin}
