"""The toolset ``memory``: what every later session knows from its first word on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from hermes_nb.core.errors import ToolArgumentsInvalid, ToolDenied, ToolError
from hermes_nb.core.names import Parallel, Risk
from hermes_nb.core.types import ToolResult
from hermes_nb.core.wirejson import dumps
from hermes_nb.store.memory import MEMORY, MemoryOutcome, MemoryStore
from hermes_nb.tools.schema import tool_of
from hermes_nb.tools.tool import ToolContext

Action = Literal["add", "replace", "remove", "patch"]
_MAX_FAILURES = 3


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
    chosen = target or MEMORY
    if operations:
        if action is not None:
            raise ToolArgumentsInvalid("Give either action or operations, not both. Nothing was changed.")
        outcome = store.batch(chosen, operations)
    else:
        outcome = _single(store, chosen, action, content, old_text)
    return _result(store, context.turn_id, outcome)


def _single(
    store: MemoryStore, target: str, action: Action | None, content: str | None, old_text: str | None
) -> MemoryOutcome:
    match action:
        case "add":
            return store.add(target, content or "")
        case "replace" | "patch":
            return store.replace(target, old_text or "", content or "")
        case "remove":
            return store.remove(target, old_text or "")
        case None:
            raise ToolArgumentsInvalid("action is missing: add, replace or remove. Nothing was changed.")


def _store(context: ToolContext) -> MemoryStore:
    store: Any = context.services.get("memory")
    if not isinstance(store, MemoryStore):
        raise ToolError("There is no memory in this session; nothing was saved. Say so to the user.")
    write: Any = context.services.get("memory_write", "write")
    if write != "write":
        raise ToolDenied(
            f"Memory edits wait for the user's yes here (memory.write = {write}), and this version cannot keep them "
            "waiting: nothing was saved. Tell the user what you would have saved."
        )
    return store


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


TOOLS = (tool_of(memory, toolset="memory", risk=Risk.STATE, parallel=Parallel.NEVER),)
