"""What stands beside the user's words in a turn: facts that changed, variables, cells, and what a provider recalls.

Owns when a recall provider is asked. Must not know how a block is written (prompt/recall) or what the loop does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from hermes_nb.agent.events import Notice
from hermes_nb.agent.options import TurnOptions
from hermes_nb.agent.turn import Turn
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ApprovalMode
from hermes_nb.core.types import Message, Session
from hermes_nb.prompt import recall
from hermes_nb.prompt.recall_provider import RecallChannel, RecallFacts
from hermes_nb.store.store import Store
from hermes_nb.tools.tool import ToolContext


@dataclass(frozen=True, slots=True)
class Beside:
    """Of one agent."""

    store: Store
    channel: RecallChannel | None
    today: Callable[[], date]

    def content(
        self,
        text: str,
        turn: Turn,
        rows: Sequence[Message],
        context: ToolContext,
        options: TurnOptions,
        masked: Mapping[str, str],
        mode: ApprovalMode,
        *,
        with_recall: bool,
    ) -> str:
        """Return the user message as the model gets it. Raises ConfigError for a variable that is not there."""
        extra = [*_variables(options.variables, context), *options.recall]
        if with_recall:
            extra += self._recalled(text, turn, context, rows)
        return self._composed(text, rows, turn.session, context.surface, masked, mode, extra)

    def preview(
        self, rows: Sequence[Message], session: Session | None, surface: str, mode: ApprovalMode, options: TurnOptions
    ) -> str:
        """Return what would stand before the words of the next message; a provider is not asked without words."""
        return self._composed("", rows, session, surface, options.masked, mode, options.recall)

    def _composed(
        self,
        text: str,
        rows: Sequence[Message],
        session: Session | None,
        surface: str,
        masked: Mapping[str, str],
        mode: ApprovalMode,
        extra: Sequence[str],
    ) -> str:
        today = self.today()
        now = recall.facts(
            today=today,
            surface=surface,
            masked=sorted(masked),
            extra=extra,
            approvals_off=mode is ApprovalMode.OFF,
        )
        started = today if session is None else date.fromtimestamp(session.started)
        return recall.compose(text, now, recall.told(rows, started))

    def _recalled(self, text: str, turn: Turn, context: ToolContext, rows: Sequence[Message]) -> list[str]:
        """Return what the provider has on ``text`` that this session was not told yet, as a recall fact."""
        channel = self.channel
        if channel is None:
            return []
        facts = RecallFacts(self.store, context.user, context.session_id, context.root_id, context.surface, rows)
        told = recall.lines_told(rows, channel.fact)
        found = channel.ask(text, facts, turn.cancel, told=told, today=self.today())
        if found.problem:
            turn.emit(Notice(found.problem, "warning"))
        return [f"{channel.fact}: {found.value}"] if found.value else []


def _variables(names: Sequence[str], context: ToolContext) -> list[str]:
    """Return one recall block per variable that ``-v`` named. Raises ConfigError when there is no kernel."""
    if not names:
        return []
    if context.kernel is None:
        raise ConfigError("-v needs a live kernel, and this session has none.")
    found = {variable.name: variable for variable in context.kernel.variables(list(names), context.cancel)}
    missing = [name for name in names if name not in found]
    if missing:
        raise ConfigError(f"There is no variable {', '.join(missing)} in the namespace.")
    return [f"{name}: {found[name].type} {found[name].summary}" for name in names]
