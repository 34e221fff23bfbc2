"""A real kernel for tests: sends cells as a front end does and keeps what each cell shows.

``Kernel.send`` returns at once; ``Cell`` collects its own outputs while anything of the kernel is read, applies
``update_display_data``, and answers widgets and prompts. Every wait has a deadline and fails with what was seen.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

DEADLINE = 60.0


@dataclass
class Cell:
    """One executed cell as a front end would hold it."""

    kernel: Kernel
    msg_id: str
    outputs: list[dict[str, Any]] = field(default_factory=list)
    idle: bool = False
    reply: dict[str, Any] | None = None
    prompts: list[str] = field(default_factory=list)
    clear_next: bool = False
    background: bool = False
    """Whether outputs may still come when the cell itself has ended."""

    @property
    def status(self) -> str | None:
        return None if self.reply is None else self.reply["status"]

    @property
    def stdout(self) -> str:
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        return self._stream("stderr")

    def _stream(self, name: str) -> str:
        return "".join(o["text"] for o in self.outputs if o["output_type"] == "stream" and o["name"] == name)

    @property
    def markdown(self) -> str:
        """Everything shown as Markdown, joined in order."""
        return "\n".join(o["data"]["text/markdown"] for o in self.outputs if "text/markdown" in o.get("data", {}))

    @property
    def plain(self) -> str:
        return "\n".join(o["data"].get("text/plain", "") for o in self.outputs if "data" in o)

    @property
    def error(self) -> str:
        return "\n".join(f"{o['ename']}: {o['evalue']}" for o in self.outputs if o["output_type"] == "error")

    def of_type(self, mime: str) -> list[Any]:
        return [o["data"][mime] for o in self.outputs if mime in o.get("data", {})]

    def wait(self, seconds: float = DEADLINE) -> Cell:
        """Read until the cell is done."""
        self.kernel.until(lambda: self.idle and self.reply is not None, self, seconds)
        return self

    def until(self, seen: Callable[[Cell], bool], seconds: float = DEADLINE) -> Cell:
        """Read until ``seen(cell)``."""
        self.kernel.until(lambda: seen(self), self, seconds)
        return self

    def until_text(self, text: str, seconds: float = DEADLINE) -> Cell:
        return self.until(lambda c: text in c.markdown + c.stdout + c.stderr + c.plain, seconds)

    def buttons(self) -> dict[str, str]:
        """Comm ids of the buttons that the kernel has opened and not closed, by description."""
        return {
            state["description"]: comm
            for comm, state in self.kernel.widgets.items()
            if state.get("_model_name") == "ButtonModel"
        }


class Kernel:
    """A started ipykernel with hermes-nb importable; use as ``with Kernel(env=…) as kernel``."""

    def __init__(self, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self.manager = KernelManager(kernel_name="python3")
        given = {**os.environ, **(env or {})}
        # With this variable set, ipykernel does not watch the descriptors of subprocess output.
        given.pop("PYTEST_CURRENT_TEST", None)
        self.manager.start_kernel(env=given, cwd=str(cwd) if cwd else None)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE)
        self.cells: dict[str, Cell] = {}
        self.widgets: dict[str, dict[str, Any]] = {}
        self._displays: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()

    # -- a front end's acts

    def send(self, code: str, *, cell_id: str | None = "cell-1", allow_stdin: bool = True) -> Cell:
        """Execute ``code``: like JupyterLab with a ``cell_id``, like a console without, headless without stdin."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": allow_stdin,
            "stop_on_error": True,
        }
        message = self.client.session.msg("execute_request", content)
        if cell_id is not None:
            message["metadata"] = {"cellId": cell_id}
        self.client.shell_channel.send(message)
        cell = Cell(self, message["header"]["msg_id"])
        self.cells[cell.msg_id] = cell
        return cell

    def run(self, code: str, seconds: float = DEADLINE, **how: Any) -> Cell:
        return self.send(code, **how).wait(seconds)

    def value(self, expression: str) -> str:
        """The repr of an expression in the kernel, by way of a headless cell."""
        cell = self.run(f"print(repr({expression}))", allow_stdin=False)
        assert cell.status == "ok", cell.outputs
        return cell.stdout.rstrip("\n")

    def interrupt(self) -> None:
        os.kill(self.manager.provisioner.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """End the kernel as a power cut would."""
        process = self.manager.provisioner.process
        process.kill()
        process.wait()

    def restart(self) -> None:
        self.manager.restart_kernel(now=True)
        self.client.stop_channels()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=DEADLINE)
        self.widgets.clear()

    def click(self, comm_id: str, *, subshell: str | None = None) -> None:
        """Click a button as a front end does."""
        content = {"comm_id": comm_id, "data": {"method": "custom", "content": {"event": "click"}}}
        message = self.client.session.msg("comm_msg", content)
        if subshell:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    def answer_input(self, text: str) -> None:
        self.client.input(text)

    # -- reading

    def until(self, done: Callable[[], bool], cell: Cell | None = None, seconds: float = DEADLINE) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            over = cell is not None and not cell.background and cell.idle and cell.reply is not None
            self._read(0.05)
            if (over and not done()) or time.monotonic() > deadline:
                shown = "" if cell is None else f"{cell.error}\n{cell.stdout}\n{cell.stderr}\n{cell.plain}"
                what = "the cell ended without it" if over else f"nothing of it within {seconds} s"
                raise AssertionError(f"{what}; shown:\n{shown}"[:3000])

    def drain(self, seconds: float = 0.3) -> None:
        """Read whatever still comes for a while (for checks that nothing comes)."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._read(0.05)

    def _read(self, seconds: float) -> None:
        while self.client.shell_channel.msg_ready():
            message = self.client.get_shell_msg(timeout=1)
            cell = self.cells.get(message["parent_header"].get("msg_id", ""))
            if cell is not None:
                cell.reply = message["content"]
        while self.client.stdin_channel.msg_ready():
            message = self.client.get_stdin_msg(timeout=1)
            cell = self.cells.get(message["parent_header"].get("msg_id", ""))
            if cell is not None:
                cell.prompts.append(message["content"]["prompt"])
        try:
            self._take(self.client.get_iopub_msg(timeout=seconds))
        except Empty:
            return

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        cell = self.cells.get(message["parent_header"].get("msg_id", ""))
        if kind == "comm_open":
            self.widgets[content["comm_id"]] = content["data"].get("state", {})
        elif kind == "comm_msg" and content["data"].get("method") == "update":
            self.widgets.setdefault(content["comm_id"], {}).update(content["data"]["state"])
        elif kind == "comm_close":
            self.widgets.pop(content["comm_id"], None)
        elif kind == "update_display_data":
            for output in self._displays.get(content["transient"].get("display_id", ""), ()):
                output["data"], output["metadata"] = content["data"], content["metadata"]
                output["updates"] = output.get("updates", 0) + 1
        if cell is None:
            return
        if kind == "status" and content["execution_state"] == "idle":
            cell.idle = True
        elif kind == "clear_output":
            cell.clear_next = content["wait"]
            if not content["wait"]:
                self._clear(cell)
        elif kind == "stream":
            self._clear(cell, waited=True)
            last = cell.outputs[-1] if cell.outputs else {}
            if last.get("output_type") == "stream" and last["name"] == content["name"]:
                last["text"] += content["text"]
            else:
                cell.outputs.append({"output_type": "stream", **content})
        elif kind in ("display_data", "execute_result", "error"):
            self._clear(cell, waited=True)
            output = {"output_type": kind, **content}
            cell.outputs.append(output)
            display_id = content.get("transient", {}).get("display_id")
            if display_id:
                self._displays.setdefault(display_id, []).append(output)

    def _clear(self, cell: Cell, *, waited: bool = False) -> None:
        """Forget a cell's outputs as a front end does: at once, or when the next one comes."""
        if waited and not cell.clear_next:
            return
        cell.clear_next = False
        for shown in self._displays.values():
            shown[:] = [output for output in shown if not any(output is own for own in cell.outputs)]
        cell.outputs.clear()


@contextmanager
def hermes_kernel(home: Path, url: str | None, *, cwd: Path | None = None, **env: str) -> Iterator[Kernel]:
    """Start a kernel whose home is ``home`` and whose endpoint is the scripted server at ``url``."""
    given = {
        "HERMES_NB_HOME": str(home),
        "HERMES_NB_NO_PROBE": "1",
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        **env,
    }
    if url is not None:
        given |= {"HERMES_NB_BASE_URL": url, "HERMES_NB_MODEL": "scripted", "HERMES_NB_API_KEY": "test-key"}
    with Kernel(given, cwd) as kernel:
        cell = kernel.run("%load_ext hermes_nb")
        assert cell.status == "ok" and not cell.outputs, cell.outputs
        yield kernel
