import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from support.model_server import ModelServer, say

from hermes_nb.core.names import MIME_TURN
from hermes_nb.core.paths import Home

CLONE = Path(__file__).parent.parent
NOTEBOOKS = sorted((CLONE / "notebooks").glob("*.ipynb"))
SECONDS = 120

pytestmark = [pytest.mark.slow, pytest.mark.kernel]


@pytest.fixture
def answering(monkeypatch):
    """A model that answers every question, and kernels that import this clone."""
    monkeypatch.setenv("PYTHONPATH", str(CLONE))
    monkeypatch.setenv("HERMES_NB_MODEL", "scripted")
    with ModelServer([say("It is water.")] * 20) as server:
        monkeypatch.setenv("HERMES_NB_BASE_URL", server.url)
        yield server


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_shipped_notebook_runs_and_the_model_answers_in_it(path, answering, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    nbformat.validate(notebook)
    bundles = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert any(bundle.get("text/markdown") == "It is water." for bundle in bundles)
    assert any(bundle.get(MIME_TURN, {}).get("status") == "complete" for bundle in bundles)
    assert answering.bodies
    (load,) = [cell for cell in notebook.cells if cell.source == "%load_ext hermes_nb"]
    assert load.outputs == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_nbval_accepts_a_shipped_notebook(path, answering, tmp_path):
    words = [sys.executable, "-m", "pytest", "--nbval-lax", "-p", "no:cacheprovider", "-q", "--rootdir", str(tmp_path)]
    done = subprocess.run([*words, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.local_model
@pytest.mark.skipif("HERMES_NB_TEST_MODELS" not in os.environ, reason="scripts/test installs the demo model")
def test_the_check_of_scripts_start_prints_an_answer_of_the_demo_model(own_home, monkeypatch):
    Home(own_home).ensure().models.symlink_to(os.environ["HERMES_NB_TEST_MODELS"], target_is_directory=True)
    monkeypatch.setenv("PYTHONPATH", str(CLONE))
    before = (CLONE / "notebooks" / "00_welcome.ipynb").read_bytes()
    done = subprocess.run(
        [sys.executable, str(CLONE / "scripts" / "check_welcome.py")], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "check: the welcome notebook works." in done.stdout
    assert len(done.stdout.splitlines()) > 3
    assert (CLONE / "notebooks" / "00_welcome.ipynb").read_bytes() == before


def test_the_check_of_scripts_start_fails_with_the_reason_without_a_model(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(CLONE))
    done = subprocess.run(
        [sys.executable, str(CLONE / "scripts" / "check_welcome.py")], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 1
    assert "No model is connected yet" in done.stderr
