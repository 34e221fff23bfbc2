"""Notebooks for tests: made from cells, run by other people's tools in processes of their own, and read again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat

CLONE = Path(__file__).parent.parent.parent
SECONDS = 120


def turn(*steps: Mapping[str, Any], line: str = "", text: str = "Please.") -> str:
    """Return a ``%%hermes`` cell whose message tells the scripted server what to answer."""
    return f"%%hermes {line}\n{text}\nSCRIPT {json.dumps(steps)}"


def write_notebook(path: Path, cells: Iterable[str]) -> Path:
    """Write a notebook with one code cell for each source."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in cells]
    nbformat.write(notebook, path)
    return path


def environment(home: Path, url: str | None, **more: str) -> dict[str, str]:
    """Return the environment of a process that runs notebooks with this clone, this home and this endpoint."""
    env = {
        **os.environ,
        "HERMES_NB_HOME": str(home),
        "HERMES_NB_NO_PROBE": "1",
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "PYTHONPATH": str(CLONE),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        **more,
    }
    # With this variable set, ipykernel does not watch the descriptors of subprocess output.
    env.pop("PYTEST_CURRENT_TEST", None)
    if url is not None:
        env |= {"HERMES_NB_BASE_URL": url, "HERMES_NB_MODEL": "scripted", "HERMES_NB_API_KEY": "test-key"}
    return env


def tool(*words: str | Path, env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``python -m WORDS`` without a terminal, and give back what it said."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        env=dict(env),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )


def outputs(path: Path) -> list[list[dict[str, Any]]]:
    """Return the outputs of each code cell."""
    return [list(cell.outputs) for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def shown(cell: Iterable[Mapping[str, Any]]) -> str:
    """Return all text of one cell's outputs."""
    parts = []
    for output in cell:
        if output["output_type"] == "stream":
            parts.append(output["text"])
        elif output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
        else:
            data = output["data"]
            parts += [str(data[mime]) for mime in ("text/markdown", "text/html", "text/plain") if mime in data]
    return "\n".join(parts)
