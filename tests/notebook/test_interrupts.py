"""Many interrupts at bad moments: none may leave the event loop, tear a turn's end, or leave a kernel unusable."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.kernels import Kernel, hermes_kernel
from support.model_server import ModelServer, Reply, Request, calls, say

from hermes_nb.core.errors import Cancelled
from hermes_nb.notebook.executor import Foreground, Interrupts, _guarded

CODES = [
    "sum(range(3))",
    "import time; time.sleep(.3)",
    "import asyncio; await asyncio.sleep(.3)",
    "for i in range(200): print(i)",
    "x = 0\nwhile x < 3_000_000: x += 1",
    "try:\n    import time; time.sleep(.3)\nexcept KeyboardInterrupt:\n    print('caught')",
    "!sleep .2",
    "1/0",
]
CELLS = [
    "%%hermes --approve off\nhi",
    "get_ipython().run_cell_magic('hermes', '--approve off', 'hi')",
    "%%time\n%%hermes --approve off\nhi",
    "agent.run('hi', quietly)",
]
PREPARE = """
import hermes_nb
from hermes_nb.agent.options import TurnOptions
from hermes_nb.core.names import ApprovalMode
agent = hermes_nb.Agent.open()
quietly = TurnOptions(mode=ApprovalMode.OFF)
"""


def test_the_handler_raises_nothing_in_the_frame_that_keeps_interrupts_in() -> None:
    async def code() -> None:
        await asyncio.sleep(0)

    async def main() -> None:
        loop, interrupts = asyncio.get_running_loop(), Interrupts()
        guard = _guarded(code)
        interrupts.task = asyncio.current_task()
        interrupts._loop = loop
        with pytest.raises(KeyboardInterrupt):
            interrupts._on_signal(signal.SIGINT, code().cr_frame)
        interrupts._on_signal(signal.SIGINT, guard.cr_frame)
        guard.close()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(1)  # the interrupt arrives as the cancellation of what awaits

    with pytest.warns(RuntimeWarning, match="never awaited"):
        asyncio.run(main())


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_what_would_end_the_event_loop_ends_the_job_only(end: type[BaseException]) -> None:
    async def code() -> None:
        raise end

    async def main() -> str:
        with pytest.raises(Cancelled):
            await asyncio.get_running_loop().create_task(_guarded(code))
        return "the loop goes on"

    assert asyncio.run(main()) == "the loop goes on"


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_a_blocking_cell_ends_whatever_signals_arrive_while_it_waits() -> None:
    main, over = threading.main_thread().ident, threading.Event()
    assert main is not None and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: None)

    def storm() -> None:
        while not over.wait(0.0001):
            signal.pthread_kill(main, signal.SIGUSR1)

    storming = threading.Thread(target=storm)
    storming.start()
    try:
        looks = iter(range(50))
        Foreground().pump(lambda: next(looks, None) is not None, lambda: None)
    finally:
        over.set()
        storming.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.kernel
@pytest.mark.slow
def test_storms_of_interrupts_leave_the_kernel_usable(tmp_path: Path, size: Callable[[int, int], int]) -> None:
    chance = random.Random(5)

    def answer(request: Request) -> Reply:
        if request.messages[-1]["role"] == "user":
            return calls([("python", {"code": chance.choice(CODES)}), ("python", {"code": chance.choice(CODES)})])
        return say("a b c d", chunks=4, pause=0.01)

    with ModelServer([answer] * 10_000) as server, hermes_kernel(tmp_path / "home", server.url) as kernel:
        assert kernel.run(PREPARE).status == "ok"
        for turn in range(size(8, 50)):
            cell = kernel.send(CELLS[turn % len(CELLS)])
            cell.background = True
            kernel.drain(chance.random() * 0.15)
            for _ in range(10):
                if not cell.idle:
                    kernel.interrupt()
                    kernel.drain(chance.choice([0.0, 0.001, 0.01, chance.random() * 0.1]))
            assert usable(kernel), turn
        assert kernel.run(CELLS[0]).status == "ok"
        assert kernel.run("print(agent.run('hi', quietly).text)").stdout.endswith("a b c d\n")


def usable(kernel: Kernel) -> bool:
    """Tell whether a cell runs again. Those that waited behind an interrupted one are dropped by the kernel; the
    interrupted one's own reply is not waited for, because a bare ipykernel loses it once in a while, too.
    """
    return any(kernel.run("print(6 * 7)", 30).stdout == "42\n" for _ in range(3))
