"""The journey of one talk through everything there is. It grows with the product; today: a notebook and its kernel."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from support.kernels import hermes_kernel
from support.model_server import ModelServer, call, say

import hermes_nb
from hermes_nb.core.names import ApprovalState

pytestmark = [pytest.mark.kernel, pytest.mark.slow]


def test_a_talk_about_a_dataframe_survives_a_question_and_a_restart(tmp_path: Path):
    home, notebook = tmp_path / "home", tmp_path / "sales.ipynb"
    with (
        ModelServer([]) as model,
        hermes_kernel(home, model.url, cwd=tmp_path, JPY_SESSION_NAME=str(notebook)) as kernel,
    ):
        # The user has data, and asks.
        kernel.run("import pandas as pd\ndf = pd.DataFrame({'month': [1, 2, 3], 'sales': [10, 30, 20]})")
        model.enqueue(call("python", {"code": "df.sales.describe()"}), say("Sales average **20**."))
        cell = kernel.run("%%hermes -o answer\nHow do sales look?")
        assert "Sales average **20**." in cell.markdown, "the answer streams into the cell"
        assert "mean" in cell.plain, "what the tool saw is shown as well"
        seen = json.loads(model.bodies[1])["messages"][-1]
        assert seen["role"] == "tool" and "20.0" in seen["content"], "the model saw the live object"
        assert kernel.value("answer.tool_calls[0].name") == "'python'"

        # What changes something needs a yes; the object is changed only after it.
        model.enqueue(call("python", {"code": "df['best'] = df.sales == df.sales.max()"}), say("Marked month 2."))
        cell = kernel.send("%%hermes\nMark the best month.")
        cell.until(lambda c: "Approve" in c.buttons(), 20)
        with hermes_nb.open_store(home / "state.db") as store:
            (question,) = store.approvals.pending()
            assert question.state is ApprovalState.PENDING and "df['best']" in question.arguments["code"]
        kernel.click(cell.buttons()["Approve"])
        cell.wait(20)
        assert kernel.value("list(df.best)") == "[False, True, False]"

        # The kernel dies; the talk does not, and the model reads the very same bytes again.
        kernel.kill()
        kernel.restart()
        kernel.run("%load_ext hermes_nb")
        model.enqueue(call("variables"), say("The kernel is new: df is gone. You had marked month 2."))
        cell = kernel.run("%%hermes\nWhat did we do?")
        assert "continuing session" in cell.plain
        assert "You had marked month 2." in cell.markdown
        assert len(model.bodies) == 6
        for earlier, later in pairwise(model.bodies):
            assert later.startswith(earlier.removesuffix(b"]}"))

    # Everything that was said is in the store and can be found.
    with hermes_nb.open_store(home / "state.db") as store:
        (session,) = store.sessions()
        assert [row.role for row in store.rows(session.id)] == ["user", "assistant", "tool", "assistant"] * 3
        assert store.search("best month").hits[0].session_id == session.id
        assert session.notebook == str(notebook)
