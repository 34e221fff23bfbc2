"""Loads the notebook front end into a shell and takes it out again. Silent and repeatable.

Loading costs a few milliseconds: it registers the names and imports nothing that runs a turn. That is imported by
the first cell that needs it, or in the idle moment after loading, whichever comes first.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hermes_nb.agent.ambient import Ambient, set_ambient
from hermes_nb.notebook.arguments import FLAGS, HELP
from hermes_nb.notebook.transform import transform

if TYPE_CHECKING:
    from hermes_nb.notebook.cell import CellRunner
    from hermes_nb.notebook.runtime import Runtime

_ATTRIBUTE = "hermes_nb"
_WARM_AFTER = 0.5
"""Seconds after loading when the rest is imported, so that neither loading nor the first cell waits."""
_MAGIC_HELP = HELP + "\n%hermes [SUBCOMMAND]: status and next steps; `%hermes help` lists all.\n"


class Loaded:
    """What a shell has as its attribute ``hermes_nb``: the way to the cell runner, which is made at first use."""

    def __init__(self, shell: Any, runtime: Callable[[], Runtime], doctor: Callable[[], str]) -> None:
        self._shell = shell
        self._runtime = runtime
        self._doctor = doctor
        self._lock = threading.Lock()
        self._runner: CellRunner | None = None
        self._ambient: Ambient | None = None

    @property
    def runner(self) -> CellRunner:
        """The runner of this shell's cells."""
        with self._lock:
            if self._runner is None:
                # Imports the store and the agent, which loading must not wait for.
                from hermes_nb.notebook.cell import CellRunner  # noqa: PLC0415
                from hermes_nb.notebook.plain_cell import PlainCell  # noqa: PLC0415

                runner = self._runner = CellRunner(self._shell, self._runtime, self._doctor)
                plain = PlainCell(
                    self._shell, runner.tool_code, lambda: runner.runtime.store.approvals, runner.refuse_nested
                )
                self._ambient = plain.ambient()
            return self._runner

    async def run_cell(self, line: str, body: str) -> None:
        """Run a ``%%hermes`` cell whose event loop is free (the input transformer's call)."""
        await self.runner.run_cell(line, body)

    def magic(self, line: str, cell: str | None = None) -> None:
        """Run ``%hermes LINE``, or a ``%%hermes`` cell whose event loop is blocked."""
        # As above.
        from hermes_nb.notebook.magics import hermes_magic  # noqa: PLC0415

        hermes_magic(self.runner, line, cell)

    def ambient(self) -> Ambient:
        """Return what ``Agent.open()`` gets in this process when it is not told otherwise."""
        assert self.runner is not None and self._ambient is not None
        return self._ambient

    def close(self) -> None:
        """Stop everything and let go of the store."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()


def load(shell: Any, runtime: Callable[[], Runtime], warm: Callable[[], None], doctor: Callable[[], str]) -> Loaded:
    """Install ``%%hermes`` and ``%hermes`` into ``shell``; a second call changes nothing.

    ``runtime`` makes the composition root at first use; ``warm`` imports what the first turn needs; ``doctor``
    examines the installation, also one without which there can be no runtime.
    """
    present = getattr(shell, _ATTRIBUTE, None)
    if isinstance(present, Loaded):
        return present
    loaded = Loaded(shell, runtime, doctor)
    set_ambient(loaded.ambient)

    def hermes(line: str, cell: str | None = None) -> None:
        loaded.magic(line, cell)

    hermes.__doc__ = _MAGIC_HELP
    shell.register_magic_function(hermes, "line_cell", "hermes")
    if transform not in shell.input_transformers_cleanup:
        # First, so that the body reaches us before any other transformer could change it.
        shell.input_transformers_cleanup.insert(0, transform)
    if getattr(shell, "Completer", None) is not None:
        shell.Completer.custom_matchers.append(_matcher)
    atexit.register(loaded.close)
    # Last: a load that failed halfway is repeated as a whole by the next one.
    setattr(shell, _ATTRIBUTE, loaded)
    timer = threading.Timer(_WARM_AFTER, _import_rest, (warm,))
    timer.daemon = True
    timer.start()
    return loaded


def unload(shell: Any) -> None:
    """Undo ``load``; running background turns are interrupted."""
    loaded = getattr(shell, _ATTRIBUTE, None)
    if not isinstance(loaded, Loaded):
        return
    loaded.close()
    set_ambient(Ambient())
    atexit.unregister(loaded.close)
    delattr(shell, _ATTRIBUTE)
    if transform in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(transform)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("hermes", None)
    if getattr(shell, "Completer", None) is not None and _matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(_matcher)


def _import_rest(warm: Callable[[], None]) -> None:
    # The point of this function: what a cell needs is not loaded before.
    from hermes_nb.notebook import magics  # noqa: F401, PLC0415

    warm()


def _matcher(context: Any) -> dict[str, Any]:
    """Complete flags of ``%%hermes`` and subcommands of ``%hermes``, and keep Python's names out of them."""
    from IPython.core.completer import SimpleCompletion  # noqa: PLC0415 - IPython is fully loaded only by now

    head, names = context.text_until_cursor.lstrip(), ()
    if head.startswith("%%hermes ") and context.full_text.lstrip().startswith(head):
        names = FLAGS
    elif head.startswith("%hermes ") and len(head.split(" ")) == 2:
        from hermes_nb.notebook.magics import COMMANDS  # noqa: PLC0415 - as in Loaded.magic

        names = tuple(COMMANDS)
    found = [SimpleCompletion(name, type="magic") for name in names if name.startswith(context.token)]
    return {"completions": found, "suppress": bool(found)}


# What IPython's ``@context_matcher`` sets; its import would cost a load outside kernels.
_matcher.matcher_api_version = 2  # type: ignore[attr-defined]
_matcher.matcher_identifier = "hermes_nb"  # type: ignore[attr-defined]
_matcher.matcher_priority = 50.0  # type: ignore[attr-defined]
