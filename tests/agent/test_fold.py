from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.agent.events import ReasoningDelta, TextDelta
from hermes_nb.agent.fold import Fold
from hermes_nb.agent.thinking import ThinkingFilter
from hermes_nb.core.types import Usage
from hermes_nb.core.wirejson import dumps


def chunk(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def folded(*chunks: dict[str, Any], **options: Any) -> Fold:
    fold = Fold(**options)
    for one in chunks:
        fold.feed(one)
    fold.close()
    return fold


def text_of(*pieces: str) -> Fold:
    return folded(*(chunk(content=piece) for piece in pieces))


def calls(*deltas: dict[str, Any]) -> list[tuple[str, str, str]]:
    fold = folded(*(chunk(tool_calls=[one]) for one in deltas))
    return [(call.id, call.name, call.arguments) for call in fold.tool_calls]


def test_usage_in_a_chunk_without_choices_is_counted() -> None:
    """Case 069."""
    fold = folded(
        {"choices": [{"index": 0, "delta": {"content": "ok"}}]},
        {"choices": [{"index": 0, "delta": {"content": None}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1, "completion_tokens_details": None}},
    )
    assert (fold.text, fold.usage, fold.finish_reason) == ("ok", Usage(3, 1), "stop")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, Usage()),
        ({"prompt_tokens": None, "completion_tokens": "many"}, Usage()),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4.0,
                "prompt_tokens_details": {"cached_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(9, 4, 8, 2),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 7}, Usage(9, 0, 7)),
        ({"prompt_tokens": float("nan"), "completion_tokens": -1}, Usage()),
    ],
)
def test_usage_of_any_shape_is_read_or_left_out(usage: Any, expected: Usage | None) -> None:
    assert folded(chunk(content="x"), {"choices": [], "usage": usage}).usage == expected


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"choices": None},
        {"choices": [None, 1, "x"]},
        {"choices": {}},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": 5, "tool_calls": {"a": 1}, "reasoning": []}}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [{"index": 1, "delta": {"content": "second choice"}}]},
    ],
)
def test_chunks_of_an_unexpected_shape_are_skipped(junk: dict[str, Any]) -> None:
    fold = folded(chunk(content="a"), junk, chunk("stop", content="b"))
    assert (fold.text, fold.tool_calls, fold.finish_reason) == ("ab", [], "stop")


def test_tool_call_deltas_without_index_make_one_call() -> None:
    """Case 070."""
    assert calls(
        {"id": "a", "function": {"name": "get", "arguments": ""}},
        {"function": {"arguments": '{"k":'}},
        {"function": {"arguments": "1}"}},
    ) == [("a", "get", '{"k":1}')]


def test_two_calls_without_index_are_told_apart_by_their_ids() -> None:
    assert calls(
        {"id": "a", "function": {"name": "get", "arguments": "{}"}},
        {"id": "b", "function": {"name": "put", "arguments": '{"k"'}},
        {"id": "b", "function": {"arguments": ":2}"}},
    ) == [("a", "get", "{}"), ("b", "put", '{"k":2}')]


def test_two_whole_calls_with_the_same_index_stay_two() -> None:
    assert calls(
        {"index": 0, "id": "a", "function": {"name": "get", "arguments": '{"k":1}'}},
        {"index": 0, "id": "b", "function": {"name": "get", "arguments": '{"k":2}'}},
    ) == [("a", "get", '{"k":1}'), ("b", "get", '{"k":2}')]
    without_ids = calls(
        {"index": 0, "function": {"name": "get", "arguments": '{"k":1}'}},
        {"index": 0, "function": {"name": "get", "arguments": '{"k":2}'}},
    )
    assert [arguments for _, _, arguments in without_ids] == ['{"k":1}', '{"k":2}']
    assert len({id for id, _, _ in without_ids}) == 2, "missing ids are made up, each its own"


def test_a_new_id_on_every_delta_and_a_repeated_name_are_one_call() -> None:
    assert calls(
        {"index": 0, "id": "a", "function": {"name": "get", "arguments": '{"k"'}},
        {"index": 0, "id": "b", "function": {"name": None, "arguments": ":1}"}},
    ) == [("a", "get", '{"k":1}')]
    assert calls(
        {"index": 0, "id": "a", "function": {"name": "get", "arguments": '{"k"'}},
        {"index": 0, "id": "a", "function": {"name": "get", "arguments": ":1}"}},
    ) == [("a", "get", '{"k":1}')]


def test_interleaved_calls_are_kept_apart_by_index() -> None:
    assert calls(
        {"index": 1, "id": "b", "function": {"name": "put", "arguments": "{"}},
        {"index": 0, "id": "a", "function": {"name": "get", "arguments": "{"}},
        {"index": 1, "function": {"arguments": "}"}},
        {"index": 0, "function": {"arguments": "}"}},
    ) == [("b", "put", "{}"), ("a", "get", "{}")]


@pytest.mark.parametrize("arguments", ["", "  ", "null", None])
def test_empty_arguments_are_an_empty_object(arguments: str | None) -> None:
    """Case 056."""
    fold = folded(chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "now", "arguments": arguments}}]))
    assert fold.tool_calls[0].arguments == "{}"
    assert fold.wire()["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_that_came_as_an_object_become_text() -> None:
    assert calls({"index": 0, "id": "a", "function": {"name": "get", "arguments": {"k": "é"}}}) == [
        ("a", "get", '{"k":"é"}')
    ]


@pytest.mark.parametrize("raw", ['{"k": "cut', "[1]", '"text"', "{'k': 1}"])
def test_malformed_arguments_reach_the_tool_as_they_are_and_the_history_as_json(raw: str) -> None:
    fold = folded(chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "get", "arguments": raw}}]))
    assert fold.tool_calls[0].arguments == raw
    assert json.loads(fold.wire()["tool_calls"][0]["function"]["arguments"]) == {"invalid_arguments": raw}


def test_a_made_up_tool_name_cannot_block_the_session() -> None:
    assert calls({"index": 0, "id": "a", "function": {"name": "python<|channel|>x", "arguments": "{}"}}) == [
        ("a", "python__channel__x", "{}")
    ]


@pytest.mark.parametrize("raw", ['{"job":"a\\ud800"}', '{"job":"a\ud800"}'])
def test_a_lone_surrogate_in_arguments_becomes_a_replacement_character(raw: str) -> None:
    """Case 082."""
    fold = folded(chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "get", "arguments": raw}}]))
    assert json.loads(fold.tool_calls[0].arguments) == {"job": "a\ufffd"}
    dumps(fold.wire()).encode()
    json.loads(fold.wire()["tool_calls"][0]["function"]["arguments"])["job"].encode()


def test_escaped_pairs_in_arguments_stay_as_they_came() -> None:
    raw = '{"job": "\\ud83d\\ude42"}'
    assert calls({"index": 0, "id": "a", "function": {"name": "get", "arguments": raw}}) == [("a", "get", raw)]


def test_a_surrogate_pair_that_two_chunks_split_is_one_character() -> None:
    assert text_of("hi \ud83d", "\ude42!").text == "hi 🙂!"
    assert text_of("hi \ud83d").text == "hi \ufffd"
    assert text_of("a\udc00b").text == "a\ufffdb"
    fold = folded(chunk(reasoning_content="\ud83d"), chunk(reasoning_content="\ude42"))
    assert fold.wire()["reasoning_content"] == "🙂"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_under_the_name_it_came_with(name: str) -> None:
    """Case 074."""
    made = {"index": 0, "id": "a", "function": {"name": "get", "arguments": "{}"}}
    chunks = (chunk(**{name: "pl"}), chunk(**{name: "an"}), chunk("tool_calls", tool_calls=[made]))
    wire = folded(*chunks).wire()
    assert list(wire) == ["role", "content", name, "tool_calls"]
    assert (wire[name], wire["content"]) == ("plan", None)
    assert name not in folded(*chunks, keep_reasoning=False).wire()


def test_reasoning_under_two_names_counts_once() -> None:
    fold = folded(chunk(reasoning_content="plan", reasoning="plan"), chunk(reasoning="!", reasoning_content="!"))
    assert fold.reasoning == "plan!"


def test_reasoning_details_and_signatures_are_kept_for_the_next_request() -> None:
    fold = folded(
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "a"}]),
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "b", "signature": "s"}]),
        chunk(tool_calls=[{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"},
                           "extra_content": {"google": {"thought_signature": "t"}}}]),
    )  # fmt: skip
    wire = fold.wire()
    assert wire["reasoning_details"] == [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"}]
    assert wire["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "t"}}


def test_content_in_parts_and_refusals_are_text() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "plan"}]}, {"type": "text", "text": "Hi"}]
    fold = folded(chunk(content=parts), chunk("stop", refusal=" No."))
    assert (fold.text, fold.reasoning) == ("Hi No.", "plan")


def test_a_whole_completion_is_folded_like_a_stream() -> None:
    message = {"role": "assistant", "content": "<think>x</think>Hi", "tool_calls": None}
    fold = folded({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    assert (fold.text, fold.reasoning, fold.finish_reason) == ("Hi", "x", "stop")


THINKING = [
    ("<think>plan</think>Hi", "Hi", "plan", False),
    ("<think>plan", "", "plan", True),
    ("Hi</think> there", "Hi there", "", False),
    ("<think>\nplan\n</think>\n\nHi", "Hi", "plan", False),
    ("<Thinking>plan</THINKING >Hi", "Hi", "plan", False),
    ("Hi <think>plan</think>there", "Hi there", "plan", False),
    ("a\n<think>plan</think>\nb", "a\n\nb", "plan", False),
    ("The <think> tag is odd", "The <think> tag is odd", "", False),
    ("Use `<think>` here", "Use `<think>` here", "", False),
    ("``a ` <think>b`` </think>c", "``a ` <think>b`` c", "", False),
    ("```xml\n<think>plan</think>\n```\nHi", "```xml\n<think>plan</think>\n```\nHi", "", False),
    ("~~~\n<think>\n~~~\n<think>x</think>y", "~~~\n<think>\n~~~\ny", "x", False),
    ("````\n```\n<think>\n````\nok", "````\n```\n<think>\n````\nok", "", False),
    ("```a``` and\n<think>x</think>y", "```a``` and\ny", "x", False),
    ("a lone ` here\n<think>x</think>y", "a lone ` here\ny", "x", False),
    ("a < b and <b>bold</b> <thin", "a < b and <b>bold</b> <thin", "", False),
    ("<think></think>", "", "", False),
    ("<think>a</think><think>b</think>c", "c", "ab", False),
    ("x <think", "x <think", "", False),
    ("if a<think>b:", "if a<think>b:", "", False),
]


@pytest.mark.parametrize(("raw", "text", "reasoning", "unclosed"), THINKING)
@pytest.mark.parametrize("size", [1000, 1, 2, 3, 5])
def test_inline_thinking_is_taken_out_however_it_is_cut(
    raw: str, text: str, reasoning: str, unclosed: bool, size: int
) -> None:
    """Case 075."""
    fold = Fold()
    deltas = [d for i in range(0, len(raw), size) for d in fold.feed(chunk(content=raw[i : i + size]))]
    deltas += fold.close()
    assert (fold.text, fold.reasoning, fold.unclosed_thinking) == (text, reasoning, unclosed)
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == text
    assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)).strip() == reasoning
    assert fold.wire() == {"role": "assistant", "content": text}, "inline reasoning is never sent back"


@given(st.lists(st.sampled_from(["<think>", "</think>", "`", "```", "\n", " ", "a", "<", "~~~", "x\n"])), st.data())
def test_the_way_of_cutting_never_changes_what_is_visible(pieces: list[str], data: st.DataObject) -> None:
    raw = "".join(pieces)
    whole = ThinkingFilter()
    expected = [*whole.feed(raw), *whole.close()]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    cut_filter = ThinkingFilter()
    got = [p for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) for p in cut_filter.feed(raw[a:b])]
    got += cut_filter.close()

    def seen(some: list[Any], reasoning: bool) -> str:
        return "".join(p.text for p in some if p.reasoning is reasoning)

    assert seen(got, False) == seen(expected, False)
    assert seen(got, True) == seen(expected, True)
    assert cut_filter.unclosed == whole.unclosed


def test_text_is_shown_while_it_streams() -> None:
    fold = Fold()
    assert fold.feed(chunk(content="Hello ")) == [TextDelta("Hello ")]
    assert fold.feed(chunk(content="a <")) == [TextDelta("a ")]
    assert fold.feed(chunk(content="b")) == [TextDelta("<b")]


def test_the_partial_message_can_be_had_without_its_open_calls() -> None:
    fold = folded(chunk(content="Let me"), chunk(tool_calls=[{"index": 0, "function": {"name": "get"}}]))
    assert fold.finish_reason is None
    assert fold.wire(tool_calls=False) == {"role": "assistant", "content": "Let me"}
