"""hermes-nb: an agent in your notebook.

The names below are stable; each is imported at first use, so that ``import hermes_nb`` and loading the
extension cost nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_nb.app import Agent, open_store, tool

__version__ = "0.1.0"
__all__ = ["Agent", "__version__", "load_ipython_extension", "open_store", "tool", "unload_ipython_extension"]

# A library says nothing on stderr by itself; in a notebook that would stand in the cell.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_LAZY = frozenset({"Agent", "open_store", "tool"})


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Loaded at first use: see the module's text.
    from hermes_nb import app  # noqa: PLC0415

    return getattr(app, name)


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """Load the notebook front end (``%load_ext hermes_nb``); a second call changes nothing."""
    # Only a shell needs the front end.
    from hermes_nb.notebook import extension  # noqa: PLC0415

    extension.load(shell, _runtime, _warm, _doctor)


def unload_ipython_extension(shell: Any) -> None:
    """Take the notebook front end out again (``%unload_ext hermes_nb``)."""
    # Only a shell needs the front end.
    from hermes_nb.notebook import extension  # noqa: PLC0415

    extension.unload(shell)


def _runtime() -> Any:
    # The composition root loads the store and the tools; the first cell that needs them pays.
    from hermes_nb import app  # noqa: PLC0415

    return app.runtime(kind="kernel")


def _warm() -> None:
    # Runs in an idle moment after loading.
    from hermes_nb import app  # noqa: PLC0415

    app.warm()


def _doctor() -> str:
    # As above.
    from hermes_nb import app  # noqa: PLC0415

    return app.doctor_text()
