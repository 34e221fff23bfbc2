"""The fence of the recall block: nobody else's text carries it in, and no answer carries a block out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.prompt.fence import HELD, Scrubber, defang

BLOCK = "<recall>\nsurface: notebook\nrecall from history: x\n  y\n  \n  z\n</recall>\n\n"


def scrub(*pieces: str) -> str:
    scrubber = Scrubber()
    return "".join([*(scrubber.feed(piece) for piece in pieces), scrubber.close()])


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        (BLOCK + "Hello.", "Hello."),
        ("Before.\n\n" + BLOCK + "After.", "Before.\n\nAfter."),
        ("a <recall>surface: x</recall> b", "a  b"),
        ("<RECALL>\nx\n</ Recall >done", "done"),
        ("<recall>\nx: leaked and never closed\n\nThe answer.", "The answer."),
        ("<recall>\nx: cut off", ""),
        (BLOCK + BLOCK + "two", "two"),
        ("The tag <recall> opens it.\n\nMore <recall>.", "The tag <recall> opens it.\n\nMore <recall>."),
        ("Write `<recall>` and `</recall>`.", "Write `<recall>` and `</recall>`."),
        ("if a <b and c< recall:", "if a <b and c< recall:"),
        ("</recall> alone", "</recall> alone"),
        ("<recaller>x</recaller>", "<recaller>x</recaller>"),
        ("世界<recall>秘密</recall>。", "世界。"),
        ("", ""),
    ],
)
def test_spans_go_and_the_rest_stays_however_the_answer_is_split(said: str, seen: str) -> None:
    assert scrub(said) == seen
    assert scrub(*said) == seen
    for at in range(len(said)):
        assert scrub(said[:at], said[at:]) == seen


@given(st.lists(st.sampled_from(["<", "recall", ">", "</", "\n", "\n\n", " ", "`", "x", BLOCK, "世"]), max_size=30))
def test_how_an_answer_is_split_changes_nothing(pieces: list[str]) -> None:
    assert scrub(*pieces) == scrub("".join(pieces)) == scrub(*"".join(pieces))


def test_text_without_a_tag_is_passed_on_at_once() -> None:
    scrubber = Scrubber()
    assert scrubber.feed("a < b") == "a < b"
    assert scrubber.feed("x <rec") == "x "
    assert scrubber.feed("ord>") == "<record>"


def test_an_endless_span_is_not_waited_for_without_end() -> None:
    scrubber = Scrubber()
    seen = scrubber.feed("<recall>\n" + "x" * (3 * HELD))
    assert seen
    assert "recall" not in seen + scrubber.close()


@pytest.mark.parametrize(
    "text", ["<recall>", "</recall>", "< / RECALL >", "<recall x=1>", "\uff1c/recall\uff1e", "a</recall\t>b"]
)
def test_defanged_text_has_no_fence_and_stays_so(text: str) -> None:
    safe = defang(text)
    assert "<" not in safe
    assert "\uff1c" not in safe
    assert "ecall" in safe.lower()
    assert defang(safe) == safe


def test_other_text_is_not_touched() -> None:
    assert defang("a < b > recall <recaller>") == "a < b > recall <recaller>"
