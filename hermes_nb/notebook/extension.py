"""Loads the notebook front end into a shell and takes it out again. Silent and repeatable."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import Any

from hermes_nb.agent.ambient import Ambient, set_ambient
from hermes_nb.notebook.arguments import FLAGS
from hermes_nb.notebook.cell import CellRunner, Runtime
from hermes_nb.notebook.magics import COMMANDS, make_magic
from hermes_nb.notebook.plain_cell import PlainCell
from hermes_nb.notebook.transform import transform

_ATTRIBUTE = "hermes_nb"
_WARM_AFTER = 0.5
"""Seconds after loading when the model client is imported, so that neither loading nor the first cell waits."""


def load(shell: Any, runtime: Callable[[], Runtime], warm: Callable[[], None]) -> CellRunner:
    """Install ``%%hermes`` and ``%hermes`` into ``shell``; a second call changes nothing.

    ``runtime`` makes the composition root at first use; ``warm`` imports what the first turn needs.
    """
    present = getattr(shell, _ATTRIBUTE, None)
    if isinstance(present, CellRunner):
        return present
    runner = CellRunner(shell, runtime)
    plain = PlainCell(shell, runner.tool_code, lambda: runner.runtime.store.approvals, runner.refuse_nested)
    set_ambient(plain.ambient())
    shell.register_magic_function(make_magic(runner), "line_cell", "hermes")
    if transform not in shell.input_transformers_cleanup:
        # First, so that the body reaches us before any other transformer could change it.
        shell.input_transformers_cleanup.insert(0, transform)
    if getattr(shell, "Completer", None) is not None:
        shell.Completer.custom_matchers.append(_complete)
    atexit.register(runner.close)
    # Last: a load that failed halfway is repeated as a whole by the next one.
    setattr(shell, _ATTRIBUTE, runner)
    timer = threading.Timer(_WARM_AFTER, warm)
    timer.daemon = True
    timer.start()
    return runner


def unload(shell: Any) -> None:
    """Undo ``load``; running background turns are interrupted."""
    runner = getattr(shell, _ATTRIBUTE, None)
    if not isinstance(runner, CellRunner):
        return
    runner.close()
    set_ambient(Ambient())
    atexit.unregister(runner.close)
    delattr(shell, _ATTRIBUTE)
    if transform in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(transform)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("hermes", None)
    if getattr(shell, "Completer", None) is not None and _complete in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(_complete)


def _complete(text: str) -> list[str]:
    """Complete flags of ``%%hermes`` and subcommands of ``%hermes``; IPython passes the word before the cursor."""
    from IPython.core.getipython import get_ipython  # noqa: PLC0415 - IPython is fully loaded only by now

    shell = get_ipython()
    line = getattr(getattr(shell, "Completer", None), "text_until_cursor", "")
    head = line.lstrip()
    if head.startswith("%%hermes ") and "\n" not in head:
        return [flag for flag in FLAGS if flag.startswith(text)]
    if head.startswith("%hermes ") and len(head.split(" ")) == 2:
        return [name for name in COMMANDS if name.startswith(text)]
    return []
