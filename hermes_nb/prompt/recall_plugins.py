"""Finds the recall provider that the settings name: ours, or one that another distribution brings.

A provider that cannot be had is one line for the user, and turns go on without recall.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any, cast

from hermes_nb.prompt.recall_history import HistoryRecall
from hermes_nb.prompt.recall_provider import RecallProvider

log = logging.getLogger(__name__)

OFF = "off"


def find_provider(name: str, entries: Iterable[EntryPoint]) -> tuple[RecallProvider | None, str | None]:
    """Return the provider called ``name`` (None for ``off``) and, when there is none, what is wrong.

    The name of an entry point is the provider's; our own names cannot be taken by a plug-in.
    """
    own, entries = HistoryRecall(), list(entries)
    if name == OFF:
        return None, None
    if name == own.name:
        return own, None
    found = sorted((entry for entry in entries if entry.name == name), key=lambda entry: entry.value)
    if not found:
        known = sorted({own.name, OFF, *(entry.name for entry in entries)})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."
        return None, f"There is no recall provider {name!r} (recall.provider). {hint} Nothing is recalled meanwhile."
    entry = found[0]
    try:
        return _made(entry.load()), None
    except Exception as exc:  # the border of plug-in loading
        log.warning("recall provider %s could not be loaded", entry.value, exc_info=True)
        owner = entry.dist.name if entry.dist is not None else entry.value
        return None, (
            f"The recall provider {name!r} of the distribution {owner!r} could not be used "
            f"({type(exc).__name__}: {exc}). Update it, or: hermes-nb config set recall.provider history"
        )


def _made(value: Any) -> RecallProvider:
    made: Any = value() if isinstance(value, type) or not hasattr(value, "recall") else value
    if not callable(getattr(made, "recall", None)) or not isinstance(getattr(made, "name", None), str):
        raise TypeError(f"{type(made).__name__} has no method recall and no name")
    return cast("RecallProvider", made)
