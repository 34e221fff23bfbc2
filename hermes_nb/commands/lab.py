"""``hermes-nb lab`` and ``hermes-nb demo``: JupyterLab with hermes-nb in it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

import click

from hermes_nb.commands.output import note
from hermes_nb.core.errors import ConfigError, ExtraMissing
from hermes_nb.core.paths import HOME_VARIABLE, Home
from hermes_nb.core.shipped import shipped

WELCOME = "00_welcome.ipynb"

_port = click.option("--port", type=click.IntRange(0, 65535), help="Port of JupyterLab; the next free one if taken.")
_no_browser = click.option("--no-browser", is_flag=True, help="Print the address, open no browser.")


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--welcome", is_flag=True, help="Open your own copy of the welcome notebook, kept in the home folder.")
@_port
@_no_browser
def lab(path: Path | None, welcome: bool, port: int | None, no_browser: bool) -> None:
    """Open JupyterLab on PATH: a folder (default: this one) or a notebook."""
    if welcome and path is not None:
        raise ConfigError("Give either a path or --welcome.")
    if welcome:
        folder = Home.find().ensure().root / "notebooks"
        copy_notebooks(folder)
        note(f"Your copy of the notebooks: {folder}")
        path = folder / WELCOME
    raise SystemExit(run(command(path or Path.cwd(), port=port, no_browser=no_browser), dict(os.environ)))


@click.command()
@_port
@_no_browser
def demo(port: int | None, no_browser: bool) -> None:
    """Try hermes-nb without leaving a trace: JupyterLab in a temporary home that is deleted at the end."""
    real = Home.find()
    with tempfile.TemporaryDirectory(prefix="hermes-nb-demo-", ignore_cleanup_errors=True) as folder:
        temporary = Home(Path(folder) / "home").ensure()
        notebooks = Path(folder) / "notebooks"
        copy_notebooks(notebooks)
        borrow(real, temporary)
        note("A demo: what you do here is deleted when JupyterLab ends.")
        environment = {**os.environ, HOME_VARIABLE: str(temporary.root)}
        status = run(command(notebooks / WELCOME, port=port, no_browser=no_browser), environment)
    raise SystemExit(status)


def copy_notebooks(folder: Path) -> None:
    """Copy the shipped notebooks into ``folder``; one that is there already is the user's and stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted(shipped("notebooks").glob("*.ipynb")):
        target = folder / source.name
        if not target.exists():
            shutil.copyfile(source, target)


def borrow(real: Home, temporary: Home) -> None:
    """Let the temporary home use the real one's settings and the demo model's weights."""
    if real.config.is_file():
        shutil.copyfile(real.config, temporary.config)
        temporary.config.chmod(0o600)
    if real.models.is_dir():
        temporary.models.symlink_to(real.models, target_is_directory=True)


def command(path: Path, *, port: int | None, no_browser: bool) -> list[str]:
    """Return the command that opens JupyterLab on ``path``. Raises ConfigError when that cannot work."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise ExtraMissing.for_extra("JupyterLab", "lab")
    path = path.expanduser().absolute()
    if not path.exists():
        raise ConfigError(f"{path} does not exist. Give a folder or a notebook.")
    folder = path if path.is_dir() else path.parent
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    if path != folder:
        # As the default address, so that the printed line leads to the notebook too.
        words.append(f"--LabApp.default_url=/lab/tree/{quote(path.name)}")
    if port is not None:
        words.append(f"--ServerApp.port={port}")
    if no_browser:
        words.append("--no-browser")
    if os.name != "nt" and os.geteuid() == 0:
        note("You are root: JupyterLab and the agent can do everything on this machine.")
        words.append("--allow-root")
    return words


def run(words: list[str], environment: dict[str, str]) -> int:
    """Run JupyterLab in the foreground; it gets the signals and asks its own question at Ctrl+C."""
    with subprocess.Popen(words, env=environment) as process:
        former = {
            signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
            signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: process.terminate()),
        }
        try:
            return process.wait()
        finally:
            for number, action in former.items():
                signal.signal(number, action)
