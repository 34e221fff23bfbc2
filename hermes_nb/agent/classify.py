"""Turns what an endpoint or its client did into the error tree, with words that say what to do.

Works on the shape of exceptions (status, code, class names), not on their classes, so that it needs no client
library and fits all versions of it. Nothing here prints a key, also not one that a server echoes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from hermes_nb.agent.provider import Endpoint, shown_url
from hermes_nb.core.errors import (
    AuthenticationFailed,
    ContentFiltered,
    ContextOverflow,
    HermesError,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseInvalid,
    StreamBroken,
)
from hermes_nb.core.wirejson import clean_text

OUTPUT_LIMIT = "output_limit"
"""``code`` of a RequestRejected that asks for less output, not for a shorter conversation."""
TIMEOUT = "timeout"

_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|billing|payment required|insufficient (?:balance|credits?|funds)"
    r"|credit balance|out of credits",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (?:size|length|window)"
    r"[^.]{0,60}(?:exceed|too (?:long|large|small)|overflow)|exceeds? (?:the )?(?:available |model'?s? |maximum )?"
    r"(?:context|input token)|prompt (?:is|was) too long|input is too long|too many (?:input |prompt )?tokens"
    r"|input length .{0,40}exceed|reduce the length of (?:the|your) (?:messages|prompt|input)|string_above_max_length",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|(?:model|deployment)\b.{0,120}(?:not found|does ?n[o']t exist|not exist|not available|unknown"
    r"|is not a valid|not supported|no endpoints)|(?:no such|unknown|invalid) model|not a valid model"
    r"|no endpoints found for",
    re.IGNORECASE | re.DOTALL,
)
_BAD_KEY = re.compile(r"invalid_api_key|api key (?:not valid|is invalid|expired)|invalid api key", re.IGNORECASE)
_FILTERED = re.compile(r"content_filter|content_policy|content management policy|safety system", re.IGNORECASE)
_OVERLOADED = re.compile(r"overloaded|temporarily|try again|timed? ?out|unavailable|provider returned error|upstream"
                         r"|internal (?:server )?error|server_error|api_error|network", re.IGNORECASE)  # fmt: skip
_RATE = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|key|gsk|xai|hf)[-_][A-Za-z0-9_\-*.]{6,}|\bBearer [A-Za-z0-9_\-*.]{6,}|\bAIza[\w-]{10,}"
    # A word after "key" is a key when it has a digit: "API key provided" is none.
    r"|(?<=\bkey )(?=[A-Za-z_\-*.]*[0-9])[A-Za-z0-9_\-*.]{6,}"
)
_TAGS = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def classify(exc: BaseException, endpoint: Endpoint, *, began: bool = False, key: str = "") -> ProviderError:
    """Return the error of our tree for what the client raised; ``began``: chunks had arrived before.

    The caller raises it ``from exc`` when ``is_safe_cause`` holds.
    """
    if isinstance(exc, ProviderError):
        return exc
    status = getattr(exc, "status_code", None)
    names = {kind.__name__ for kind in type(exc).__mro__}
    if isinstance(status, int):
        headers = getattr(getattr(exc, "response", None), "headers", None)
        return from_status(status, _body(exc), endpoint, headers=headers, key=key)
    where = shown_url(endpoint.base_url)
    detail = redact(_cause(exc), key)
    if began:
        return StreamBroken(f"The connection to {where} broke in the middle of the answer ({detail}).")
    if names & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return ProviderUnavailable(
            f"{where} did not accept the connection in time. Check the address and the network.", code=TIMEOUT
        )
    if names & {"APIConnectionError", "TransportError", "OSError"} or _is_transport(exc):
        return _unreachable(endpoint, detail)
    if names & {"APIError", "OpenAIError"}:
        return from_error({"message": str(exc), "code": getattr(exc, "code", None)}, endpoint, key=key)
    if "InvalidURL" in names or "UnsupportedProtocol" in names:
        return RequestRejected(f"{where} is no usable base URL ({detail}). Set model.base_url to http(s)://host/v1.")
    return ResponseInvalid(f"{where} answered in a way that is not understood ({type(exc).__name__}: {detail}).")


def from_status(
    status: int, body: Any, endpoint: Endpoint, *, headers: Mapping[str, str] | None = None, key: str = ""
) -> ProviderError:
    """Return the error for an HTTP status and its body (parsed JSON, or text)."""
    code, _, text = _parts(body)
    said = redact(text, key)
    where = shown_url(endpoint.base_url)
    subject = f"{code} {text}"
    quoted = f" It said: {said}" if said else ""
    if (
        status == 401
        or _BAD_KEY.search(subject)
        or (status == 403 and not _FILTERED.search(subject) and not _NO_MODEL.search(subject))
    ):
        return AuthenticationFailed(f"{_refused_key(status, endpoint)}{quoted}", status=status, code=code)
    if status == 402 or (status == 429 and _QUOTA.search(subject)):
        return QuotaExhausted(
            f"The account at {where} has no credit or quota left; add credit or choose another model.{quoted}",
            status=status,
            code=code,
        )
    if status == 429:
        after = retry_after(headers)
        hint = f" It asks to wait {after:.0f} s." if after else ""
        return RateLimited(f"{where} says: too many requests.{hint}{quoted}", code=code, retry_after=after)
    if status == 413:
        return ContextOverflow(f"The request is too large for {where}.{quoted}", status=status, code=code)
    if _FILTERED.search(subject) and status < 500:
        return ContentFiltered(f"The content filter of {where} refused the request.{quoted}", status=status, code=code)
    if _OVERFLOW.search(subject) and not _option_error(code):
        if asks_too_much_output(text):
            return RequestRejected(
                f"{where} cannot give that many output tokens; lower max_tokens.{quoted}",
                status=status,
                code=OUTPUT_LIMIT,
            )
        return ContextOverflow(
            f"The conversation no longer fits the window of {endpoint.model}.{quoted}", status=status, code=code
        )
    if status in (400, 403, 404, 422) and _NO_MODEL.search(subject):
        return ModelNotFound(
            f"{where} does not serve the model {endpoint.model!r}. Choose another with `%hermes model NAME`, or for "
            f"new sessions with HERMES_NB_MODEL.{quoted}",
            status=status,
            code=code,
        )
    if status == 404:
        return ModelNotFound(
            f"{where} has no model {endpoint.model!r}, or is not the base URL of a chat API (it usually ends in "
            f"/v1).{quoted}",
            status=status,
            code=code,
        )
    if status in (408, 409, 425) or status >= 500:
        after = retry_after(headers)
        if after:
            return RateLimited(
                f"{where} is overloaded (status {status}) and asks to wait {after:.0f} s.{quoted}",
                status=status,
                code=code,
                retry_after=after,
            )
        return ProviderUnavailable(
            f"{where} failed with status {status}; it may work later.{quoted}", status=status, code=code
        )
    return RequestRejected(f"{where} refused the request (status {status}).{quoted}", status=status, code=code)


def from_error(error: Any, endpoint: Endpoint, *, began: bool = False, key: str = "") -> ProviderError:
    """Return the error for an error object inside a stream or under status 200."""
    code, number, text = _parts(error)
    where = shown_url(endpoint.base_url)
    subject = f"{code} {text}"
    if number is not None and 400 <= number < 600:
        return from_status(number, error, endpoint, key=key)
    if _QUOTA.search(subject):
        return from_status(402, error, endpoint, key=key)
    if _RATE.search(subject):
        return from_status(429, error, endpoint, key=key)
    if _OVERFLOW.search(subject) or _NO_MODEL.search(subject) or _FILTERED.search(subject):
        return from_status(400, error, endpoint, key=key)
    if code in ("authentication_error", "invalid_api_key", "permission_error"):
        return from_status(401, error, endpoint, key=key)
    said = redact(text, key) or "no reason given"
    if began:
        return StreamBroken(f"{where} ended the answer with an error: {said}", code=code)
    if code in ("invalid_request_error", "bad_request") and not _OVERLOADED.search(text):
        return RequestRejected(f"{where} refused the request: {said}", code=code)
    return ProviderUnavailable(f"{where} answered with an error: {said}", code=code)


def from_finish(reason: str | None, endpoint: Endpoint) -> ProviderError | None:
    """Return the error that a finish reason stands for; None for one that is no error.

    ``length``, ``stop``, ``tool_calls`` and unknown words are no errors here, nor is None (a cut stream).
    """
    word = (reason or "").lower().replace("-", "_")
    where = shown_url(endpoint.base_url)
    if word in ("error", "network_error", "engine_error", "server_error", "abort", "aborted"):
        return ProviderUnavailable(f"{where} ended the answer with {reason!r}; it may work again.", code=reason)
    if word in ("content_filter", "content_filtered", "safety", "recitation", "prohibited_content", "refusal"):
        return ContentFiltered(
            f"The content filter of {where} ended the answer ({reason}). Say it in other words or choose another "
            "model.",
            code=reason,
        )
    return None


def timed_out(seconds: float, endpoint: Endpoint, *, began: bool, whole: bool = False) -> ProviderError:
    """Return the error of a stream that was silent for too long, or (``whole``) took too long altogether."""
    where = shown_url(endpoint.base_url)
    if whole:
        kind = StreamBroken if began else ProviderUnavailable
        return kind(f"The answer of {where} took longer than {seconds:g} s.", code=TIMEOUT)
    if began:
        return StreamBroken(f"{where} sent nothing for {seconds:g} s in the middle of the answer.", code=TIMEOUT)
    return ProviderUnavailable(f"{where} sent nothing for {seconds:g} s; it may be overloaded.", code=TIMEOUT)


def no_stream(text: str, endpoint: Endpoint, *, key: str = "") -> ProviderError:
    """Return the error of a 200 answer that is no chat completion."""
    where = shown_url(endpoint.base_url)
    start = text.lstrip()[:200]
    if start.startswith("<"):
        return ResponseInvalid(
            f"{where} answered with a web page, not with a model's answer. Is it the base URL of a chat API (it "
            "usually ends in /v1), and is no proxy or login page in between?"
        )
    if not start:
        error = ResponseInvalid(f"{where} answered with nothing.")
        error.retryable = True
        return error
    return ResponseInvalid(f"{where} answered with something that is no chat completion: {redact(start, key)}")


def malformed(line: str, endpoint: Endpoint, *, key: str = "") -> ProviderError:
    """Return the error of a data line that is no JSON object."""
    error = ResponseInvalid(
        f"{shown_url(endpoint.base_url)} sent a malformed piece of the answer: {redact(line[:120], key)!r}"
    )
    error.retryable = True
    return error


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Return the seconds that the server asks to wait, or None. A date instead of seconds is not read."""
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name) or "") * unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def asks_too_much_output(text: str) -> bool:
    """Whether an overflow message is about the output asked for, while the prompt itself is small.

    ``maximum context length is 65536 … requested 65536 output tokens``: shortening the talk would not help.
    """
    window = re.search(r"(?:maximum context length|context (?:window|length|size))\D{0,20}(\d+)", text, re.IGNORECASE)
    output = re.search(r"(\d+)\s+(?:output tokens|in the completion|for the completion|completion tokens)", text)
    if output is None:
        output = re.search(r"max(?:_completion)?_tokens\D{0,12}(\d+)", text)
    if window is None or output is None:
        return False
    prompt = re.search(r"(\d+)\s+(?:in the (?:messages|prompt)|input tokens|prompt tokens|of text input)", text)
    size = int(window.group(1))
    return int(prompt.group(1)) <= size // 2 if prompt else int(output.group(1)) >= size


def redact(text: str, key: str = "") -> str:
    """Return ``text`` in one bounded line, without ``key`` and without what looks like a key."""
    if len(key) >= 4:
        text = text.replace(key, "[key]")
    text = _KEY_LIKE.sub("[key]", text)
    text = " ".join(clean_text(text).split())
    return text if len(text) <= 400 else text[:400] + "…"


def is_safe_cause(exc: BaseException, key: str) -> bool:
    """Whether a traceback may show ``exc``: its text and its causes' hold no key."""
    seen: BaseException | None = exc
    while seen is not None:
        text = f"{seen} {seen!r}"
        if (len(key) >= 4 and key in text) or _KEY_LIKE.search(text):
            return False
        seen = seen.__cause__ or seen.__context__
    return True


def _refused_key(status: int, endpoint: Endpoint) -> str:
    where = shown_url(endpoint.base_url)
    if endpoint.key_env is None:
        return (
            f"{where} wants a key (status {status}), and none is configured. Put it into an environment variable "
            "and name that variable: `hermes-nb config set model.key_env NAME`."
        )
    return (
        f"{where} refused the key in {endpoint.key_env} (status {status}). Check that the variable holds a valid "
        "key for this endpoint and this model."
    )


def _unreachable(endpoint: Endpoint, detail: str) -> ProviderUnavailable:
    where = shown_url(endpoint.base_url)
    lowered = detail.lower()
    if "certificate" in lowered or "ssl" in lowered:
        error = ProviderUnavailable(
            f"No secure connection to {where} ({detail}). If a company proxy is in between, set SSL_CERT_FILE to "
            "its certificate.",
            code="tls",
        )
        error.retryable = False
        return error
    return ProviderUnavailable(f"{where} cannot be reached ({detail}). Is the server running at that address?")


def _is_transport(exc: BaseException) -> bool:
    return type(exc).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2", "anyio"}


def _cause(exc: BaseException) -> str:
    """Return the innermost reason: the client's own text is only ``Connection error.``"""
    seen, text = exc, str(exc) or type(exc).__name__
    for _ in range(8):
        inner = seen.__cause__ or seen.__context__
        if inner is None or isinstance(inner, HermesError):
            break
        seen = inner
        text = str(inner) or text
    return text


def _body(exc: BaseException) -> Any:
    """Return the body of a status error: the client unwraps ``error`` and may hide what is no JSON."""
    body = getattr(exc, "body", None)
    if body:
        return body
    try:
        return getattr(exc, "response").text  # noqa: B009 - any client's response
    except (AttributeError, RuntimeError, ValueError):
        return str(exc)


def _parts(body: Any) -> tuple[str | None, int | None, str]:
    """Return the code, its number when it is one, and the message of an error body of any shape."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            parsed = json.loads(body)
        except ValueError:
            return None, None, _TAGS.sub(" ", body).strip()
        return _parts(parsed) if isinstance(parsed, dict | list) else (None, None, body)
    if isinstance(body, list) and body:
        # Google's compatibility layer puts its error object into a list.
        return _parts(cast(list[Any], body)[0])
    if not isinstance(body, dict):
        return None, None, "" if body is None else str(cast(Any, body))
    error = cast(dict[str, Any], body)
    if isinstance(error.get("error"), dict):
        error = cast(dict[str, Any], error["error"])
    message = error.get("message") or error.get("detail") or error.get("error") or error.get("msg") or ""
    text = message if isinstance(message, str) else json.dumps(message)
    metadata = error.get("metadata")
    raw = cast(dict[str, Any], metadata).get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str) and raw:
        # OpenRouter hides the upstream's own words here.
        text = f"{text}: {raw}"
    if isinstance(error.get("param"), str) and error["param"] not in text:
        text = f"{text} (parameter {error['param']})"
    codes = [str(error[name]) for name in ("code", "type", "status") if error.get(name) is not None]
    # llama.cpp gives the number as code and the word as type.
    word = next((code for code in codes if not code.isdecimal()), codes[0] if codes else None)
    number = next((int(code) for code in codes if code.isdecimal()), None)
    return word, number, text


def _option_error(code: str | None) -> bool:
    return bool(code and re.match(r"(?:invalid|unsupported|unknown)_(?!request)", code))
