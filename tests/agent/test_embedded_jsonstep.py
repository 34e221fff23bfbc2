"""The engine's event stream becomes chat-completion chunks, and its failures our errors."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes_nb.agent.embedded.jsonstep import chunks
from hermes_nb.agent.embedded.llama_http import LlamaServer
from hermes_nb.core import errors
from hermes_nb.core.cancel import Cancel
from tests.support.llama_server import FakeLlama, LlamaScript, words

VERBS = {"run": "python", "list": "variables"}


def streamed(folder: Path, script: LlamaScript, cancel: Cancel | None = None, **more: Any) -> list[dict[str, Any]]:
    with FakeLlama(folder, script) as fake:
        server = LlamaServer(fake.url, "key")
        events = server.stream("/completion", {"stream": True}, timeout=20, cancel=cancel or Cancel())
        return list(chunks(events, model="m", verbs=VERBS, **more))


def text_of(found: list[dict[str, Any]]) -> str:
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in found if one["choices"])


def finish_of(found: list[dict[str, Any]]) -> list[str]:
    return [reason for one in found if one["choices"] and (reason := one["choices"][0]["finish_reason"])]


def test_words_arrive_piece_by_piece_with_finish_and_usage(tmp_path: Path) -> None:
    found = streamed(tmp_path, LlamaScript(words("Hel", "lo {", "日本", cached=90, prompt=10)))
    assert [one["choices"][0]["delta"].get("content") for one in found[:4]] == ["", "Hel", "lo {", "日本"]
    assert finish_of(found) == ["stop"]
    assert found[-1]["choices"] == []
    assert found[-1]["usage"]["prompt_tokens"] == 100
    assert found[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 90}
    assert {one["object"] for one in found} == {"chat.completion.chunk"}


def test_a_call_is_one_whole_tool_call(tmp_path: Path) -> None:
    found = streamed(tmp_path, LlamaScript(words('{"', 'run": {"co', 'de": "print(\\"ü\\")"}', "}")))
    (call,) = [
        one["choices"][0]["delta"]["tool_calls"] for one in found[:-1] if "tool_calls" in one["choices"][0]["delta"]
    ]
    assert call[0]["function"]["name"] == "python"
    assert json.loads(call[0]["function"]["arguments"]) == {"code": 'print("ü")'}
    assert call[0]["index"] == 0
    assert call[0]["id"]
    assert finish_of(found) == ["tool_calls"]
    assert text_of(found) == ""


def test_a_call_cut_by_the_limit_is_shown_and_not_run(tmp_path: Path) -> None:
    found = streamed(tmp_path, LlamaScript(words('{"run": {"code": "x', stop_type="limit")))
    assert finish_of(found) == ["length"]
    assert text_of(found) == '{"run": {"code": "x'
    assert not any("tool_calls" in one["choices"][0]["delta"] for one in found[:-1])


@pytest.mark.parametrize("said", ['{"fly": {}}', '{"run": {}, "list": {}}', "{", '{"run"}'])
def test_what_is_no_known_call_is_text(tmp_path: Path, said: str) -> None:
    found = streamed(tmp_path, LlamaScript(words(said)))
    assert finish_of(found) == ["stop"]
    assert text_of(found) == said


def test_a_repetition_ends_the_answer_with_true_usage(tmp_path: Path) -> None:
    pieces = words("It is a number. ", *["It is a number. "] * 90, stop_type="limit", cached=90, prompt=10)
    for count, event in enumerate(pieces[:-1], start=1):
        event["timings"] = {"cache_n": 90, "prompt_n": 10, "predicted_n": count}
    found = streamed(tmp_path, LlamaScript(pieces), own_limit=True, spent=1)
    assert text_of(found) == "It is a number."
    assert finish_of(found) == ["stop"]
    assert found[-1]["usage"]["prompt_tokens"] == 100
    assert found[-1]["usage"]["completion_tokens"] == 3


def test_our_own_limit_ends_after_a_whole_sentence_and_the_callers_is_told(tmp_path: Path) -> None:
    script = LlamaScript(words("It is good. ", "It is ve", stop_type="limit"))
    found = streamed(tmp_path, script, own_limit=True)
    assert (text_of(found), finish_of(found)) == ("It is good.", ["stop"])
    found = streamed(tmp_path, script)
    assert (text_of(found), finish_of(found)) == ("It is good. It is ve", ["length"])


def test_an_empty_answer_still_finishes(tmp_path: Path) -> None:
    assert finish_of(streamed(tmp_path, LlamaScript(words()))) == ["stop"]


def test_a_stream_that_ends_early_is_broken(tmp_path: Path) -> None:
    with pytest.raises(errors.StreamBroken, match="ended early"):
        streamed(tmp_path, LlamaScript(words("Hel", "lo")[:-1]))


OVERFLOW = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 5001, "n_ctx": 4096}}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, OVERFLOW, errors.ContextOverflow),
        (400, {"error": {"message": "bad grammar", "code": 400}}, errors.RequestRejected),
        (401, {"error": {"message": "Invalid API Key", "code": 401}}, errors.AuthenticationFailed),
        (404, {"error": "File Not Found"}, errors.ModelNotFound),
        (500, b"<html>", errors.ProviderUnavailable),
        (503, {"error": {"message": "Loading model", "code": 503}}, errors.ProviderUnavailable),
    ],
)
def test_a_refusal_becomes_our_error(tmp_path: Path, status: int, body: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        streamed(tmp_path, LlamaScript(status=status, body=body))


def test_a_full_window_says_how_full_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.ContextOverflow, match=r"5001 tokens.*4096.*%hermes new"):
        streamed(tmp_path, LlamaScript(status=400, body=OVERFLOW))


@pytest.mark.parametrize("line", [b"data: {no json", b"data: []", b"data: \xff\xfe"])
def test_what_is_no_json_object_is_an_invalid_response(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(errors.ResponseInvalid):
        streamed(tmp_path, LlamaScript([line]))


def test_an_error_event_in_the_stream_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(errors.ContextOverflow):
        streamed(tmp_path, LlamaScript([{"content": "x", "stop": False}, OVERFLOW]))
    with pytest.raises(errors.ContextOverflow):
        streamed(tmp_path, LlamaScript([b"error: " + json.dumps(OVERFLOW["error"]).encode()]))


def test_nobody_listening_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = LlamaServer(f"http://127.0.0.1:{taken.getsockname()[1]}", None)
        with pytest.raises(errors.ProviderUnavailable):
            server.get("/health")


@pytest.mark.parametrize("hang_after", [0, 1])
def test_a_cancel_ends_a_silent_stream_at_once(tmp_path: Path, hang_after: int) -> None:
    cancel = Cancel()
    with FakeLlama(tmp_path, LlamaScript(words("a", "b"), hang_after=hang_after)) as fake:

        def interrupt() -> None:
            fake.silent.wait(10)
            cancel.cancel()

        thread = threading.Thread(target=interrupt)
        thread.start()
        server = LlamaServer(fake.url, None)
        with pytest.raises(errors.Cancelled):
            list(server.stream("/completion", {"stream": True}, timeout=60, cancel=cancel))
        thread.join()


def test_a_cancelled_request_is_never_sent(tmp_path: Path) -> None:
    cancel = Cancel()
    cancel.cancel()
    with FakeLlama(tmp_path) as fake:
        with pytest.raises(errors.Cancelled):
            LlamaServer(fake.url, None).post("/completion", {}, cancel=cancel)
        assert fake.requests == []


def test_the_key_is_not_shown() -> None:
    assert "s3cret" not in repr(LlamaServer("http://127.0.0.1:1", "s3cret"))
