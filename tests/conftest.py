"""Shared by all tests: an order from quick to slow, sizes of long checks, and figures worth keeping."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

ARTIFACTS = Path(__file__).parent.parent / "test-artifacts"
_FIGURES = pytest.StashKey[dict[str, str]]()
_ORDER = ("browser", "local_model", "kernel", "slow")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run long checks at their full size")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FIGURES] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what is quick first, so that a broken basis shows before the long tests start."""

    def cost(item: pytest.Item) -> int:
        marks = {mark.name for mark in item.iter_markers()}
        return next((len(_ORDER) - place for place, name in enumerate(_ORDER) if name in marks), 0)

    items.sort(key=cost)


def pytest_sessionfinish(session: pytest.Session) -> None:
    figures = session.config.stash[_FIGURES]
    if figures:
        ARTIFACTS.mkdir(exist_ok=True)
        text = json.dumps(figures, indent=1, ensure_ascii=False) + "\n"
        (ARTIFACTS / "measurements.json").write_text(text, encoding="utf-8")


@pytest.fixture
def size(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """``size(small, full)``: how many rounds a long check makes; ``--slow`` gives the full size."""
    full_size = request.config.getoption("--slow")
    return lambda small, full: full if full_size else small


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, object], None]:
    """``figure(name, value)``: keep a measured value for docs/measurements.md."""

    def keep(name: str, value: object) -> None:
        request.config.stash[_FIGURES][name] = str(value)

    return keep


@pytest.fixture(scope="session")
def artifacts() -> Path:
    """Return the folder for screenshots and other things to look at after a run."""
    ARTIFACTS.mkdir(exist_ok=True)
    return ARTIFACTS


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give every test a home of its own, and no endpoint or key of the developer's."""
    home = tmp_path / "hermes-home"
    for name in [name for name in os.environ if name != "HERMES_NB_TEST_MODELS"]:
        if name.startswith(("HERMES_NB_", "OPENAI_")) or name.endswith("_API_KEY") or name == "OLLAMA_HOST":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HERMES_NB_HOME", str(home))
    monkeypatch.setenv("HERMES_NB_NO_PROBE", "1")
    return home
