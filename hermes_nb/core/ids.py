"""Identifiers: time-ordered where a listing needs it, unguessable everywhere."""

from __future__ import annotations

import platform
import secrets
import time
from functools import cache
from pathlib import Path


def new_session_id() -> str:
    """Return ``YYYYMMDD-HHMMSS-<16 hex>``: sorts by start (UTC), 64 random bits."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(8)}"


def new_id() -> str:
    """Return 16 hex digits (64 random bits) for turns, approvals, handoffs and claims."""
    return secrets.token_hex(8)


@cache
def boot_id() -> str:
    """Return the host's boot id, so that a pid of before a reboot is never taken for a live one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        # No such file outside Linux: the boot time in minutes is stable within one boot.
        return f"boot-{platform.node()}-{int((time.time() - time.monotonic()) // 60)}"
