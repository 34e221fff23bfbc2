"""Reads the line of ``%%hermes``: flags of the public names page, with hints for typos."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass

from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ApprovalMode

HELP = """\
%%hermes [-m MODEL] [-s SESSION | --new [TITLE]] [-t TOOLSET]… [--without TOOLSET]… [-v NAME]…
         [-o NAME] [--bg] [--approve MODE] [--keep-going]

Ask the agent. The rest of the cell is your message, sent as it is;
braces and $ mean nothing special.

  -m, --model MODEL       another model for this one turn
  -s, --session SESSION   continue this session (id, start of an id, or title)
  --new [TITLE]           begin a new session
  -t, --toolset TOOLSET   let this turn use only these toolsets (may be repeated)
  --without TOOLSET       refuse this toolset or tool in this turn (may be repeated)
  -v, --variable NAME     tell the model about this variable (may be repeated)
  -o, --output NAME       put the TurnResult into this variable (it is always in _)
  --bg                    run in the background; see %hermes ps and %hermes stop
  --approve MODE          ask | safe | deny | off, for this turn
  --keep-going            a failed turn does not stop Run All

To stop a turn: Kernel > Interrupt, in any front end (Ctrl-C in a terminal); in the background: %hermes stop.

Examples:
  %%hermes
  What is in df, and is anything missing?

  %%hermes -o answer --approve safe
  Plot sales per month.

  %%hermes --new "monthly report" -v df
  Draft the report.
"""

_TAKES_VALUE = {
    "-m": "model",
    "--model": "model",
    "-s": "session",
    "--session": "session",
    "-t": "toolset",
    "--toolset": "toolset",
    "--without": "without",
    "-v": "variable",
    "--variable": "variable",
    "-o": "output",
    "--output": "output",
    "--approve": "approve",
}
_SWITCHES = {"--bg": "background", "--keep-going": "keep_going"}
FLAGS: tuple[str, ...] = (*_TAKES_VALUE, *_SWITCHES, "--new")
"""Every flag, for completion."""


class ArgumentsInvalid(ConfigError):
    """The line of a magic is wrong; the message names the flag and a near one."""


@dataclass(frozen=True, slots=True)
class CellArguments:
    """What the line of one cell says."""

    model: str | None = None
    session: str | None = None
    new: bool = False
    title: str | None = None
    toolsets: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    output: str | None = None
    background: bool = False
    approve: ApprovalMode | None = None
    keep_going: bool = False


def parse(line: str) -> CellArguments:
    """Read ``line``. Raises ArgumentsInvalid for anything that is not a flag or lacks its value."""
    try:
        words = shlex.split(line)
    except ValueError as exc:
        raise ArgumentsInvalid(f'The line cannot be read ({exc}). Close the quotes: --new "my title"') from exc
    single: dict[str, str] = {}
    many: dict[str, list[str]] = {"toolset": [], "without": [], "variable": []}
    switches: set[str] = set()
    new, title = False, None
    rest = iter(range(len(words)))
    for i in rest:
        flag, equals, inline = words[i].partition("=") if words[i].startswith("--") else (words[i], "", "")
        if flag in _SWITCHES and not equals:
            switches.add(_SWITCHES[flag])
        elif flag == "--new":
            new = True
            if equals:
                title = inline
            elif i + 1 < len(words) and not words[i + 1].startswith("-"):
                title = words[next(rest)]
        elif flag in _TAKES_VALUE:
            if not equals:
                if i + 1 >= len(words):
                    raise ArgumentsInvalid(f"{flag} needs a value. See %%hermes? for examples.")
                inline = words[next(rest)]
            name = _TAKES_VALUE[flag]
            if name in many:
                many[name] += [part for part in inline.split(",") if part]
            else:
                single[name] = inline
        else:
            raise ArgumentsInvalid(_unknown(words[i]))
    if new and "session" in single:
        raise ArgumentsInvalid("-s continues a session and --new begins one; use only one of them.")
    output = single.get("output")
    for name in ([output] if output is not None else []) + many["variable"]:
        if not name.isidentifier():
            raise ArgumentsInvalid(f"{name!r} is not a Python name.")
    return CellArguments(
        model=single.get("model"),
        session=single.get("session"),
        new=new,
        title=title,
        toolsets=tuple(many["toolset"]),
        without=tuple(many["without"]),
        variables=tuple(many["variable"]),
        output=output,
        background="background" in switches,
        approve=_mode(single.get("approve")),
        keep_going="keep_going" in switches,
    )


def _mode(word: str | None) -> ApprovalMode | None:
    if word is None:
        return None
    try:
        return ApprovalMode(word)
    except ValueError:
        near = difflib.get_close_matches(word, list(ApprovalMode), n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ArgumentsInvalid(f"--approve takes ask, safe, deny or off, not {word!r}.{hint}") from None


def _unknown(word: str) -> str:
    if not word.startswith("-"):
        return f"{word!r} is not a flag. Your message goes into the lines below %%hermes."
    near = difflib.get_close_matches(word.partition("=")[0], [f for f in FLAGS if len(f) > 2], n=1)
    return f"There is no flag {word}." + (f" Did you mean {near[0]}?" if near else "") + " See %%hermes? for all."
