"""User code that runs as a tool, in a real kernel: what it shows, what it leaves alone, how it stops.

The kernel runs the executor and the KernelPort themselves; no agent is involved here.
"""

from __future__ import annotations

import json

import pytest
from support.kernels import Kernel

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

SETUP = """
import threading, json, os
from hermes_nb.core.cancel import Cancel
from hermes_nb.notebook.executor import Foreground
from hermes_nb.notebook.kernel import InProcessKernel, ToolCode

async def tool(code, how="drive"):
    driver = Foreground()
    port = InProcessKernel(get_ipython(), driver, ToolCode())
    box = []
    def work():
        try:
            box.append(port.execute(code, Cancel()))
        except BaseException as exc:
            box.append(exc)
    worker = threading.Thread(target=work)
    worker.start()
    if how == "drive":
        await driver.drive(worker.is_alive, lambda: None)
    else:
        driver.pump(worker.is_alive, lambda: None)
    driver.close()
    worker.join(5)
    global last
    last = box[0]
    last_stopped[:] = [driver.interrupts.stop.is_set()]
last_stopped = []
def facts():
    return json.dumps({"ok": last.ok, "out": last.stdout, "err": last.stderr, "tb": last.traceback,
        "mimes": [sorted(d) for d in last.displays], "interrupted": last.interrupted, "stop": last_stopped[0]})
"""


@pytest.fixture(scope="module")
def kernel():
    with Kernel() as kernel:
        assert kernel.run(SETUP).status == "ok"
        yield kernel


def run(kernel: Kernel, code: str, how: str = "drive"):
    """Run ``code`` as a tool; return the cell and what the tool gave back."""
    cell = kernel.run(f"await tool({code!r}, {how!r})")
    return cell, json.loads(kernel.run("print(facts())").stdout)


@pytest.mark.parametrize("how", ["drive", "pump"])
def test_everything_shown_is_in_the_cell_and_in_the_result(kernel: Kernel, how: str):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\ndisplay({'text/plain': 'rich'}, raw=True)\n6*7"
    cell, got = run(kernel, code, how)
    assert cell.status == "ok"
    assert (got["ok"], got["out"], got["err"]) == (True, "out\n", "err\n")
    assert "out" in cell.stdout and "err" in cell.stderr and "rich" in cell.plain and "42" in cell.plain
    assert got["mimes"] == [["text/plain"], ["text/plain"]]
    assert not [o for o in cell.outputs if o["output_type"] == "execute_result"]


def test_underscore_out_and_the_prompt_number_stay_the_users(kernel: Kernel):
    kernel.run("'mine'")
    before = kernel.value("(_, len(Out), get_ipython().execution_count)")
    kernel.run("await tool('1+1')")
    mine, outs, count = eval(kernel.value("(_, len(Out), get_ipython().execution_count)"))
    assert eval(before) == (mine, outs, count - 2)
    assert mine == "mine"


def test_a_semicolon_hides_the_result(kernel: Kernel):
    _, got = run(kernel, "1+1;")
    assert got["mimes"] == []


def test_an_error_is_a_stream_and_the_cell_goes_on(kernel: Kernel):
    cell, got = run(kernel, "x = 1\n1/0")
    assert cell.status == "ok" and cell.error == ""
    assert "ZeroDivisionError" in cell.stderr
    assert not got["ok"] and "ZeroDivisionError" in got["tb"] and "\x1b" not in got["tb"] and got["err"] == ""
    assert kernel.value("x") == "1"


@pytest.mark.parametrize("code", ["def f(:", "  x = 1\n y = 2", "return 5"])
def test_code_that_is_no_python_gives_its_syntax_error(kernel: Kernel, code: str):
    cell, got = run(kernel, code)
    assert cell.status == "ok" and not got["ok"] and "Error" in got["tb"]


def test_top_level_await_works_where_the_loop_is_free(kernel: Kernel):
    _, got = run(kernel, "import asyncio\nawait asyncio.sleep(0.01)\nprint('slept')")
    assert got["ok"] and got["out"] == "slept\n"


def test_top_level_await_where_the_cell_blocks_is_an_error_that_says_why(kernel: Kernel):
    kernel.run("await tool('import asyncio\\nawait asyncio.sleep(0.01)', 'pump')")
    assert "top-level await is not available here" in kernel.value("str(last)")


def test_magics_and_shell_commands_work(kernel: Kernel):
    _, got = run(kernel, "%timeit -n1 -r1 pass\n!echo from-shell\nx = !echo lines\nprint(x)")
    assert got["ok"] and "from-shell" in got["out"] and "['lines']" in got["out"] and "\r" not in got["out"]


def test_output_of_subprocesses_and_threads_is_seen(kernel: Kernel):
    code = (
        "import subprocess, threading\nsubprocess.run(['sh','-c','echo to-one; echo to-two >&2'])\n"
        "t = threading.Thread(target=lambda: print('thread'))\nt.start(); t.join()"
    )
    _, got = run(kernel, code)
    assert "to-one" in got["out"] and "thread" in got["out"] and "to-two" in got["err"]


def test_a_figure_is_shown_once_and_comes_back_as_png(kernel: Kernel):
    kernel.run("%matplotlib inline")
    cell, got = run(kernel, "import matplotlib.pyplot as plt\nplt.plot([1,2]);")
    assert got["ok"]
    assert len(cell.of_type("image/png")) == 1
    assert [m for m in got["mimes"] if "image/png" in m] == [["image/png", "text/plain"]]


def test_input_reaches_the_front_end(kernel: Kernel):
    cell = kernel.send("await tool(\"name = input('who? ')\\nprint(name)\")")
    cell.until(lambda c: bool(c.prompts))
    kernel.answer_input("Ada")
    cell.wait()
    assert "Ada" in cell.stdout


def test_input_without_anybody_is_an_error_for_the_model(kernel: Kernel):
    kernel.run("await tool('input()')", allow_stdin=False)
    assert "StdinNotImplementedError" in kernel.value("last.traceback")


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "exit()", "quit()", "import sys; sys.exit('bye')"])
def test_ending_the_kernel_from_a_tool_is_refused(kernel: Kernel, code: str):
    cell, got = run(kernel, code)
    assert cell.status == "ok" and not got["ok"] and "SystemExit" in got["tb"]
    assert not (cell.reply or {}).get("payload")
    assert kernel.value("1+1") == "2"


def test_reset_forgets_the_names_and_harms_nothing(kernel: Kernel):
    kernel.run("kept = get_ipython()")
    kernel.run("await tool('%reset -f')")  # the helper's own names are gone too, so the cell itself fails
    assert kernel.run("kept").error.startswith("NameError")
    assert kernel.run(SETUP).status == "ok"
    _, got = run(kernel, "print('works')")
    assert got["out"] == "works\n"


@pytest.mark.parametrize(
    "code",
    [
        "import time\nprint('go', flush=True)\ntime.sleep(30)",
        "print('go', flush=True)\nwhile True: pass",
        "import asyncio\nprint('go', flush=True)\nawait asyncio.sleep(30)",
        "import subprocess\nprint('go', flush=True)\nsubprocess.run(['sleep', '30'])",
    ],
)
def test_an_interrupt_ends_the_code_and_the_kernel_goes_on(kernel: Kernel, code: str):
    cell = kernel.send(f"await tool({code!r})")
    cell.until_text("go")
    kernel.interrupt()
    cell.wait(10)
    assert kernel.value("last_stopped[0]") == "True"
    assert kernel.value("1+1") == "2"


def test_an_interrupt_ends_blocked_code_too(kernel: Kernel):
    cell = kernel.send("await tool(\"import time\\nprint('go', flush=True)\\ntime.sleep(30)\", 'pump')")
    cell.until_text("go")
    kernel.interrupt()
    cell.wait(10)
    assert kernel.value("last_stopped[0]") == "True"
    assert kernel.value("1+1") == "2"


def test_a_forked_pool_in_tool_code_harms_nothing(kernel: Kernel):
    code = (
        "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as pool:\n"
        "    print(sum(pool.map(abs, [-1, -2, -3])))"
    )
    _, got = run(kernel, code)
    assert got["ok"] and got["out"].strip().endswith("6")
    assert kernel.value("2+2") == "4"


def test_the_lock_that_background_code_takes_is_still_where_we_look():
    from ipykernel.kernelbase import Kernel as Base

    assert "_main_asyncio_lock" in Base.__annotations__
