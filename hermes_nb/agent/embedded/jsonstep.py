"""One step of the demo model as chat-completion chunks: words stream on, a JSON call becomes a tool call.

Owns the translation of the engine's event stream. Knows no process and no prompt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from hermes_nb.core.errors import StreamBroken
from hermes_nb.core.ids import new_id
from hermes_nb.core.wirejson import dumps


def chunks(events: Iterable[Mapping[str, Any]], *, model: str, verbs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield OpenAI-shaped chunks for the engine's ``/completion`` events, the last one with the usage.

    ``verbs`` gives the tool that each verb of the demo model means.
    The first character decides: ``{`` begins a call, which is given as one whole delta. A call that the
    token limit cut is no call: its text is given as it is, with finish reason ``length``.
    Raises StreamBroken when the events end before the engine said that it is done.
    """
    base = {
        "id": f"chatcmpl-{new_id()}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
    }

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    call = ""
    said = False
    for event in events:
        piece = str(event.get("content") or "")
        if call or (piece.startswith("{") and not said):
            call += piece
        elif piece:
            said = True
            yield chunk({"content": piece})
        if event.get("stop"):
            finish = "length" if event.get("stop_type") == "limit" else "stop"
            if call:
                parsed = _call(call, verbs)
                if parsed is None:
                    yield chunk({"content": call})
                else:
                    finish = "tool_calls"
                    yield chunk({"tool_calls": [parsed]})
            yield chunk({}, finish)
            yield {**base, "choices": [], "usage": _usage(event)}
            return
    raise StreamBroken("The demo model's answer ended early: its engine stopped.")


def _call(text: str, verbs: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        step: Any = json.loads(text)
        ((verb, arguments),) = step.items()
        name = verbs[verb]
    except (ValueError, AttributeError, KeyError):
        return None
    function = {"name": name, "arguments": dumps(arguments)}
    return {"index": 0, "id": f"call_{new_id()}", "type": "function", "function": function}


def _usage(event: Mapping[str, Any]) -> dict[str, Any]:
    timings = cast("Mapping[str, Any]", event.get("timings") or {})
    cached = int(timings.get("cache_n") or 0)
    prompt = cached + int(timings.get("prompt_n") or 0)
    completion = int(timings.get("predicted_n") or 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
