"""The measurement of prefix reuse: exact at 1.0, never too high below it."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.agent.reuse import Trail


def reuse(one: bytes, other: bytes) -> float | None:
    trail = Trail()
    assert trail.measure(one + b"]}") is None
    return trail.measure(other + b"]}")


@given(st.binary(min_size=1, max_size=5000), st.binary(max_size=3000))
def test_a_body_that_goes_on_reuses_all_of_the_one_before(one: bytes, more: bytes) -> None:
    assert reuse(one, one + more) == 1.0


@given(st.integers(1, 9000), st.data())
def test_a_changed_byte_is_seen_wherever_it_is(length: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, length - 1))
    one = os.urandom(length)
    other = one[:at] + bytes([one[at] ^ 1]) + one[at + 1 :] + b"more"
    share = reuse(one, other)
    assert share is not None
    assert at - 1024 <= share * length <= at


def test_a_shorter_body_does_not_reuse_all() -> None:
    share = reuse(b"x" * 3000, b"x" * 2500)
    assert share is not None
    assert share < 1.0


def test_each_body_is_compared_with_the_one_before_it() -> None:
    trail = Trail()
    body = b"a" * 2000
    assert [trail.measure(body + b"]}"), trail.measure(b"b" + body + b"]}"), trail.measure(b"b" + body + b",c]}")] == [
        None,
        0.0,
        1.0,
    ]
