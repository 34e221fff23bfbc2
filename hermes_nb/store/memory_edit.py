"""An edit of memory entries, before anything is written: finds entries, keeps what was done. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes_nb.core.wirejson import clean_text
from hermes_nb.store.memory_text import refusal

_PREVIEW = 80


class Refused(Exception):
    """An edit cannot be done; carries what the outcome says."""

    def __init__(
        self, message: str, *, entries: bool = True, matches: Sequence[str] | None = None, over_budget: bool = False
    ) -> None:
        super().__init__(message)
        self.entries, self.matches, self.over_budget = entries, matches, over_budget


@dataclass(slots=True)
class Draft:
    """The entries while an edit changes them. ``done`` is what was done, each ``old_text`` a whole entry."""

    entries: list[str]
    added: int = 0
    replaced: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    removed: list[str] = field(default_factory=list[str])
    done: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    message: str = ""

    def add(self, content: str) -> None:
        entry = _entry(content)
        if entry in self.entries:
            self.message = "This entry already exists; nothing was added."
            return
        self.entries.append(entry)
        self.added += 1
        self.done.append({"action": "add", "content": entry})
        self.message = "Entry added."

    def replace(self, old_text: str, content: str) -> None:
        entry = _entry(content)
        at = self._find(old_text)
        old = self.entries[at]
        if old == entry:
            self.message = "The entry reads like this already; nothing was changed."
        elif entry in self.entries:
            del self.entries[at]
            self.removed.append(old)
            self.done.append({"action": "remove", "old_text": old})
            self.message = "The new text exists as another entry already, so the old entry was removed."
        else:
            self.entries[at] = entry
            self.replaced.append((old, entry))
            self.done.append({"action": "replace", "old_text": old, "content": entry})
            self.message = "The whole entry was replaced; old and new are shown."

    def remove(self, old_text: str) -> None:
        old = self.entries.pop(self._find(old_text))
        self.removed.append(old)
        self.done.append({"action": "remove", "old_text": old})
        self.message = "Entry removed."

    def apply_these(self, operations: Sequence[Mapping[str, Any]]) -> None:
        """Do one operation, or several as one."""
        if len(operations) == 1:
            _apply(self, operations[0])
        else:
            self.apply_all(operations)

    def apply_all(self, operations: Sequence[Mapping[str, Any]]) -> None:
        """Do the operations in order. Raises Refused that names the first one that cannot be done."""
        if not operations:
            raise Refused("There are no operations.")
        for number, operation in enumerate(operations, 1):
            try:
                _apply(self, operation)
            except Refused as refused:
                raise Refused(
                    f"Operation {number}: {refused} Nothing was changed.",
                    entries=refused.entries,
                    matches=refused.matches,
                ) from refused
        self.message = f"{len(operations)} operations done."

    def _find(self, old_text: str) -> int:
        wanted = clean_text(old_text).replace("\r\n", "\n").strip()
        if not wanted:
            raise Refused("old_text is missing: give a part of the entry that no other entry has.")
        if wanted in self.entries:
            return self.entries.index(wanted)
        found = [index for index, entry in enumerate(self.entries) if wanted in entry]
        if not found:
            raise Refused(f"No entry contains {_preview(wanted)!r}. Take old_text from current_entries.")
        if len(found) > 1:
            previews = [_preview(self.entries[index]) for index in found]
            raise Refused(
                f"{len(found)} entries contain {_preview(wanted)!r}. Give a longer part.",
                entries=False,
                matches=previews,
            )
        return found[0]


def _apply(draft: Draft, operation: Mapping[str, Any]) -> None:
    action = operation.get("action")
    content, old_text = str(operation.get("content") or ""), str(operation.get("old_text") or "")
    match action:
        case "add":
            draft.add(content)
        case "replace" | "patch":
            draft.replace(old_text, content)
        case "remove":
            draft.remove(old_text)
        case _:
            raise Refused(f"There is no action {action!r}. Use add, replace or remove.", entries=False)


def _entry(content: str) -> str:
    why = refusal(content)
    if why is not None:
        raise Refused(why, entries=False)
    return clean_text(content).replace("\r\n", "\n").replace("\r", "\n").strip()


def over_budget(name: str, before: int, after: int, limit: int) -> Refused:
    return Refused(
        f"{name} holds {before:,} of {limit:,} characters; this change would make it {after:,}, {after - limit:,} too "
        "many. Nothing was changed. Now merge or remove entries and add in one call with operations.",
        over_budget=True,
    )


def _preview(text: str) -> str:
    return text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 3]}..."
