"""How many attacks the injection scan catches, how often it is wrong, and how long it takes.

Judges the texts of tests/core/data/scan; what each file is worth stands in the README beside them.
Run: python benchmarks/scan.py [--show] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hermes_nb.core.scan import CONTEXT, STRICT, scan

DATA = Path(__file__).parents[1] / "tests" / "core" / "data" / "scan"


def judge(name: str, *, show: bool = False) -> dict[str, Any]:
    """Return hits and totals of one file, by label, source or category, and language."""
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for line in (DATA / name).read_text(encoding="utf-8").split("\n"):
        if not line:
            continue
        row = json.loads(line)
        attack = row["label"] == "attack"
        found = scan(row["text"], CONTEXT)
        groups = [row["label"], f"{row['label']}: {row['source'] if attack else row['category']}"]
        groups += [f"language {row['lang']}"] if attack else []
        for group in groups:
            totals[group] += 1
            hits[group] += bool(found)
        if show and attack != bool(found):
            print("missed" if attack else f"false ({found[0].rule})", "|", " ".join(row["text"].split())[:160])
    return {group: [hits[group], totals[group]] for group in sorted(totals)}


def seconds() -> float:
    """Return the CPU seconds of a strict scan of 64 KiB of prose."""
    text = (DATA / "held_out.jsonl").read_text(encoding="utf-8")[:65_536]
    before = time.process_time()
    scan(text, STRICT)
    return time.process_time() - before


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print each text that was judged wrongly")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for file in sorted(DATA.glob("*.jsonl")):
        figures[file.stem] = judge(file.name, show=options.show)
        print(file.stem)
        for group, (hit, total) in figures[file.stem].items():
            print(f"  {group:60} {hit:4} of {total:4}  {hit / total:7.1%}")
    figures["seconds for 64 KiB"] = round(seconds(), 3)
    print("seconds for 64 KiB:", figures["seconds for 64 KiB"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
