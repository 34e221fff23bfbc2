"""``%%hermes`` in a real JupyterLab in a real browser, against the scripted model server.

Pictures of every scenario are kept in test-artifacts/, to be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab import Lab, Notebook, wait_until
from support.model_server import ModelServer, call, say

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
