"""``hermes-nb model list|install``: which endpoint is used, and the offline demo model."""

from __future__ import annotations

import os

import click

from hermes_nb import app
from hermes_nb.agent.embedded import engine, provider, weights
from hermes_nb.agent.provider import Endpoint
from hermes_nb.commands.output import as_json_option, note, print_json, print_table
from hermes_nb.core.config import Settings
from hermes_nb.core.errors import ConfigError, NoEndpoint
from hermes_nb.core.paths import Home
from hermes_nb.tools.toolsets import wire_schemas


@click.group()
def model() -> None:
    """The model that answers, and the offline demo model."""


@model.command("list")
@as_json_option
def list_(as_json: bool) -> None:
    """Show which model answers and why, and whether the offline demo model is installed."""
    home = Home.find()
    problem = engine.available(home)
    chosen, missing = _chosen(home)
    if as_json:
        print_json(
            {
                "chosen": None if chosen is None else _data(chosen),
                "missing": missing,
                "demo": {"model": weights.MODEL_NAME, "installed": problem is None, "problem": problem},
            }
        )
        return
    print_table(
        ("WHAT", "MODEL", "STATE"),
        [
            ("in use", chosen.model, chosen.reason.removeprefix("Model: "))
            if chosen
            else ("in use", "", "no endpoint"),
            (provider.LABEL, weights.MODEL_NAME, problem or "installed"),
        ],
    )


@model.command("install")
@click.option("--if-needed", is_flag=True, help="Only when no other model endpoint is found.")
def install(if_needed: bool) -> None:
    """Fetch the offline demo model (93 MB) and read its prompt once."""
    home = Home.find().ensure()
    if if_needed:
        chosen, _ = _chosen(home)
        if chosen is not None and not chosen.embedded:
            note(chosen.reason)
            return
    # Says how to install the engine before anything is downloaded.
    engine.version()
    weights.install(home, note)
    provider.warm(home, wire_schemas(app.runtime(home).tools()), note)
    note("The offline demo model is ready. It is small and often wrong.")


def _chosen(home: Home) -> tuple[Endpoint | None, str | None]:
    """Return the endpoint, or None and what is missing. Raises ConfigError when a setting is wrong."""
    settings = Settings.load(home)
    try:
        return app.Endpoints(home, settings.model, os.environ).primary(), None
    except NoEndpoint as exc:
        return None, str(exc)
    except ConfigError as exc:
        raise ConfigError(f"The configured model endpoint cannot be used: {exc}") from exc


def _data(endpoint: Endpoint) -> dict[str, object]:
    return {
        "model": endpoint.model,
        "base_url": endpoint.base_url,
        "key_env": endpoint.key_env,
        "label": endpoint.label,
        "embedded": endpoint.embedded,
        "reason": endpoint.reason,
    }
