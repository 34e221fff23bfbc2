"""What a stable prefix is worth, on a real engine: the demo model, one thread.

Two sessions of the same turns, one with a prefix that stays, one whose prompt says the time of each turn; then the
first answer after a restart of the engine, with and without its saved state. Takes one to three minutes.

Run: python benchmarks/prefix.py [--turns 6] [--json FILE] [--page docs/measurements.md]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from hermes_nb.agent.embedded import render, weights
from hermes_nb.agent.embedded.engine import Engine, EngineOptions, EngineUser, version
from hermes_nb.agent.embedded.provider import EmbeddedProvider
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.paths import Home
from hermes_nb.core.wirejson import dumpb
from hermes_nb.tools.builtin import files, history, memory, python
from hermes_nb.tools.toolsets import wire_schemas

BEGIN, END = "<!-- prefix: begin -->", "<!-- prefix: end -->"
TOOLS = wire_schemas((*python.TOOLS, *files.TOOLS, *memory.TOOLS, *history.TOOLS))
QUESTION = "Question {n}: how do I read column {n} of a table and draw its distribution in a small figure?"
ANSWER = "Read the table into a data frame, take the column by its name, and call its hist method with a few bins."


def block(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def session(engine: Engine, turns: int, *, stable: bool) -> list[dict[str, Any]]:
    """Ask ``turns`` questions and return tokens and seconds to the first token of each."""
    prefix, said = render.render_prefix(TOOLS), ""
    measured: list[dict[str, Any]] = []
    for number in range(1, turns + 1):
        clock = "" if stable else f"It is 10:{number:02d}:{7 * number % 60:02d}. "
        asked = block("user", QUESTION.format(n=number)) + render.ASSISTANT_START
        body = {
            "prompt": prefix.replace("<|im_start|>system\n", f"<|im_start|>system\n{clock}", 1) + said + asked,
            "n_predict": 1,
            "temperature": 0,
            "cache_prompt": True,
            "id_slot": 0,
            "stream": True,
        }
        began, first, timings = time.perf_counter(), 0.0, {}
        for event in engine.server.stream("/completion", body, timeout=600, cancel=Cancel()):
            first = first or time.perf_counter() - began
            timings = event.get("timings") or timings
        cached, new = int(timings.get("cache_n", 0)), int(timings.get("prompt_n", 0))
        row = {"turn": number, "prompt": cached + new, "cached": cached, "new": new, "first_token_s": round(first, 2)}
        print("stable" if stable else "changing", row, flush=True)
        measured.append(row)
        said += block("user", QUESTION.format(n=number)) + block("assistant", ANSWER)
    return measured


def answer(home: Home) -> dict[str, Any]:
    """Start an engine, ask one question, and return how long start and first token took."""
    provider = EmbeddedProvider(home)
    try:
        began = time.perf_counter()
        provider.prefix_tokens(TOOLS)
        started = time.perf_counter() - began
        wires = [{"role": "system", "content": "x"}, {"role": "user", "content": "What is the capital of Spain?"}]
        body = b'{"model":"m","stream":true,"tools":' + TOOLS + b',"messages":' + dumpb(wires) + b"}"
        began, first, usage = time.perf_counter(), 0.0, {}
        for chunk in provider.stream(body, Cancel()):
            if not first and chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                first = time.perf_counter() - began
            usage = chunk.get("usage") or usage
        cached = usage["prompt_tokens_details"]["cached_tokens"]
    finally:
        provider.close()
    row = {
        "start_s": round(started, 2),
        "first_token_s": round(first, 2),
        "prompt": usage["prompt_tokens"],
        "cached": cached,
    }
    print(row, flush=True)
    return row


def measure(models: Path, turns: int) -> dict[str, Any]:
    """Return all figures. ``models`` is the folder with the weights."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home").ensure()
        if not (home.root / "models").exists():
            (home.root / "models").symlink_to(models)
        user = EngineUser(home, EngineOptions())
        try:
            engine = user.engine(Cancel())
            stable = session(engine, turns, stable=True)
            changing = session(engine, turns, stable=False)
        finally:
            user.close()
        first = answer(home)
        kept = answer(home)
        shutil.rmtree(home.engine_states)
        lost = answer(home)
    return {
        "engine": f"xllamacpp {version()}, {weights.MODEL_NAME}, 1 thread",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the end",
        "date": time.strftime("%Y-%m-%d"),
        "stable_prefix": stable,
        "prefix_that_changes": changing,
        "engine_first_start": first,
        "engine_restart_with_state": kept,
        "engine_restart_without_state": lost,
    }


def page(figures: dict[str, Any]) -> str:
    """Return the section for docs/measurements.md."""
    lines = [
        BEGIN,
        f"{figures['date']} · {figures['engine']} · {figures['machine']} · `python benchmarks/prefix.py`",
        "",
        "| from the second turn on | prompt tokens | read anew | first token |",
        "| --- | --: | --: | --: |",
    ]
    for name, key in (("the prefix stays", "stable_prefix"), ("the prompt says the time", "prefix_that_changes")):
        later = figures[key][1:]
        middle = {field: statistics.median(row[field] for row in later) for field in ("prompt", "new", "first_token_s")}
        lines.append(f"| {name} | {middle['prompt']:.0f} | {middle['new']:.0f} | {middle['first_token_s']:.2f} s |")
    lines += [
        "",
        "Medians.",
        "",
        "| first answer of an engine | prompt tokens | first token |",
        "| --- | --: | --: |",
    ]
    for name, key in (
        ("restarted, saved state found", "engine_restart_with_state"),
        ("restarted, no saved state", "engine_restart_without_state"),
    ):
        row = figures[key]
        lines.append(f"| {name} | {row['prompt']} | {row['first_token_s']:.2f} s |")
    lines += ["", f"Its start, {figures['engine_restart_with_state']['start_s']:.1f} s, is not in it.", END]
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=6)
    options.add_argument("--models", type=Path, help="folder with the weights; default: the home's, or installed now")
    options.add_argument("--json", type=Path, help="write the figures to this file")
    options.add_argument("--page", type=Path, help="write the section into this page")
    given = options.parse_args()
    models = given.models or weights.install(Home.find(), print).parent
    figures = measure(models.absolute(), given.turns)
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    section = page(figures)
    print(section)
    if given.page:
        text = given.page.read_text(encoding="utf-8")
        head, found, rest = text.partition(BEGIN)
        tail = rest.partition(END)[2] if found else "\n"
        given.page.write_text((head if found else text.rstrip() + "\n\n") + section + tail, encoding="utf-8")


if __name__ == "__main__":
    main()
