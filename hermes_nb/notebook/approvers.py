"""How a question reaches the user from a running cell: a card with buttons, or ``input()``.

An approver only shows the question and takes the answer to its row; whoever answers the row first wins, and
the agent waits on the row, not on the approver.
"""

from __future__ import annotations

import contextlib
import html
import json
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from hermes_nb.core.names import ApprovalState
from hermes_nb.core.terminal import terminal_text
from hermes_nb.core.types import ApprovalRequest
from hermes_nb.notebook.executor import Interrupts
from hermes_nb.notebook.render import TurnView
from hermes_nb.notebook.terminal import TerminalView
from hermes_nb.tools.preview import readable

log = logging.getLogger(__name__)

_SECONDS_BETWEEN_LOOKS = 0.1


class Answers(Protocol):
    """The rows of questions (``store.approvals``)."""

    def answer(self, request_id: str, state: ApprovalState, by: str, args_hash: str | None = None) -> bool: ...

    def get(self, request_id: str) -> ApprovalRequest: ...


class Post(Protocol):
    """Runs a call on the thread that owns the cell's outputs, without waiting for it."""

    def __call__(self, call: Callable[[], None], *, interruptible: bool = False) -> None: ...


def question(request: ApprovalRequest) -> tuple[str, str]:
    """Return what is asked as ``(sentence, code or arguments)``, each character visible and keys masked."""
    arguments = dict(request.arguments)
    body = arguments["code"] if set(arguments) == {"code"} else json.dumps(arguments, ensure_ascii=False, indent=1)
    return readable(f"{request.tool}: {request.reason}"), readable(request.diff or str(body))


class WidgetApprover:
    """A card with two buttons in the cell. Clicks arrive while the cell awaits.

    The card stands in the place of the call's line; the view brings the line back when the row has its answer.
    """

    surface = "widget"

    def __init__(self, answers: Answers, view: TurnView, post: Post) -> None:
        self._answers = answers
        self._view = view
        self._post = post
        self._cards: dict[str, list[Any]] = {}

    def open(self, request: ApprovalRequest) -> None:
        self._post(lambda: _or_refused(self._answers, request, self._show))

    def close(self, request: ApprovalRequest) -> None:
        self._post(lambda: self._dispose(request.id))

    def close_all(self) -> None:
        """Take every card away that still stands. Called on the outputs' thread."""
        for id in list(self._cards):
            self._dispose(id)

    def _show(self, request: ApprovalRequest) -> None:
        # Needed only once a question comes up; loading the extension stays fast.
        import ipywidgets  # noqa: PLC0415

        approve = ipywidgets.Button(description="Approve", button_style="success", icon="check")
        deny = ipywidgets.Button(description="Deny", icon="times")

        def answering(state: ApprovalState) -> Callable[[Any], None]:
            def clicked(_button: Any) -> None:
                approve.disabled = deny.disabled = True
                self._answers.answer(request.id, state, "notebook", request.args_hash)

            return clicked

        approve.on_click(answering(ApprovalState.APPROVED))
        deny.on_click(answering(ApprovalState.DENIED))
        text, buttons = ipywidgets.HTML(_card(request)), ipywidgets.HBox([approve, deny])
        frame = ipywidgets.Layout(border="1px solid var(--jp-border-color1)", padding="4px 8px", max_width="60em")
        frame.border_left = "4px solid var(--jp-brand-color1)"
        card = ipywidgets.VBox([text, buttons], layout=frame)
        self._cards[request.id] = [card, text, buttons, approve, deny]
        asked, body = question(request)
        plain = f"Waiting for your answer: {asked}\n{body}\nAnswer in a terminal: hermes-nb approvals"
        bundle: dict[str, Any] = dict(card._repr_mimebundle_())  # type: ignore[call-overload]
        self._view.ask({**bundle, "text/plain": plain})

    def _dispose(self, id: str) -> None:
        for part in self._cards.pop(id, ()):
            part.layout.close()
            if hasattr(part, "style"):
                part.style.close()
            part.close()  # a saved notebook keeps no dead widget


def _or_refused(answers: Answers, request: ApprovalRequest, show: Callable[[ApprovalRequest], None]) -> None:
    """Show the question; when that fails, refuse the call at once instead of letting it wait for a day."""
    try:
        show(request)
    except Exception:
        log.warning("question %s could not be shown", request.id, exc_info=True)
        answers.answer(request.id, ApprovalState.DENIED, "the question could not be shown", request.args_hash)


def _card(request: ApprovalRequest) -> str:
    _, body = question(request)
    return (
        f"<b>Allow {html.escape(request.tool)}?</b> <small>{html.escape(readable(request.reason))}</small>"
        '<pre style="max-height: 20em; overflow: auto; white-space: pre-wrap; margin: 4px 0; padding: 4px 8px;'
        f' line-height: 1.4; background: var(--jp-layout-color2)">{html.escape(body)}</pre>'
    )


class InputApprover:
    """Asks with ``input()`` where there are no buttons: consoles, and cells that block their event loop."""

    surface = "input"

    def __init__(
        self,
        answers: Answers,
        view: TurnView | TerminalView | None,
        post: Post,
        interrupts: Interrupts | None,
    ) -> None:
        self._answers = answers
        self._view = view
        self._post = post
        self._interrupts = interrupts

    def open(self, request: ApprovalRequest) -> None:
        self._post(lambda: _or_refused(self._answers, request, self._ask), interruptible=True)

    def close(self, request: ApprovalRequest) -> None:
        pass  # the prompt and its answer already stand in the cell

    def close_all(self) -> None:
        pass

    def _ask(self, request: ApprovalRequest) -> None:
        if self._answers.get(request.id).state is not ApprovalState.PENDING:
            return
        if self._view is not None:
            self._view.freeze()
        asked, body = question(request)
        print(terminal_text(f"{asked}\n{body}"))
        try:
            with self._answered_elsewhere(request.id):
                yes = input("Allow this? [y/N] ").strip().lower() in ("y", "yes")
        except KeyboardInterrupt:
            return  # the driver saw it too, or the row has its answer
        except EOFError:
            yes = False
        state = ApprovalState.APPROVED if yes else ApprovalState.DENIED
        self._answers.answer(request.id, state, "input", request.args_hash)

    @contextlib.contextmanager
    def _answered_elsewhere(self, id: str) -> Iterator[None]:
        """Let ``input()`` end when the row gets its answer from another surface."""
        interrupts = self._interrupts
        if interrupts is None or not hasattr(signal, "pthread_kill"):
            yield
            return
        done = threading.Event()
        sending = threading.Lock()  # a signal is either sent before the prompt ended, or never
        main = threading.main_thread().ident or 0

        def watch() -> None:
            while not done.wait(_SECONDS_BETWEEN_LOOKS):
                if self._answers.get(id).state is not ApprovalState.PENDING:
                    with sending:
                        if not done.is_set():
                            interrupts.unblock_input = True
                            signal.pthread_kill(main, signal.SIGINT)
                    return

        watcher = threading.Thread(target=watch, daemon=True, name="hermes-nb-input-watch")
        watcher.start()
        try:
            yield
        finally:
            with sending:
                done.set()
            interrupts.unblock_input = False
