"""The parts of a frozen system message, found again for people."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hermes_nb.agent.preview import system_text
from hermes_nb.prompt.builder import IDENTITY, SHORT_IDENTITY, PromptParts, build_prefix, split_parts
from hermes_nb.store.memory import MemoryStore


def built(memory: str, identity: str = IDENTITY, *, short: bool = False) -> str:
    parts = PromptParts(b"", ("memory",), identity, memory, date(2026, 11, 30))
    return system_text(build_prefix(parts, short=short))


@pytest.mark.parametrize("entries", [(), ("memory",), ("user",), ("memory", "user")])
def test_the_parts_join_to_the_message_again(tmp_path: Path, entries: tuple[str, ...]) -> None:
    memory = MemoryStore(tmp_path)
    for target in entries:
        memory.add(target, f"This session began on {target}\n\nwith a paragraph")
    content = built(memory.snapshot())
    parts = split_parts(content)
    assert "\n\n".join(parts.values()) == content
    assert list(parts) == ["identity", "rules", *entries, "date"]
    assert parts["identity"] == IDENTITY
    assert parts["date"] == "This session began on Monday, 2026-11-30."


def test_the_short_message_has_two_parts() -> None:
    assert list(split_parts(built("", SHORT_IDENTITY, short=True))) == ["identity", "date"]
    assert split_parts("") == {"identity": ""}
