"""A real JupyterLab in a real headless Chromium: one server, one page, notebooks as a person sees them.

``Lab`` starts the server with a token, in a home and with Jupyter folders of its own; ``Notebook`` acts on one
open notebook. A cell's state is read from its model: the status bar says "Idle" while a cell awaits.
Every wait has a deadline and fails with what was seen.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playwright.sync_api import Locator, Page, sync_playwright

DEADLINE = 60.0
_SETTINGS = {
    # No question about news on the first page.
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
_CHROMIUM = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--mute-audio",
)
_PANEL = "[...window.jupyterapp.shell.widgets('main')].find(w => w.context && w.context.path === path)"


def chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def wait_until(seen: Callable[[], Any], what: Callable[[], str], seconds: float = DEADLINE, pause: float = 0.1) -> Any:
    """Call ``seen`` until it is true and return its value; AssertionError with ``what()`` after the deadline."""
    deadline = time.monotonic() + seconds
    while not (value := seen()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what()}"[:4000]
        time.sleep(pause)
    return value


class Lab:
    """The server and its page. Use as ``with Lab(folder, env) as lab``; notebooks live in ``lab.root``."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self.root = folder / "notebooks"
        self.root.mkdir(parents=True)
        self.token = uuid.uuid4().hex
        self.env = {**_without_ours(os.environ), **_own_folders(folder), **env}
        for name, values in _SETTINGS.items():
            path = folder / "settings" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values), encoding="utf-8")
        self.url = ""
        self._closing: list[Callable[[], object]] = []

    def __enter__(self) -> Self:
        try:
            self._start_server()
            self._start_browser()
            self.load()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        while self._closing:
            self._closing.pop()()

    def _start_server(self) -> None:
        options = [
            "--no-browser",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={_free_port()}",
            f"--ServerApp.root_dir={self.root}",
            f"--IdentityProvider.token={self.token}",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.news_url=",
            *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        ]
        with (self.folder / "server.log").open("wb") as log:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *options],
                env=self.env,
                cwd=self.root,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._closing.append(self._stop_server)
        facts = self.folder / "runtime" / f"jpserver-{self.server.pid}.json"
        wait_until(lambda: facts.exists() or self.server.poll() is not None, self.log)
        assert self.server.poll() is None, self.log()
        self.url = json.loads(facts.read_text(encoding="utf-8"))["url"]

    def _stop_server(self) -> None:
        self.server.send_signal(signal.SIGTERM)
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait(20)

    def _start_browser(self) -> None:
        playwright = sync_playwright().start()
        self._closing.append(playwright.stop)
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(_CHROMIUM))
        self._closing.append(browser.close)
        self.page: Page = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
        self.page.set_default_timeout(DEADLINE * 1000)
        self.console: list[str] = []
        self.page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.console.append(f"pageerror: {error}"))
        self.page.on("dialog", lambda dialog: dialog.accept())

    def log(self) -> str:
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")[-3000:]

    def load(self, path: str = "") -> None:
        """Load the page anew, with the notebook ``path`` open."""
        tree = f"/tree/{path}" if path else ""
        self.page.goto(f"{self.url}lab{tree}?reset&token={self.token}", wait_until="domcontentloaded")
        self.page.wait_for_function("window.jupyterapp && window.jupyterapp.shell")
        self.page.evaluate("async () => { await window.jupyterapp.restored; }")

    def command(self, name: str, **arguments: Any) -> None:
        """Start a command of JupyterLab as its menus do; its end is not waited for."""
        self.page.evaluate(
            "([name, args]) => { void window.jupyterapp.commands.execute(name, args); }", [name, arguments]
        )

    def menu(self, *names: str) -> None:
        """Click through a menu: ``lab.menu("Kernel", "Interrupt Kernel")``."""
        self.page.locator(".lm-MenuBar-item", has_text=names[0]).first.click()
        for name in names[1:]:
            self.page.locator(".lm-Menu-item", has_text=name).first.click()

    def dialog(self, button: str) -> None:
        """Click a button of the open dialog."""
        self.page.locator(".jp-Dialog-button", has_text=button).last.click()

    def notebook(self, cells: Sequence[str], name: str | None = None) -> Notebook:
        """Write a notebook with these code cells, open it, and wait for its kernel."""
        name = name or f"{uuid.uuid4().hex[:8]}.ipynb"
        write_notebook(self.root / name, cells)
        self.command("docmanager:open", path=name, factory="Notebook")
        return Notebook(self, name).ready()

    def screenshot(self, path: Path) -> None:
        self.page.screenshot(path=str(path))


class Notebook:
    """One open notebook; cells are counted from 0."""

    def __init__(self, lab: Lab, path: str) -> None:
        self.lab = lab
        self.path = path
        self.file = lab.root / path

    def _js(self, body: str, *args: Any) -> Any:
        """Run ``body`` with ``app``, ``panel``, ``cells`` (widgets) and ``args`` at hand."""
        script = (
            f"async ([path, args]) => {{ const app = window.jupyterapp; const panel = {_PANEL};"
            f" const cells = panel ? panel.content.widgets : []; {body} }}"
        )
        return self.lab.page.evaluate(script, [self.path, list(args)])

    def opened(self) -> Notebook:
        """Wait until the notebook is open; its kernel may be busy or silent."""
        wait_until(lambda: self._js("return !!panel && panel.context.isReady && cells.length > 0"), lambda: self.path)
        return self

    def restarted(self) -> Notebook:
        """Wait until a restart that was asked for is over."""
        wait_until(lambda: self._js("return cells.every(c => c.model.executionState !== 'running')"), self.lab.log)
        return self.ready()

    def ready(self) -> Notebook:
        """Wait until the notebook is open and its kernel has answered."""
        self.opened()
        known = "const k = panel.sessionContext.session?.kernel; return !!k && k.connectionStatus === 'connected'"
        wait_until(lambda: self._js(known + " && ['idle', 'busy'].includes(k.status)"), self.lab.log)
        return self

    def front(self) -> None:
        """Bring the notebook's tab to the front: commands go to the notebook there."""
        there = "if (app.shell.currentWidget === panel) return true; app.shell.activateById(panel.id); return false"
        wait_until(lambda: self._js(there), lambda: f"{self.path} in front")

    # -- acts

    def send(self, cell: int) -> None:
        """Run a cell as Shift+Enter does, without waiting for it."""
        self.front()
        self._js(
            "panel.content.activeCellIndex = args[0]; panel.content.deselectAll();"
            "void app.commands.execute('notebook:run-cell')",
            cell,
        )

    def run(self, cell: int, seconds: float = DEADLINE) -> Notebook:
        self.send(cell)
        return self.wait(cell, seconds)

    def set(self, cell: int, source: str) -> None:
        """Put ``source`` into a cell; the notebook grows as needed."""
        self._js(
            "const m = panel.content.model.sharedModel;"
            "while (m.cells.length <= args[0]) m.insertCell(m.cells.length, {cell_type: 'code', source: ''});"
            "m.cells[args[0]].setSource(args[1])",
            cell,
            source,
        )

    def save(self) -> dict[str, Any]:
        """Save the notebook and return what the file holds."""
        self._js("await panel.context.save()")
        return json.loads(self.file.read_text(encoding="utf-8"))

    def close(self) -> None:
        """End the kernel and close the tab."""
        self._js(
            "if (panel) { await panel.sessionContext.shutdown(); panel.context.model.dirty = false; panel.dispose(); }"
        )

    # -- looks

    def state(self, cell: int) -> tuple[str, int | None]:
        """Return a cell's execution state and its number."""
        state, count = self._js("const m = cells[args[0]].model; return [m.executionState, m.executionCount]", cell)
        return state, count

    def wait(self, cell: int, seconds: float = DEADLINE) -> Notebook:
        """Wait until a cell has been run to its end."""
        ended = "const m = cells[args[0]].model; return m.executionState === 'idle' && m.executionCount !== null"
        wait_until(lambda: self._js(ended, cell), lambda: f"cell {cell} {self.state(cell)}: {self.text(cell)}", seconds)
        return self

    def source(self, cell: int) -> str:
        return self._js("return cells[args[0]].model.sharedModel.getSource()", cell)

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        return self._js("return cells[args[0]].model.outputs.toJSON()", cell)

    def text(self, cell: int) -> str:
        """Return what a person reads below a cell."""
        return self._js("return cells[args[0]].outputArea.node.innerText", cell)

    def until_text(self, cell: int, text: str, seconds: float = DEADLINE) -> Notebook:
        wait_until(lambda: text in self.text(cell), lambda: f"{text!r} in cell {cell}: {self.text(cell)}", seconds)
        return self

    def cell(self, cell: int) -> Locator:
        """Return the cell on the page (of the notebook in front)."""
        self.front()
        place = f".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell[data-windowed-list-index='{cell}']"
        return self.lab.page.locator(place)

    def button(self, cell: int, name: str) -> Locator:
        return self.cell(cell).locator(".jp-OutputArea button", has_text=name)

    def shot(self, path: Path, cell: int | None = None) -> None:
        """Take a picture of the page, with ``cell`` in view."""
        self.front()
        if cell is not None:
            self.cell(cell).scroll_into_view_if_needed()
        self.lab.screenshot(path)


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook of code cells, with ids and a kernel, as JupyterLab would."""
    content = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"cell-{n}",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": s,
            }
            for n, s in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _own_folders(folder: Path) -> dict[str, str]:
    names = {
        "HOME": "userhome",
        "HERMES_NB_HOME": "hermes",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "MPLCONFIGDIR": "mpl",
    }
    for place in names.values():
        (folder / place).mkdir(parents=True, exist_ok=True)
    return {name: str(folder / place) for name, place in names.items()}


def _without_ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Drop what would lead to a developer's own model, and pytest's mark (with it, ipykernel changes its ways)."""
    dropped = ("HERMES_NB_", "OPENAI_", "PYTEST_", "JUPYTER")
    return {k: v for k, v in environ.items() if not k.startswith(dropped) and not k.endswith("_API_KEY")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
