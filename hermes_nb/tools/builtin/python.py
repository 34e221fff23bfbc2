"""The toolset ``python``: run code in the user's live namespace, and look at its variables."""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from hermes_nb.core.errors import ToolDenied
from hermes_nb.core.names import Parallel, Risk, Where
from hermes_nb.core.secrets import MASK, is_secret_name, mask
from hermes_nb.core.types import Image, ToolResult
from hermes_nb.core.wirejson import clean_text
from hermes_nb.tools.clip import clip
from hermes_nb.tools.judge import guarded, python_is_clean
from hermes_nb.tools.kernel import NO_KERNEL, CodeResult, KernelPort
from hermes_nb.tools.schema import tool_of
from hermes_nb.tools.tool import ToolContext

# The type that a KernelPort gives to a name that is not there.
_UNDEFINED = "undefined"
_TEXT_KINDS = ("text/plain", "text/markdown", "text/latex")


def python(
    context: ToolContext,
    code: Annotated[str, "Python code, run as one notebook cell. The value of the last expression is shown."],
) -> ToolResult:
    """Run Python code in the user's live notebook kernel, where their variables are.

    Top-level await, magics and !commands work. Variables stay for later calls and for the user. Prefer looking
    (df.head(), df.describe()) before changing anything, and keep the output small.
    """
    kernel = _kernel(context)
    if not code.strip():
        return ToolResult("The code is empty; nothing was run.", is_error=True)
    return render(
        kernel.execute(guarded(code) if python_is_clean(code) is None else code, context.cancel), context.mask
    )


def variables(
    context: ToolContext,
    names: Annotated[list[str] | None, "Names to look at; leave out for all variables of the user."] = None,
) -> ToolResult:
    """List the variables of the user's live namespace with type and a short summary. Changes nothing."""
    kernel = _kernel(context)
    found = [one for one in kernel.variables(names or None, context.cancel) if one.type != _UNDEFINED]
    lines = [
        f"{one.name}: {one.type} = {MASK if is_secret_name(one.name) else one.summary}"
        for one in sorted(found, key=lambda one: one.name)
    ]
    missing = sorted(set(names or ()) - {one.name for one in found})
    if missing:
        lines.append(f"Not defined: {', '.join(missing)}")
    text = clip(context.mask(clean_text("\n".join(lines)))) or "The user's namespace has no variables yet."
    return ToolResult(text, note=f"{len(found)} variable{'' if len(found) == 1 else 's'}")


def render(result: CodeResult, mask: Callable[[str], str] = mask) -> ToolResult:
    """Return what one piece of code showed as the model reads it: stdout, results, stderr, traceback.

    Masked before it is cut, so that no cut leaves half a key.
    """
    parts: list[str] = [result.stdout.rstrip("\n")]
    images: list[Image] = []
    for bundle in result.displays:
        text, image = _display(bundle)
        parts.append(text)
        if image is not None:
            images.append(image)
    if result.stderr.strip():
        parts.append(f"[stderr]\n{result.stderr.rstrip()}")
    if result.traceback.strip():
        parts.append(result.traceback.rstrip())
    if result.interrupted:
        parts.append("[The code was interrupted before it ended.]")
    text = "\n".join(part for part in parts if part.strip())
    return ToolResult(
        content=clip(mask(clean_text(text))) or ("(no output)" if result.ok else "The code failed without a message."),
        is_error=not result.ok,
        note=_note(result, len(images), mask),
        images=tuple(images),
    )


def _kernel(context: ToolContext) -> KernelPort:
    if context.kernel is None:
        raise ToolDenied(NO_KERNEL)
    return context.kernel


def _display(bundle: Mapping[str, Any]) -> tuple[str, Image | None]:
    for kind, data in bundle.items():
        if kind.startswith("image/") and kind != "image/svg+xml":
            raw = _bytes(data)
            if raw is not None:
                size = _size(raw)
                shape = f" {size[0]}x{size[1]}" if size else ""
                return f"[figure: {kind}{shape}, shown in the cell]", Image(kind, raw)
    for kind in _TEXT_KINDS:
        if kind in bundle:
            return _text(bundle[kind]).rstrip("\n"), None
    return (f"[{', '.join(bundle)}, shown in the cell]" if bundle else ""), None


def _text(data: Any) -> str:
    if isinstance(data, str):
        return data
    # nbformat stores long text as a list of lines.
    return "".join(map(str, cast("list[Any]", data))) if isinstance(data, list) else str(data)


def _bytes(data: Any) -> bytes | None:
    if isinstance(data, (bytes, bytearray)):
        return bytes(data)
    try:
        return base64.b64decode(_text(data))
    except (binascii.Error, ValueError):
        return None


def _size(raw: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG or JPEG, or None."""
    if raw.startswith(b"\x89PNG\r\n\x1a\n") and len(raw) >= 24:
        width, height = struct.unpack(">II", raw[16:24])
        return width, height
    at = 2
    while raw.startswith(b"\xff\xd8") and at + 9 < len(raw) and raw[at] == 0xFF:
        if raw[at + 1] in range(0xC0, 0xCF) and raw[at + 1] not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
    return None


def _note(result: CodeResult, figures: int, mask: Callable[[str], str]) -> str:
    if result.interrupted:
        return "interrupted"
    if not result.ok:
        last = result.traceback.strip().splitlines()[-1:] or ["failed"]
        return mask(last[0])[:120]
    return f"{figures} figure{'' if figures == 1 else 's'}" if figures else "ok"


TOOLS = (
    tool_of(python, toolset="python", risk=Risk.EXECUTE, parallel=Parallel.NEVER, where=Where.KERNEL),
    tool_of(variables, toolset="python", risk=Risk.READ, parallel=Parallel.NEVER, where=Where.KERNEL),
)
