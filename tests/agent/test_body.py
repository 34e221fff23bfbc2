from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.agent.body import head, join
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.types import Prefix
from hermes_nb.core.wirejson import dumps

SYSTEM = b'{"role":"system","content":"\xe6\xbc\xa2"}'
TOOLS = b'[{"type":"function","function":{"name":"f"}}]'


def test_the_parts_stand_in_the_order_head_tools_system_messages() -> None:
    body = join(head("m", params={"temperature": 0}), Prefix("p", TOOLS, SYSTEM), ['{"role":"user","content":"é"}'])
    assert body.decode() == (
        '{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0,'
        '"tools":[{"type":"function","function":{"name":"f"}}],'
        '"messages":[{"role":"system","content":"漢"},{"role":"user","content":"é"}]}'
    )


@pytest.mark.parametrize("tools", [b"", b"[]"])
def test_no_tools_means_no_field(tools: bytes) -> None:
    assert list(json.loads(join(head("m", stream=False), Prefix("p", tools, SYSTEM), []))) == [
        "model",
        "stream",
        "messages",
    ]


def test_a_missing_system_message_leaves_no_comma() -> None:
    assert json.loads(join(head("m"), Prefix("p", b"", b""), ["{}"]))["messages"] == [{}]


@pytest.mark.parametrize("name", ["messages", "stream", "tools", "n"])
def test_a_parameter_that_the_loop_decides_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        head("m", params={name: 1})


@given(st.lists(st.text()), st.lists(st.text(), min_size=1))
def test_each_body_without_its_end_is_a_prefix_of_the_next(before: list[str], after: list[str]) -> None:
    prefix = Prefix("p", TOOLS, SYSTEM)
    wires = [dumps({"role": "user", "content": text}) for text in before + after]
    first, second = join(head("m"), prefix, wires[: len(before)]), join(head("m"), prefix, wires)
    assert second.startswith(first.removesuffix(b"]}"))
    assert len(json.loads(second)["messages"]) == len(wires) + 1
