"""The secrets guard of one turn: everything that enters is masked here, once, before its row is written.

User text, tool results and the assembled answer pass; what is stored is therefore what is shown, hashed, approved,
run and sent, and each request stays a byte prefix of the next. Which values are secret is asked when a text enters.
Must not know a front end: a kernel tells its values through ``SecretSource``. No history of another kernel is read:
the guard sees the environment, the configured keys and the live namespace of this turn's own kernel, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from hermes_nb.core.secret_stream import MaskedStream, mask_cut
from hermes_nb.core.secrets import MASK, known_values, mask_known
from hermes_nb.core.types import ToolCall, ToolResult, Wire
from hermes_nb.core.wirejson import dumps
from hermes_nb.tools.kernel import KernelPort, SecretSource

REFUSED = (
    f"Not run: the arguments of this call held a secret, which was replaced by {MASK} before anything was stored. Call "
    "again and let the code read the secret itself: pass the name of an environment variable (os.environ[...]) or of a "
    "variable of the user's, never the value."
)
_SHOWN_REASONING = ("reasoning_content", "reasoning")


class Guard:
    """Masks what enters one turn. ``kernel``: the kernel of the turn, asked for its secret values where it can tell."""

    def __init__(self, kernel: KernelPort | None = None) -> None:
        self._source = kernel if isinstance(kernel, SecretSource) else None

    def known(self) -> tuple[str, ...]:
        """Return the values that are secret at this moment."""
        return known_values(self._source.secret_values() if self._source is not None else ())

    def text(self, text: str) -> str:
        """Return a whole text masked."""
        return mask_known(text, self.known())

    def partial(self, text: str) -> str:
        """Return a text masked whose end is missing."""
        return mask_cut(text, self.known())

    def result(self, result: ToolResult) -> ToolResult:
        """Return a tool's result with its texts masked."""
        known = self.known()
        return replace(
            result,
            content=mask_known(result.content, known),
            note=None if result.note is None else mask_known(result.note, known),
            persisted=None if result.persisted is None else mask_known(result.persisted, known),
        )

    def stream(self) -> MaskedStream:
        """Return what masks the pieces of one answer."""
        return MaskedStream(self.known())

    def answer(self, wire: Wire, calls: Sequence[ToolCall]) -> tuple[Wire, tuple[ToolCall, ...]]:
        """Return an assembled assistant message and its calls masked; a call that was changed is marked."""
        known = self.known()
        masked: Wire = dict(wire)
        for field in ("content", *_SHOWN_REASONING):
            if isinstance(masked.get(field), str):
                masked[field] = mask_known(masked[field], known)
        details = masked.get("reasoning_details")
        if details is not None and _texts_masked(details, known) != details:
            # These blocks are signed; a changed one would be refused, a missing one is not.
            del masked["reasoning_details"]
        checked = [_call(call, known) for call in calls]
        if any(call.masked for call in checked):
            masked["tool_calls"] = [_sent(sent, call) for sent, call in zip(masked["tool_calls"], checked, strict=True)]
        return masked, tuple(checked)


def _call(call: ToolCall, known: Sequence[str]) -> ToolCall:
    arguments = _arguments(call.arguments, known)
    return call if arguments == call.arguments else replace(call, arguments=arguments, masked=True)


def _arguments(raw: str, known: Sequence[str]) -> str:
    """Mask the values inside the JSON text: in the text itself an escape such as \\n may stand before a key."""
    try:
        parsed = json.loads(raw)
    except ValueError:
        masked = mask_known(raw, known)
        loose = raw.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
        return masked if mask_known(loose, known) == loose else mask_known(loose, known)
    masked_value = _masked(parsed, known)
    return raw if masked_value == parsed else dumps(masked_value)


def _masked(value: Any, known: Sequence[str]) -> Any:
    if isinstance(value, str):
        return mask_known(value, known)
    if isinstance(value, list):
        return [_masked(one, known) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        shown: dict[str, Any] = {}
        for name, one in cast("dict[str, Any]", value).items():
            # Beside its name a value may be a secret that it is not alone: {"password": "…"}.
            pair = one if not isinstance(one, str) else _beside(name, one, known)
            shown[mask_known(name, known)] = _masked(pair, known)
        return shown
    return value


def _beside(name: str, value: str, known: Sequence[str]) -> str:
    if len(value) > 500 or "\n" in value or '"' in value:
        return value
    return MASK if mask_known(f'"{name}": "{value}"', known).endswith(f': "{MASK}"') else value


def _texts_masked(details: Any, known: Sequence[str]) -> Any:
    return [
        {k: mask_known(v, known) if k in ("text", "summary") and isinstance(v, str) else v for k, v in one.items()}
        for one in details
    ]


def _sent(sent: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """Return the wire's form of a call with the masked arguments."""
    if not call.masked:
        return sent
    try:
        valid = isinstance(json.loads(call.arguments), dict)
    except ValueError:
        valid = False
    arguments = call.arguments if valid else dumps({"invalid_arguments": call.arguments})
    return {**sent, "function": {**sent["function"], "arguments": arguments}}
