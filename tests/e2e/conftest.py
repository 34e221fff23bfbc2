"""One JupyterLab, one page and one scripted model server for all browser tests of a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.lab import Lab, chromium
from support.model_server import ModelServer

KEY = "sk-test-0123456789abcdefghijklmnop"


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, model_server: ModelServer) -> Iterator[Lab]:
    if chromium() is None:
        pytest.skip("no Chromium is installed (on Debian: apt-get install chromium)")
    env = {
        "HERMES_NB_NO_PROBE": "1",
        "HERMES_NB_BASE_URL": model_server.url,
        "HERMES_NB_MODEL": "scripted",
        "HERMES_NB_API_KEY": KEY,
    }
    with Lab(tmp_path_factory.mktemp("lab"), env) as lab:
        yield lab


@pytest.fixture
def model(model_server: ModelServer) -> ModelServer:
    """Return the model server with nothing scripted and nothing recorded."""
    model_server.clear()
    return model_server
