"""Memory files: edits under a lock, files that people edited by hand, budgets, and what a prompt shows."""

from __future__ import annotations

import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core.errors import StoreError
from hermes_nb.store.memory import MemoryStore
from hermes_nb.store.memory_text import DELIMITER, read, size, write


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(tmp_path / "memories" / "ada")


def put(store: MemoryStore, text: str | bytes, target: str = "memory") -> Path:
    path = store.path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_an_added_entry_is_on_disk_and_in_the_next_snapshot_with_the_budget(store: MemoryStore) -> None:
    outcome = store.add("memory", "  uses polars\nnot pandas \n")
    assert outcome.success
    assert outcome.persisted() == "memory: 1 entry added"
    assert store.entries() == ("uses polars\nnot pandas",)
    assert MemoryStore(store.folder).snapshot() == (
        f"{'═' * 46}\nMEMORY (your personal notes) [1% — 22/2,200 chars]\n{'═' * 46}\nuses polars\nnot pandas"
    )


def test_both_blocks_are_rendered_and_nothing_gives_an_empty_snapshot(store: MemoryStore) -> None:
    assert store.snapshot() == ""
    store.add("user", "Ada")
    store.add("memory", "x is y")
    store.add("memory", "z is w")
    snapshot = store.snapshot()
    assert snapshot.index("MEMORY (your") < snapshot.index("x is y\n§\nz is w") < snapshot.index("USER PROFILE (who")


def test_files_are_private_and_a_mode_that_was_set_is_kept(store: MemoryStore) -> None:
    store.add("memory", "a")
    assert stat.S_IMODE(store.path("memory").stat().st_mode) == 0o600
    store.path("memory").chmod(0o640)
    store.add("memory", "b")
    assert stat.S_IMODE(store.path("memory").stat().st_mode) == 0o640
    assert not list(store.folder.glob(".mem_*"))


def test_a_duplicate_is_a_success_that_writes_nothing(store: MemoryStore) -> None:
    store.add("memory", "a")
    before = store.path("memory").stat().st_mtime_ns
    outcome = store.add("memory", " a ")
    assert outcome.success
    assert "already exists" in outcome.message
    assert outcome.persisted() is None
    assert store.path("memory").stat().st_mtime_ns == before


def test_case_027_a_hand_edit_survives_a_replace_and_the_answer_says_that_the_file_had_changed(
    store: MemoryStore,
) -> None:
    store.add("memory", "old fact")
    store.snapshot()
    with store.path("memory").open("a", encoding="utf-8") as file:
        file.write("§\nwritten by hand,\n\nin two paragraphs\n")
    outcome = MemoryStore(store.folder).replace("memory", "old fact", "new fact")
    assert outcome.success
    assert store.entries() == ("new fact", "written by hand,\n\nin two paragraphs")
    assert any("had been changed" in warning for warning in outcome.as_dict()["warnings"])
    again = MemoryStore(store.folder).add("memory", "third")
    assert not again.warnings


def test_case_029_the_separator_inside_an_entry_is_refused_and_a_lone_sign_is_fine(store: MemoryStore) -> None:
    store.add("memory", "neighbour")
    for content in ("Deploy list:\n§\nmigrate first", "a\r\n § \r\nb", "§", "§\nx", "x\n§"):
        outcome = store.add("memory", content)
        assert not outcome.success
        assert "§" in outcome.message
    assert store.add("memory", "see § 5 of the law and §6").success
    assert store.entries() == ("neighbour", "see § 5 of the law and §6")


def test_case_031_a_replace_takes_the_whole_entry_and_returns_old_and_new_in_full(store: MemoryStore) -> None:
    store.add("memory", "tz: UTC; lang: fr; editor: vim")
    outcome = store.replace("memory", "lang: fr", "lang: de")
    assert outcome.as_dict()["replaced"] == [{"old": "tz: UTC; lang: fr; editor: vim", "new": "lang: de"}]


def test_case_032_at_the_limit_an_add_is_refused_with_the_entries_and_a_batch_gets_out(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, char_limit=200)
    store.add("memory", "a" * 100)
    store.add("memory", "b" * 77)
    refused = store.add("memory", "c" * 60)
    assert not refused.success
    assert refused.over_budget
    assert "180 of 200" in refused.message
    assert refused.as_dict()["current_entries"] == ["a" * 100, "b" * 77]
    failed = store.batch("memory", [{"action": "remove", "old_text": "bbb"}, {"action": "remove", "old_text": "nope"}])
    assert not failed.success
    assert failed.message.startswith("Operation 2: ")
    assert len(store.entries()) == 2
    done = store.batch("memory", [{"action": "add", "content": "c" * 60}, {"action": "remove", "old_text": "bbb"}])
    assert done.success
    assert store.entries() == ("a" * 100, "c" * 60)
    assert size(store.entries()) <= 200


def test_case_033_legacy_bytes_load_with_a_warning_and_are_copied_before_the_first_write(store: MemoryStore) -> None:
    path = put(store, b"prefers caf\xe9 mode")
    assert store.entries() == ("prefers caf\ufffd mode",)
    assert "not UTF-8" in store.warnings()[0]
    assert "not UTF-8" in store.snapshot()
    assert path.read_bytes() == b"prefers caf\xe9 mode"
    outcome = store.add("memory", "b")
    assert outcome.backup is not None
    assert outcome.backup.name.startswith("MEMORY.md.bak.")
    assert outcome.backup.read_bytes() == b"prefers caf\xe9 mode"
    assert store.entries() == ("prefers caf\ufffd mode", "b")


def test_case_034_long_markdown_without_separators_reaches_the_prompt_up_to_the_budget(store: MemoryStore) -> None:
    lines = [f"# Heading {n}\n- bullet {n} one {'x' * 40}\n- bullet {n} two {'y' * 40}" for n in range(30)]
    put(store, "\n".join(lines))
    snapshot = store.snapshot()
    assert "bullet 0 one" in snapshot
    assert "entries of MEMORY.md are left out" in snapshot
    assert len(snapshot) < 2200 + 600
    outcome = store.remove("memory", "bullet 0 one")
    assert outcome.success
    assert outcome.backup is not None
    assert "bullet 29 two" in store.path("memory").read_text(encoding="utf-8")


def test_short_markdown_without_separators_is_one_entry_as_it_is(store: MemoryStore) -> None:
    put(store, "# About\n\n- likes tea\n- hates `rm`\n")
    assert store.entries() == ("# About\n\n- likes tea\n- hates `rm`",)
    assert "- hates `rm`" in store.snapshot()


def test_case_037_an_entry_that_stands_twice_is_shown_once_and_removed_at_once(store: MemoryStore) -> None:
    path = put(store, "twin\n§\nother\n§\ntwin\n")
    assert store.entries() == ("twin", "other")
    assert store.snapshot().count("twin") == 1
    assert store.remove("memory", "twin").success
    assert path.read_text(encoding="utf-8") == "other\n"


def test_a_replace_that_makes_a_twin_leaves_one(store: MemoryStore) -> None:
    store.add("memory", "a")
    store.add("memory", "b")
    assert store.replace("memory", "a", "b").success
    assert store.entries() == ("b",)


def test_an_ambiguous_text_shows_the_matches_and_an_exact_one_wins(store: MemoryStore) -> None:
    store.add("memory", "uses vim at work " + "w" * 200)
    store.add("memory", "uses vim at home")
    store.add("memory", "vim")
    outcome = store.remove("memory", "uses vim")
    assert not outcome.success
    assert outcome.matches is not None
    assert len(outcome.matches) == 2
    assert all(len(match) <= 80 for match in outcome.matches)
    assert store.remove("memory", "vim").removed == ("vim",)


@pytest.mark.parametrize("old_text", ["", "  ", "absent"])
def test_a_missing_or_unknown_old_text_shows_the_entries(store: MemoryStore, old_text: str) -> None:
    store.add("memory", "a fact")
    for outcome in (store.remove("memory", old_text), store.replace("memory", old_text, "x")):
        assert not outcome.success
        assert outcome.current_entries == ("a fact",)


def test_a_file_over_its_budget_may_shrink_but_not_grow(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, char_limit=100)
    put(store, DELIMITER.join(["a" * 90, "b" * 90, "c" * 90]))
    assert store.add("memory", "d").over_budget
    assert store.remove("memory", "aaa").success
    assert store.replace("memory", "bbb", "B" * 20).success
    assert "are left out" in store.snapshot()


def test_a_huge_single_entry_is_cut_in_the_prompt(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path, char_limit=200)
    put(store, "x" * 5000 + "\n§\nshort")
    snapshot = store.snapshot()
    assert "[cut]" in snapshot
    assert len(snapshot) < 800


def test_a_batch_skips_duplicates_silently_and_refuses_unknown_actions(store: MemoryStore) -> None:
    store.add("memory", "a")
    done = store.batch(
        "memory", [{"action": "add", "content": "a"}, {"action": "patch", "old_text": "a", "content": "A"}]
    )
    assert done.success
    assert store.entries() == ("A",)
    assert not store.batch("memory", [{"action": "drop"}]).success
    assert not store.batch("memory", []).success


def test_windows_line_ends_and_a_mark_at_the_beginning_are_read(store: MemoryStore) -> None:
    put(store, "\ufeffa\r\n§\r\nb\r\n".encode())
    assert store.entries() == ("a", "b")


def test_a_linked_file_is_written_where_it_lies(store: MemoryStore, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.md"
    real.write_text("a\n", encoding="utf-8")
    store.folder.mkdir(parents=True)
    store.path("memory").symlink_to(real)
    store.add("memory", "b")
    assert store.path("memory").is_symlink()
    assert real.read_text(encoding="utf-8") == "a\n§\nb\n"


def test_an_unwritable_folder_is_a_clear_error_and_leaves_the_file(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match=r"was not written|cannot be read"):
        MemoryStore(blocked / "x").add("memory", "a")


def test_an_unknown_target_is_named(store: MemoryStore) -> None:
    with pytest.raises(StoreError, match="'skills'"):
        store.add("skills", "a")


def test_lone_surrogates_are_stored_as_replacement_signs(store: MemoryStore) -> None:
    store.add("memory", "a\ud800b")
    assert store.entries() == ("a\ufffdb",)


def test_failures_are_counted_per_turn(store: MemoryStore) -> None:
    assert [store.failed_again(turn) for turn in ("t1", "t1", "t2", "t2")] == [1, 2, 1, 2]
    store.succeeded()
    assert store.failed_again("t2") == 1


def _adds(folder: str, name: str) -> None:
    store = MemoryStore(Path(folder), char_limit=100_000)
    for number in range(10):
        assert store.add("memory", f"{name} {number}").success


def test_no_entry_is_lost_when_processes_write_at_the_same_time(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_adds, args=(os.fspath(tmp_path), name)) for name in ("a", "b", "c")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert len(MemoryStore(tmp_path, char_limit=100_000).entries()) == 30


@given(st.lists(st.text(min_size=1), max_size=8))
def test_whatever_is_written_reads_back(contents: list[str]) -> None:
    kept: list[str] = []
    for content in contents:
        text = content.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n").strip()
        if text and not any(line.strip() == "§" for line in text.split("\n")) and text not in kept:
            kept.append(text)
    again = read(write(kept), "MEMORY.md", 10**9)
    assert list(again.entries) == kept
    assert again.plain


@given(st.binary(max_size=300), st.integers(1, 200))
def test_no_bytes_make_reading_or_showing_fail(raw: bytes, limit: int) -> None:
    text = read(raw, "MEMORY.md", limit)
    assert all(entry.strip() == entry and entry for entry in text.entries)
    assert len(set(text.entries)) == len(text.entries)
