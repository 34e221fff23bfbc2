"""Asks an endpoint which models it serves. Standard library only: used before any client exists."""

from __future__ import annotations

import http.client
import json
from typing import Any, cast
from urllib.parse import urlsplit

MAX_BYTES = 4 * 1024 * 1024


def served_models(base_url: str, key: str | None, *, seconds: float, connect: float | None = None) -> list[str]:
    """Return the ids that ``GET base_url/models`` lists, in its order.

    Follows no redirect and uses no proxy. Raises OSError when nothing answers there and ValueError when the
    answer is no list of models.
    """
    answer = get_json(f"{base_url.rstrip('/')}/models", key, seconds=seconds, connect=connect)
    data = cast(dict[str, Any], answer).get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise ValueError("no list of models")
    rows = [cast(dict[str, Any], row) for row in cast(list[Any], data) if isinstance(row, dict)]
    return [row["id"] for row in rows if isinstance(row.get("id"), str) and row["id"]]


def get_json(url: str, key: str | None, *, seconds: float, connect: float | None = None) -> Any:
    """Return the parsed JSON of a GET with status 200. Raises OSError or ValueError."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"no http address: {parts.scheme}")
    connection = kind(parts.hostname, parts.port, timeout=connect or seconds)
    try:
        connection.connect()
        connection.sock.settimeout(seconds)
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        raw = response.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ValueError("the answer is too long")
        return json.loads(raw)
    except http.client.HTTPException as exc:
        raise ValueError("no HTTP answer") from exc
    finally:
        connection.close()
