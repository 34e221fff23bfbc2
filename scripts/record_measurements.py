"""Writes the figures of the last full run into docs/measurements.md: date, commit, machine, values."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

CLONE = Path(__file__).resolve().parent.parent
PAGE = CLONE / "docs" / "measurements.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=CLONE, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"


def main() -> int:
    source = CLONE / "test-artifacts" / "measurements.json"
    figures: dict[str, str] = json.loads(source.read_text(encoding="utf-8")) if source.exists() else {}
    lines = [
        BEGIN,
        f"{time.strftime('%Y-%m-%d')} · commit {commit()} · {machine()}",
        "",
        "| what | value |",
        "| --- | --- |",
    ]
    lines += [f"| {name} | {value} |" for name, value in sorted(figures.items())]
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(head + "\n".join([*lines, END]) + tail, encoding="utf-8")
    print(f"docs/measurements.md: {len(figures)} figures written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
