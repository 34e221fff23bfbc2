from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.agent.sse import EventDecoder, NotAnEventStream, ServerEvent


def events(*parts: bytes) -> list[ServerEvent]:
    decoder = EventDecoder()
    return [event for part in parts for event in decoder.feed(part)] + decoder.close()


def test_fields_comments_and_unknown_lines_are_read_as_the_format_says() -> None:
    raw = b'\xef\xbb\xbf: ping\n\nevent: error\nid: 7\nretry: 5\nodd\ndata: {"a":\ndata:1}\n\ndata:  two\n\n'
    assert events(raw) == [ServerEvent('{"a":\n1}', "error"), ServerEvent(" two")]


def test_an_event_without_its_empty_line_counts_at_the_end() -> None:
    assert events(b"data: a\n\ndata: b") == [ServerEvent("a"), ServerEvent("b")]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert events(b"data: a\xff\xe6\xbc\n\n") == [ServerEvent("a\ufffd\ufffd")]


def test_a_page_has_no_fields() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"<!doctype html>\n\n<p>Sign in\n\n") == []
    assert not decoder.fields_seen


def test_a_line_without_end_is_refused() -> None:
    decoder = EventDecoder(max_line=100)
    decoder.feed(b"data: " + b"x" * 90)
    with pytest.raises(NotAnEventStream):
        decoder.feed(b"x" * 90)


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), min_size=1),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 9),
)
def test_no_way_of_cutting_the_bytes_changes_the_events(texts: list[str], end: str, size: int) -> None:
    raw = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    parts = [raw[i : i + size] for i in range(0, len(raw), size)]
    assert [event.data for event in events(*parts)] == texts
