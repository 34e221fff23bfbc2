"""Runs a copy of the welcome notebook without a front end and prints the model's answer."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from hermes_nb.core.names import MIME_TURN, TurnStatus
from hermes_nb.core.shipped import shipped

CELL_SECONDS = 900
"""The offline demo model reads its prefix for the first time at about 30 tokens a second on one busy core."""


def turns(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Return the status and the text of every turn in the notebook."""
    found, text = [], []
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    for data in (output["data"] for output in outputs if MIME_TURN in output.get("data", {})):
        state = data[MIME_TURN]
        if state["kind"] == "text":
            text.append(data["text/markdown"])
        elif state["kind"] == "turn":
            found.append((state["status"], "".join(text).strip()))
            text = []
    return found


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hermes-nb-check-") as folder:
        copy = Path(folder) / "00_welcome.ipynb"
        shutil.copyfile(shipped("notebooks") / copy.name, copy)
        notebook = nbformat.read(copy, as_version=4)
        print("Running the welcome notebook …", flush=True)
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            extra_arguments=["--IPKernelApp.log_level=40"],
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as exc:
            print(f"check: the welcome notebook failed: {exc}", file=sys.stderr)
            return 1
    found = turns(notebook)
    if not found:
        print("check: the notebook ran, but no turn left an answer in it.", file=sys.stderr)
        return 1
    for status, text in found:
        if status != TurnStatus.COMPLETE or not text:
            print(f"check: the turn ended as {status!r}: {text or 'no text'}", file=sys.stderr)
            return 1
        print(f"\n{text}\n")
    print("check: the welcome notebook works.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
