from __future__ import annotations

from pathlib import Path

import pytest

from hermes_nb.core.cancel import Cancel
from hermes_nb.tools.tool import ToolContext


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    return ToolContext("s1", "r1", "ada", "notebook", "t1", workspace, Cancel())
