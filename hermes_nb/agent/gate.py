"""Policy and approval as the execution of calls sees them: decide, and where needed ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_nb.agent.events import ApprovalAsked, ApprovalClosed
from hermes_nb.agent.turn import Turn
from hermes_nb.core.errors import Cancelled
from hermes_nb.core.names import ApprovalMode, ApprovalState
from hermes_nb.core.types import ApprovalRequest, ToolResult
from hermes_nb.store.store import Store
from hermes_nb.tools.approval import Approver, ask, refusal
from hermes_nb.tools.policy import PYTHON, Decision, allowed_by, judge, shadowed_builtins
from hermes_nb.tools.preview import diff_of
from hermes_nb.tools.tool import Tool, ToolContext

CHANGED = (
    "Not run: the file changed while the question stood, so the user agreed to another change than this would make. "
    "Read the file again, then call again."
)


class ApprovalGate:
    """The gate of one turn. ``chosen``: somebody set the mode; without an approver an unchosen one is ``deny``."""

    def __init__(
        self,
        *,
        store: Store,
        turn: Turn,
        approver: Approver | None,
        mode: ApprovalMode,
        chosen: bool,
        allow: Sequence[str],
        context: ToolContext,
    ) -> None:
        self._store = store
        self._turn = turn
        self._approver = approver
        self._mode = mode if chosen or approver is not None else ApprovalMode.DENY
        self._chosen = chosen
        self._configured = allowed_by(allow)
        self._context = context

    def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        """Return what policy says of one call. Reads the rules anew: an answer may just have added one."""
        context = self._context
        judges_code = tool.name == PYTHON and self._mode is not ApprovalMode.OFF
        shadowed = shadowed_builtins(context.kernel, context.cancel) if judges_code else frozenset[str]()

        def allowed(pattern: str) -> bool:
            return self._configured(pattern) or bool(self._store.rules.matches(tool.name, pattern, context.user))

        return judge(
            tool,
            arguments,
            self._mode,
            context=context,
            shadowed=shadowed,
            allowed=allowed,
            explicit=self._chosen,
        )

    def ask(self, tool: Tool, arguments: Mapping[str, Any], reason: str) -> ToolResult | None:
        """Ask the user and wait on the row. None is a yes. Raises Cancelled when the turn ends meanwhile."""
        turn = self._turn

        def emit(request: ApprovalRequest) -> None:
            pending = request.state is ApprovalState.PENDING
            turn.emit(ApprovalAsked(request) if pending else ApprovalClosed(request))

        cwd = self._context.cwd
        shown = diff_of(tool, arguments, cwd=cwd)
        answer = ask(
            self._store,
            self._approver,
            root_id=self._context.root_id,
            tool=tool.name,
            arguments=arguments,
            reason=reason,
            diff=shown,
            lease=turn.lease,
            cancel=turn.cancel,
            emit=emit,
        )
        if turn.cancel.cancelled:
            raise Cancelled("interrupted")
        if answer.state is ApprovalState.APPROVED:
            # Nobody agreed to lose what was written while the question stood, or to another file behind a link.
            return None if diff_of(tool, arguments, cwd=cwd) == shown else ToolResult(CHANGED, is_error=True)
        return ToolResult(refusal(answer), is_error=True, note=answer.state.value)
