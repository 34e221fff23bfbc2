"""Looks at this installation and says, line by line, what works and what to do about the rest.

Changes nothing except creating the home folder. Gets the endpoint choice as a value, and knows no front end:
the command line and ``%hermes doctor`` print the same lines.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib import metadata
from typing import Any, cast

from hermes_nb.agent.provider import Endpoint
from hermes_nb.core.config import Settings
from hermes_nb.core.errors import HermesError, NoEndpoint
from hermes_nb.core.paths import HOME_VARIABLE, Home
from hermes_nb.store.filesystem import file_system_type, is_network
from hermes_nb.store.store import open_store

ANSWER_SECONDS = 5.0


class State(StrEnum):
    """How a line stands."""

    OK = "ok"
    WARN = "warn"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``next`` is the step that makes it ok, empty when there is nothing to do."""

    name: str
    state: State
    text: str
    next: str = ""


def examine(
    home: Home,
    *,
    endpoint: Callable[[], Endpoint],
    embedded_problem: Callable[[], str | None],
    environ: Mapping[str, str] | None = None,
) -> list[Check]:
    """Return all lines. ``endpoint`` raises HermesError; ``embedded_problem`` returns why it cannot run, or None."""
    environ = os.environ if environ is None else environ
    config = _config(home, environ)
    checks = [_python(), _sqlite(), _home(home), config]
    if config.state is not State.BLOCKED:
        checks.append(_store(home))
    checks += [_kernel(), _widgets(), _lab()]
    # Without readable settings a choice of endpoint would only repeat that error.
    chosen: Endpoint | None = None
    if config.state is not State.BLOCKED:
        chosen, line = _endpoint(endpoint, environ)
        checks.append(line)
    checks.append(_embedded(embedded_problem, needed=chosen is None or chosen.embedded))
    return checks


def blocked(checks: list[Check]) -> bool:
    """Say whether anything stops the product from working."""
    return any(check.state is State.BLOCKED for check in checks)


def as_text(checks: list[Check]) -> str:
    """Return the lines for a terminal."""
    width = max(len(check.name) for check in checks)
    lines: list[str] = []
    for check in checks:
        lines.append(f"{check.state:<8}{check.name:<{width}}  {check.text}")
        if check.next:
            lines.append(f"{'':8}{'':{width}}  → {check.next}")
    return "\n".join(lines)


def as_data(checks: list[Check]) -> list[dict[str, str]]:
    """Return the lines for ``--json``."""
    return [{name: str(value) for name, value in asdict(check).items()} for check in checks]


def _python() -> Check:
    # Older ones do not get this far: the package needs 3.11 to be installed.
    return Check("Python", State.OK, f"{platform.python_version()} at {sys.executable}")


def _sqlite() -> Check:
    version = sqlite3.sqlite_version
    with closing(sqlite3.connect(":memory:")) as connection:
        for module in ("fts5", "fts4"):
            try:
                connection.execute(f"CREATE VIRTUAL TABLE probe USING {module}(text)")
            except sqlite3.OperationalError:
                continue
            if module == "fts5":
                return Check("SQLite", State.OK, f"{version} with FTS5")
            step = "Search works with FTS4, ranked more coarsely. A Python whose SQLite has FTS5 is better."
            return Check("SQLite", State.WARN, f"{version} without FTS5", step)
    step = "Use a Python from python.org, Homebrew or Debian: their SQLite can search text."
    return Check("SQLite", State.BLOCKED, f"{version} without full-text search", step)


def _home(home: Home) -> Check:
    try:
        home.ensure()
    except HermesError as exc:
        return Check("Home", State.BLOCKED, str(home.root), str(exc))
    kind = file_system_type(home.root)
    where = f"{home.root}" + (f" on {kind}" if kind else "")
    if is_network(home.root):
        step = f"Set {HOME_VARIABLE} to a folder on a local disk. Until then one host at a time can hold the store."
        return Check("Home", State.WARN, f"{where}, a network file system", step)
    return Check("Home", State.OK, where)


def _config(home: Home, environ: Mapping[str, str]) -> Check:
    try:
        settings = Settings.load(home, environ)
    except HermesError as exc:
        return Check("Settings", State.BLOCKED, "cannot be read", str(exc))
    changed = sum(value.origin != "default" for value in settings.values.values())
    return Check("Settings", State.OK, f"{changed} set, the rest are defaults ({home.config})")


def _store(home: Home) -> Check:
    if not home.database.exists():
        return Check("Store", State.OK, "empty; made at the first question")
    try:
        store = open_store(home.database, kind="process")
    except HermesError as exc:
        return Check("Store", State.BLOCKED, str(home.database), str(exc))
    with closing(store):
        text = f"{home.database} ({store.journal_mode} mode)"
        if store.notices:
            return Check("Store", State.WARN, text, " ".join(store.notices))
        return Check("Store", State.OK, text)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _at_least(version: str, *wanted: int) -> bool:
    numbers = [int(part) if part.isdigit() else 0 for part in version.split(".")[: len(wanted)]]
    return tuple(numbers) >= wanted


def _kernel() -> Check:
    version = _version("ipykernel")
    if version is None or not _at_least(version, 7, 4):
        step = "Run in this environment: pip install 'ipykernel>=7.4'   Older kernels cannot show buttons in a cell."
        return Check("Kernel", State.BLOCKED, f"ipykernel {version or 'is not installed'}", step)
    return Check("Kernel", State.OK, f"ipykernel {version}")


def _widgets() -> Check:
    kernel_side, page_side = _version("ipywidgets"), _version("jupyterlab_widgets")
    text = f"ipywidgets {kernel_side or 'missing'}, jupyterlab_widgets {page_side or 'missing'}"
    if kernel_side is None or not _at_least(kernel_side, 8):
        return Check("Buttons", State.BLOCKED, text, "Run in this environment: pip install 'ipywidgets>=8'")
    if page_side is None or not _at_least(page_side, 3):
        step = (
            "JupyterLab shows buttons only with jupyterlab_widgets in its own environment: pip install "
            "'jupyterlab_widgets>=3' there. Until then answer with: %hermes approvals"
        )
        return Check("Buttons", State.WARN, text, step)
    return Check("Buttons", State.OK, text)


def _lab() -> Check:
    version = _version("jupyterlab")
    if version is None:
        step = "Fine when another environment runs it; else: pip install 'hermes-nb[lab]'"
        return Check("JupyterLab", State.WARN, "not in this environment", step)
    return Check("JupyterLab", State.OK, version)


def _endpoint(choose: Callable[[], Endpoint], environ: Mapping[str, str]) -> tuple[Endpoint | None, Check]:
    try:
        chosen = choose()
    except NoEndpoint as exc:
        return None, Check("Model", State.BLOCKED, "no endpoint was found", str(exc))
    except HermesError as exc:
        return None, Check("Model", State.BLOCKED, "the endpoint cannot be used", str(exc))
    if chosen.embedded:
        step = "It is often wrong. To connect a real model see: docs/models.md, or set OPENAI_API_KEY"
        return chosen, Check("Model", State.WARN, _why(chosen), step)
    if chosen.key_env and not environ.get(chosen.key_env):
        step = f"Set the environment variable {chosen.key_env}, or name another one in model.key_env."
        return chosen, Check("Model", State.BLOCKED, _why(chosen), step)
    return chosen, _ask_endpoint(chosen, environ)


def _why(chosen: Endpoint) -> str:
    return chosen.reason.removeprefix("Model: ")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A key must not follow a redirect to another host."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


def _ask_endpoint(chosen: Endpoint, environ: Mapping[str, str]) -> Check:
    """Ask for the list of models, which every compatible endpoint has, and which costs nothing."""
    request = urllib.request.Request(chosen.base_url.rstrip("/") + "/models", headers={"Accept": "application/json"})
    if chosen.key_env:
        request.add_unredirected_header("Authorization", f"Bearer {environ[chosen.key_env]}")
    line = _why(chosen)
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=ANSWER_SECONDS) as response:
            models = _model_names(response.read(2_000_000))
    except urllib.error.HTTPError as exc:
        exc.close()
        if exc.code in (401, 403):
            step = f"The endpoint refused the key in {chosen.key_env or 'the environment'} ({exc.code}). Check the key."
            return Check("Model", State.BLOCKED, line, step)
        return Check("Model", State.OK, f"{line}; it answers, but has no list of models (HTTP {exc.code})")
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "reason", exc)
        step = f"{chosen.base_url} does not answer ({reason}). Start the server, or correct model.base_url."
        return Check("Model", State.BLOCKED, line, step)
    if models and chosen.model and chosen.model not in models:
        step = f"It lists {', '.join(sorted(models)[:5])}. Set one: hermes-nb config set model.name NAME"
        return Check("Model", State.WARN, f"{line}; the endpoint does not list {chosen.model}", step)
    return Check("Model", State.OK, f"{line}; it answers")


def _model_names(body: bytes) -> set[str]:
    try:
        data = json.loads(body)
        return {str(item["id"]) for item in cast("list[Any]", data["data"])}
    except (ValueError, TypeError, KeyError):
        return set()


def _embedded(problem: Callable[[], str | None], *, needed: bool) -> Check:
    reason = problem()
    if reason is None:
        return Check("Demo model", State.OK, "the offline demo model is installed")
    if not needed:
        return Check("Demo model", State.OK, f"not installed, and not needed ({reason})")
    return Check("Demo model", State.WARN, reason, "Run: hermes-nb model install")
