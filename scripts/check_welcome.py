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


def answers(notebook: nbformat.NotebookNode) -> list[dict]:
    """Return the output bundles of all turns in the notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"] for output in outputs if MIME_TURN in output.get("data", {})]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hermes-nb-check-") as folder:
        copy = Path(folder) / "00_welcome.ipynb"
        shutil.copyfile(shipped("notebooks") / copy.name, copy)
        notebook = nbformat.read(copy, as_version=4)
        print("Running the welcome notebook …", flush=True)
        client = NotebookClient(
            notebook, timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as exc:
            print(f"check: the welcome notebook failed: {exc}", file=sys.stderr)
            return 1
    found = answers(notebook)
    if not found:
        print("check: the notebook ran, but no turn left an answer in it.", file=sys.stderr)
        return 1
    for bundle in found:
        state, text = bundle[MIME_TURN], str(bundle.get("text/markdown") or bundle.get("text/plain", "")).strip()
        if state.get("status") != TurnStatus.COMPLETE or not text:
            print(f"check: the turn ended as {state.get('status')!r}:\n{text}", file=sys.stderr)
            return 1
        print(f"\n{text}\n")
    print("check: the welcome notebook works.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
