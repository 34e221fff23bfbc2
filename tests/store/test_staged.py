"""Staged edits: they wait, are decided once, and are applied to what is there now."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes_nb.core.errors import InvalidTransition, StoreError
from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.staged import DRIFT, StagedEdit
from hermes_nb.store.store import Store, open_store


@pytest.fixture
def memory(tmp_path: Path) -> MemoryStore:
    return MemoryStore(tmp_path / "memories", char_limit=200)


def stage(store: Store, memory: MemoryStore, *operations: dict[str, str], target: str = "memory") -> StagedEdit:
    preview = memory.preview(target, operations)
    assert preview.outcome.success
    return store.staged.add_memory(memory, preview)


ADD = {"action": "add", "content": "likes tea"}


def test_case_137_a_staged_edit_has_an_id_and_a_diff_and_is_written_only_when_accepted(
    store: Store, memory: MemoryStore
) -> None:
    memory.add("memory", "uses vim")
    edit = stage(store, memory, ADD)
    assert memory.entries() == ("uses vim",)
    assert edit.diff.splitlines()[-2:] == ["+§", "+likes tea"]
    assert [one.id for one in store.staged.list()] == [edit.id]
    outcome = store.staged.accept(edit.id, memory)
    assert outcome.success
    assert not outcome.warnings
    assert memory.entries() == ("uses vim", "likes tea")
    assert store.staged.list() == []
    assert store.staged.get(edit.id).state == "accepted"


def test_case_137_a_rejected_edit_leaves_no_trace_of_its_text(store: Store, memory: MemoryStore) -> None:
    edit = stage(store, memory, ADD)
    assert store.staged.reject(edit.id)
    assert not store.staged.reject(edit.id)
    assert memory.entries() == ()
    assert "tea" not in str(store.staged.get(edit.id))
    with pytest.raises(InvalidTransition, match="rejected"):
        store.staged.accept(edit.id, memory)


def test_the_same_edit_waits_once(store: Store, memory: MemoryStore) -> None:
    assert stage(store, memory, ADD).id == stage(store, memory, ADD).id
    assert len(store.staged.list()) == 1


def test_an_edit_is_decided_once_however_many_accept_it(path: Path, store: Store, memory: MemoryStore) -> None:
    edit = stage(store, memory, ADD)
    results: list[str] = []

    def accept() -> None:
        with open_store(path, user="ada") as other:
            try:
                results.append("done" if other.staged.accept(edit.id, MemoryStore(memory.folder)).changed else "same")
            except InvalidTransition:
                results.append("late")

    threads = [threading.Thread(target=accept) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["done", "late", "late", "late"]
    assert memory.entries() == ("likes tea",)


def test_drift_is_said_and_the_other_change_is_kept(store: Store, memory: MemoryStore) -> None:
    memory.add("memory", "uses vim")
    edit = stage(store, memory, {"action": "replace", "old_text": "vim", "content": "uses emacs"})
    memory.add("memory", "written meanwhile")
    outcome = store.staged.accept(edit.id, memory)
    assert outcome.success
    assert DRIFT in outcome.warnings
    assert memory.entries() == ("uses emacs", "written meanwhile")


def test_an_entry_that_was_changed_since_is_not_taken_for_the_one_in_the_diff(
    store: Store, memory: MemoryStore
) -> None:
    memory.add("memory", "uses vim")
    edit = stage(store, memory, {"action": "remove", "old_text": "vim"})
    memory.replace("memory", "uses vim", "uses vim, and never remove this")
    with pytest.raises(StoreError, match="changed since"):
        store.staged.accept(edit.id, memory)
    assert memory.entries() == ("uses vim, and never remove this",)
    assert [one.id for one in store.staged.list()] == [edit.id]


def test_an_edit_that_no_longer_fits_stays_waiting_and_says_why(store: Store, memory: MemoryStore) -> None:
    edit = stage(store, memory, {"action": "add", "content": "x" * 150})
    memory.add("memory", "y" * 100)
    outcome = store.staged.accept(edit.id, memory)
    assert not outcome.success
    assert outcome.over_budget
    assert store.staged.get(edit.id).state == "pending"


def test_an_accept_that_broke_off_after_the_file_was_written_can_be_repeated(store: Store, memory: MemoryStore) -> None:
    memory.add("memory", "uses vim")
    edit = stage(store, memory, {"action": "replace", "old_text": "vim", "content": "uses emacs"})
    memory.replace("memory", "uses vim", "uses emacs")
    assert store.staged.accept(edit.id, memory).success
    assert memory.entries() == ("uses emacs",)


def test_nobody_sees_or_decides_the_edits_of_another_user(path: Path, store: Store, memory: MemoryStore) -> None:
    edit = stage(store, memory, ADD)
    with open_store(path, user="eve") as other:
        assert other.staged.list() == []
        assert not other.staged.reject(edit.id)
        with pytest.raises(StoreError, match="no staged edit"):
            other.staged.accept(edit.id, memory)


def test_a_beginning_of_an_id_is_enough_and_an_unknown_one_names_what_waits(store: Store, memory: MemoryStore) -> None:
    edit = stage(store, memory, ADD)
    assert store.staged.find(edit.id[:6]).id == edit.id
    for ref in ("", "nope"):
        with pytest.raises(StoreError, match=edit.id):
            store.staged.find(ref)
