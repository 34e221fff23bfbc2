"""The form of ``%hermes memory edit``: a text area per entry, staged edits with their diffs, and Close.

Widgets are made when the form is opened and closed with everything they brought along, so that a saved notebook
keeps no dead one; in their place stands the text. Knows the memory files and staged edits, no session.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from hermes_nb.core.errors import HermesError
from hermes_nb.store.memory import MEMORY, USER, MemoryOutcome, MemoryStore
from hermes_nb.store.memory_text import usage
from hermes_nb.store.staged import Staged, StagedEdit

_VIEW = "application/vnd.jupyter.widget-view+json"
_TITLES = {MEMORY: "Memory", USER: "About you"}


class MemoryForm:
    """One open form. Every method runs on the main thread, as clicks do."""

    def __init__(self, memory: MemoryStore, staged: Staged, overview_text: Callable[[], str]) -> None:
        # Needed only when a form is opened; loading the extension stays fast.
        import ipywidgets  # noqa: PLC0415
        from IPython.display import display  # noqa: PLC0415

        self._w: Any = ipywidgets
        self._memory, self._staged, self._text = memory, staged, overview_text
        self._said: Any = ipywidgets.HTML()
        self._rows: Any = ipywidgets.VBox()
        self._box: Any = ipywidgets.VBox([self._rows, self._said, self._button("Close", "times", self.close)])
        self._fill()
        view = {"version_major": 2, "version_minor": 0, "model_id": self._box.model_id}
        self._handle: Any = display({"text/plain": overview_text(), _VIEW: view}, raw=True, display_id=True)

    def close(self) -> None:
        """Take the form away and leave what is remembered as text; a second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            text = self._text()
            handle.update({"text/plain": text, "text/markdown": text}, raw=True)
            _close(self._box)

    def _fill(self) -> None:
        old = self._rows.children
        rows: list[Any] = []
        for target, title in _TITLES.items():
            entries = self._memory.entries(target)
            used = usage(len("\n§\n".join(entries)), self._memory.limit(target))
            rows.append(self._w.HTML(f"<b>{title}</b> <small>{html.escape(used)}</small>"))
            rows += [self._entry(target, entry) for entry in entries]
            rows.append(self._entry(target, ""))
        rows += [self._waiting(edit) for edit in self._staged.list(kind="memory")]
        self._rows.children = rows
        for row in old:
            _close(row)

    def _entry(self, target: str, entry: str) -> Any:
        area = self._w.Textarea(
            value=entry, placeholder="a new entry", layout={"width": "100%"}, rows=min(6, entry.count("\n") + 2)
        )
        if not entry:
            add = self._button("Add", "plus", lambda: self._do(lambda: self._memory.add(target, area.value)))
            return self._w.HBox([area, add])
        # The whole entry is what is looked for: one that changed meanwhile is not overwritten.
        save = self._button("Save", "check", lambda: self._do(lambda: self._memory.replace(target, entry, area.value)))
        delete = self._button("Delete", "trash", lambda: self._do(lambda: self._memory.remove(target, entry)))
        return self._w.HBox([area, self._w.VBox([save, delete])])

    def _waiting(self, edit: StagedEdit) -> Any:
        diff = self._w.HTML(f"<i>waits for your yes</i><pre>{html.escape(edit.diff)}</pre>")
        accept = self._button("Accept", "check", lambda: self._do(lambda: self._staged.accept(edit.id, self._memory)))
        reject = self._button("Reject", "times", lambda: self._do(lambda: self._reject(edit)))
        return self._w.HBox([diff, self._w.VBox([accept, reject])])

    def _reject(self, edit: StagedEdit) -> str:
        return "Rejected." if self._staged.reject(edit.id) else "It was decided elsewhere first."

    def _do(self, act: Callable[[], MemoryOutcome | str]) -> None:
        try:
            done = act()
        except HermesError as exc:
            done = str(exc)
        if isinstance(done, str):
            text, again = done, True
        else:
            text, again = " ".join((done.message, *done.warnings)), done.success
        self._said.value = html.escape(text)
        if again:  # what was typed into a refused edit stays to be corrected
            self._fill()

    def _button(self, name: str, icon: str, act: Callable[[], None]) -> Any:
        button = self._w.Button(description=name, icon=icon, layout={"width": "7em"})
        button.on_click(lambda _button: act())
        return button


def _close(widget: Any) -> None:
    for child in getattr(widget, "children", ()):
        _close(child)
    # Layout and style are models of their own and would stay behind.
    for part in (getattr(widget, "layout", None), getattr(widget, "style", None), widget):
        if part is not None:
            part.close()


class _Open:
    form: MemoryForm | None = None


def show(memory: MemoryStore, staged: Staged, overview_text: Callable[[], str]) -> MemoryForm:
    """Open the form in the running cell; one that is open elsewhere closes."""
    close()
    _Open.form = MemoryForm(memory, staged, overview_text)
    return _Open.form


def close() -> None:
    """Close the open form, if there is one."""
    form, _Open.form = _Open.form, None
    if form is not None:
        form.close()
