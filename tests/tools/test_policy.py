"""What runs, what asks and what is refused, in each mode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.core.names import ApprovalMode, Verdict
from hermes_nb.tools.builtin import files, history, memory, python
from hermes_nb.tools.policy import Decision, allowed_by, judge, patterns_of, shadowed_builtins
from hermes_nb.tools.schema import tool_of
from hermes_nb.tools.tool import Tool, ToolContext

TOOLS = {tool.name: tool for tool in (*python.TOOLS, *files.TOOLS, *memory.TOOLS, *history.TOOLS)}
MODES = ("ask", "safe", "deny", "off")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "hermes-home"


@pytest.fixture
def decide(context: ToolContext, home: Path) -> Any:
    def decide(tool: str | Tool, arguments: Mapping[str, Any], mode: str = "ask", **options: Any) -> Decision:
        found = TOOLS[tool] if isinstance(tool, str) else tool
        return judge(found, arguments, ApprovalMode(mode), context=context, home=home, **options)

    return decide


def verdicts(decide: Any, tool: str, arguments: Mapping[str, Any]) -> str:
    return " ".join(decide(tool, arguments, mode).verdict for mode in MODES)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("python", {"code": "df.head()"}, "allow allow allow allow"),
        ("python", {"code": "import subprocess; subprocess.run('rm -rf ./build', shell=True)"}, "ask ask deny allow"),
        ("python", {"code": "__import__('os').system('id')"}, "ask ask deny allow"),
        ("python", {"code": "!ls"}, "ask ask deny allow"),
        ("variables", {}, "allow allow allow allow"),
        ("session_search", {"query": "x"}, "allow allow allow allow"),
        ("memory", {"action": "add", "content": "x"}, "allow allow allow allow"),
        ("read_file", {"path": "a.txt"}, "allow allow allow allow"),
        ("read_file", {"path": "./deep/../a.txt"}, "allow allow allow allow"),
        ("read_file", {"path": "/etc/passwd"}, "ask ask deny allow"),
        ("read_file", {"path": "x/../../../etc/passwd"}, "ask ask deny allow"),
        ("read_file", {"path": "~/x"}, "ask ask deny allow"),
        ("read_file", {"path": "~/.ssh/id_rsa"}, "ask ask deny allow"),
        ("write_file", {"path": "a.txt", "content": ""}, "ask allow deny allow"),
        ("write_file", {"path": "src/model.py", "content": ""}, "ask allow deny allow"),
        ("write_file", {"path": "../a.txt", "content": ""}, "ask ask deny allow"),
        ("write_file", {"path": "~/.bashrc", "content": ""}, "ask ask deny allow"),
    ],
)
def test_each_kind_of_call_in_each_mode(decide: Any, tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert verdicts(decide, tool, arguments) == expected


@pytest.mark.parametrize(
    "path",
    [".env", ".env.local", "prod.env", "key.pem", ".netrc", ".ssh/config", "id_ed25519", "aws-credentials.json",
     "kernel-1234.json", "jpserver-1.json", "secrets.toml", ".npmrc", ".git-credentials", "a/.aws/config", "KEY.PEM",
     "token.txt", ".pgpass", "server.key", ".bash_history"],
)  # fmt: skip
def test_reading_what_may_hold_secrets_asks_inside_the_workspace_too(decide: Any, path: str) -> None:
    assert decide("read_file", {"path": path}).verdict is Verdict.ASK


@pytest.mark.parametrize("path", ["data.csv", "id_rsa.pub", "tokenizer.py", "monkey.txt", "src/keys.py", "notes.md"])
def test_reading_ordinary_files_of_the_workspace_never_asks(decide: Any, path: str) -> None:
    assert decide("read_file", {"path": path}, "deny").verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    "path",
    [".gitignore", ".github/workflows/ci.yml", "run.sh", "note.ipynb", "Makefile", "pyproject.toml", "setup.py",
     "conftest.py", "random.py", "pkg/__init__.py", "sitecustomize.py", "x.pth", "a.so", "script", ".env",
     "pytest.py", "sub/openai.py"],
)  # fmt: skip
def test_safe_asks_for_files_that_configure_run_or_are_loaded_by_themselves(decide: Any, path: str) -> None:
    assert decide("write_file", {"path": path, "content": "x"}, "safe").verdict is Verdict.ASK


def test_safe_asks_before_an_executable_is_overwritten(decide: Any, workspace: Path) -> None:
    (workspace / "tool.py").write_text("", encoding="utf-8")
    assert decide("write_file", {"path": "tool.py", "content": "x"}, "safe").verdict is Verdict.ALLOW
    (workspace / "tool.py").chmod(0o755)
    assert decide("write_file", {"path": "tool.py", "content": "x"}, "safe").verdict is Verdict.ASK


def test_a_link_out_of_the_workspace_is_judged_by_where_it_leads(decide: Any, workspace: Path, tmp_path: Path) -> None:
    (workspace / "link").symlink_to("/etc")
    (workspace / "data.txt").symlink_to(tmp_path / "outside.txt")
    assert decide("read_file", {"path": "link/hostname"}).verdict is Verdict.ASK
    assert decide("write_file", {"path": "data.txt", "content": ""}, "safe").verdict is Verdict.ASK


def test_our_own_home_asks_even_when_it_lies_in_the_workspace(decide: Any, context: ToolContext) -> None:
    home = context.cwd / "home"
    for name in ("config.toml", "state.db", "memories/ada/MEMORY.md"):
        decision = judge(
            TOOLS["write_file"], {"path": f"home/{name}", "content": ""}, ApprovalMode.SAFE, context=context, home=home
        )
        assert decision.verdict is Verdict.ASK
        assert "hermes-nb" in decision.reason


def test_the_root_of_a_file_system_is_no_workspace(context: ToolContext, home: Path) -> None:
    context = replace(context, cwd=Path("/"))
    decision = judge(TOOLS["read_file"], {"path": "etc/hostname"}, ApprovalMode.ASK, context=context, home=home)
    assert decision.verdict is Verdict.ASK


@pytest.mark.parametrize("path", ["", " ", "a\0b", "~nobody-of-this-name/x", "a/" * 5000])
def test_a_path_that_is_none_never_runs(decide: Any, path: str) -> None:
    for mode in ("ask", "safe", "deny"):
        assert decide("write_file", {"path": path, "content": ""}, mode).verdict is not Verdict.ALLOW


def test_a_users_own_function_asks_unless_it_says_that_it_only_reads(decide: Any) -> None:
    def fetch(url: str) -> str:
        return url

    assert decide(tool_of(fetch), {"url": "x"}, "safe").verdict is Verdict.ASK
    assert decide(tool_of(fetch, risk="read"), {"url": "x"}).verdict is Verdict.ALLOW
    assert decide(tool_of(fetch, risk="write"), {"url": "x"}, "safe").verdict is Verdict.ASK


def test_a_tool_that_is_only_called_python_is_not_judged_as_python(decide: Any) -> None:
    def python(code: str) -> str:
        return code

    assert decide(tool_of(python), {"code": "df.head()"}).verdict is Verdict.ASK


def test_case_103_the_refusal_says_how_to_allow_it_beforehand(decide: Any) -> None:
    reason = decide("python", {"code": "import os"}, "deny").reason
    assert "approvals.allow" in reason
    assert "import" in reason


def test_case_103_an_always_answers_except_against_an_explicit_deny(decide: Any, context: ToolContext) -> None:
    call = {"code": "import os"}
    stored = set(patterns_of(TOOLS["python"], call, context.cwd))
    for mode, explicit, expected in [
        ("ask", True, "allow"),
        ("safe", True, "allow"),
        ("deny", False, "allow"),
        ("deny", True, "deny"),
    ]:
        assert decide("python", call, mode, allowed=stored.__contains__, explicit=explicit).verdict == expected
        other = decide("python", {"code": "import sys"}, mode, allowed=stored.__contains__, explicit=explicit)
        assert other.verdict != "allow"


def test_patterns_do_not_depend_on_the_order_of_arguments(context: ToolContext) -> None:
    one = patterns_of(TOOLS["write_file"], {"path": "a", "content": "b"}, context.cwd)
    two = patterns_of(TOOLS["write_file"], {"content": "b", "path": "a"}, context.cwd)
    assert one == two
    assert one[1] == f"write_file:{context.cwd}/a"


def test_allow_patterns_name_tools_or_paths_but_never_code_by_a_glob(decide: Any, context: ToolContext) -> None:
    inside = {"path": "out/a.txt", "content": ""}
    assert decide("write_file", inside, allowed=allowed_by(["write_file"])).verdict is Verdict.ALLOW
    glob = allowed_by([f"write_file:{context.cwd}/out/*"])
    assert decide("write_file", inside, allowed=glob).verdict is Verdict.ALLOW
    assert decide("write_file", {"path": "out/../a.txt", "content": ""}, allowed=glob).verdict is Verdict.ASK
    for patterns in (["python:*"], ["python:"], ["python:sha256:*"], ["*"], [""], ["write_file:*"]):
        assert decide("python", {"code": "import os"}, allowed=allowed_by(patterns)).verdict is Verdict.ASK
    assert decide("python", {"code": "import os"}, allowed=allowed_by(["python"])).verdict is Verdict.ALLOW


def test_an_allow_pattern_of_an_unknown_user_fits_nothing_and_breaks_nothing(decide: Any) -> None:
    allowed = allowed_by(["write_file:~nobody-of-this-name/*"])
    assert decide("write_file", {"path": "a.txt", "content": ""}, allowed=allowed).verdict is Verdict.ASK


def test_a_replaced_builtin_asks(decide: Any) -> None:
    assert decide("python", {"code": "len(x)"}, shadowed=frozenset({"len"})).verdict is Verdict.ASK


def test_names_that_the_kernel_calls_undefined_are_not_shadowed(context: ToolContext) -> None:
    from hermes_nb.core.cancel import Cancel
    from hermes_nb.tools.kernel import CodeResult, Variable

    class Kernel:
        def execute(self, code: str, cancel: Cancel) -> CodeResult:
            raise AssertionError(code)

        def variables(self, names: Any, cancel: Cancel) -> list[Variable]:
            return [Variable(name, "function" if name == "len" else "undefined", "") for name in names]

    assert shadowed_builtins(Kernel(), Cancel()) == {"len"}
    assert shadowed_builtins(None, Cancel()) == frozenset()


def test_the_default_home_is_the_one_of_the_environment(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_NB_HOME", os.fspath(context.cwd))
    assert judge(TOOLS["read_file"], {"path": "a.txt"}, ApprovalMode.ASK, context=context).verdict is Verdict.ASK
