"""``%%hermes`` in real terminals: a plain IPython, and ``jupyter console`` with its full prompt."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support.model_server import ModelServer
from support.notebooks import environment, turn

from hermes_nb.agent.events import TextDelta
from hermes_nb.notebook.terminal import TerminalView

pexpect = pytest.importorskip("pexpect", reason="needs a Unix terminal")
pytestmark = [pytest.mark.kernel, pytest.mark.slow]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
COLOUR = r"(?:\x1b\[[0-9;]*m)*"
COMMANDS = {
    "ipython": ["-m", "IPython", "--no-banner", "--colors=NoColor"],
    "console": ["-m", "jupyter_console", "--kernel=python3", "--ZMQTerminalInteractiveShell.banner="],
}


class Terminal:
    """A program in a pseudo terminal. Cells are pasted, as a person would."""

    def __init__(self, which: str, env: dict[str, str], folder: Path) -> None:
        env = {**env, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = pexpect.spawn(
            sys.executable,
            COMMANDS[which],
            env=env,
            cwd=str(folder),
            encoding="utf-8",
            timeout=40,
            dimensions=(60, 250),
        )
        self.prompt = 0
        self.ready()

    def ready(self) -> str:
        """Wait for the next prompt; return everything printed before it."""
        self.prompt += 1
        shown = self.until(rf"In \[{COLOUR}{self.prompt}{COLOUR}\]")
        # The prompt is drawn in pieces; keys sent before the last one go to the terminal's echo instead.
        while self.process.expect([r".+", pexpect.TIMEOUT], timeout=0.2) == 0:
            pass
        return shown

    def until(self, pattern: str) -> str:
        self.process.expect(pattern)
        return ESCAPES.sub("", self.process.before)

    def type(self, code: str, end: str = "\r\r") -> None:
        """Type a cell line by line; two blank lines end one that could go on."""
        self.process.send("\x1b[200~" + code + "\x1b[201~" + "\r")
        if "\n" in code:
            self.process.send(end)

    def run(self, code: str) -> str:
        self.type(code)
        return self.ready()


@pytest.fixture(scope="module")
def server():
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module", params=COMMANDS)
def terminal(request, tmp_path_factory, server: ModelServer):
    folder = tmp_path_factory.mktemp(request.param)
    home = folder / "home"
    (home / "ipython").mkdir(parents=True)
    env = environment(home, server.url)
    env.pop("MPLBACKEND")
    terminal = Terminal(request.param, env, folder)
    assert "Error" not in terminal.run("%load_ext hermes_nb")
    yield terminal
    terminal.process.close(force=True)


def test_a_long_answer_is_printed_whole_and_once(terminal: Terminal):
    """case 174: a terminal cannot replace an output, so what streams is printed as it comes."""
    answer = "Begin. " + "word " * 100 + "The end."
    terminal.type(turn({"say": answer, "chunks": 8}, text="in two\nlines"))
    terminal.until("asking")
    shown = terminal.ready()
    assert re.sub(r"\s+", " ", shown).count("Begin. word word") == 1
    assert shown.count("The end.") == 1
    assert "tokens in" in shown
    assert "in two\\nlines" in terminal.run("print(repr(_.messages[0]['content']))")


@pytest.mark.parametrize(("answer", "value"), [("y", "42"), ("n", "nothing")])
def test_a_question_is_asked_and_answered_at_the_prompt(terminal: Terminal, answer: str, value: str):
    terminal.run("made = 'nothing'")
    code = {"call": "python", "args": {"code": "import os\nmade = 42"}}
    terminal.type(turn(code, {"say": "Answered."}))
    asked = terminal.until(r"\[y/N\]")
    assert "import os" in asked and "made = 42" in asked
    terminal.process.send(answer + "\r")
    assert "Answered." in terminal.ready()
    assert value in terminal.run("print('made is', made)").split("made is")[-1]


@pytest.mark.parametrize("where", ["code", "silence"])
def test_control_c_ends_the_turn_and_the_next_cell_works(terminal: Terminal, server: ModelServer, where: str):
    sleep = {"call": "python", "args": {"code": "import time\nprint('sleep' + 'ing', flush=True)\ntime.sleep(60)"}}
    step = sleep if where == "code" else {"ping": 0.1}
    before = len(server.requests)
    terminal.type(turn(step, {"say": "Never said."}, line="--approve off"))
    if where == "code":
        terminal.until("sleeping")
    else:
        server.wait(lambda s: len(s.requests) > before)
    terminal.process.sendintr()
    terminal.until("Interrupted")
    terminal.ready()
    assert "I am back." in terminal.run(turn({"say": "I am back."}))


def test_text_of_the_model_cannot_steer_the_terminal():
    written: list[str] = []
    view = TerminalView(written.append)
    view.handle(TextDelta("safe\x1b]0;title\x07\x1b[2J\rafter\n"))
    assert "".join(written) == "safe�]0;title��[2J�after\n"
