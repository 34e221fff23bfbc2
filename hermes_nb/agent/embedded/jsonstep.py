"""One step of the demo model as chat-completion chunks: words stream on, a JSON call becomes a tool call.

Owns the translation of the engine's event stream. Knows no process and no prompt.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from hermes_nb.agent.embedded.ending import Ending
from hermes_nb.core.errors import StreamBroken
from hermes_nb.core.ids import new_id
from hermes_nb.core.wirejson import dumps

CALL_START: Final = "{"


def chunks(
    events: Iterable[Mapping[str, Any]],
    *,
    model: str,
    verbs: Mapping[str, str],
    own_limit: bool = False,
    spent: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yield OpenAI-shaped chunks for the engine's ``/completion`` events, the last one with the usage.

    ``verbs`` gives the tool that each verb of the demo model means; ``spent`` are the tokens of the step before.
    The first character decides: ``{`` begins a call, which is given as one whole delta. A call that the
    token limit cut is no call: its text is given as it is, with finish reason ``length``. Words that repeat
    themselves end there with ``stop``, and so do those that an ``own_limit`` cuts after a whole sentence.
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
    ending = Ending()
    for event in events:
        piece = str(event.get("content") or "")
        if call or (piece.startswith(CALL_START) and not said):
            call += piece
        elif piece:
            said = True
            if shown := ending.feed(piece):
                yield chunk({"content": shown})
        if not event.get("stop") and not ending.ended:
            continue
        finish = "length" if event.get("stop_type") == "limit" and not ending.ended else "stop"
        if call:
            parsed = _call(call, verbs)
            if parsed is None:
                yield chunk({"content": call})
            else:
                finish = "tool_calls"
                yield chunk({"tool_calls": [parsed]})
        elif finish == "length" and own_limit and (last := ending.cut()) is not None:
            finish = "stop"
            if last:
                yield chunk({"content": last})
        elif rest := ending.finish():
            yield chunk({"content": rest})
        yield chunk({}, finish)
        yield {**base, "choices": [], "usage": _usage(event, spent)}
        return
    raise StreamBroken("The demo model's answer ended early: its engine stopped.")


def tokens_of(event: Mapping[str, Any]) -> int:
    """Return how many tokens the engine had made at ``event``."""
    return int(_timings(event).get("predicted_n") or 0)


def _call(text: str, verbs: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        step: Any = json.loads(text)
        ((verb, arguments),) = step.items()
        name = verbs[verb]
    except (ValueError, AttributeError, KeyError):
        return None
    function = {"name": name, "arguments": dumps(arguments)}
    return {"index": 0, "id": f"call_{new_id()}", "type": "function", "function": function}


def _usage(event: Mapping[str, Any], spent: int) -> dict[str, Any]:
    timings = _timings(event)
    cached = int(timings.get("cache_n") or 0)
    prompt = cached + int(timings.get("prompt_n") or 0)
    completion = tokens_of(event) + spent
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _timings(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", event.get("timings") or {})
