"""Whether a tool call may run, needs a yes, or is refused. Decides only; asking is ``approval.py``.

    risk        ask           safe                    deny          off
    read        allow; outside the workspace and secrets: as "else"  allow
    state       allow in every mode: memory and skills have switches of their own
    python      clean code: allow, else: ask, ask, deny              allow
    write       ask           plain file: allow       deny          allow
    else        ask           ask                     deny          allow

``safe`` treats Python like ``ask``: what a piece of code does cannot be told well enough to call it harmless. A
stored "always" answer (``allowed``) counts as the user's yes, except against an explicit ``deny``.
"""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ToolArgumentsInvalid
from hermes_nb.core.names import ApprovalMode, Risk, Verdict
from hermes_nb.core.paths import Home
from hermes_nb.core.wirejson import dumpb
from hermes_nb.tools.judge import CALLABLE_BUILTINS, python_is_clean
from hermes_nb.tools.kernel import KernelPort
from hermes_nb.tools.tool import Tool, ToolContext
from hermes_nb.tools.workspace import read_reason, resolve, write_reason

PYTHON = "python"
"""The one tool whose argument ``code`` goes to the judge."""
# The type that a KernelPort gives to a name that is not there.
_UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Decision:
    """``reason`` says why a yes is needed or was not possible; for ALLOW it says what the call was taken for."""

    verdict: Verdict
    reason: str


def judge(
    tool: Tool,
    arguments: Mapping[str, Any],
    mode: ApprovalMode,
    *,
    context: ToolContext,
    home: Path | None = None,
    shadowed: frozenset[str] = frozenset(),
    allowed: Callable[[str], bool] | None = None,
    explicit: bool = True,
) -> Decision:
    """Decide on one call whose arguments are already parsed and checked.

    ``shadowed``: builtins that the user's namespace replaces. ``allowed``: tells whether a pattern of
    ``patterns_of`` has a stored "always" answer. ``explicit``: somebody chose ``mode``; a ``deny`` that is only
    the default of a headless run still accepts stored answers.
    """
    mode = ApprovalMode(mode)
    if mode is ApprovalMode.OFF:
        return Decision(Verdict.ALLOW, "approvals are off")
    try:
        reason = _why_ask(tool, arguments, mode, context.cwd, home or Home.find().root, shadowed)
    except ToolArgumentsInvalid as exc:
        return Decision(Verdict.DENY, str(exc))
    if reason is None:
        return Decision(Verdict.ALLOW, "needs no question")
    if allowed is not None and not (mode is ApprovalMode.DENY and explicit):
        for pattern in patterns_of(tool, arguments, context.cwd):
            if allowed(pattern):
                return Decision(Verdict.ALLOW, f"always allowed by the user ({pattern})")
    if mode is ApprovalMode.DENY:
        return Decision(Verdict.DENY, denied(tool.name, reason))
    return Decision(Verdict.ASK, reason)


def denied(tool: str, reason: str) -> str:
    """Return the refusal where nobody can be asked, with the ways to allow the call beforehand."""
    return (
        f"Not run: {reason}. The call of {tool} needs a yes, and nobody can be asked here (approval mode deny). "
        'The user can allow it beforehand: answer "always" to the same call in an interactive notebook, add it to '
        "approvals.allow with `hermes-nb config set`, or run with --approve off."
    )


def patterns_of(tool: Tool, arguments: Mapping[str, Any], cwd: Path) -> tuple[str, ...]:
    """Return what a stored "always" can name, most exact first: ``tool:sha256:…`` of these very arguments, and for
    a file tool ``tool:/the/resolved/path``.
    """
    exact = exact_pattern(tool.name, arguments)
    path = arguments.get("path")
    return (exact, f"{tool.name}:{resolve(cwd, path)}") if isinstance(path, str) else (exact,)


def exact_pattern(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the pattern of these very arguments; what an "always" in a front end stores."""
    digest = hashlib.sha256(dumpb([tool, dict(sorted(arguments.items()))])).hexdigest()
    return f"{tool}:sha256:{digest}"


def allowed_by(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return the test for ``approvals.allow``: ``TOOL`` (every call of it), ``TOOL:GLOB`` (paths) or an exact pattern.

    Code is never matched by a glob: a pattern that fits the harmless half of a program fits the whole.
    """
    rules = tuple(patterns)

    def allowed(pattern: str) -> bool:
        name, _, subject = pattern.partition(":")
        for rule in rules:
            tool, colon, glob = rule.partition(":")
            if rule == pattern or (tool == name and not colon):
                return True
            is_path = not subject.startswith("sha256:")
            if tool == name and is_path and glob and fnmatch.fnmatchcase(subject, _expanded(glob)):
                return True
        return False

    return allowed


def _expanded(glob: str) -> str:
    try:
        return str(Path(glob).expanduser())
    except RuntimeError:
        return glob  # an unknown ~user: it fits no resolved path


def shadowed_builtins(kernel: KernelPort | None, cancel: Cancel) -> frozenset[str]:
    """Return the callable builtins that the user's namespace replaces; ask the kernel only when code is judged."""
    if kernel is None:
        return frozenset()
    found = kernel.variables(sorted(CALLABLE_BUILTINS), cancel)
    return frozenset(variable.name for variable in found if variable.type != _UNDEFINED)


def _why_ask(
    tool: Tool, arguments: Mapping[str, Any], mode: ApprovalMode, cwd: Path, home: Path, shadowed: frozenset[str]
) -> str | None:
    # Compared by value: a plug-in may build its Tool with plain text.
    if tool.risk == Risk.STATE:
        return None
    path = arguments.get("path")
    if tool.risk == Risk.READ:
        return read_reason(resolve(cwd, path), cwd, home) if isinstance(path, str) else None
    if tool.name == PYTHON and tool.toolset == PYTHON:
        return python_is_clean(str(arguments.get("code", "")), shadowed=shadowed)
    if tool.risk == Risk.WRITE:
        if not isinstance(path, str):
            return f"{tool.name} changes things outside the conversation"
        reason = write_reason(resolve(cwd, path), cwd, home)
        return reason or (None if mode is ApprovalMode.SAFE else f"it writes {resolve(cwd, path)}")
    return f"{tool.name} runs code or commands"
