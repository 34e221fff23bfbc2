"""What ``%hermes context``, ``prefix`` and ``usage`` show: the next request, its fixed start, and what requests cost.

Each returns Markdown. They read; only ``%hermes context allow`` writes, an allowance.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence

from hermes_nb.agent.preview import Preview, system_text
from hermes_nb.core.types import Prefix, RequestUsage, Usage
from hermes_nb.notebook.arguments import ArgumentsInvalid
from hermes_nb.notebook.cell import CellRunner
from hermes_nb.notebook.frontend import notebook_path
from hermes_nb.prompt.builder import split_parts
from hermes_nb.prompt.tokens import estimate

_HISTORY_SHOWN = 20_000
"""Characters of the history that are shown; the rest is counted."""


def context(runner: CellRunner, words: list[str]) -> str:
    """[allow] · what the next request will carry; ``allow``: tell the model the tagged cells of this notebook."""
    if words == ["allow"]:
        if runner.tool_code.running:
            raise ArgumentsInvalid("Only you can allow cells: run %hermes context allow in a cell of your own.")
        cells = runner.cells.allow(notebook_path(runner.shell))
        if not cells.text:
            raise ArgumentsInvalid("The saved notebook has no Markdown cell tagged hermes-context. Save it first.")
        said = "The model is told these cells from the next question on, as long as they stay the same:"
        return f"{said}\n\n{_code(cells.told)}"
    if words:
        raise ArgumentsInvalid("Use: %hermes context, or %hermes context allow")
    agent, options, said = runner.next_turn()
    preview = agent.preview(options)
    lines = ["**The next request, without your words**", "", *_sizes(preview), ""]
    session = agent.session
    calls = [] if session is None else runner.runtime.store.usage.calls(session.id, 1)
    if calls:
        lines += [f"The last request had {_tokens(calls[-1].usage)} (counted by the endpoint).", ""]
    if not preview.frozen:
        lines += ["No turn has fixed the start yet; the first one will.", ""]
    lines += [line for note in said for line in (f"⚠️ {note}", "")]
    tools = json.loads(preview.prefix.tools or b"[]")
    shown = (
        ("head", preview.head.decode()),
        (f"tools ({len(tools)})", "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)),
        ("system message", system_text(preview.prefix)),
        (f"history ({len(preview.history)} messages)", _clipped("\n".join(preview.history))),
        ("recall, beside your words", preview.recall.strip()),
    )
    for title, text in shown:
        lines += [f"**{title}**", "", _code(text) if text else "nothing", ""]
    lines.append(
        "Passages of earlier sessions depend on your words and come with them: see the setting recall.provider."
    )
    return "\n".join(lines)


def prefix(runner: CellRunner, _words: list[str]) -> str:
    """· what every request of this session begins with, and what a new session would get instead."""
    agent = runner.next_turn()[0]
    session = agent.session
    frozen = None if session is None else runner.runtime.store.prefix(runner.runtime.store.tip(session.id).id)
    fresh = agent.fresh_prefix()
    if frozen is None:
        return "\n".join(["The prefix is built with the session's first turn. As it would be now:", "", *_parts(fresh)])
    lines = [
        f"Prefix `{frozen.id[:16]}`, {len(frozen.tools) + len(frozen.system):,} bytes. It was built once and stays "
        "the same for this session.",
        "",
        *_parts(frozen),
        "",
    ]
    if frozen == fresh:
        return "\n".join([*lines, "A new session would get the same."])
    return "\n".join([*lines, "What a new session would get instead:", "", _code(_difference(frozen, fresh), "diff")])


def usage(runner: CellRunner, _words: list[str]) -> str:
    """· tokens of this session, and for each request of the last turn how much of it was sent before."""
    session = runner.sessions.here()
    if session is None:
        raise ArgumentsInvalid("This notebook has no session yet: ask something with %%hermes, or %hermes resume.")
    book = runner.runtime.store.usage
    lines = [f"This session: {_tokens(book.total(session.id))}.", ""]
    agent = runner.agents.get(session.root_id)
    requests: Sequence[RequestUsage] = () if agent is None else agent.requests
    if not requests:
        calls = book.calls(session.id, 100)
        last = [call.usage for call in calls if call.turn_id == calls[-1].turn_id]
        requests = [RequestUsage(one, 0, None) for one in last]
    if requests:
        lines += ["The last turn, request by request:", "", *requests_table(requests)]
        lines += ["", "*reuse*: the share of the request before, byte for byte, with which this one begins."]
    return "\n".join(lines)


def requests_table(requests: Sequence[RequestUsage]) -> list[str]:
    """Return the rows of a Markdown table: tokens and reuse of each request."""
    rows = [_row("request", "tokens in", "cached", "new", "out", "bytes", "reuse"), "|--:|--:|--:|--:|--:|--:|--:|"]
    for number, request in enumerate(requests, 1):
        known = request.usage
        counts = ["?"] * 4
        if known is not None:
            counts = [f"{n:,}" for n in (known.prompt, known.cached, known.prompt - known.cached, known.completion)]
        share = "–" if request.reuse is None else f"{request.reuse:.3f}"
        rows.append(_row(str(number), *counts, f"{request.size:,}" if request.size else "–", share))
    return rows


def _sizes(preview: Preview) -> list[str]:
    parts = [("head", preview.head.decode()), ("tools", preview.prefix.tools.decode())]
    parts += [(name, text) for name, text in _named_parts(preview.prefix)]
    parts += [("history", ",".join(preview.history)), ("recall", preview.recall)]
    rows = [_row("part", "bytes", "tokens, estimated"), "|---|--:|--:|"]
    rows += [_row(name, f"{len(text.encode()):,}", f"{estimate(text):,}") for name, text in parts]
    body = preview.body("").decode()
    return [*rows, _row("**whole body**", f"{len(body.encode()):,}", f"{estimate(body):,}")]


def _parts(prefix: Prefix) -> list[str]:
    parts = [("tools", prefix.tools.decode()), *_named_parts(prefix)]
    rows = [_row("part", "bytes", "tokens, estimated"), "|---|--:|--:|"]
    return [*rows, *(_row(name, f"{len(text.encode()):,}", f"{estimate(text):,}") for name, text in parts)]


def _named_parts(prefix: Prefix) -> list[tuple[str, str]]:
    return [(f"system: {name}", text) for name, text in split_parts(system_text(prefix)).items()]


def _difference(frozen: Prefix, fresh: Prefix) -> str:
    old, new = ((system_text(one) + "\n\n" + _tool_lines(one)).splitlines() for one in (frozen, fresh))
    return "\n".join(difflib.unified_diff(old, new, "this session", "a new session", lineterm=""))


def _tool_lines(prefix: Prefix) -> str:
    """Return the schemas, one tool a line, for the comparison."""
    return "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in json.loads(prefix.tools or b"[]"))


def _tokens(usage: Usage) -> str:
    cached = (
        f", {usage.cached:,} of them from the cache ({100 * usage.cached // usage.prompt} %)" if usage.prompt else ""
    )
    return f"{usage.prompt:,} tokens in{cached}, {usage.prompt - usage.cached:,} new; {usage.completion:,} out"


def _clipped(text: str) -> str:
    if len(text) <= _HISTORY_SHOWN:
        return text
    half = _HISTORY_SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters not shown …]\n{text[-half:]}"


def _code(text: str, language: str = "text") -> str:
    """Return a fenced block that nothing in ``text`` can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _row(*columns: str) -> str:
    return "| " + " | ".join(columns) + " |"
