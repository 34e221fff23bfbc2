"""Words and shapes of errors that no scripted server is needed for."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_nb.agent.classify import (
    OUTPUT_LIMIT,
    from_error,
    from_finish,
    from_status,
    is_safe_cause,
    redact,
    retry_after,
)
from hermes_nb.agent.provider import Endpoint, shown_url
from hermes_nb.core.errors import (
    AuthenticationFailed,
    ContentFiltered,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
)

HERE = Endpoint("https://api.example.com/v1", "m", "SOME_KEY", "example")


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens (8000 in the messages, "
        "1300 in the completion).",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size, try increasing it",
        "Input is too long for requested model.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed: too many tokens",
    ],
)
@pytest.mark.parametrize("status", [400, 500])
def test_overflow_is_told_by_its_words_under_any_status(text: str, status: int) -> None:
    """Case 083."""
    assert type(from_status(status, {"message": text}, HERE)) is ContextOverflow


@pytest.mark.parametrize(
    "text",
    [
        "maximum context length is 65536 tokens, you requested 65536 output tokens",
        "This model's maximum context length is 65536 tokens. However, you requested 65556 tokens (20 in the messages, "
        "65536 in the completion).",
    ],
)
def test_too_much_output_asked_for_is_no_overflow(text: str) -> None:
    """Case 091."""
    error = from_status(400, {"message": text}, HERE)
    assert (type(error), error.code) == (RequestRejected, OUTPUT_LIMIT)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            [{"error": {"code": 400, "message": "API key not valid", "status": "INVALID_ARGUMENT"}}],
            AuthenticationFailed,
        ),
        (404, "404 page not found", ModelNotFound),
        (400, {"error": "model 'x' not found, try pulling it first"}, ModelNotFound),
        (403, {"error": {"message": "Project does not have access to model x: model_not_found"}}, ModelNotFound),
        (400, {"error": {"message": "The response was filtered due to content management policy"}}, ContentFiltered),
        (429, {"error": {"type": "insufficient_quota", "message": "no"}}, QuotaExhausted),
        (429, None, RateLimited),
        (529, b"overloaded", ProviderUnavailable),
        (408, "", ProviderUnavailable),
        (418, {"detail": [{"msg": "odd"}]}, RequestRejected),
    ],
)
def test_bodies_of_any_shape_are_read(status: int, body: Any, kind: type[ProviderError]) -> None:
    assert type(from_status(status, body, HERE)) is kind


def test_upstream_words_are_shown() -> None:
    body = {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "model m is busy"}}}
    error = from_error(body, HERE)
    assert isinstance(error, RateLimited)
    assert "model m is busy" in str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("Provider returned error", ProviderUnavailable),
        ({"error": {"code": "rate_limit_exceeded", "message": "x"}}, RateLimited),
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, ProviderUnavailable),
        ({"error": {"type": "invalid_request_error", "message": "bad field"}}, RequestRejected),
        ({"error": {"type": "authentication_error", "message": "x"}}, AuthenticationFailed),
        ({}, ProviderUnavailable),
    ],
)
def test_error_objects_without_a_status_are_told_by_their_words(error: Any, kind: type[ProviderError]) -> None:
    """Case 088: what is unknown may be tried again."""
    assert type(from_error(error, HERE)) is kind


@pytest.mark.parametrize("reason", ["network_error", "network-error", "error"])
def test_an_error_word_as_finish_reason_may_be_tried_again(reason: str) -> None:
    """Case 080."""
    error = from_finish(reason, HERE)
    assert isinstance(error, ProviderUnavailable)
    assert error.retryable


def test_finish_reasons_that_are_no_errors() -> None:
    assert isinstance(from_finish("content_filter", HERE), ContentFiltered)
    assert [from_finish(r, HERE) for r in (None, "stop", "length", "tool_calls", "eos")] == [None] * 5


def test_what_looks_like_a_key_never_shows() -> None:
    said = redact(
        "Incorrect API key provided: sk-proj-abcdef***wxyz, Bearer abcdefgh123, and plain-secret", "plain-secret"
    )
    assert "abcdef" not in said
    assert "plain-secret" not in said
    assert len(redact("x" * 5000)) < 500
    inner = ValueError("header Bearer abcdefgh123")
    outer = RuntimeError("odd")
    outer.__cause__ = inner
    assert not is_safe_cause(outer, "")
    assert is_safe_cause(RuntimeError("odd"), "plain-secret")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, None), ({"retry-after": "7"}, 7.0), ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
     ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None), ({"retry-after": "nan"}, None),
     ({"retry-after": "-1"}, None)],
)  # fmt: skip
def test_the_wish_of_the_server_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_shown_addresses_hold_no_secrets() -> None:
    assert shown_url("https://user:pass@Host.example:8443/v1/?key=x#y") == "https://host.example:8443/v1"
    assert shown_url("http://[::1]:99999/v1") == "http://[::1]/v1"
