"""Engine states: kept whole or not at all, ignored when damaged, dropped by size; slots of a foreign server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.agent.body import head, join
from hermes_nb.agent.embedded import external
from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.agent.embedded.slot_keeping import SlotKeeping, prefix_of
from hermes_nb.agent.embedded.states import States, state_name
from hermes_nb.agent.provider import Endpoint
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ProviderUnavailable
from hermes_nb.store.prefixes import make_prefix
from tests.support.llama_server import FakeLlama, LlamaScript


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeLlama]:
    with FakeLlama(tmp_path) as server:
        yield server


def test_what_was_saved_is_restored(fake: FakeLlama) -> None:
    states, server = States(fake.folder), LlamaServer(fake.url, None)
    assert states.restore(server, "one") is None
    assert states.save(server, "one") is None
    assert states.restore(server, "one") == 7
    assert sorted(path.name for path in fake.folder.iterdir()) == ["one.seal", "one.state"]


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "no seal", "bad seal", "no state"])
def test_a_damaged_state_never_reaches_the_engine_and_is_made_again(fake: FakeLlama, damage: str) -> None:
    states, server = States(fake.folder), LlamaServer(fake.url, None)
    states.save(server, "one")
    state, seal = fake.folder / "one.state", fake.folder / "one.seal"
    match damage:
        case "flip":
            state.write_bytes(b"statestatE")
        case "cut":
            state.write_bytes(b"stat")
        case "empty":
            state.write_bytes(b"")
        case "no seal":
            seal.unlink()
        case "bad seal":
            seal.write_bytes(b"\xff[")
        case _:
            state.unlink()
    asked = len(fake.requests)
    assert states.restore(server, "one") is None
    assert len(fake.requests) == asked
    assert states.save(server, "one") is None
    assert states.restore(server, "one") == 7


def test_a_state_that_the_engine_refuses_is_dropped(fake: FakeLlama) -> None:
    states, server = States(fake.folder), LlamaServer(fake.url, None)
    states.save(server, "one")
    fake.script = LlamaScript(status=400, body={"error": {"message": "wrong version", "code": 400}})
    assert states.restore(server, "one") is None
    assert list(fake.folder.iterdir()) == []


def test_a_short_write_is_told_and_leaves_nothing(fake: FakeLlama) -> None:
    fake.script = LlamaScript(write_short=True)
    why = States(fake.folder).save(LlamaServer(fake.url, None), "one")
    assert why is not None
    assert "10 bytes expected, 5 written" in why
    assert list(fake.folder.iterdir()) == []


def test_a_refused_save_is_told(fake: FakeLlama) -> None:
    fake.script = LlamaScript(saving=False)
    assert "--slot-save-path" in (States(fake.folder).save(LlamaServer(fake.url, None), "one") or "")


def test_the_longest_unused_states_go_first(fake: FakeLlama) -> None:
    states, server = States(fake.folder, limit=25), LlamaServer(fake.url, None)
    for age, name in enumerate(("old", "used", "new")):
        states.save(server, name)
        os.utime(fake.folder / f"{name}.state", (1000 + age, 1000 + age))
        if name == "used":
            (fake.folder / "left-over.part").write_bytes(b"x")
            os.utime(fake.folder / "left-over.part", (1000, 1000))
    assert {path.name for path in fake.folder.iterdir()} == {"used.state", "used.seal", "new.state", "new.seal"}
    states.restore(server, "used")
    states.save(server, "newest")
    assert {path.stem for path in fake.folder.glob("*.state")} == {"used", "newest"}


def test_one_state_bigger_than_the_limit_is_still_kept(fake: FakeLlama) -> None:
    states, server = States(fake.folder, limit=1), LlamaServer(fake.url, None)
    assert states.save(server, "one") is None
    assert states.restore(server, "one") == 7


def test_the_name_depends_on_every_part() -> None:
    names = {state_name("p", "w", "1"), state_name("p", "w", "2"), state_name("p", "w1", ""), state_name("q", "w", "1")}
    assert len(names) == 4
    assert state_name("p", "w", "1") in names


PROPS = {"model_path": "m.gguf", "build_info": "b1", "default_generation_settings": {"n_ctx": 4096}}


def test_slots_of_a_llama_cpp_server_are_kept_and_restored(fake: FakeLlama) -> None:
    fake.script = LlamaScript(props=PROPS)
    first = external.detect(fake.url + "/v1/", None)
    assert first is not None
    assert first.restore("prefix") is None
    assert first.save("prefix")
    assert first.save("prefix")
    again = external.detect(fake.url + "/v1", None)
    assert again is not None
    assert again.restore("prefix") == 7
    assert again.restore("other") is None
    assert sum("action=save" in path for path, _ in fake.requests) == 1


def test_a_server_without_slot_saving_is_asked_once(fake: FakeLlama) -> None:
    fake.script = LlamaScript(props=PROPS, saving=False)
    slots = external.detect(fake.url, None)
    assert slots is not None
    assert not slots.save("prefix")
    asked = len(fake.requests)
    assert not slots.save("prefix")
    assert slots.restore("prefix") is None
    assert len(fake.requests) == asked


@pytest.mark.parametrize(
    "script", [LlamaScript(), LlamaScript(props={"model_path": 1}), LlamaScript(status=404, body=b"<html>")]
)
def test_another_kind_of_server_has_no_slots(fake: FakeLlama, script: LlamaScript) -> None:
    fake.script = script
    assert external.detect(fake.url, None) is None


@pytest.mark.parametrize("url", ["", "http://", "nonsense", "http://127.0.0.1:99999/v1", "http://[::1/v1"])
def test_an_unreadable_address_has_no_slots(url: str) -> None:
    assert external.detect(url, None) is None


class Answering:
    """The inner provider: answers one chunk, or breaks."""

    endpoint = Endpoint("http://127.0.0.1/v1", "m", None, "llama.cpp")
    broken = False

    def stream(self, body: bytes, cancel: Cancel) -> Iterator[dict[str, Any]]:
        if self.broken:
            raise ProviderUnavailable("gone")
        yield {"choices": []}

    def close(self) -> None:
        pass


def body_of(*messages: str) -> bytes:
    return join(head("m"), make_prefix(b"", b'{"role":"system","content":"s]}"}'), messages)


def test_the_users_own_llama_cpp_reads_a_prefix_once(fake: FakeLlama) -> None:
    fake.script = LlamaScript(props=PROPS)
    inner = Answering()
    for message in ("one", "two"):
        # Each round stands for a new process; the server keeps its slots in a folder.
        provider = SlotKeeping(inner, lambda: external.detect(fake.url + "/v1", None))
        body = body_of(json.dumps({"role": "user", "content": message}))
        assert list(provider.stream(body, Cancel())) == [{"choices": []}]
        assert list(provider.stream(body, Cancel())) == [{"choices": []}]
    acts = [path.partition("action=")[2] for path, _ in fake.requests if "action=" in path]
    assert acts == ["restore", "save", "restore"]


def test_an_answer_that_broke_saves_nothing_and_its_error_arrives(fake: FakeLlama) -> None:
    fake.script = LlamaScript(props=PROPS)
    inner = Answering()
    inner.broken = True
    provider = SlotKeeping(inner, lambda: external.detect(fake.url, None))
    with pytest.raises(ProviderUnavailable):
        list(provider.stream(body_of(), Cancel()))
    assert not [path for path, _ in fake.requests if "action=save" in path]


def test_the_prefix_of_a_body_ends_with_its_system_message() -> None:
    first, second = body_of('{"role":"user","content":"a"}'), body_of('{"role":"user","content":"b"}')
    assert prefix_of(first) == prefix_of(second)
    assert str(prefix_of(first)).endswith('"s]}"}')
    assert prefix_of(b"no body") is None
