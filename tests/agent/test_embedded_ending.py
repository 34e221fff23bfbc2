"""The demo model's words end at a repetition or a whole sentence."""

from __future__ import annotations

import re

import pytest

from hermes_nb.agent.embedded.ending import Ending


def said(text: str, *, limit: bool = False) -> tuple[str, bool]:
    """Return what is shown of ``text``, fed in small pieces, and whether it was ended early."""
    ending = Ending()
    shown = ""
    for piece in re.findall(r"\s*\S{1,4}|\s+", text):
        shown += ending.feed(piece)
        if ending.ended:
            return shown, True
    return shown + ((ending.cut() or "") if limit else ending.finish()), False


GOOD = [
    "Hello! How can I help you?",
    "A list:\n1. apples\n2. pears\n3. plums\n4. figs\n5. nuts",
    "```python\nfor a in x:\n    print(a)\nfor b in y:\n    print(b)\n```\nThat is it.",
    "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]",
    "日本語です。そうです。",
    "Version 3.11 is fine. Pi is 3.14159.",
    "No, no. Yes, yes.",
]


@pytest.mark.parametrize("text", GOOD)
def test_a_good_answer_is_shown_whole(text: str) -> None:
    assert said(text) == (text, False)


def test_a_sentence_that_comes_again_is_not_shown() -> None:
    text = "It is a number. It holds a value. It is a number. It holds a value."
    assert said(text) == ("It is a number. It holds a value.", True)
    assert said("It is a number. It is a number.")[0] == "It is a number."


def test_a_list_that_only_counts_up_ends() -> None:
    text = "The variables are:\n" + "".join(f'- "{number}"\n' for number in range(1, 70))
    assert said(text) == ('The variables are:\n- "1"\n- "2"\n- "3"', True)


def test_words_that_go_round_in_one_sentence_end() -> None:
    shown, ended = said("I am a list of items and " + "a list of a list of " * 50)
    assert ended
    assert len(shown) < 80
    assert said("Well. " + "and so on " * 50) == ("Well.", True)
    assert said("1, 2, " * 200)[1]


def test_code_that_repeats_ends_with_its_fence_closed() -> None:
    text = "Look:\n```python\nx = 1\n" + "y = a + b\nprint(y)\n" * 20
    shown, ended = said(text)
    assert ended
    assert shown.endswith("\n```")
    assert shown.count("print(y)") <= 3


def test_a_limit_cuts_after_the_last_whole_sentence() -> None:
    assert said("It is good. It is very", limit=True) == ("It is good.", False)
    ending = Ending()
    assert ending.feed("It is") == "It is"
    assert ending.cut() is None


def test_an_answer_of_white_space_or_nothing_does_no_harm() -> None:
    assert said("") == ("", False)
    assert said(" \n \n")[0] == ""
