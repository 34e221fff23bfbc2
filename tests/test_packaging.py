import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest

from hermes_nb.core.errors import ConfigError
from hermes_nb.core.shipped import shipped

CLONE = Path(__file__).parent.parent
NOTEBOOKS = sorted((CLONE / "notebooks").glob("*.ipynb"))


def test_what_is_shipped_is_found_in_a_clone():
    assert (shipped("notebooks") / "00_welcome.ipynb").is_file()
    assert (shipped("skills") / "README.md").is_file()
    with pytest.raises(ConfigError, match="missing"):
        shipped("nothing")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_shipped_notebook_is_valid_and_holds_no_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_dependencies_of_the_kernel_stay_few():
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
    names = {requirement.split(">")[0].split("[")[0] for requirement in project["dependencies"]}
    assert names == {
        *("ipython", "ipykernel", "ipywidgets", "openai", "sqlite-fts4", "nbformat"),
        *("jupyter_client", "click", "platformdirs", "PyYAML", "filelock"),
    }


@pytest.mark.slow
def test_the_wheel_holds_notebooks_skills_and_types_and_finds_them(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(CLONE)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"hermes_nb/_shipped/notebooks/00_welcome.ipynb", "hermes_nb/_shipped/skills/README.md"} <= names
    assert "hermes_nb/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "docs/"))]
    # An environment without the clone: what is shipped must come from the wheel alone.
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    ).stdout.strip()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    code = "from hermes_nb.core.shipped import shipped; print(shipped('notebooks'), shipped('skills'))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert [Path(item).parent.name for item in found.stdout.split()] == ["_shipped", "_shipped"]
    assert str(tmp_path) in found.stdout
