"""A question that cannot be shown is a no at once, in every front end of the notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.core.names import ApprovalState
from hermes_nb.notebook.approvers import InputApprover, WidgetApprover
from hermes_nb.store.store import open_store


class Broken:
    """A view whose page is gone."""

    def __getattr__(self, name: str) -> Any:
        raise OSError("the page is gone")


def now(call: Callable[[], None], *, interruptible: bool = False) -> None:
    call()


@pytest.mark.parametrize("kind", [WidgetApprover, InputApprover])
def test_a_question_that_cannot_be_shown_is_a_no(tmp_path: Path, kind: type) -> None:
    store = open_store(tmp_path / "state.db")
    try:
        asked = store.approvals.ask(store.create_session().root_id, "python", {"code": "x()"}, "a call")
        more = (None,) if kind is InputApprover else ()
        kind(store.approvals, Broken(), now, *more).open(asked)
        final = store.approvals.get(asked.id)
        assert (final.state, final.answered_by) == (ApprovalState.DENIED, "the question could not be shown")
    finally:
        store.close()
