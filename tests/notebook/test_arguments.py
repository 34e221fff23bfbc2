import pytest

from hermes_nb.core.names import ApprovalMode
from hermes_nb.notebook.arguments import FLAGS, ArgumentsInvalid, CellArguments, parse


def test_an_empty_line_means_the_defaults():
    assert parse("") == CellArguments()


def test_every_flag_is_read():
    got = parse(
        '-m gpt-x --new "my report" -t files,memory -t python --without terminal -v df -v x '
        "-o answer --bg --approve safe --keep-going"
    )
    assert got == CellArguments(
        model="gpt-x",
        new=True,
        title="my report",
        toolsets=("files", "memory", "python"),
        without=("terminal",),
        variables=("df", "x"),
        output="answer",
        background=True,
        approve=ApprovalMode.SAFE,
        keep_going=True,
    )


def test_new_takes_a_title_only_when_the_next_word_is_no_flag():
    assert parse("--new -o x").title is None
    assert parse("--new=报告").title == "报告"


def test_values_may_follow_an_equals_sign():
    assert parse("--model=a=b --approve=off").model == "a=b"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--modle x", "Did you mean --model?"),
        ("--aprove ask", "--approve"),
        ("what is this", "lines below"),
        ("-m", "needs a value"),
        ('--new "open', "quotes"),
        ("-s a --new", "only one"),
        ("--approve aks", "Did you mean ask?"),
        ("-o 2x", "not a Python name"),
        ("-v df.x", "not a Python name"),
        ("--bg=1", "no flag"),
    ],
)
def test_a_wrong_line_gets_a_clear_message(line: str, says: str):
    with pytest.raises(ArgumentsInvalid, match=says.replace("?", r"\?")):
        parse(line)


def test_all_flags_are_offered_for_completion():
    assert {"-m", "--model", "--new", "--bg", "--keep-going", "--approve", "--without"} <= set(FLAGS)
