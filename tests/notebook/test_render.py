"""The view of a turn, driven by events and looked at as a saved notebook would hold it."""

from __future__ import annotations

import json

from hermes_nb.agent.events import (
    ApprovalAsked,
    ApprovalClosed,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from hermes_nb.core.names import MIME_TURN, ApprovalState, TurnStatus
from hermes_nb.core.types import ApprovalRequest, ToolCall, ToolResult, TurnResult, Usage
from hermes_nb.notebook.render import TurnView

STARTED = TurnStarted("turn1", "20261130-000000-abcdef", "prefix1", "gpt-x", "api.example")


class Page:
    """Holds outputs in order, as a notebook file does after the last update."""

    def __init__(self) -> None:
        self.outputs: list[Shown] = []

    def show(self, data, metadata) -> Shown:
        self.outputs.append(Shown(data, metadata))
        return self.outputs[-1]

    @property
    def markdown(self) -> list[str]:
        return [o.data["text/markdown"] for o in self.outputs if "text/markdown" in o.data]


class Shown:
    def __init__(self, data, metadata) -> None:
        self.data, self.metadata, self.updates = data, metadata, 0

    def update(self, data, metadata) -> None:
        self.data, self.metadata, self.updates = data, metadata, self.updates + 1


def finished(text: str = "", status: TurnStatus = TurnStatus.COMPLETE, **more) -> TurnFinished:
    return TurnFinished(
        TurnResult(text, status, "20261130-000000-abcdef", "turn1", "gpt-x", Usage(1200, 30, 900), **more)
    )


def played(events, *, live: bool) -> Page:
    page = Page()
    view = TurnView(page, live=live)
    for event in events:
        view.handle(event)
        view.flush()
    view.freeze()
    view.closed()
    return page


def test_streamed_text_is_one_output_with_the_whole_text_once():
    page = played([STARTED, *(TextDelta(f"word{i} ") for i in range(200)), finished()], live=True)
    assert page.markdown[0] == "".join(f"word{i} " for i in range(200))
    assert len(page.outputs) == 2
    assert page.outputs[0].data[MIME_TURN]["state"] == "done"


def test_headless_output_is_never_updated_and_its_data_is_the_same_every_time():
    events = [STARTED, TextDelta("a"), TextDelta("b"), TextDelta("\n\nc"), finished()]
    page = played(events, live=False)
    assert [o.updates for o in page.outputs] == [0, 0]
    assert page.markdown[0] == "ab\n\nc"
    stable = json.dumps([o.data for o in page.outputs])
    assert "turn1" not in stable and "abcdef" not in stable and "1,200" not in stable
    assert page.outputs[-1].metadata["hermes_nb"]["session"] == "20261130-000000-abcdef"


def test_a_long_text_is_frozen_in_blocks_that_join_to_the_text():
    text = "".join(f"paragraph {i} " + "x" * 700 + "\n\n" for i in range(30)) + "end"
    page = played([STARTED, *(TextDelta(text[i : i + 50]) for i in range(0, len(text), 50)), finished()], live=True)
    blocks = [o for o in page.outputs if o.data[MIME_TURN]["kind"] == "text"]
    assert len(blocks) >= 2
    assert "\n\n".join(o.data["text/markdown"] for o in blocks) == text


def test_a_tool_call_stands_between_the_texts_around_it():
    call = ToolCall("c1", "python", '{"code": "df.head()\\nx"}')
    page = played(
        [
            STARTED,
            TextDelta("before"),
            ToolStarted(call),
            ToolFinished(call, ToolResult("<b>3</b>"), 0.2),
            TextDelta("after"),
            finished(),
        ],
        live=True,
    )
    kinds = [o.data[MIME_TURN]["kind"] for o in page.outputs]
    assert kinds == ["text", "tool", "text", "turn"]
    tool = page.outputs[1]
    assert "df.head()" in tool.data["text/html"] and "&lt;b&gt;3&lt;/b&gt;" in tool.data["text/html"]
    assert tool.data[MIME_TURN]["state"] == "done"
    assert "0.2 s" in tool.data["text/plain"]


def test_headless_code_stands_above_its_output_and_other_tools_are_shown_once():
    code, read = ToolCall("c1", "python", '{"code":"1"}'), ToolCall("c2", "read_file", '{"path":"a.txt"}')
    page = Page()
    view = TurnView(page, live=False)
    view.handle(STARTED)
    view.handle(ToolStarted(code))
    assert len(page.outputs) == 1
    view.handle(ToolFinished(code, ToolResult("1"), 0.1))
    view.handle(ToolStarted(read))
    assert len(page.outputs) == 1
    view.handle(ToolFinished(read, ToolResult("text", is_error=True), 0.1))
    assert [o.data[MIME_TURN].get("tool") for o in page.outputs] == ["python", "read_file"]
    assert "failed" in page.outputs[1].data["text/plain"]


def test_the_waiting_line_gives_its_place_to_the_first_output():
    page = played([STARTED, ReasoningDelta("hm"), ReasoningDelta("hm"), TextDelta("hi"), finished()], live=True)
    assert page.markdown[0] == "hi"
    assert not any("asking" in text or "thinking" in text for text in page.markdown)


def asked(state: ApprovalState, by: str | None = None) -> ApprovalRequest:
    return ApprovalRequest("r1", "root", "python", {"code": "1"}, "hash", "why", None, state, by, 0.0, 9e9)


def played_question(state: ApprovalState, by: str, result: ToolResult) -> tuple[Page, list[str]]:
    """Return the page after a call that asked, and what stood in the call's place on the way."""
    page, seen = Page(), []
    view = TurnView(page, live=True)
    call = ToolCall("c1", "python", '{"code":"import os"}')
    for event in (STARTED, ToolStarted(call), ApprovalAsked(asked(ApprovalState.PENDING))):
        view.handle(event)
    view.ask({"text/plain": "Allow?", "application/vnd.jupyter.widget-view+json": {"model_id": "m"}})
    seen.append(page.outputs[0].data["text/plain"])
    for event in (ApprovalClosed(asked(state, by)), ToolFinished(call, result, 0.1)):
        view.handle(event)
        seen.append(page.outputs[0].data["text/plain"])
    return page, seen


def test_a_question_takes_the_place_of_its_call_and_leaves_no_widget():
    page, seen = played_question(ApprovalState.APPROVED, "phone", ToolResult("3", note="ok"))
    assert len(page.outputs) == 1
    assert seen[0] == "Allow?"
    assert "running" in seen[1]
    assert "python: import os [ok · approved (phone)" in seen[2]
    assert list(page.outputs[0].data) == ["text/plain", "text/html", MIME_TURN]


def test_a_denied_call_says_so_once():
    _, seen = played_question(ApprovalState.DENIED, "notebook", ToolResult("no", is_error=True, note="denied"))
    assert seen[2] == "python: import os [denied (notebook)]"


def test_a_call_that_got_no_result_does_not_look_alive():
    page = played([STARTED, ToolStarted(ToolCall("c1", "python", '{"code":"1"}'))], live=True)
    assert page.outputs[0].data["text/plain"] == "python: 1 [interrupted]"
    assert page.outputs[0].data[MIME_TURN]["state"] == "interrupted"


def test_the_line_of_a_call_says_how_much_it_hides():
    page = played([STARTED, ToolStarted(ToolCall("c1", "python", '{"code":"a = 1\\nb = 2\\nc"}'))], live=True)
    assert "a = 1 (+2 lines)" in page.outputs[0].data["text/plain"]
    empty = played([STARTED, ToolStarted(ToolCall("c1", "variables", "{}"))], live=True)
    assert "<code>" not in html_of(empty.outputs[0])


def test_a_waiting_line_that_nothing_replaced_is_removed():
    page = played([STARTED], live=True)
    assert page.outputs[0].data == {"text/plain": ""}


def test_the_footer_says_what_was_kept_and_how_the_turn_ended():
    page = played(
        [STARTED, TextDelta("x"), finished(status=TurnStatus.INTERRUPTED, persisted=("memory: 1 added",))], live=True
    )
    footer = page.outputs[-1].data["text/plain"]
    assert footer.startswith("interrupted · memory: 1 added · gpt-x · 1,200 tokens in (75 % cached), 30 out")
    assert page.outputs[0].data[MIME_TURN]["state"] == "interrupted"


def test_the_demo_model_is_named_in_every_run():
    started = TurnStarted("t", "s", "p", "smollm2", "offline demo model")
    for live in (True, False):
        assert "offline demo model" in played([started, TextDelta("x"), finished()], live=live).markdown[-1]


def test_words_of_a_notice_are_not_read_as_markdown():
    page = played([STARTED, Notice("cost_of *x* <b>", "warning")], live=False)
    assert page.markdown == ["**Warning:** cost\\_of \\*x\\* \\<b\\>"]


def test_arguments_that_are_no_json_are_shown_as_they_are():
    call = ToolCall("c1", "write_file", '{"path": "a.txt", ')
    page = played([STARTED, ToolStarted(call), ToolFinished(call, ToolResult("bad", is_error=True), 0.0)], live=True)
    assert html_of(page.outputs[0]).count("a.txt") >= 1


def html_of(shown: Shown) -> str:
    return shown.data["text/html"]
