"""The provider against real HTTP: what goes out byte for byte, what comes back, and every way to fail."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.model_server import (
    ModelServer,
    Reply,
    call,
    cut,
    delta,
    error,
    html,
    say,
    silence,
    sse,
    stall,
    status,
)

from hermes_nb.agent.body import head, join
from hermes_nb.agent.fold import Fold
from hermes_nb.agent.provider import Endpoint, Timeouts
from hermes_nb.agent.provider_openai import OpenAIProvider, warm
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import (
    AuthenticationFailed,
    Cancelled,
    ContentFiltered,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseInvalid,
    StreamBroken,
)
from hermes_nb.core.types import Prefix, Usage

KEY = "sk-test-0123456789abcdef"
SYSTEM = Prefix("p", b"", b'{"role":"system","content":"Be brief."}')
BODY = join(head("scripted-model"), SYSTEM, ['{"role":"user","content":"hé"}'])


@pytest.fixture(scope="module", autouse=True)
def _imported() -> None:
    warm().join()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([]) as one:
        yield one


def provider(server: ModelServer | str, **options: Any) -> OpenAIProvider:
    url = server if isinstance(server, str) else server.url
    key_env = options.pop("key_env", "TEST_KEY")
    environ = options.pop("environ", {"TEST_KEY": KEY})
    return OpenAIProvider(Endpoint(url, "scripted-model", key_env, "test"), environ=environ, **options)


def answer(one: OpenAIProvider, body: bytes = BODY) -> Fold:
    fold = Fold()
    for chunk in one.stream(body, Cancel()):
        fold.feed(chunk)
    fold.close()
    return fold


def test_the_body_arrives_as_the_bytes_that_were_given(server: ModelServer) -> None:
    server.enqueue(say("hello", chunks=3))
    fold = answer(provider(server))
    assert server.bodies == [BODY]
    assert (fold.text, fold.finish_reason, fold.usage) == ("hello", "stop", Usage(10, 5))
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"


def test_steps_share_one_connection(server: ModelServer) -> None:
    server.enqueue(say("a"), call("python", {"code": "1"}), say("b"))
    one, other = provider(server), provider(server)
    assert [answer(one).text, answer(other).tool_calls[0].name, answer(one).text] == ["a", "python", "b"]
    assert server.connections == 1


@pytest.mark.parametrize("piece", [1, 2, 7])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_split_characters_and_line_ends_are_put_together(server: ModelServer, piece: int, newline: bytes) -> None:
    server.enqueue(say("naïve 漢字 🙂", piece=piece, newline=newline))
    assert answer(provider(server)).text == "naïve 漢字 🙂"


def test_an_answer_that_came_whole_although_a_stream_was_asked_for_is_read(server: ModelServer) -> None:
    message = {"role": "assistant", "content": "whole"}
    server.enqueue(status(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
    fold = answer(provider(server))
    assert (fold.text, fold.finish_reason) == ("whole", "stop")


FAILURES = [
    (error(401, "Incorrect API key provided: " + KEY, "invalid_api_key"), AuthenticationFailed, "TEST_KEY", False),
    (error(403, "no access"), AuthenticationFailed, "TEST_KEY", False),
    (error(404, "The model `scripted-model` does not exist", "model_not_found"), ModelNotFound, "mode", False),
    (error(422, "bad field"), RequestRejected, "bad field", False),
    (error(400, "too long", "context_length_exceeded"), ContextOverflow, "window", False),
    (error(500, "Context size has been exceeded."), ContextOverflow, "window", False),
    (
        status(400, {"error": {"code": 400, "message": "no", "type": "exceed_context_size_error", "n_ctx": 4096}}),
        ContextOverflow,
        "window",
        False,
    ),
    (error(400, "Error"), RequestRejected, "status 400", False),
    (
        status(400, {"error": {"message": "Unsupported value: 'ultra'", "code": "invalid_reasoning_effort",
                               "param": "reasoning.effort"}}),
        RequestRejected,
        "reasoning.effort",
        False,
    ),
    (status(413, b"<html>Request Entity Too Large</html>"), ContextOverflow, "too large", False),
    (error(429, "slow down", headers={"Retry-After": "7"}), RateLimited, "wait 7 s", True),
    (error(429, "You exceeded your current quota", "insufficient_quota"), QuotaExhausted, "credit", False),
    (error(402, "pay"), QuotaExhausted, "credit", False),
    (error(500, "boom"), ProviderUnavailable, "status 500", True),
    (error(503, "busy", headers={"Retry-After": "3"}), RateLimited, "overloaded", True),
    (status(502, b"<html><h1>Bad Gateway</h1></html>"), ProviderUnavailable, "Bad Gateway", True),
    (error(400, "flagged", "content_filter"), ContentFiltered, "filter", False),
    (html(), ResponseInvalid, "web page", False),
    (status(200, {}), ResponseInvalid, "no chat completion", False),
    (status(200, b""), ResponseInvalid, "nothing", True),
    (status(200, b"not json"), ResponseInvalid, "not json", False),
    (sse(), ResponseInvalid, "nothing", True),
    (sse(end="clean"), ResponseInvalid, "nothing", True),
    (sse({}), ResponseInvalid, "nothing", True),
    (sse(b"data: {nonsense\n\n"), ResponseInvalid, "malformed", True),
    (sse(b"data: [1]\n\n"), ResponseInvalid, "malformed", True),
    (sse({"error": {"message": "Provider returned error"}}), ProviderUnavailable, "Provider returned", True),
    (sse({"error": {"message": "no", "code": 429}}), RateLimited, "too many", True),
    (sse(b'event: error\ndata: {"message": "overloaded"}\n\n'), ProviderUnavailable, "overloaded", True),
    (sse({"object": "error", "message": "maximum context length is 10", "code": 400}), ContextOverflow, "", False),
    (sse(delta({"content": "x"}), {"error": {"message": "lost the worker"}}), StreamBroken, "lost", True),
    (cut(how="hangup"), ProviderUnavailable, "cannot be reached", True),
    (cut("some text", how="fin"), StreamBroken, "broke in the middle", True),
    (cut("some text", how="reset"), StreamBroken, "broke in the middle", True),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "words", "retryable"), FAILURES)
def test_each_failure_has_its_class_and_says_what_to_do(
    server: ModelServer, reply: Reply, kind: type[ProviderError], words: str, retryable: bool
) -> None:
    server.enqueue(reply)
    with pytest.raises(ProviderError) as caught:
        answer(provider(server))
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert caught.value.retryable is retryable
    assert len(server.requests) == 1, "the client must not retry by itself"


def test_a_missing_model_is_answered_with_the_models_that_are_there() -> None:
    with (
        ModelServer([error(404, "model not found")], models=["alpha", "beta"]) as server,
        pytest.raises(ModelNotFound, match="It serves: alpha, beta"),
    ):
        answer(provider(server))


def test_a_refused_connection_names_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://user:hidden@127.0.0.1:{unused.getsockname()[1]}/v1?token=hidden"
        with pytest.raises(ProviderUnavailable, match="Is the server running") as caught:
            answer(provider(url))
    assert "127.0.0.1" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_stream_without_a_finish_ends_quietly_and_has_no_finish_reason(server: ModelServer) -> None:
    server.enqueue(cut("half an ans", how="clean"))
    fold = answer(provider(server))
    assert (fold.text, fold.finish_reason) == ("half an ans", None)


def test_a_server_that_stays_open_after_the_finish_does_not_hold_the_answer(server: ModelServer) -> None:
    server.enqueue(say("all of it", end="stall"))
    fold = answer(provider(server, timeouts=Timeouts(idle=30, after_finish=0.2)))
    assert (fold.text, fold.finish_reason) == ("all of it", "stop")


def test_a_break_after_the_finish_does_not_spoil_the_answer(server: ModelServer) -> None:
    server.enqueue(say("all of it", end="reset"), say("next"))
    one = provider(server)
    assert answer(one).text == "all of it"
    assert answer(one).text == "next"


@pytest.mark.parametrize("reply", [silence(ping=0.05), silence(), stall("some", ping=0.05)])
def test_pings_do_not_hide_a_dead_stream(server: ModelServer, reply: Reply) -> None:
    """Case 081."""
    server.enqueue(reply)
    with pytest.raises(ProviderError, match=r"sent nothing for 0\.3 s") as caught:
        answer(provider(server, timeouts=Timeouts(idle=0.3)))
    assert caught.value.retryable
    server.wait(lambda s: s.disconnects == 1)


def test_a_slow_consumer_is_no_silence(server: ModelServer) -> None:
    server.enqueue(say("abc", chunks=3, pause=0.1))
    texts = []
    for chunk in provider(server, timeouts=Timeouts(idle=0.25)).stream(BODY, Cancel()):
        threading.Event().wait(0.3)
        texts.append(chunk)
    assert len(texts) == 6


def test_the_total_limit_ends_a_stream_that_never_ends(server: ModelServer) -> None:
    server.enqueue(say("x" * 1000, chunks=1000, pause=0.02))
    with pytest.raises(StreamBroken, match=r"longer than 0\.5 s"):
        answer(provider(server, timeouts=Timeouts(idle=5, total=0.5)))


@pytest.mark.parametrize("reply", [silence(), stall("begun"), silence(ping=0.05)])
def test_cancellation_arrives_at_once_while_the_model_is_silent(server: ModelServer, reply: Reply) -> None:
    server.enqueue(reply, say("after"))
    cancel = Cancel()
    one = provider(server)
    outcome: list[BaseException] = []

    def run() -> None:
        try:
            for _ in one.stream(BODY, cancel):
                pass
        except Cancelled as exc:
            outcome.append(exc)

    worker = threading.Thread(target=run)
    worker.start()
    server.wait(lambda s: s.stalled == 1)
    began = time.monotonic()
    cancel.cancel()
    worker.join(10)
    assert outcome
    assert time.monotonic() - began < 5, "it must not wait for the idle limit of minutes"
    server.wait(lambda s: s.disconnects == 1)
    assert answer(one).text == "after"


def test_a_cancelled_switch_sends_nothing(server: ModelServer) -> None:
    cancel = Cancel()
    cancel.cancel()
    with pytest.raises(Cancelled):
        list(provider(server).stream(BODY, cancel))
    assert not server.requests


def test_a_consumer_that_leaves_closes_the_stream(server: ModelServer) -> None:
    server.enqueue(stall("some text"))
    stream = provider(server).stream(BODY, Cancel())
    next(stream)
    stream.close()
    server.wait(lambda s: s.disconnects == 1)


def test_many_streams_run_at_once(server: ModelServer) -> None:
    server.enqueue(*(say(f"{i} " * 50, chunks=50) for i in range(8)))
    one = provider(server)
    texts: list[str] = []
    workers = [threading.Thread(target=lambda: texts.append(answer(one).text)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    assert sorted(texts) == sorted(f"{i} " * 50 for i in range(8))


@pytest.mark.parametrize(
    ("environ", "words"),
    [({}, "TEST_KEY.*is not set"), ({"TEST_KEY": " "}, "is not set"), ({"TEST_KEY": "ké\ny1234"}, "characters")],
)
def test_an_unusable_key_is_told_before_anything_is_sent(
    server: ModelServer, environ: dict[str, str], words: str
) -> None:
    with pytest.raises(AuthenticationFailed, match=words) as caught:
        answer(provider(server, environ=environ))
    assert "y1234" not in str(caught.value)
    assert not server.requests


def test_the_key_is_read_at_each_call_and_may_change(server: ModelServer) -> None:
    server.enqueue(say("a"), say("b"))
    environ = {"TEST_KEY": "first-key"}
    one = provider(server, environ=environ)
    answer(one)
    environ["TEST_KEY"] = "second-key"
    answer(one)
    assert [r.headers["authorization"] for r in server.requests] == ["Bearer first-key", "Bearer second-key"]


def test_no_key_appears_in_errors_reprs_tracebacks_and_logs(
    server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    import traceback

    odd = "Zq9-internal-gateway-key"
    server.enqueue(error(401, f"Wrong key {odd} for this"), error(400, f"also {odd}"), say("fine"))
    one = provider(server, environ={"TEST_KEY": odd})
    with caplog.at_level(logging.DEBUG):
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                answer(one)
            text = "".join(traceback.format_exception(caught.value))
            assert odd not in text + repr(one)
        answer(one)
    assert odd not in caplog.text
    assert server.url not in "".join(r.getMessage() for r in caplog.records if r.levelno >= logging.INFO)
    assert "hé" not in caplog.text, "message text is not logged either"


def test_proxies_of_the_environment_are_not_asked_for_this_machine(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    server.enqueue(say("direct"))
    assert answer(provider(server)).text == "direct"


def test_importing_the_module_loads_no_client_library() -> None:
    code = "import sys, hermes_nb.agent.provider_openai; print([m for m in sys.modules if m in ('openai', 'httpx2')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_is_refused_for_an_old_provider_and_works_for_a_new_one(server: ModelServer) -> None:
    server.enqueue(say("parent"), say("child"), say("parent again"))
    code = f"""
import os, sys, warnings
from hermes_nb.agent.provider import Endpoint
from hermes_nb.agent.provider_openai import OpenAIProvider
from hermes_nb.agent.fold import Fold
from hermes_nb.core.cancel import Cancel
from hermes_nb.core.errors import ProviderError
warnings.simplefilter("ignore", DeprecationWarning)
def ask(provider):
    fold = Fold()
    for chunk in provider.stream({BODY!r}, Cancel()):
        fold.feed(chunk)
    return fold.text
endpoint = Endpoint({server.url!r}, "m", None, "test")
old = OpenAIProvider(endpoint)
print(ask(old), flush=True)
pid = os.fork()
if pid == 0:
    try:
        ask(old)
    except ProviderError as exc:
        print("refused" if "fork" in str(exc) else exc, flush=True)
    print(ask(OpenAIProvider(endpoint)), flush=True)
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(ask(old), flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[:4] == ["parent", "refused", "child", "parent again"], done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_an_interpreter_that_ends_during_a_stream_ends_cleanly(server: ModelServer) -> None:
    server.enqueue(stall("text"))
    code = f"""
from hermes_nb.agent.provider import Endpoint
from hermes_nb.agent.provider_openai import OpenAIProvider
from hermes_nb.core.cancel import Cancel
stream = OpenAIProvider(Endpoint({server.url!r}, "m", None, "test")).stream({BODY!r}, Cancel())
print(next(stream)["choices"][0]["delta"])
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    server.wait(lambda s: s.disconnects == 1)


def test_a_body_without_its_end_is_a_prefix_of_the_next_body(server: ModelServer) -> None:
    server.enqueue(say("one"), say("two"))
    wires = ['{"role":"user","content":"a"}']
    one = provider(server)
    first = answer(one, join(head("m"), SYSTEM, wires))
    wires += [json.dumps(first.wire()), '{"role":"user","content":"b"}']
    answer(one, join(head("m"), SYSTEM, wires))
    assert server.bodies[1].startswith(server.bodies[0].removesuffix(b"]}"))
