"""Notebooks run by nbclient, papermill, ``jupyter execute`` and nbval: nobody watches and nobody can answer."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from support.model_server import ModelServer
from support.notebooks import environment, outputs, shown, tool, turn, write_notebook

import hermes_nb
from hermes_nb.core.names import MIME_TURN

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

CELLS = [
    "%load_ext hermes_nb",
    "rows = [1, 2, 3]",
    turn(
        {"call": "python", "args": {"code": "sum(rows)"}},
        {"say": "It has **three** rows."},
        text="What is in rows?",
    ),
    turn({"call": "python", "args": {"code": "1/0"}}, {"say": "I recovered."}, line="--approve off"),
    turn(
        {"call": "python", "args": {"code": "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"}},
        {"say": "A line."},
        line="--approve off -o drawn",
    ),
    turn({"call": "python", "args": {"code": "import os; os.remove('nothing')"}}, {"say": "I was not allowed."}),
    "%%time\n" + turn({"say": "Timed."}),
    "print(sum(rows), drawn.status)",
]
INSPECTION, RECOVERED, FIGURE, DENIED, TIMED, PLAIN = range(2, 8)
SANITIZE = r"""
[prompt numbers]
regex: In\s?\[\d+\]
replace: In[N]

[timing]
regex: (CPU times|Wall time): .*
replace: TIME

[figure numbers]
regex: iVBOR[A-Za-z0-9+/=\n]+
replace: PNG
"""


@pytest.fixture(scope="module")
def server():
    """Answers as the message says; the sessions of all runs may reach it in any order."""
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def workshop(tmp_path_factory, server: ModelServer):
    """The same notebook run once by each tool: folder, environment, and the file that each left behind."""
    folder = tmp_path_factory.mktemp("headless")
    env = environment(folder / "home", server.url)
    source = write_notebook(folder / "source.ipynb", CELLS)
    made = {name: folder / f"{name}.ipynb" for name in ("papermill", "execute", "nbclient")}
    done = tool("papermill", "--no-progress-bar", source, made["papermill"], env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    shutil.copy(source, made["execute"])
    done = tool("jupyter", "execute", "--inplace", made["execute"], env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    notebook = nbformat.read(source, as_version=4)
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute(cwd=str(folder), env=env)
    nbformat.write(notebook, made["nbclient"])
    return folder, env, made


@pytest.mark.parametrize("runner", ["papermill", "execute", "nbclient"])
def test_a_notebook_with_turns_runs_through(workshop, runner: str):
    cells = outputs(workshop[2][runner])
    assert cells[0] == []
    assert "It has **three** rows." in shown(cells[INSPECTION]) and "\n6" in shown(cells[INSPECTION])
    assert "ZeroDivisionError" in shown(cells[RECOVERED]) and "I recovered." in shown(cells[RECOVERED])
    assert [output for output in cells[FIGURE] if "image/png" in output.get("data", {})]
    assert "denied" in shown(cells[DENIED]) and "I was not allowed." in shown(cells[DENIED])
    assert "Timed." in shown(cells[TIMED]) and "Wall time" in shown(cells[TIMED])
    assert shown(cells[PLAIN]) == "6 complete\n"
    kinds = Counter(output["output_type"] for cell in cells for output in cell)
    assert kinds["error"] == kinds["execute_result"] == 0


def test_each_run_gives_the_same_number_of_outputs_of_each_kind(workshop):
    """case 187: what is random or grows from run to run stands in metadata, never in the data."""

    def counts(path: Path) -> list[Counter]:
        return [
            Counter(
                mime
                for output in cell
                for mime in (output["data"] if "data" in output else [f"{output['output_type']}:{output.get('name')}"])
            )
            for cell in outputs(path)
        ]

    def bundles(path: Path) -> list[list[dict]]:
        return [[o["data"].get(MIME_TURN) for o in cell if MIME_TURN in o.get("data", {})] for cell in outputs(path)]

    one, two, three = workshop[2].values()
    assert counts(one) == counts(two) == counts(three)
    assert bundles(one) == bundles(two) == bundles(three)


def test_the_saved_notebook_is_valid_names_its_cells_and_keeps_no_secret_and_no_widget(workshop):
    """case 190"""
    for path in workshop[2].values():
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        ids = [cell.id for cell in notebook.cells]
        assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) for id in ids)
        text = path.read_text(encoding="utf-8")
        assert "test-key" not in text
        assert "widget-view" not in text and "widgets" not in notebook.metadata


def test_all_cells_of_a_run_share_one_session_and_each_run_begins_its_own(workshop):
    sessions = []
    for path in workshop[2].values():
        named = {o["metadata"]["hermes_nb"]["session"] for cell in outputs(path) for o in cell if _names(o)}
        assert len(named) == 1
        sessions += named
    assert len(set(sessions)) == 3
    store = hermes_nb.open_store(workshop[0] / "home" / "state.db")
    asked = [[row.text for row in store.rows(id) if row.role == "user"] for id in sessions]
    store.close()
    assert [len(rows) for rows in asked] == [5, 5, 5]


def _names(output) -> bool:
    return "session" in output.get("metadata", {}).get("hermes_nb", {})


@pytest.mark.parametrize("how", ["--nbval-lax", "--nbval"])
def test_nbval_finds_what_was_saved_again(workshop, how: str):
    folder, env, made = workshop
    sanitize = folder / "sanitize.cfg"
    sanitize.write_text(SANITIZE, encoding="utf-8")
    words = ["pytest", how, "-p", "no:cacheprovider", "-q", "--rootdir", folder]
    done = tool(*words, "--nbval-sanitize-with", sanitize, made["nbclient"], env=env, cwd=folder)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("format", ["html", "markdown"])
def test_the_saved_notebook_reads_well_where_nothing_of_ours_is_installed(workshop, tmp_path: Path, format: str):
    _folder, env, made = workshop
    shutil.copy(made["nbclient"], tmp_path / "read.ipynb")
    bare = {name: value for name, value in env.items() if name != "PYTHONPATH" and not name.startswith("HERMES_NB")}
    done = tool("jupyter", "nbconvert", "--to", format, "read.ipynb", env=bare, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / ("read.html" if format == "html" else "read.md")).read_text(encoding="utf-8")
    assert ("<strong>three</strong>" if format == "html" else "**three**") in page
    assert "I was not allowed." in page
    assert "vnd.hermes-nb" not in page
    assert page.count("It has") == 2, "once in the cell's own text, once as the answer"


def run(tmp_path: Path, url: str | None, cells: list[str], **env: str):
    """Run a small notebook with ``jupyter execute``."""
    path = write_notebook(tmp_path / "run.ipynb", ["%load_ext hermes_nb", *cells])
    words = ["jupyter", "execute", "--inplace", "--allow-errors", path]
    done = tool(*words, env=environment(tmp_path / "home", url, **env), cwd=tmp_path)
    return done, outputs(path)[1:] if done.returncode == 0 else []


def test_a_failed_turn_fails_the_run_and_keep_going_goes_on(tmp_path: Path, server: ModelServer):
    refused = {"status": 401, "body": {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}}
    cells = ["%load_ext hermes_nb", turn(refused, line="--keep-going"), turn(refused), "print('went on')"]
    path, stopped = papermill_stops(tmp_path, environment(tmp_path / "home", server.url), cells)
    _, kept_going, *_ = outputs(path)
    assert not [output for output in kept_going if output["output_type"] == "error"]
    for said in (shown(kept_going), stopped):
        assert "HERMES_NB_API_KEY" in said and "test-key" not in said


def test_a_wrong_flag_fails_the_run(tmp_path: Path):
    """papermill looks for error outputs only, and IPython makes none for its own usage errors."""
    cells = ["%load_ext hermes_nb", "%%hermes --modle x\nhi", "print('went on')"]
    assert "Did you mean --model?" in papermill_stops(tmp_path, environment(tmp_path / "home", None), cells)[1]


def papermill_stops(folder: Path, env: dict[str, str], cells: list[str]) -> tuple[Path, str]:
    """Check that a run ends with an error before its last cell; return the file, and what was said."""
    path = write_notebook(folder / "stops.ipynb", cells)
    done = tool("papermill", "--no-progress-bar", path, path, env=env, cwd=folder)
    assert done.returncode != 0
    *_, failed, after = outputs(path)
    assert [output["ename"] for output in failed if output["output_type"] == "error"]
    assert "went on" not in shown(after)
    return path, shown(failed) + done.stderr


def test_a_missing_endpoint_is_an_error_and_never_a_prompt(tmp_path: Path):
    """case 183: a missing endpoint under a runner: no input(), a clear message, no hanging. (Approvals: above.)"""
    forbid = "import builtins\nbuiltins.input = lambda *a: print('INPUT CALLED')"
    asks = ["%%hermes\nhi", "%%time\n%%hermes\nhi", "import hermes_nb\nhermes_nb.Agent.open().run('hi')"]
    done, cells = run(tmp_path, None, [forbid, *asks, "print('next')"])
    assert done.returncode == 0, done.stderr
    for cell in cells[1:4]:
        said = shown(cell)
        assert "NoEndpoint: No model is connected yet." in said and "Three ways to connect one" in said
        assert not re.search(r"File .*hermes_nb", said), said
    assert "INPUT CALLED" not in json.dumps(cells)
    assert shown(cells[-1]) == "next\n"


def test_a_run_started_inside_a_notebooks_kernel_leaves_that_notebook_its_session(tmp_path: Path, server: ModelServer):
    """``!jupyter execute`` in a cell inherits JPY_SESSION_NAME of the notebook that runs it."""
    outer = write_notebook(tmp_path / "outer.ipynb", [])
    done, cells = run(tmp_path, server.url, [turn({"say": "inner"})], JPY_SESSION_NAME=str(outer))
    assert done.returncode == 0 and "inner" in shown(cells[0])
    store = hermes_nb.open_store(tmp_path / "home" / "state.db")
    assert store.notebook_session(str(outer)) is None
    store.close()
