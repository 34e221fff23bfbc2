"""Where things lie under the home folder. The home is looked up on each call, so a profile switch works."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hermes_nb.core.errors import ConfigError

HOME_VARIABLE = "HERMES_NB_HOME"


def default_home() -> Path:
    """Return the platform's data folder for us, as platformdirs names it, without importing it.

    https://specifications.freedesktop.org/basedir-spec/ on Linux; the documented folders elsewhere.
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "hermes-nb"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))) / "hermes-nb"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "hermes-nb"


@dataclass(frozen=True, slots=True)
class Home:
    """The folder that holds everything we keep: database, memory, skills, configuration, models."""

    root: Path

    @classmethod
    def find(cls) -> Home:
        """Return the home that ``HERMES_NB_HOME`` names, or the platform's default."""
        named = os.environ.get(HOME_VARIABLE)
        return cls(Path(named).expanduser().absolute() if named else default_home())

    @property
    def database(self) -> Path:
        return self.root / "state.db"

    @property
    def config(self) -> Path:
        return self.root / "config.toml"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def engine_states(self) -> Path:
        return self.root / "engine-states"

    def memories(self, user: str) -> Path:
        """Return the folder of one user's MEMORY.md and USER.md."""
        return self.root / "memories" / user

    def ensure(self) -> Home:
        """Create the folder (mode 0700) and check that files can be written into it.

        Raises ConfigError naming the folder, the reason and ``HERMES_NB_HOME`` when it cannot.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as exc:
            raise ConfigError(
                f"The hermes-nb home {self.root} cannot be written ({exc.strerror or exc}). "
                f"Set {HOME_VARIABLE} to a folder on a local disk that you own."
            ) from exc
        return self
