import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from hermes_nb.notebook.transform import transform

BODIES = [
    "plain\n",
    '{v: k for k, v in d.items()} explain {} and {0} and f"{x!r:>5}"\n',
    "\"\"\"triple\"\"\" and '''other''' \\n \\ end\\\n",
    "!ls\n%time x\n?help\n>>> prompt\nIn [1]: x\n$HOME ${x}\n",
    "中文 🐈‍⬛ \u2028 line separator\x0cform feed\n\ttab\n\n\n",
    "a\r\nb\r\n",
    "%%hermes\nnested text\n",
]


def call_of(cell: str) -> tuple[str, str]:
    """The two arguments that the transformed cell passes on."""
    manager = TransformerManager()
    manager.cleanup_transforms.insert(0, transform)
    tree = ast.parse(manager.transform_cell(cell), mode="exec")
    call = tree.body[0].value.value  # type: ignore[attr-defined]
    return tuple(ast.literal_eval(argument) for argument in call.args)


@pytest.mark.parametrize("body", BODIES)
def test_the_body_arrives_byte_for_byte(body: str):
    assert call_of("%%hermes -o x\n" + body) == ("-o x", body)


def test_blank_lines_and_comments_may_stand_above():
    assert call_of("\n  \n# a comment\n%%hermes\nhi\n") == ("", "hi\n")


def test_another_magic_is_left_alone():
    lines = ["%%hermesx\n", "abc\n"]
    assert transform(lines) is lines
    assert transform(["x = 1\n"]) == ["x = 1\n"]


def test_multi_line_typing_is_not_ended_early():
    manager = TransformerManager()
    manager.cleanup_transforms.insert(0, transform)
    assert manager.check_complete("%%hermes\nabc")[0] == "incomplete"
