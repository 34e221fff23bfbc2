"""The cell's outputs, its result, and its errors, as IPython wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from IPython.display import display

from hermes_nb.core.types import TurnResult


class _CellHandle:
    def __init__(self, handle: Any, data: dict[str, Any], metadata: Mapping[str, Any]) -> None:
        self._handle = handle
        self._now = (data, metadata)

    def update(self, data: dict[str, Any], metadata: Mapping[str, Any]) -> None:
        self._now = (data, metadata)
        self._handle.update(data, raw=True, metadata=dict(metadata))

    def again(self) -> None:
        data, metadata = self._now
        display(data, raw=True, metadata=dict(metadata), display_id=self._handle.display_id)


class CellOutput:
    """Publishes bundles into the running cell through IPython's display."""

    def __init__(self) -> None:
        self._shown: list[_CellHandle] = []

    def show(self, data: dict[str, Any], metadata: Mapping[str, Any]) -> _CellHandle:
        handle = _CellHandle(display(data, raw=True, metadata=dict(metadata), display_id=True), data, metadata)
        self._shown.append(handle)
        return handle

    def again(self) -> None:
        """Show everything once more: user code has cleared the whole cell and meant its own output only."""
        for handle in self._shown:
            handle.again()


def bind_result(shell: Any, result: TurnResult, output: str | None, *, last: bool = True) -> None:
    """Bind the result to ``output`` and, as a cell's value would be, to ``_``.

    The cell itself has no value: an execute_result would be a second, volatile output.
    """
    names: dict[str, Any] = {} if output is None else {output: result}
    if last:
        hook = shell.displayhook
        users_own = any(
            getattr(hook, under) is not shell.user_ns.get(under)
            for under in ("_", "__", "___")
            if under in shell.user_ns
        )
        hook.___, hook.__, hook._ = hook.__, hook._, result
        if not users_own:
            names |= {"_": hook._, "__": hook.__, "___": hook.___}
    shell.push(names, interactive=False)
    if output is not None:
        shell.user_ns_hidden.pop(output, None)


def short_traceback(exc: BaseException) -> Callable[[], list[str]]:
    """Return what IPython calls to show ``exc``: its own words, without our frames."""
    kind = "Interrupted" if isinstance(exc, KeyboardInterrupt) else type(exc).__name__
    lines = [f"\x1b[31m{kind}\x1b[39m: {exc}"]
    return lambda: lines
