"""When a failed model call is tried again, and after how long. Pure; the loop does the waiting."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hermes_nb.core.errors import ProviderError, RateLimited

MAX_RETRY_AFTER = 600.0
"""A server that asks for a longer wait is not waited for: the user is told instead."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds for one model call. Only calls that produced no output yet are repeated."""

    retries: int = 3
    base: float = 2.0
    cap: float = 60.0
    jitter: float = 0.5

    def wait(self, error: ProviderError, failures: int) -> float | None:
        """Return the seconds to wait after the given number of failures, or None to give up."""
        if not error.retryable or failures > self.retries:
            return None
        if isinstance(error, RateLimited) and error.retry_after is not None:
            return None if error.retry_after > MAX_RETRY_AFTER else max(0.0, error.retry_after)
        spread = 1 + random.random() * self.jitter
        return min(self.cap, self.base * 2 ** (failures - 1)) * spread
