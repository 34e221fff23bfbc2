"""``hermes-nb enable``: load the extension in every kernel of this environment.

IPython reads one file of the environment at each kernel's start. It may hold the user's own lines, so ours
stand in a marked block, and only that block is ever changed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import click

from hermes_nb.core.errors import ConfigError

BEGIN = "# >>> hermes-nb enable >>>"
END = "# <<< hermes-nb enable <<<"
# Not InteractiveShellApp.extensions: IPython would then answer the %load_ext of every notebook with
# "already loaded". Loading twice is silent when the extension does it itself.
BLOCK = f"""\
{BEGIN}
# Written by "hermes-nb enable"; "hermes-nb enable --undo" removes it.
import importlib.util as _hermes_nb_spec

if _hermes_nb_spec.find_spec("hermes_nb") is not None:
    c = get_config()  # noqa: F821 - given by IPython
    c.InteractiveShellApp.exec_lines.append("__import__('hermes_nb').load_ipython_extension(get_ipython())")
{END}
"""
_OURS = re.compile(rf"\n?^{re.escape(BEGIN)}$.*?^{re.escape(END)}$\n?", re.DOTALL | re.MULTILINE)


def kernel_config() -> Path:
    """Return the file that IPython reads for every kernel of this environment."""
    return Path(sys.prefix) / "etc" / "ipython" / "ipython_kernel_config.py"


@click.command()
@click.option("--undo", is_flag=True, help="Remove what enable wrote.")
@click.option("--quiet", is_flag=True, help="Say nothing when it works.")
def enable(undo: bool, quiet: bool) -> None:
    """Load hermes-nb in every kernel of this environment, without %load_ext."""
    file = kernel_config()
    old = _read(file)
    rest = _OURS.sub("", old)
    new = rest if undo else (rest.rstrip("\n") + "\n\n" if rest.strip() else "") + BLOCK
    if new != old:
        _write(file, new)
    if quiet:
        return
    if not undo:
        state = "already there" if new == old else "written" if not rest.strip() else "added; your own lines stay"
        click.echo(f"Every kernel of {sys.prefix} loads hermes-nb from its next start on.")
        click.echo(f"{file}: a marked block, {state}. Remove it with: hermes-nb enable --undo")
    elif new == old:
        click.echo(f"There is nothing of hermes-nb in {file}.")
    elif file.exists():
        click.echo(f"{file}: the block of hermes-nb is removed; your own lines stay.")
    else:
        click.echo(f"{file} is removed; it held nothing else.")


def _read(file: Path) -> str:
    try:
        text = file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file} cannot be read ({exc}). Nothing was changed.") from exc
    if text.count(BEGIN) != text.count(END) or text.count(BEGIN) > 1:
        raise ConfigError(f"The block of hermes-nb in {file} was edited. Remove it by hand, then run this again.")
    return text


def _write(file: Path, text: str) -> None:
    """Replace the file, keeping its mode; an empty one is removed."""
    try:
        if not text.strip():
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".hermes-nb-")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode("utf-8"))
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(file)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as exc:
        raise ConfigError(
            f"{file} cannot be written ({exc.strerror or exc}). Use an environment of your own "
            "(python3 -m venv), or put %load_ext hermes_nb into the notebook."
        ) from exc
