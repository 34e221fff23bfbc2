"""The toolset ``memory``: what every later session knows from its first word on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypedDict

from hermes_nb.core.errors import ToolArgumentsInvalid, ToolDenied, ToolError
from hermes_nb.core.names import Parallel, Risk
from hermes_nb.core.types import ToolResult
from hermes_nb.core.wirejson import dumps
from hermes_nb.store.approvals import Allowed
from hermes_nb.store.memory import MEMORY, MemoryOutcome, MemoryPreview, MemoryStore
from hermes_nb.store.staged import Staged
from hermes_nb.store.store import Store
from hermes_nb.tools.schema import tool_of
from hermes_nb.tools.tool import Question, ToolContext

Action = Literal["add", "replace", "remove", "patch"]
_MAX_FAILURES = 3
WRITE, STAGE, ASK = "write", "stage", "ask"
"""The values of ``memory.write``."""


class Operation(TypedDict, total=False):
    """One edit of a batch."""

    action: Action
    content: str
    old_text: str


def memory(
    context: ToolContext,
    action: Annotated[Action | None, "add, replace or remove one entry. patch means replace."] = None,
    target: Annotated[
        Literal["memory", "user"] | None,
        "memory: facts about work, environment, conventions, lessons. user: who the user is and what they prefer.",
    ] = None,
    content: Annotated[str | None, "The new entry, one fact in a short sentence (add, replace)."] = None,
    old_text: Annotated[str | None, "A part of the entry to replace or remove that no other entry has."] = None,
    operations: Annotated[
        list[Operation] | None,
        "Several edits of one target as one: all or none; only the final size counts. Instead of action.",
    ] = None,
) -> ToolResult:
    """Keep a fact for every later session, or correct one that is kept.

    What every session needs goes here: corrections and preferences of the user, their environment, conventions,
    lessons that cost time. Not the progress of a task, not what one session needs, not what can be looked up again
    (earlier talks are found with session_search). The space is small: merge and shorten. replace takes the whole
    entry, so content must hold all of it. The change appears in the prompt of the next session.
    """
    store = _store(context)
    edits = _edits(action, content, old_text, operations)
    _check(context, edits)
    switch = _switch(context)
    if switch == WRITE or (switch == ASK and context.approved):
        return _result(store, context.turn_id, store.apply(target or MEMORY, edits))
    preview = store.preview(target or MEMORY, edits)
    if not preview.outcome.changed:
        return _result(store, context.turn_id, preview.outcome)
    return _staged(context, store, preview)


def _question(context: ToolContext, arguments: Mapping[str, Any]) -> Question | None:
    """Return what to ask where ``memory.write`` is ``ask``; what cannot be done is refused without a question."""
    store: Any = context.services.get("memory")
    if not isinstance(store, MemoryStore) or context.services.get("memory_write", WRITE) != ASK:
        return None
    try:
        edits = _edits(*(arguments.get(name) for name in ("action", "content", "old_text", "operations")))
        _check(context, edits)
    except (ToolArgumentsInvalid, ToolDenied):
        return None
    preview = store.preview(arguments.get("target") or MEMORY, edits)
    if not preview.outcome.changed:
        return None
    return Question("it changes what every later session is told (memory.write = ask)", preview.diff)


def _edits(action: Any, content: Any, old_text: Any, operations: Any) -> Sequence[Mapping[str, Any]]:
    if operations:
        if action is not None:
            raise ToolArgumentsInvalid("Give either action or operations, not both. Nothing was changed.")
        return operations
    if action is None:
        raise ToolArgumentsInvalid("action is missing: add, replace or remove. Nothing was changed.")
    return [{"action": action, "content": content or "", "old_text": old_text or ""}]


def _check(context: ToolContext, edits: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what reads like an attack: memory stands in every later prompt. Raises ToolDenied, nothing written."""
    # Two thousand lines of patterns that no session needs before its first edit.
    from hermes_nb.core.scan import STRICT, content_hash, scan  # noqa: PLC0415

    for number, edit in enumerate(edits, 1):
        content = edit.get("content")
        if edit.get("action") == "remove" or not isinstance(content, str):
            continue
        findings = scan(content, STRICT)
        if not findings or _allowed(context, content_hash(content)):
            continue
        first = findings[0]
        which = f"Operation {number}: nothing" if len(edits) > 1 else "Nothing"
        raise ToolDenied(
            f"{which} was saved: {first.passage!r} reads like an instruction to a model (rule {first.rule}), and "
            "memory stands in every later prompt. Save the fact in other words, without that passage, or tell the "
            "user; they can allow the text as it is with "
            f"`hermes-nb approvals allow {content_hash(content)}`."
        )


def _allowed(context: ToolContext, found: str) -> bool:
    store: Any = context.services.get("store")
    return isinstance(store, Store) and Allowed(store.rules, context.user).allowed(found)


def _store(context: ToolContext) -> MemoryStore:
    store: Any = context.services.get("memory")
    if not isinstance(store, MemoryStore):
        raise ToolError("There is no memory in this session; nothing was saved. Say so to the user.")
    return store


def _switch(context: ToolContext) -> str:
    """Return ``memory.write``. A value that is not known stages: an edit too few is better than one too many."""
    switch: Any = context.services.get("memory_write", WRITE)
    return switch if switch in (WRITE, ASK) else STAGE


def _staged(context: ToolContext, store: MemoryStore, preview: MemoryPreview) -> ToolResult:
    staged: Any = getattr(context.services.get("store"), "staged", None)
    if not isinstance(staged, Staged):
        raise ToolDenied("Memory edits wait for the user's yes here, and there is no store to keep them: not saved.")
    edit = staged.add_memory(store, preview, reason="the model's edit", session=context.session_id, user=context.user)
    store.succeeded()
    outcome = preview.outcome
    shown: dict[str, Any] = {
        "success": True,
        "done": True,
        "staged": edit.id,
        "written": False,
        "target": outcome.target,
        "message": "Staged, not written: the user decides with %hermes memory. Nothing is remembered until then; do "
        "not say that it is saved, and do not try again.",
    }
    if outcome.warnings:
        shown["warnings"] = list(outcome.warnings)
    said = f"memory: 1 edit staged ({edit.id}), not written until you accept it: %hermes memory"
    return ToolResult(dumps(shown), note="staged, not written", persisted=said)


def _result(store: MemoryStore, turn_id: str, outcome: MemoryOutcome) -> ToolResult:
    shown: Mapping[str, Any] = outcome.as_dict()
    if outcome.success:
        store.succeeded()
    elif outcome.over_budget and store.failed_again(turn_id) > _MAX_FAILURES:
        shown = {
            "success": False,
            "done": True,
            "target": outcome.target,
            "error": "The memory is full and several edits of this turn did not fit. Stop editing it now; go on with "
            "the task and tell the user that this was not saved.",
        }
    return ToolResult(
        dumps(shown),
        is_error=not outcome.success,
        note=outcome.persisted() or ("nothing to change" if outcome.success else "not saved"),
        persisted=outcome.persisted(),
    )


TOOLS = (replace(tool_of(memory, toolset="memory", risk=Risk.STATE, parallel=Parallel.NEVER), question=_question),)
