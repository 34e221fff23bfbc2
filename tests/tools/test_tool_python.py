"""The tools python and variables on a scripted KernelPort: what the model reads of what the code showed."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import Cancelled, ToolDenied
from hermes_nb.core.names import MAX_TOOL_RESULT
from hermes_nb.core.types import ToolResult
from hermes_nb.tools.builtin.python import TOOLS, render
from hermes_nb.tools.kernel import NO_KERNEL, CodeResult, Variable
from hermes_nb.tools.tool import ToolContext

PYTHON, VARIABLES = TOOLS
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x06\0\0\0"
JPEG = b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc0\0\x11\x08" + struct.pack(">HH", 30, 20) + b"\x03" * 8


class Kernel:
    def __init__(self, result: CodeResult | None = None, variables: Sequence[Variable] = ()) -> None:
        self.result, self.known, self.codes = result or CodeResult(True), variables, list[str]()

    def execute(self, code: str, cancel: Cancel) -> CodeResult:
        cancel.check()
        self.codes.append(code)
        return self.result

    def variables(self, names: Sequence[str] | None, cancel: Cancel) -> list[Variable]:
        return [one for one in self.known if names is None or one.name in names]


def run(context: ToolContext, kernel: Kernel, **arguments: Any) -> ToolResult:
    tool = PYTHON if "code" in arguments else VARIABLES
    result = tool.handler(replace(context, kernel=kernel), **arguments)
    assert isinstance(result, ToolResult)
    return result


def test_without_a_kernel_both_refuse_in_the_same_words(context: ToolContext) -> None:
    for tool, arguments in ((PYTHON, {"code": "1"}), (VARIABLES, {})):
        with pytest.raises(ToolDenied) as caught:
            tool.handler(context, **arguments)
        assert str(caught.value) == NO_KERNEL


def test_output_comes_in_order_of_stdout_results_stderr_traceback() -> None:
    result = render(
        CodeResult(
            ok=False,
            stdout="printed\n",
            stderr="warned\n",
            traceback="Traceback ...\nZeroDivisionError: division by zero",
            displays=({"text/plain": "41", "text/html": "<b>41</b>"}, {"text/plain": ["4", "2"]}),
        )
    )
    assert result.content == "printed\n41\n42\n[stderr]\nwarned\nTraceback ...\nZeroDivisionError: division by zero"
    assert result.is_error
    assert result.note == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize(("mime", "raw", "size"), [("image/png", PNG, "640x480"), ("image/jpeg", JPEG, "20x30")])
def test_figures_are_named_for_the_model_and_kept_as_bytes(mime: str, raw: bytes, size: str) -> None:
    for data in (raw, base64.b64encode(raw).decode(), base64.encodebytes(raw).decode()):
        result = render(CodeResult(True, displays=({"text/plain": "<Figure>", mime: data},)))
        assert result.content == f"[figure: {mime} {size}, shown in the cell]"
        assert result.images[0].data == raw
        assert result.note == "1 figure"


def test_displays_without_text_are_named() -> None:
    result = render(CodeResult(True, displays=({"text/html": "<b>"}, {"image/svg+xml": "<svg/>"}, {})))
    assert result.content == "[text/html, shown in the cell]\n[image/svg+xml, shown in the cell]"


def test_a_broken_image_is_no_failure() -> None:
    assert "image/png" in render(CodeResult(True, displays=({"image/png": "%%%not base64"},))).content
    assert render(CodeResult(True, displays=({"image/png": PNG[:12]},))).images


def test_silence_is_said() -> None:
    assert render(CodeResult(True)).content == "(no output)"
    assert render(CodeResult(False)).is_error
    assert "interrupted" in render(CodeResult(False, interrupted=True)).content


def test_long_output_keeps_head_and_tail_and_secrets_are_masked() -> None:
    result = render(CodeResult(True, stdout="first\n" + "x" * 300_000 + "\nkey sk-test-1234567890abcdef\nlast\n"))
    assert len(result.content) <= MAX_TOOL_RESULT
    assert result.content.startswith("first")
    assert result.content.endswith("key [masked]\nlast")
    assert "are left out" in result.content


def test_a_lone_surrogate_in_output_can_be_stored() -> None:
    render(CodeResult(True, stdout="a\ud800")).content.encode("utf-8")


def test_clean_code_is_guarded_and_other_code_runs_as_it_was_approved(context: ToolContext) -> None:
    kernel = Kernel()
    run(context, kernel, code="rm -rf * x")
    run(context, kernel, code="%%bash\nls")
    assert kernel.codes[0].startswith("rm -rf * x\n#")
    assert kernel.codes[1] == "%%bash\nls"


def test_empty_code_runs_nothing(context: ToolContext) -> None:
    kernel = Kernel()
    assert run(context, kernel, code=" \n").is_error
    assert kernel.codes == []


def test_an_interrupt_passes_through(context: ToolContext) -> None:
    context.cancel.cancel()
    with pytest.raises(Cancelled):
        run(context, Kernel(), code="1")


def test_variables_are_sorted_masked_and_missing_ones_named(context: ToolContext) -> None:
    kernel = Kernel(
        variables=[
            Variable("z", "int", "3"),
            Variable("api_key", "str", "'hunter'"),
            Variable("conf", "dict", "{'password': 'correcthorse'}"),
            Variable("gone", "undefined", "there is no variable of this name"),
        ]
    )
    text = run(context, kernel).content
    assert text.splitlines() == ["api_key: str = [masked]", "conf: dict = {'password': '[masked]'}", "z: int = 3"]
    assert run(context, kernel, names=["z", "gone", "other"]).content == "z: int = 3\nNot defined: gone, other"
    assert "no variables" in run(context, Kernel()).content
