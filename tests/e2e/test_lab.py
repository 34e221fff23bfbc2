"""``%%hermes`` in a real JupyterLab in a real browser, against the scripted model server.

Pictures of every scenario are kept in test-artifacts/, to be looked at.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab import DEADLINE, Lab, Notebook, wait_until
from support.model_server import ModelServer, call, calls, say, silence, stall

from hermes_nb.core.names import ApprovalState
from hermes_nb.store.store import Store, open_store

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LOAD = "%load_ext hermes_nb"
FRAME = "import pandas as pd\ndf = pd.DataFrame({'month': ['Jan', 'Feb', 'Mar'], 'sales': [120, 90, 150]})\ndf"
PLOT = "import matplotlib.pyplot as plt\ndf.plot.bar(x='month', y='sales', legend=False)\nplt.show()"


@pytest.fixture
def opened(lab: Lab) -> Iterator[list[Notebook]]:
    """Notebooks put into this list are closed after the test, and their kernels ended."""
    books: list[Notebook] = []
    yield books
    for book in books:
        book.close()


@pytest.fixture
def store(lab: Lab) -> Iterator[Store]:
    """The kernels' store, opened by another process: this one."""
    store = open_store(Path(lab.env["HERMES_NB_HOME"]) / "state.db")
    yield store
    store.close()


@pytest.fixture
def shot(artifacts: Path):
    """``shot(notebook, name, cell)``: keep a picture."""

    def take(book: Notebook, name: str, cell: int | None = None) -> None:
        book.shot(artifacts / f"lab-{name}.png", cell)

    return take


def test_a_newcomer_asks_about_df_in_a_new_notebook(lab: Lab, model: ModelServer, opened, shot):
    lab.page.locator(".jp-LauncherCard", has_text="Python 3").first.click()
    path = wait_until(lambda: lab.page.evaluate("window.jupyterapp.shell.currentWidget?.context?.path"), lab.log)
    book = Notebook(lab, path).ready()
    opened.append(book)
    model.enqueue(
        call("python", {"code": PLOT}, text="I'll draw it first."), say(ANSWER, chunks=12), say("It was March.")
    )
    book.cell(0).locator(".cm-content").click()
    for place, source in enumerate((LOAD, FRAME, "%%hermes\nWhich month sold best? Show me a chart.")):
        lab.page.keyboard.insert_text(source)
        lab.page.keyboard.press("Shift+Enter")
        if place < 2:
            book.wait(place)
    book.button(2, "Approve").wait_for()
    shot(book, "1-newcomer-question", 2)
    assert len(model.bodies) == 1
    book.button(2, "Approve").click()
    book.wait(2)
    assert book.cell(2).locator(".jp-OutputArea img").count() == 1
    assert book.cell(2).locator(".jp-OutputArea strong", has_text="March").count() == 1
    assert book.cell(2).locator(".jp-OutputArea table").count() == 1
    assert book.cell(2).locator(".jp-OutputArea button").count() == 0
    shot(book, "1-newcomer-answer", 2)
    book.cell(3).locator(".cm-content").click()
    lab.page.keyboard.insert_text("%%hermes\nWhich month was it again?")
    lab.page.keyboard.press("Shift+Enter")
    book.wait(3)
    assert "It was March." in book.text(3)
    assert b"Which month sold best?" in model.bodies[-1]
    shot(book, "1-newcomer-second", 3)


ANSWER = """**March** sold best.

| month | sales |
|---|--:|
| Jan | 120 |
| Feb | 90 |
| Mar | **150** |

It is `25 %` above January:

```python
df.sales.max() / df.sales[0] - 1
```
"""


def wide(name: str = "") -> list[str]:
    return [LOAD, f"%%hermes\nquestion one {name}", f"%%hermes\nquestion two {name}", "print('still', 'here')"]


def test_text_is_on_the_page_before_the_answer_is_complete(lab: Lab, model: ModelServer, opened, shot):
    book = lab.notebook([LOAD, "%%hermes\nTell me a story."])
    opened.append(book)
    book.run(0)
    story = "Once upon a time there was a **kernel**.\n\n" + "It waited for a cell to run. " * 8
    model.enqueue(say(story + "\n\nThe end.", chunks=60, pause=0.1))
    book.send(1)
    book.until_text(1, "Once upon a time")
    assert "The end." not in book.text(1)
    assert book.state(1)[0] == "running"
    shot(book, "2-streaming", 1)
    book.wait(1)
    assert "The end." in book.text(1)
    assert len([o for o in book.outputs(1) if "Once upon" in str(o)]) == 1


@pytest.mark.parametrize("phase", ["silent", "streaming", "approval", "code"])
def test_kernel_interrupt_ends_the_turn_and_the_next_cell_works(
    lab: Lab, model: ModelServer, opened, shot, figure, phase: str
):
    book = lab.notebook([LOAD, f"%%hermes {'--approve off' if phase == 'code' else ''}\ngo", "%%hermes\nand now?"])
    opened.append(book)
    book.run(0)
    model.enqueue(
        {
            "silent": silence(),
            "streaming": stall("It has begun. " * 3, chunks=3),
            "approval": call("python", {"code": "import os\nos.getcwd()"}),
            "code": call("python", {"code": "import time\nprint('sleeping', flush=True)\ntime.sleep(600)"}),
        }[phase]
    )
    book.send(1)
    if phase == "silent":
        model.wait(lambda s: len(s.requests) == 1, DEADLINE)
    elif phase == "approval":
        book.button(1, "Approve").wait_for()
    else:
        book.until_text(1, {"streaming": "begun", "code": "sleeping"}[phase])
    lab.page.locator(".lm-MenuBar-item", has_text="Kernel").first.click()
    item = lab.page.locator(".lm-Menu-item", has_text="Interrupt Kernel").first
    item.wait_for()
    began = time.monotonic()
    item.click()
    book.wait(1)
    figure(f"Lab: Kernel > Interrupt, {phase}: click to the end of the cell", f"{time.monotonic() - began:.2f} s")
    assert "Interrupted" in book.text(1)
    assert book.cell(1).locator(".jp-OutputArea button").count() == 0
    shot(book, f"3-interrupt-{phase}", 1)
    model.enqueue(say("I am back."))
    book.run(2)
    assert "I am back." in book.text(2)
    assert len(model.bodies) == 2


def test_run_all_with_two_turns_that_ask(lab: Lab, model: ModelServer, opened, shot):
    book = lab.notebook([LOAD, "total = 1", "%%hermes\nadd one", "%%hermes\nadd ten", "print('total', total)"])
    opened.append(book)
    model.enqueue(call("python", {"code": "import os; total += 1"}), say("Added one."))
    model.enqueue(call("python", {"code": "import os; total += 10"}), say("Added ten."))
    lab.command("notebook:run-all-cells")
    book.button(2, "Approve").wait_for()
    assert book.cell(3).locator(".jp-OutputArea button").count() == 0
    shot(book, "4-run-all-first", 2)
    book.button(2, "Approve").click()
    book.button(3, "Approve").wait_for()
    book.button(3, "Approve").click()
    book.wait(4)
    assert "total 12" in book.text(4)
    shot(book, "4-run-all-end", 2)


def test_a_session_goes_on_after_a_kernel_restart(lab: Lab, model: ModelServer, opened, shot):
    book = lab.notebook([LOAD, "x = [1, 2, 3]", "%%hermes\nhow many items has x?", "%%hermes\nand before?"])
    opened.append(book)
    model.enqueue(call("python", {"code": "len(x)"}), say("Three."), say("Three, I said."))
    for cell in (0, 1, 2):
        book.run(cell)
    lab.menu("Kernel", "Restart Kernel…")
    lab.dialog("Restart")
    book.restarted()
    book.run(0).run(3)
    assert "continuing session" in book.text(3)
    assert "Three, I said." in book.text(3)
    assert len(model.bodies) == 3
    for earlier, later in zip(model.bodies, model.bodies[1:], strict=False):
        assert later.startswith(earlier.removesuffix(b"]}"))
    shot(book, "5-after-restart", 3)


def test_a_restart_while_a_question_waits_voids_it(lab: Lab, model: ModelServer, store: Store, opened, shot):
    book = lab.notebook([LOAD, "%%hermes\nlook around", "%%hermes\nstill there?"])
    opened.append(book)
    book.run(0)
    model.enqueue(call("python", {"code": "import os; seen = os.getpid()"}), say("Yes, I am."))
    book.send(1)
    book.button(1, "Approve").wait_for()
    (request,) = store.approvals.pending()
    lab.menu("Kernel", "Restart Kernel…")
    lab.dialog("Restart")
    book.restarted()
    book.run(0).run(2)
    assert "Yes, I am." in book.text(2)
    assert store.approvals.get(request.id).state is not ApprovalState.PENDING
    assert not store.approvals.answer(request.id, ApprovalState.APPROVED, "too late", request.args_hash)
    assert [m["role"] for m in json.loads(model.bodies[1])["messages"]][-3:] == ["assistant", "tool", "user"]
    shot(book, "5-restart-while-asking", 2)


def test_a_question_is_answered_elsewhere_after_the_page_was_reloaded(
    lab: Lab, model: ModelServer, store: Store, opened, shot
):
    book = lab.notebook([LOAD, "%%hermes\nlook around", "%%hermes\nstill there?"])
    opened.append(book)
    book.run(0)
    model.enqueue(call("python", {"code": "import os; seen = os.getpid()"}), say("I looked."), say("Yes, I am."))
    book.send(1)
    book.button(1, "Approve").wait_for()
    book.save()
    lab.load(book.path)
    book.opened()
    shot(book, "6-reloaded-while-asking", 1)
    (request,) = store.approvals.pending()
    assert store.approvals.answer(request.id, ApprovalState.APPROVED, "phone", request.args_hash)
    wait_until(lambda: len(model.bodies) == 2, lab.log)
    book.ready()
    book.run(2)
    assert "Yes, I am." in book.text(2)
    shot(book, "6-after-the-answer", 1)
    assert book.cell(1).locator(".jp-OutputArea button").count() == 0


def test_two_notebooks_share_one_store(lab: Lab, model: ModelServer, store: Store, opened, shot):
    first, second = lab.notebook(wide("A")), lab.notebook(wide("B"))
    opened += [first, second]
    first.run(0)
    second.run(0)
    model.enqueue(call("python", {"code": "import os; here = 'A'"}))
    first.send(1)
    first.button(1, "Approve").wait_for()
    model.enqueue(say("Hello B."), say("Hello A."))
    second.run(1)
    assert "Hello B." in second.text(1)
    first.button(1, "Approve").click()
    first.wait(1)
    assert "Hello A." in first.text(1)
    turns = [[m["content"] for m in json.loads(body)["messages"] if m["role"] == "user"] for body in model.bodies]
    assert [len(one) for one in turns] == [1, 1, 1]
    found = {last_session(book.save()) for book in (first, second)}
    assert len(found) == 2
    assert found <= {session.id for session in store.sessions()}


def test_a_background_turn_works_while_another_cell_runs(lab: Lab, model: ModelServer, opened, shot):
    busy = "import time\nprint('begun', flush=True)\ntime.sleep(8)"
    cells = [LOAD, "%%hermes --bg\nin the background", busy, "z"]
    book = lab.notebook(cells)
    opened.append(book)
    book.run(0)
    model.enqueue(call("python", {"code": "import os; z = 'from the background'"}, text="On my way. ", delay=0.5))
    model.enqueue(say("Background is done."))
    book.send(1)
    book.send(2)
    book.until_text(2, "begun")
    book.until_text(1, "On my way.")
    assert book.state(2)[0] == "running"
    shot(book, "8-background-while-busy", 1)
    # What the code would do is judged against the namespace, so the question comes when the cell has ended.
    book.button(1, "Approve").wait_for()
    shot(book, "8-background-asks", 1)
    book.button(1, "Approve").click()
    book.until_text(1, "Background is done.")
    book.run(3)
    assert "from the background" in book.text(3)
    assert "Background" not in book.text(2)
    shot(book, "8-background-done", 1)


def test_a_saved_notebook_reads_well_without_us_and_holds_no_secret(
    lab: Lab, model: ModelServer, opened, shot, artifacts: Path
):
    book = lab.notebook([LOAD, FRAME, "%%hermes\nWhich month sold best?", "%%hermes\nDelete it."])
    opened.append(book)
    for cell in (0, 1):
        book.run(cell)
    model.enqueue(call("python", {"code": PLOT}), say(ANSWER))
    book.send(2)
    book.button(2, "Approve").click()
    book.wait(2)
    model.enqueue(call("python", {"code": "del df"}), say("I did not delete it."))
    book.send(3)
    book.button(3, "Deny").click()
    book.wait(3)
    saved = book.save()
    text = book.file.read_text(encoding="utf-8")
    assert "application/vnd.jupyter.widget" not in text
    assert not saved["metadata"].get("widgets", {}).get("application/vnd.jupyter.widget-state+json", {}).get("state")
    assert lab.env["HERMES_NB_API_KEY"] not in text and lab.token not in text
    page = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--stdout", str(book.file)],
        capture_output=True,
        check=True,
        env={**lab.env, "PYTHONPATH": ""},
        timeout=120,
    ).stdout.decode()
    assert "<strong>March</strong> sold best." in page
    assert "I did not delete it." in page
    assert page.count('src="data:image/png;base64') == 1
    (artifacts / "lab-9-saved.html").write_text(page, encoding="utf-8")
    reader = lab.page.context.new_page()
    reader.goto((artifacts / "lab-9-saved.html").as_uri(), wait_until="domcontentloaded")
    reader.screenshot(path=str(artifacts / "lab-9-saved-html.png"), full_page=True)
    reader.close()


def test_input_in_tool_code_uses_the_input_box_of_the_cell(lab: Lab, model: ModelServer, opened, shot):
    book = lab.notebook([LOAD, "%%hermes --approve off\nask me", "name"])
    opened.append(book)
    book.run(0)
    model.enqueue(call("python", {"code": "name = input('Your name? ')"}), say("Thank you."))
    book.send(1)
    box = book.cell(1).locator("input.jp-Stdin-input")
    box.wait_for()
    shot(book, "10-input", 1)
    box.fill("Ada")
    box.press("Enter")
    book.wait(1)
    book.run(2)
    assert "Ada" in book.text(2)


def test_help_and_completion(lab: Lab, model: ModelServer, opened, shot):
    book = lab.notebook([LOAD, "%%hermes?", ""])
    opened.append(book)
    book.run(0)
    book.run(1)
    assert "--approve MODE" in book.text(1) + lab.page.locator(".jp-Notebook, .jp-Inspector").first.inner_text()
    shot(book, "11-help", 1)
    book.cell(2).locator(".cm-content").click()
    lab.page.keyboard.type("%%hermes --")
    lab.page.keyboard.press("Tab")
    options = lab.page.locator(".jp-Completer-item")
    options.first.wait_for()
    shot(book, "11-completion", 2)
    shown = [text.split()[-2] for text in options.all_inner_texts()]
    assert {"--approve", "--model", "--bg"} <= set(shown)
    assert all(text.startswith("-") for text in shown)
    lab.page.keyboard.type("ap")
    lab.page.keyboard.press("Enter")
    wait_until(lambda: book.source(2) == "%%hermes --approve", lambda: book.source(2))


def test_the_dark_theme_is_readable(lab: Lab, model: ModelServer, opened, shot):
    lab.command("apputils:change-theme", theme="JupyterLab Dark")
    try:
        lab.page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
        book = lab.notebook([LOAD, FRAME, "%%hermes\nWhich month sold best?", "%%hermes --approve off\nDivide."])
        opened.append(book)
        for cell in (0, 1):
            book.run(cell)
        model.enqueue(call("python", {"code": "import math\ndf.assign(root=df.sales.map(math.sqrt))"}), say(ANSWER))
        book.send(2)
        book.button(2, "Approve").wait_for()
        shot(book, "12-dark-question", 2)
        book.button(2, "Approve").click()
        book.wait(2)
        model.enqueue(
            calls([("variables", {}), ("read_file", {"path": "missing.txt"}), ("python", {"code": "1 / 0"})]),
            say("It cannot be divided."),
        )
        book.run(3)
        shot(book, "12-dark-answer", 3)
        book.cell(3).locator("summary").first.click()
        shot(book, "12-dark-open", 3)
    finally:
        lab.command("apputils:change-theme", theme="JupyterLab Light")


def last_session(saved: dict) -> str:
    """Return the session that the last turn of a saved notebook names."""
    facts = [
        output["metadata"]["hermes_nb"]["session"]
        for cell in saved["cells"]
        for output in cell.get("outputs", [])
        if output.get("metadata", {}).get("hermes_nb", {}).get("session")
    ]
    return facts[-1]
