"""What ``%load_ext hermes_nb`` does to a kernel: nothing heavy is imported, nothing is connected, nothing is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kernels import Kernel
from support.model_server import ModelServer, say

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

WATCH = """
import sys, threading
_events = []
_before = set(sys.modules)
def _watch(event, arguments):
    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.gethostbyname', 'socket.bind', 'socket.sendto'):
        # The event loop wakes itself through a pair of sockets; those have no address.
        _events.append(f'{event} {arguments[1:] if event == "socket.connect" else arguments}')
sys.addaudithook(_watch)
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """A kernel without the extension, with an endpoint that would be connected at once if anybody did."""
    home = str(tmp_path / "home")
    names = {"BASE_URL": "http://127.0.0.1:9/v1", "MODEL": "m", "API_KEY": "k", "HOME": home, "NO_PROBE": ""}
    given = {f"HERMES_NB_{name}": value for name, value in names.items()}
    with Kernel({**given, "IPYTHONDIR": str(tmp_path / "ipython")}) as kernel:
        kernel.run(WATCH)
        yield kernel


def test_loading_imports_no_client_and_no_widgets_and_opens_no_socket(kernel: Kernel, tmp_path: Path):
    cell = kernel.run("%load_ext hermes_nb\n_loaded = set(sys.modules) - _before\n_seen = list(_events)")
    assert cell.status == "ok"
    assert cell.outputs == []
    heavy = "('openai', 'ipywidgets', 'sqlite3', 'hermes_nb.app', 'hermes_nb.store.store', 'hermes_nb.agent.agent')"
    assert kernel.value(f"[name for name in {heavy} if name in _loaded]") == "[]"
    assert kernel.value("_seen") == "[]"
    # The warm-up: everything that the first turn needs, and still no socket and no file.
    ready = "'openai' in sys.modules and not [t for t in threading.enumerate() if t.name == 'hermes-nb-warm']"
    kernel.until(lambda: kernel.value(ready) == "True", None, 60)
    assert kernel.value("_events") == "[]"
    assert kernel.value("'ipywidgets' in sys.modules") == "False"
    assert not (tmp_path / "home").exists()


def test_the_watch_would_see_a_connection(kernel: Kernel):
    """The test above proves something only if a turn is seen."""
    with ModelServer([say("hello")]) as server:
        kernel.run(f"import os\nos.environ['HERMES_NB_BASE_URL'] = {server.url!r}\n%load_ext hermes_nb")
        assert kernel.run("%%hermes\nhi", 30).status == "ok"
        events = kernel.value("_events")
        assert "socket.connect" in events
        # One address, the endpoint's: nothing is probed when one is configured.
        assert kernel.value("{e for e in _events if 'connect' in e}").count("127.0.0.1") == 1
        assert str(server.port) in events


def test_the_first_cell_does_not_wait_for_the_warm_up(kernel: Kernel):
    with ModelServer([say("hello")]) as server:
        code = f"import os\nos.environ['HERMES_NB_BASE_URL'] = {server.url!r}\n%load_ext hermes_nb"
        kernel.send(code)
        cell = kernel.run("%%hermes\nhi", 30)
        assert "hello" in cell.markdown


def test_loading_twice_and_unloading_leave_the_shell_as_it_was(kernel: Kernel):
    look = (
        "(len(get_ipython().input_transformers_cleanup), len(get_ipython().Completer.custom_matchers), "
        "sorted(get_ipython().magics_manager.lsmagic()['cell'])[:200], hasattr(get_ipython(), 'hermes_nb'))"
    )
    before = kernel.value(look)
    for line in ("%load_ext hermes_nb", "%load_ext hermes_nb", "%reload_ext hermes_nb", "%unload_ext hermes_nb"):
        assert kernel.run(line).status == "ok"
    assert kernel.value(look) == before
    assert kernel.run("%load_ext hermes_nb").status == "ok"
    assert kernel.run("%hermes help", 30).status == "ok"


def test_help_and_completion_work_before_anything_is_imported(kernel: Kernel):
    kernel.run("%load_ext hermes_nb")
    complete = "get_ipython().Completer.complete(line_buffer={0!r}, text={1!r}, cursor_pos={2})[1]"
    assert "'--approve'" in kernel.value(complete.format("%%hermes --app", "--app", 14))
    assert "'sessions'" in kernel.value(complete.format("%hermes ses", "ses", 11))
    assert "--keep-going" in kernel.value("get_ipython().find_line_magic('hermes').__doc__")
