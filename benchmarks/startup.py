"""What hermes-nb costs before the first answer, and per turn, in fresh processes.

- ``load``: a bare kernel's shell against the same shell with ``%load_ext hermes_nb``, milliseconds that loading adds.
- ``ready``: CPU until the first request could leave (everything imported, store open, client made), against the CPU
  of ``import openai`` alone. Only their ratio within one run is meaningful. ``answer``: a whole first turn.
- ``turn``: CPU of ``Agent.run`` beyond the CPU of sending the same body and reading the same stream with the client
  alone, in sessions of several lengths.

Medians of fresh processes that take turns, so that a busy machine slows all of them alike.
Run: python benchmarks/startup.py [--runs 9] [--json FILE] [--record docs/measurements.md]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import hermes_nb
from hermes_nb.app import runtime
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.types import NewMessage
from hermes_nb.core.wirejson import dumps

SERVER = Path(__file__).parents[1] / "tests" / "support" / "model_server.py"
BEGIN, END = "<!-- startup: begin -->", "<!-- startup: end -->"
LENGTHS = (10, 450, 2000)
TURNS = 15

SHELL = """
import ipykernel.ipkernel, ipykernel.kernelapp, json, sys, time
from ipykernel.zmqshell import ZMQInteractiveShell
shell = ZMQInteractiveShell.instance()
wall, cpu = time.perf_counter(), time.process_time()
def done(**more):
    print(json.dumps({"wall": 1000 * (time.perf_counter() - wall), "cpu": 1000 * (time.process_time() - cpu), **more}))
"""
LOADED = SHELL + 'shell.run_line_magic("load_ext", "hermes_nb")\n'
CASES = {
    # The same magic on an extension that does nothing: what is left is ours.
    "bare": SHELL
    + 'sys.modules["nothing"] = type(sys)("nothing"); sys.modules["nothing"].load_ipython_extension = lambda shell: 0\n'
    + 'shell.run_line_magic("load_ext", "nothing")\ndone()',
    "load": LOADED + 'done(modules=sorted(m for m in sys.modules if m.startswith("hermes_nb")))',
    "openai": SHELL + "import openai\ndone()",
    "ready": LOADED
    + "import hermes_nb.app as app, hermes_nb.notebook.magics\n"
    + "from hermes_nb.agent import loop_thread, provider_openai\n"
    + "provider_openai.warm().join()\n"
    + "runtime = app.runtime(kind='kernel')\n"
    + "runtime.agent()\n"
    + "endpoint = runtime.endpoints().primary()\n"
    + "runtime.endpoints().open(endpoint)\n"
    + "client = provider_openai._client(endpoint.base_url, provider_openai.LOCAL)\n"
    + "loop_thread.current().submit(client).result()\n"
    + "done()",
    "answer": LOADED + "import hermes_nb\nhermes_nb.Agent.open().run('hi')\ndone()",
}


def environment(home: Path, url: str) -> dict[str, str]:
    # Compiled files as an installation has them; without this an environment that forbids them compiles all of
    # ours, and nothing of an installed library's, in every process.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HERMES_NB_", "OPENAI_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "hermes-nb-benchmark-compiled")
    ours = {"HOME": str(home), "NO_PROBE": "1", "BASE_URL": url, "MODEL": "m", "API_KEY": "benchmark"}
    return {**kept, "IPYTHONDIR": str(home / "ipython"), **{f"HERMES_NB_{k}": v for k, v in ours.items()}}


def starts(runs: int, url: str) -> tuple[dict[str, dict[str, float]], float]:
    """Return the medians of each case, and the median of the rounds' own ratios of ``ready`` to ``openai``.

    The first round only fills the caches of the disk.
    """
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(runs + 1):
            for name, code in CASES.items():
                home = Path(folder) / f"{name}{number}"
                home.mkdir()
                done = subprocess.run(
                    [sys.executable, "-c", code], env=environment(home, url), capture_output=True, text=True, check=True
                )
                if number:
                    seen[name].append(json.loads(done.stdout.splitlines()[-1]))
    medians = {
        name: {key: round(statistics.median(row[key] for row in rows), 1) for key in ("wall", "cpu")}
        for name, rows in seen.items()
    }
    pairs = zip(seen["ready"], seen["openai"], strict=True)
    return medians, round(statistics.median(ready["cpu"] / openai["cpu"] for ready, openai in pairs), 2)


def turns(url: str) -> list[dict[str, float]]:
    """Return CPU per turn by session length, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        code = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import startup; startup.measure_turns()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment(Path(folder), url), capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout)


def measure_turns() -> None:
    """Print one row per session length; runs in a process of its own."""
    rows: list[dict[str, float]] = []
    text = "The mean of the column is 3.14 and nothing is missing. " * 5
    for length in LENGTHS:
        agent = hermes_nb.Agent.open()
        agent.run("begin")
        assert agent.session is not None
        new: list[NewMessage] = []
        for i in range(length // 4):
            function = {"name": "python", "arguments": dumps({"code": f"df.describe()  # {i}"})}
            call = {"id": f"c{i}", "type": "function", "function": function}
            wires: list[dict[str, Any]] = [
                {"role": "user", "content": f"{i}: {text}"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{i}", "content": text},
                {"role": "assistant", "content": text},
            ]
            new += [NewMessage(wire, "local", turn_id=str(i)) for wire in wires]
        agent.store.append_rows(agent.session.id, new)
        endpoint = runtime().endpoints().primary()
        provider = runtime().endpoints().open(endpoint)
        fresh = hermes_nb.Agent.open(session=agent.session)
        before = time.process_time()
        fresh.run("first of this process")
        first = 1000 * (time.process_time() - before)
        prefix = agent.store.prefix(agent.session.id)
        assert prefix is not None and agent.session.head is not None
        whole, raw, body = [], [], b""
        for _ in range(TURNS):
            before = time.process_time()
            fresh.run("again")
            whole.append(1000 * (time.process_time() - before))
            messages = ",".join(row.wire for row in agent.store.rows(agent.session.id)).encode()
            body = agent.session.head + b'"tools":' + prefix.tools + b',"messages":[' + prefix.system + b"," + messages
            before = time.process_time()
            for _chunk in provider.stream(body + b"]}", Cancel()):
                pass
            raw.append(1000 * (time.process_time() - before))
        turn, stream = statistics.median(whole), statistics.median(raw)
        row = {"messages": length, "kB": len(body) // 1000, "first": first, "turn": turn, "raw": stream}
        rows.append({name: round(value, 1) for name, value in {**row, "beyond": turn - stream}.items()})
    print(json.dumps(rows))


def as_text(found: dict[str, Any]) -> str:
    """Return the figures as a section of docs/measurements.md."""
    start = found["start"]
    added = {key: start["load"][key] - start["bare"][key] for key in ("wall", "cpu")}
    openai, ready, answer = (start[name] for name in ("openai", "ready", "answer"))
    lines = [
        f"{found['date']}, {found['machine']}; load average {found['load']}; medians of {found['runs']} fresh "
        "processes. Run again with: `python benchmarks/startup.py --record docs/measurements.md`.",
        "",
        "| | wall ms | CPU ms | goal |",
        "|---|--:|--:|---|",
        f"| `%load_ext hermes_nb`, beyond an empty extension | {added['wall']:.0f} | {added['cpu']:.0f} | ≤ 150 |",
        f"| `import openai` | {openai['wall']:.0f} | {openai['cpu']:.0f} | |",
        f"| load, and everything until the first request can leave | {ready['wall']:.0f} | {ready['cpu']:.0f} "
        f"| ≤ 1.3 × CPU of `import openai`: {found['ratio']:.2f} × |",
        f"| load and a whole first turn, nothing imported before | {answer['wall']:.0f} | {answer['cpu']:.0f} | |",
        "",
        "CPU milliseconds of one turn (`Agent.run`, no tool) against the client alone with the same body and stream:",
        "",
        "| messages in the session | body kB | first turn of a process | later turns | client alone | beyond it |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found["turns"]:
        lines.append(
            f"| {row['messages']:.0f} | {row['kB']:.0f} | {row['first']} | {row['turn']} | {row['raw']} "
            f"| {row['beyond']} |"
        )
    return "\n".join(lines)


def record(path: Path, text: str) -> None:
    """Put ``text`` between our marks in a Markdown file; the section is added when it is not there yet."""
    page = path.read_text(encoding="utf-8")
    if BEGIN not in page:
        page = f"{page.rstrip()}\n\n## Start and turns\n\n{BEGIN}\n{END}\n"
    before, rest = page.split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--json", type=Path, help="write the figures to this file")
    options.add_argument("--record", type=Path, metavar="FILE", help="write them into this Markdown file")
    given = options.parse_args()
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    with subprocess.Popen([sys.executable, str(SERVER)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            url = server.stdout.readline().strip()
            start, ratio = starts(given.runs, url)
            found: dict[str, Any] = {
                "date": time.strftime("%Y-%m-%d", time.gmtime()),
                "machine": f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
                f"{os.cpu_count()} cores",
                "load": load,
                "runs": given.runs,
                "start": start,
                "ratio": ratio,
                "turns": turns(url),
            }
        finally:
            server.terminate()
    print(as_text(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if given.record:
        record(given.record, as_text(found))


if __name__ == "__main__":
    main()
