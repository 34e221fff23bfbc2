"""Where the folders lie that come with the package: ``notebooks`` and ``skills``."""

from __future__ import annotations

from pathlib import Path

from hermes_nb.core.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(name: str) -> Path:
    """Return the folder ``name`` as this installation has it: inside the wheel, or in the clone.

    Raises ConfigError when the installation is incomplete.
    """
    in_wheel = _PACKAGE / "_shipped" / name
    if in_wheel.is_dir():
        return in_wheel
    clone = _PACKAGE.parent
    if (clone / "pyproject.toml").is_file() and (clone / name).is_dir():
        return clone / name
    raise ConfigError(
        f"The folder {name!r} that comes with hermes-nb is missing. Install it again: pip install hermes-nb"
    )
