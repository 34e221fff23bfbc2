"""Policy and approval as the execution of calls sees them: decide, and where needed ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_nb.agent.events import ApprovalAsked, ApprovalClosed
from hermes_nb.agent.execution import UNANSWERED
from hermes_nb.agent.turn import Turn
from hermes_nb.core.errors import Cancelled
from hermes_nb.core.names import ApprovalMode, ApprovalState, Verdict
from hermes_nb.core.types import ApprovalRequest, ToolResult
from hermes_nb.store.store import Store
from hermes_nb.tools.approval import NOBODY, Approver, ask, refusal
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
        if tool.question is not None:
            # Memory and skills follow their own switches, not the mode; but where nobody may be asked, nobody is.
            asked = tool.question(context, arguments)
            if asked is None or self._approver is None or self._mode is ApprovalMode.DENY:
                return Decision(Verdict.ALLOW, "needs no question")
            return Decision(Verdict.ASK, asked.reason)
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

        shown = self._diff(tool, arguments)
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
            return None if self._diff(tool, arguments) == shown else ToolResult(CHANGED, is_error=True)
        unanswered = answer.answered_by == NOBODY or answer.state is ApprovalState.EXPIRED
        return ToolResult(refusal(answer), is_error=True, note=UNANSWERED if unanswered else answer.state.value)

    def _diff(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        if tool.question is None:
            return diff_of(tool, arguments, cwd=self._context.cwd)
        asked = tool.question(self._context, arguments)
        return None if asked is None else asked.diff
