"""read_file, write_file and the diff for the question: real files, odd bytes, large files, failures."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_nb.core.errors import Cancelled, ToolArgumentsInvalid, ToolError
from hermes_nb.core.names import MAX_TOOL_RESULT
from hermes_nb.core.types import ToolResult
from hermes_nb.tools.builtin import files
from hermes_nb.tools.preview import diff_of
from hermes_nb.tools.tool import ToolContext

READ, WRITE = files.TOOLS


def read(context: ToolContext, path: str, **options: Any) -> str:
    result = READ.handler(context, path=path, **options)
    assert isinstance(result, ToolResult)
    assert len(result.content) <= MAX_TOOL_RESULT
    return result.content


def write(context: ToolContext, path: str, content: str) -> ToolResult:
    result = WRITE.handler(context, path=path, content=content)
    assert isinstance(result, ToolResult)
    return result


def test_a_written_file_reads_back_and_folders_are_made(context: ToolContext, workspace: Path) -> None:
    result = write(context, "a/b/c.txt", "one\ntwo\n")
    assert result.note == "c.txt written, 2 lines"
    assert read(context, "a/b/c.txt") == "one\ntwo"
    assert read(context, str(workspace / "a/b/../b/c.txt")) == "one\ntwo"
    assert write(context, "a/b/c.txt", "x").note == "c.txt replaced, 1 line"


def test_bytes_on_disk_are_exactly_the_content(context: ToolContext, workspace: Path) -> None:
    write(context, "x.txt", "a\r\nb\n\u4f60\u597d \U0001f600 no end")
    assert (workspace / "x.txt").read_bytes() == "a\r\nb\n\u4f60\u597d \U0001f600 no end".encode()
    write(context, "y.txt", "a\ud800")
    assert (workspace / "y.txt").read_text(encoding="utf-8") == "a\ufffd"


def test_home_and_parents_are_followed(context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "note.txt").write_text("hi", encoding="utf-8")
    assert read(context, "~/note.txt") == "hi"
    assert read(context, "../note.txt") == "hi"


def test_pages_of_a_long_file_join_to_the_whole(context: ToolContext, workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 5002)), encoding="utf-8")
    first = read(context, "long.txt")
    assert first.splitlines()[1999] == "line 2000"
    assert first.endswith("[long.txt: lines 1 to 2000; go on with start=2001]")
    assert read(context, "long.txt", start=5001).startswith("line 5001\n[long.txt: lines 5001 to 5001, the end")
    assert "fewer than 6000 lines" in read(context, "long.txt", start=6000)
    assert read(context, "long.txt", start=7, lines=2).startswith("line 7\nline 8\n[")


def test_the_size_of_a_page_is_bounded_too(context: ToolContext, workspace: Path) -> None:
    (workspace / "wide.txt").write_text(("x" * 1500 + "\n") * 500, encoding="utf-8")
    text = read(context, "wide.txt")
    assert "go on with start=66" in text or "go on with start=67" in text


def test_one_enormous_line_is_cut_and_the_next_is_still_read(context: ToolContext, workspace: Path) -> None:
    (workspace / "min.json").write_text("y" * 3_000_000 + "\nlast", encoding="utf-8")
    text = read(context, "min.json")
    assert "[line cut]" in text
    assert "\nlast\n" in text
    assert len(text) < 3_000
    assert read(context, "min.json", start=2).startswith("last")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", "[x: the file is empty]"),
        (b"a\r\nb\r\n", "a\nb"),
        (b"\xef\xbb\xbfbom", "bom"),
        ("\u4f60\u597d".encode("utf-16"), "\u4f60\u597d"),
        ("a\nb".encode("utf-16-be"), None),
        (b"\xfe\xff" + "a\nb".encode("utf-16-be"), "a\nb"),
    ],
)
def test_encodings_and_line_ends(context: ToolContext, workspace: Path, raw: bytes, expected: str | None) -> None:
    (workspace / "x").write_bytes(raw)
    if expected is None:
        with pytest.raises(ToolError, match="binary"):
            read(context, "x")
    else:
        assert read(context, "x") == expected


def test_bytes_that_are_not_utf8_are_shown_as_replacement_and_said(context: ToolContext, workspace: Path) -> None:
    (workspace / "latin.txt").write_bytes(b"caf\xe9\n")
    text = read(context, "latin.txt")
    assert text.startswith("caf\ufffd\n[latin.txt: ")
    assert "not UTF-8" in text
    (workspace / "fine.txt").write_bytes("already \ufffd".encode())
    assert read(context, "fine.txt") == "already \ufffd"


def test_binary_files_folders_pipes_and_missing_files_are_told_apart(context: ToolContext, workspace: Path) -> None:
    (workspace / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (workspace / "report.txt").write_text("x", encoding="utf-8")
    os.mkfifo(workspace / "pipe")
    for path, words in [
        ("a.png", "binary"),
        (".", r"folder.*a\.png, pipe, report\.txt"),
        ("pipe", "not a regular file"),
        ("reprot.txt", r"Did you mean 'report\.txt'"),
        ("no/such/thing", "no file"),
        ("report.txt/x", "cannot be read|no file"),
    ]:
        with pytest.raises(ToolError, match=words):
            read(context, path)
    with pytest.raises(ToolError, match="folder"):
        write(context, ".", "x")
    with pytest.raises(ToolError, match="not a regular file"):
        write(context, "pipe", "x")


def test_positions_before_the_first_line_are_refused(context: ToolContext, workspace: Path) -> None:
    (workspace / "x").write_text("a", encoding="utf-8")
    for options in ({"start": 0}, {"lines": 0}, {"start": -5}):
        with pytest.raises(ToolArgumentsInvalid):
            read(context, "x", **options)


def test_secrets_in_files_are_masked_and_cannot_be_lost_by_writing_back(context: ToolContext, workspace: Path) -> None:
    (workspace / "conf.yml").write_text("host: a\napi_key: 'abcd1234efgh'\n", encoding="utf-8")
    text = read(context, "conf.yml")
    assert "abcd1234efgh" not in text
    assert "secrets are shown as [masked]" in text
    with pytest.raises(ToolError, match="would be lost"):
        write(context, "conf.yml", "host: b\napi_key: '[masked]'\n")
    assert "abcd1234efgh" in (workspace / "conf.yml").read_text(encoding="utf-8")


def test_the_mode_is_kept_and_a_link_stays_a_link(context: ToolContext, workspace: Path, tmp_path: Path) -> None:
    target = tmp_path / "real.sh"
    target.write_text("x", encoding="utf-8")
    target.chmod(0o750)
    (workspace / "link.sh").symlink_to(target)
    write(context, "link.sh", "new")
    assert (workspace / "link.sh").is_symlink()
    assert target.read_text(encoding="utf-8") == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


def test_a_new_file_gets_the_mode_that_the_umask_gives(context: ToolContext, workspace: Path) -> None:
    (workspace / "plain").touch()
    write(context, "new", "x")
    assert stat.S_IMODE((workspace / "new").stat().st_mode) == stat.S_IMODE((workspace / "plain").stat().st_mode)


def test_a_failed_write_leaves_what_was_there_and_no_rest(context: ToolContext, workspace: Path) -> None:
    (workspace / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ToolError, match=r"unchanged|cannot be written"):
        write(context, "file/below", "x")
    with pytest.raises(ToolError):
        write(context, "n" * 300, "x")
    assert [entry.name for entry in workspace.iterdir()] == ["file"]


def test_a_cancelled_turn_writes_nothing(context: ToolContext, workspace: Path) -> None:
    context.cancel.cancel()
    with pytest.raises(Cancelled):
        write(context, "x", "y")
    assert not (workspace / "x").exists()


def test_the_diff_shows_what_would_change(context: ToolContext, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    diff = diff_of(WRITE, {"path": "a.txt", "content": "one\n2\nthree\nfour"}, cwd=workspace)
    assert diff is not None
    assert "-two\n+2\n" in diff
    assert "No newline" in diff
    new = diff_of(WRITE, {"path": "b/c.txt", "content": "x\n"}, cwd=workspace)
    assert new is not None
    assert new.startswith("--- /dev/null\n")
    assert new.endswith("+x\n")
    assert "no change" in str(diff_of(WRITE, {"path": "a.txt", "content": "one\ntwo\nthree\n"}, cwd=workspace))
    assert diff_of(READ, {"path": "a.txt"}, cwd=workspace) is None


def test_the_diff_is_masked_bounded_and_never_fails(context: ToolContext, workspace: Path) -> None:
    (workspace / "k.yml").write_text("password: 'correcthorse1'\n", encoding="utf-8")
    assert "correcthorse1" not in str(diff_of(WRITE, {"path": "k.yml", "content": "x"}, cwd=workspace))
    (workspace / "big").write_bytes(b"x\n" * 2_000_000)
    assert "too large" in str(diff_of(WRITE, {"path": "big", "content": "x"}, cwd=workspace))
    long = "\n".join(map(str, range(50_000)))
    assert len(str(diff_of(WRITE, {"path": "n", "content": long}, cwd=workspace))) <= 40_100
    for path in (".", "a\0b", "k.yml/x"):
        assert diff_of(WRITE, {"path": path, "content": "x"}, cwd=workspace)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(raw=st.binary(max_size=400), start=st.integers(1, 9), lines=st.integers(1, 9))
def test_no_bytes_make_reading_fail_otherwise(
    context: ToolContext, workspace: Path, raw: bytes, start: int, lines: int
) -> None:
    (workspace / "any").write_bytes(raw)
    try:
        read(context, "any", start=start, lines=lines)
    except ToolError as error:
        assert "binary" in str(error)  # noqa: PT017 - reading may also succeed
