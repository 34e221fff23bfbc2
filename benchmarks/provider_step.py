"""CPU of one model call: joined bytes through our provider against ``chat.completions.create`` on parsed messages.

Both go to the same scripted server in a process of its own and read the same stream; the figures are process
CPU milliseconds of the client, medians. Run: python benchmarks/provider_step.py [--runs 15] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai

from hermes_nb.agent.body import head, join
from hermes_nb.agent.fold import Fold
from hermes_nb.agent.provider import Endpoint
from hermes_nb.agent.provider_openai import OpenAIProvider
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.types import Prefix
from hermes_nb.core.wirejson import dumpb, dumps

SERVER = Path(__file__).parents[1] / "tests" / "support" / "model_server.py"
MODEL = "scripted-model"
SHAPES = ((10, 5), (10, 500), (450, 5), (450, 200), (2100, 5))
"""Messages in the session, chunks in the answer."""


def session(messages: int, chunks: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a session of ``messages`` messages with tool calls, and 25 tools."""
    text = "The mean of the column is 3.14 and nothing is missing. " * 5
    rows: list[dict[str, Any]] = []
    for i in range(messages // 4):
        function = {"name": "python", "arguments": dumps({"code": f"df.describe()  # {i}"})}
        call = {"id": f"c{i}", "type": "function", "function": function}
        rows += [
            {"role": "user", "content": f"{i}: {text}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": text},
            {"role": "assistant", "content": text},
        ]
    script = [{"say": "word " * chunks, "chunks": chunks}]
    rows.append({"role": "user", "content": f"SCRIPT {json.dumps(script)}"})
    properties = {f"argument_{i}": {"type": "string", "description": text} for i in range(5)}
    parameters = {"type": "object", "properties": properties, "required": ["argument_0"]}
    tools = [
        {"type": "function", "function": {"name": f"tool_{i}", "description": text, "parameters": parameters}}
        for i in range(25)
    ]
    return rows, tools


def cpu(call: Callable[[], None], runs: int) -> float:
    """Return the median process CPU of one call in milliseconds; the first call is not counted."""
    call()
    spent: list[float] = []
    for _ in range(runs):
        before = time.process_time()
        call()
        spent.append((time.process_time() - before) * 1000)
    return round(statistics.median(spent), 2)


def measure(url: str, runs: int) -> list[dict[str, Any]]:
    """Return one row per shape."""
    ours = OpenAIProvider(Endpoint(url, MODEL, None, "bench"))
    theirs = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    results: list[dict[str, Any]] = []
    for messages, chunks in SHAPES:
        rows, tools = session(messages, chunks)
        system = {"role": "system", "content": "You are a careful assistant. " * 50}
        prefix = Prefix("bench", dumpb(tools), dumpb(system))
        start, wires = head(MODEL), [dumps(row) for row in rows]

        def raw() -> None:
            fold = Fold()
            for chunk in ours.stream(join(start, prefix, wires), Cancel()):  # noqa: B023 - called in this round only
                fold.feed(chunk)
            fold.close()

        def create() -> None:
            stream = theirs.chat.completions.create(
                model=MODEL,
                stream=True,
                stream_options={"include_usage": True},
                tools=tools,  # type: ignore[arg-type]  # noqa: B023
                messages=[system, *rows],  # type: ignore[list-item]  # noqa: B023
            )
            for _ in stream:
                pass

        size = len(join(start, prefix, wires))
        row = {
            "messages": messages,
            "kB": size // 1000,
            "chunks": chunks,
            "raw": cpu(raw, runs),
            "create": cpu(create, runs),
        }
        print(row, flush=True)
        results.append(row)
    return results


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=15)
    options.add_argument("--json", type=Path, help="write the figures to this file")
    given = options.parse_args()
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        results = measure(server.stdout.readline().strip(), given.runs)
        server.terminate()
    if given.json:
        given.json.write_text(json.dumps({"openai": openai.__version__, "cpu_ms": results}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
