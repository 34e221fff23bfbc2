"""What the user is shown before saying yes: all of what will run or be written, and nothing that deceives the eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes_nb.core.names import Risk
from hermes_nb.tools.preview import diff_of, readable
from hermes_nb.tools.tool import Tool

WRITE = Tool("write_file", "", {}, lambda context: "", "file", risk=Risk.WRITE)


@pytest.mark.parametrize(
    "code",
    [
        "x = 1  # -----BEGIN PRIVATE KEY-----\nimport os; os.remove('a')\n# -----END PRIVATE KEY-----",
        "cookie: (__import__(chr(111)+chr(115)).system(chr(108)+chr(115)))",
        "authorization=__import__(chr(111)+chr(115)).remove(a1)",
        "token = 'rm -rf ~/work'\nos.system(token)",
        "password=os.environ.pop.__call__",
    ],
)
def test_no_code_hides_behind_the_mask_of_a_secret(code: str) -> None:
    assert readable(code) == code


def test_keys_are_masked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "zzz-unusual-value-1")
    shown = readable("call('sk-test-1234567890abcdef', 'zzz-unusual-value-1')")
    assert shown == "call('[masked]', '[masked]')"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("evil()  #\x1b[2K\x1b[1G ok", "evil()  #\\x1b[2K\\x1b[1G ok"),
        ("a\r b", "a\\x0d b"),
        ("x = '\u202e'  # \u2066", "x = '\\u202e'  # \\u2066"),
        ("a\u2028b\u200bc\u3164d\u00a0e", "a\\u2028b\\u200bc\\u3164d\\xa0e"),
        ("\U000e0041", "\\U000e0041"),
        ("变量 = 'é 😀'\n\tx", "变量 = 'é 😀'\n\tx"),
    ],
)
def test_every_character_is_seen(code: str, shown: str) -> None:
    assert readable(code) == shown


def diff(folder: Path, old: str, new: str) -> Any:
    (folder / "f.txt").write_text(old)
    return diff_of(WRITE, {"path": "f.txt", "content": new}, cwd=folder)


def test_a_diff_hides_secrets_of_the_file_and_nothing_of_what_will_be_written(tmp_path: Path) -> None:
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----\n"
    shown = diff(tmp_path, f"a\npassword: 'correcthorse1'\n{block}", "# -----BEGIN PRIVATE KEY-----\nrun('rm')\n")
    assert "correcthorse1" not in shown
    assert "MIIEow" not in shown
    assert "+run('rm')\n" in shown


def test_lines_that_stay_are_masked_too(tmp_path: Path) -> None:
    old = "a\npassword: 'correcthorse1'\nb\n"
    shown = diff(tmp_path, old, old.replace("a\n", "A\n"))
    assert "correcthorse1" not in shown
    assert "-a\n+A\n" in shown
