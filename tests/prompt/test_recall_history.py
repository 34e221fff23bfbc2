"""Past messages as recall: what is found, and whose, and what never is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.types import NewMessage, Session
from hermes_nb.prompt.recall_history import HistoryRecall
from hermes_nb.prompt.recall_provider import RecallFacts, Snippet
from hermes_nb.store.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "state.db", user="ann") as store:
        yield store


def talk(store: Store, *texts: str, user: str | None = None) -> Session:
    session = store.create_session(user=user)
    for number, text in enumerate(texts):
        store.append(session.id, {"role": ("user", "assistant")[number % 2], "content": text})
    return session


def recall(store: Store, question: str, session: Session | None = None) -> list[Snippet]:
    session = session or store.create_session()
    facts = RecallFacts(store, "ann", session.id, session.root_id, rows=store.rows(session.id))
    return list(HistoryRecall().recall(question, facts, Cancel()))


def test_what_was_said_about_the_same_thing_comes_back_with_its_date(store: Store) -> None:
    talk(store, "Which colours for the churn dashboard?", "Use the viridis palette for the churn dashboard.")
    talk(store, "What is the weather?", "Sunny.")
    found = recall(store, "Make another figure for the churn dashboard please")
    assert {snippet.origin for snippet in found} == {"user said", "assistant said"}
    assert any("viridis" in snippet.text for snippet in found)
    assert all(snippet.timestamp and snippet.timestamp <= time.time() for snippet in found)


def test_chinese_is_found_by_its_pairs(store: Store) -> None:
    talk(store, "客户流失的仪表盘用什么颜色？", "客户流失仪表盘用绿色。")
    talk(store, "今天天气好吗", "晴。")
    assert any("绿色" in snippet.text for snippet in recall(store, "再画一张客户流失的图"))
    assert recall(store, "这个句子说的完全是另外一件事情") == []


@pytest.mark.parametrize("question", ["", "hi", "ok thanks", "继续", "and then?", "!!! ??? ...", "x" * 100_000])
def test_short_and_empty_questions_recall_nothing(store: Store, question: str) -> None:
    talk(store, "hi", "hello", "ok thanks", "继续")
    assert recall(store, question) == []


def test_one_word_by_chance_is_not_enough(store: Store) -> None:
    talk(store, "My grandmother bakes bread", "Nice.")
    assert recall(store, "Should the parser read grandmother nodes before children nodes") == []


def test_the_session_itself_and_what_it_branched_from_are_left_out(store: Store) -> None:
    own = talk(store, "the quarterly revenue forecast spreadsheet", "done with the quarterly revenue forecast")
    question = "Open the quarterly revenue forecast again"
    assert recall(store, question, own) == []
    branch = store.branch(own.id)
    assert recall(store, question, branch) == []
    store.append(own.id, {"role": "user", "content": "quarterly revenue forecast is wrong since March"})
    assert [snippet.text for snippet in recall(store, question, branch)] == [
        "quarterly revenue forecast is wrong since March"
    ]
    # A branch's copies of what stands here are no news either.
    assert recall(store, question, own) == []


def test_nobody_elses_messages_and_nothing_undone_is_recalled(store: Store) -> None:
    talk(store, "the zebra crossing simulation parameters", user="bob")
    mine = talk(store, "the zebra crossing simulation seed")
    question = "Run the zebra crossing simulation"
    assert [snippet.text for snippet in recall(store, question)] == ["the zebra crossing simulation seed"]
    store.undo(mine.id)
    assert recall(store, question) == []


def test_tool_output_is_not_recalled_and_copies_come_once(store: Store) -> None:
    session = talk(store, "load the penguin measurements table", "ok")
    store.append(session.id, {"role": "tool", "tool_call_id": "1", "content": "penguin measurements table 344 rows"})
    talk(store, "load the penguin measurements table", "ok")
    assert len(recall(store, "plot the penguin measurements table")) == 1


def test_the_same_store_gives_the_same_answer(store: Store) -> None:
    for number in range(30):
        talk(store, f"tune the boosting learner depth {number}", f"boosting learner depth {number} is fine")
    first = recall(store, "tune the boosting learner with another depth")
    assert 0 < len(first) <= 4
    assert first == recall(store, "tune the boosting learner with another depth")


def test_queries_syntax_in_a_question_is_only_words(store: Store) -> None:
    talk(store, 'the "weird" kangaroo OR NOT (wallaby) question')
    assert recall(store, 'NOT "kangaroo" AND (wallaby* OR') != []


@pytest.mark.slow
def test_a_large_store_answers_quickly(
    tmp_path: Path, size: Callable[[int, int], int], figure: Callable[[str, object], None]
) -> None:
    words = [f"{a}{b}{c}" for a in ("alpha", "bravo", "gamma") for b in ("net", "log", "map") for c in range(300)]
    with open_store(tmp_path / "large.db", user="ann") as store:
        total = size(5_000, 100_000)
        for start in range(0, total, 500):
            session = store.create_session()
            texts = [
                " ".join(words[(row * 7 + k * k * 13) % len(words)] for k in range(40))
                for row in range(start, start + 500)
            ]
            store.append_rows(session.id, [NewMessage({"role": "user", "content": text}) for text in texts])
        talk(store, "the rhododendron alphanet1 experiment", "rhododendron alphanet1 failed")
        question = "What came out of the rhododendron experiment with alphanet1 and bravolog17 and gammamap5"
        assert recall(store, question)
        spent: list[float] = []
        for _ in range(5):
            began = time.thread_time()
            recall(store, question)
            spent.append((time.thread_time() - began) * 1000)
        figure(f"recall of past messages among {total:,}, CPU ms", round(min(spent), 1))
