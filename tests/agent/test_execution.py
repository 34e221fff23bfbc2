"""Which calls run side by side, which are barriers, and what a failing call gives the model."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.agents import echo, make_agent, make_store, tool
from support.model_server import ModelServer, call, calls, say

from hermes_nb.agent.agent import TurnOptions
from hermes_nb.agent.execution import Prepared, plan, shorten
from hermes_nb.core.errors import ToolError
from hermes_nb.core.names import MAX_PARALLEL, MAX_TOOL_RESULT, ApprovalMode, Parallel, Risk, Where
from hermes_nb.core.types import ToolCall, ToolRecord, ToolResult, TurnResult
from hermes_nb.tools.tool import Tool

READ = tool("read", lambda c, path: "", properties={"path": {"type": "string"}}, parallel=Parallel.PATH)
WRITE = tool("write", lambda c, path: "", properties={"path": {"type": "string"}}, parallel=Parallel.PATH)
SAFE = tool("safe", lambda c: "", parallel=Parallel.SAFE)
NEVER = tool("never", lambda c: "")


class Mute(BaseException):
    """Neither an Exception nor able to say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


def segments(cwd: Path, *calls: tuple[Tool | None, dict[str, Any]]) -> list[list[int]]:
    prepared = [Prepared(ToolCall(str(n), "t", "{}"), tool, arguments) for n, (tool, arguments) in enumerate(calls)]
    may_join: Callable[[Prepared], bool] = lambda c: c.tool is not None and c.tool.parallel is not Parallel.NEVER  # noqa: E731
    return [[int(call.call.id) for call in segment.calls] for segment in plan(prepared, may_join, cwd)]


def test_disjoint_paths_and_safe_calls_share_a_segment(tmp_path: Path) -> None:
    assert segments(tmp_path, (READ, {"path": "a"}), (WRITE, {"path": "b"}), (SAFE, {})) == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.txt", "a.txt"), ("a", "a/b"), ("a/b/c", "a"), ("./x/../a.txt", "a.txt"), (".", "a"), ("世界", "./世界")],
)
def test_equal_and_containing_paths_keep_their_order(tmp_path: Path, one: str, other: str) -> None:
    assert segments(tmp_path, (WRITE, {"path": one}), (WRITE, {"path": other})) == [[0], [1]]


def test_a_link_is_the_same_path_as_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert segments(tmp_path, (WRITE, {"path": "real"}), (WRITE, {"path": "link"})) == [[0], [1]]


def test_similar_names_do_not_overlap(tmp_path: Path) -> None:
    assert segments(tmp_path, (WRITE, {"path": "a"}), (WRITE, {"path": "ab"})) == [[0, 1]]


@pytest.mark.parametrize("path", ["a\0b", "~nobody-like-that/x"])
def test_a_path_that_cannot_be_resolved_is_a_barrier(tmp_path: Path, path: str) -> None:
    assert segments(tmp_path, (READ, {"path": "a"}), (READ, {"path": path}), (READ, {"path": "b"})) == [[0], [1], [2]]


def test_barriers_split_and_order_is_kept(tmp_path: Path) -> None:
    planned = segments(tmp_path, (SAFE, {}), (SAFE, {}), (NEVER, {}), (SAFE, {}), (None, {}), (SAFE, {}), (SAFE, {}))
    assert planned == [[0, 1], [2], [3], [4], [5, 6]]


def ran(tmp_path: Path, tools: list[Tool], batch: list[tuple[str, Any]], **more: Any) -> TurnResult:
    with ModelServer([calls(batch), say("done")]) as server:
        return make_agent(make_store(tmp_path), server.url, tools, **more).run("go")


def one(tmp_path: Path, made: Tool, arguments: Any = None, **more: Any) -> ToolRecord:
    return ran(tmp_path, [made], [(made.name, {} if arguments is None else arguments)], **more).tool_calls[0]


def test_safe_calls_really_run_at_the_same_time(tmp_path: Path) -> None:
    meeting = threading.Barrier(MAX_PARALLEL, timeout=20)
    together = tool("meet", lambda context: str(meeting.wait() >= 0), parallel=Parallel.SAFE)
    result = ran(tmp_path, [together], [("meet", {})] * MAX_PARALLEL)
    assert [record.content for record in result.tool_calls] == ["True"] * MAX_PARALLEL


def test_no_more_than_the_limit_run_at_the_same_time(tmp_path: Path) -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def count(context: Any) -> str:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.005)
        with lock:
            now[0] -= 1
        return ""

    ran(tmp_path, [tool("count", count, parallel=Parallel.SAFE)], [("count", {})] * (3 * MAX_PARALLEL))
    assert 1 < most[0] <= MAX_PARALLEL


def test_results_stand_in_the_order_of_the_calls(tmp_path: Path) -> None:
    second = threading.Event()

    def wait(context: Any, first: bool) -> str:
        if first:
            assert second.wait(20)
        second.set()
        return str(first)

    made = tool("w", wait, properties={"first": {"type": "boolean"}}, parallel=Parallel.SAFE)
    result = ran(tmp_path, [made], [("w", {"first": True}), ("w", {"first": False})])
    assert [record.content for record in result.tool_calls] == ["True", "False"]


def test_a_write_and_a_change_of_one_file_stay_in_order(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"

    def put(context: Any, path: str) -> str:
        file.write_text("1")
        return "put"

    def change(context: Any, path: str) -> str:
        file.write_text(file.read_text().replace("1", "2"))
        return "changed"

    path = {"path": {"type": "string"}}
    pair = [
        tool("put", put, properties=path, risk=Risk.WRITE, parallel=Parallel.PATH),
        tool("change", change, properties=path, risk=Risk.WRITE, parallel=Parallel.PATH),
    ]
    batch = [("put", {"path": str(file)}), ("change", {"path": str(file)})]
    ran(tmp_path, pair, batch * 20, mode=ApprovalMode.OFF, chosen=True)
    assert file.read_text() == "2"


def test_a_call_that_must_be_asked_is_a_barrier(tmp_path: Path) -> None:
    order: list[str] = []
    tools = [
        tool("free", lambda context: order.append("free") or "", parallel=Parallel.SAFE),
        tool("asks", lambda context: order.append("asks") or "", parallel=Parallel.SAFE, risk=Risk.EXECUTE),
    ]
    result = ran(tmp_path, tools, [("free", {}), ("asks", {}), ("free", {})])
    assert order == ["free", "free"]
    assert [record.is_error for record in result.tool_calls] == [False, True, False]


def test_kernel_tools_run_one_after_the_other(tmp_path: Path) -> None:
    names: list[str] = []
    made = tool(
        "k",
        lambda context: names.append(threading.current_thread().name) or "",
        parallel=Parallel.SAFE,
        where=Where.KERNEL,
    )
    ran(tmp_path, [made], [("k", {}), ("k", {})])
    assert set(names) == {"hermes-turn"}


@pytest.mark.parametrize("raw", ["", "  ", "null", "{}"])
def test_no_arguments_are_an_empty_object_and_run_once(tmp_path: Path, raw: str) -> None:
    times: list[int] = []
    record = one(tmp_path, tool("plain", lambda context: times.append(1) or "ok"), raw)
    assert times == [1]
    assert record.content == "ok"


@pytest.mark.parametrize("raw", ['{"path": "a.txt", ', "[1]", '"text"', "{" * 5000, "NaN", "7"])
def test_broken_arguments_keep_the_tool_from_running(tmp_path: Path, raw: str) -> None:
    times: list[int] = []
    made = tool("delete", lambda context, path="": times.append(1) or "gone", properties={"path": {"type": "string"}})
    record = one(tmp_path, made, raw)
    assert times == []
    assert record.is_error
    assert "delete" in record.content


def test_broken_arguments_do_not_take_the_good_calls_along(tmp_path: Path) -> None:
    result = ran(tmp_path, [echo()], [("echo", {"text": "a"}), ("echo", "{bad"), ("echo", {"text": "b"})])
    assert [record.is_error for record in result.tool_calls] == [False, True, False]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ToolError("no such row"), "no such row"),
        (ValueError("bad"), "ValueError: bad"),
        (SystemExit(3), "SystemExit"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (RecursionError(), "RecursionError"),
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (Mute(), "Mute"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_raises_is_a_result(tmp_path: Path, error: BaseException, shown: str) -> None:
    def fail(context: Any) -> str:
        raise error

    # Alone, and beside another call in a thread of its own.
    for tools in ([tool("fail", fail)], [tool("fail", fail, parallel=Parallel.SAFE)]):
        result = ran(tmp_path, tools, [("fail", {}), ("fail", {})])
        assert [record.is_error for record in result.tool_calls] == [True, True]
        assert shown in result.tool_calls[0].content


@pytest.mark.parametrize("parallel", [Parallel.SAFE, Parallel.NEVER])
def test_a_result_that_cannot_be_shown_is_an_error(tmp_path: Path, parallel: Parallel) -> None:
    tools = [
        tool("mute", lambda context: Mute(), parallel=parallel),
        tool("empty", lambda context: ToolResult(None), parallel=parallel),  # type: ignore[arg-type]
    ]
    result = ran(tmp_path, tools, [("mute", {}), ("empty", {})])
    assert [record.is_error for record in result.tool_calls] == [True, False]


def test_case_136_no_tool_stores_logs_or_returns_a_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ("sk-test-1234567890abcdef", "an-unusual-value-7", "p4ssw0rd")
    monkeypatch.setenv("CONFIGURED_API_KEY", secrets[1])
    text = f"Authorization: Bearer {secrets[0]} {secrets[1]} https://u:{secrets[2]}@host/"

    def fail(context: Any) -> str:
        raise ValueError(text)

    caplog.set_level(logging.DEBUG)
    tools = [tool("tell", lambda context: ToolResult(text, note=text)), tool("fail", fail)]
    result = ran(tmp_path, tools, [("tell", {}), ("fail", {})])
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in secrets:
        assert secret not in repr(result)
        assert secret not in caplog.text
        assert secret.encode() not in stored


def test_a_long_result_keeps_its_head_and_tail(tmp_path: Path) -> None:
    record = one(tmp_path, tool("long", lambda context: "a" * 300_000 + "end"))
    assert len(record.content) < MAX_TOOL_RESULT + 100
    assert record.content.startswith("aaa")
    assert record.content.endswith("end")
    assert "characters left out" in record.content


def test_many_long_results_get_less_room_each(tmp_path: Path) -> None:
    result = ran(tmp_path, [tool("long", lambda context: "a" * 100_000)], [("long", {})] * 5)
    sizes = [len(record.content) for record in result.tool_calls]
    assert sizes[0] == 100_000
    assert sizes[-1] < 10_000


def test_shorten_leaves_short_text_alone() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("", 3) == ""


def test_unusual_results_become_text(tmp_path: Path) -> None:
    assert "nothing" in one(tmp_path, tool("none", lambda context: None)).content
    assert one(tmp_path, tool("number", lambda context: 7)).content == "7"
    assert one(tmp_path, tool("surrogate", lambda context: "a\ud800b")).content


def test_an_unknown_tool_names_near_ones(tmp_path: Path) -> None:
    result = ran(tmp_path, [echo()], [("ecko", {})])
    assert "echo" in result.tool_calls[0].content
    assert result.tool_calls[0].is_error


def test_a_masked_tool_gets_a_plain_refusal_while_its_schema_stays(tmp_path: Path) -> None:
    with ModelServer([call("echo"), say("ok")]) as server:
        agent = make_agent(make_store(tmp_path), server.url, [echo()])
        result = agent.run("go", TurnOptions(without=("echo",)))
        assert "switched off" in result.tool_calls[0].content
        assert [one["function"]["name"] for one in server.requests[0].json["tools"]] == ["echo"]


def test_the_context_of_the_turn_reaches_tool_threads(tmp_path: Path) -> None:
    import contextvars

    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    token = variable.set("here")
    try:
        made = tool("see", lambda context: variable.get(), parallel=Parallel.SAFE)
        result = ran(tmp_path, [made], [("see", {}), ("see", {})])
    finally:
        variable.reset(token)
    assert [record.content for record in result.tool_calls] == ["here", "here"]
