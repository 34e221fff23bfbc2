"""Where the user is: which front end sent the running cell, and from which notebook."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class AnswerBy(StrEnum):
    """How a question can be answered from the running cell."""

    WIDGET = "widget"
    INPUT = "input"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What the running cell's own message says of its front end."""

    answer_by: AnswerBy
    cell_id: str | None
    in_kernel: bool

    @property
    def headless(self) -> bool:
        return self.answer_by is AnswerBy.NOBODY

    @property
    def terminal(self) -> bool:
        """Whether output is text that stays as printed: a plain IPython, a console."""
        return not self.in_kernel or self.answer_by is AnswerBy.INPUT


def front_end(shell: Any) -> FrontEnd:
    """Read the front end from the parent message of the cell that runs now.

    ``allow_stdin`` False means nobody can answer (nbclient, papermill). A ``cellId`` in the metadata means
    a notebook with widgets (JupyterLab, Notebook 7); without it, a console, which has ``input()``.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        tty = sys.stdin is not None and sys.stdin.isatty()
        return FrontEnd(AnswerBy.INPUT if tty else AnswerBy.NOBODY, None, in_kernel=False)
    parent = kernel.get_parent() or {}
    cell_id = parent.get("metadata", {}).get("cellId")
    if not parent.get("content", {}).get("allow_stdin"):
        answer_by = AnswerBy.NOBODY
    else:
        answer_by = AnswerBy.WIDGET if cell_id else AnswerBy.INPUT
    return FrontEnd(answer_by, cell_id, in_kernel=True)


def notebook_path(shell: Any) -> Path | None:
    """Return the absolute path of the notebook this kernel serves, or None when no one says it.

    Jupyter Server puts it into ``JPY_SESSION_NAME`` when it starts the kernel (it goes stale on a rename);
    VS Code puts it into the namespace.
    """
    named = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME")
    if not named or not str(named).endswith(".ipynb"):
        return None
    path = Path(named)
    return path if path.is_absolute() else Path.cwd() / path
