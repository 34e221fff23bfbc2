"""The one error tree. Every message says what is wrong and what to do next.

HermesError
├── ConfigError                a setting, flag, home folder or plug-in is wrong
│   ├── NoEndpoint             no model endpoint is configured or found
│   └── ExtraMissing           a feature needs an extra that is not installed
├── StoreError
│   ├── StoreBusy              the write lock was not free within the bounded retry
│   ├── StoreNewer             the database was written by a newer version
│   ├── StoreForked            this process is a fork of the one that opened the store
│   ├── StoreCorrupt           the database is damaged and could not be repaired
│   ├── StoreFull              the disk is full or the file is read-only
│   ├── SessionNotFound
│   ├── SessionLeased          another turn runs in this lineage
│   ├── LeaseLost              this turn no longer holds the right to write
│   └── InvalidTransition      a row was not in the state that the change needs
├── ToolError                  becomes a tool result; never unwinds the loop
│   ├── ToolNotFound
│   ├── ToolArgumentsInvalid
│   ├── ToolDenied
│   └── ToolTimeout
├── ProviderError              has .retryable; ``from`` the library's exception
│   ├── RateLimited            has .retry_after (seconds or None)
│   ├── QuotaExhausted         a 429/402 that waiting does not cure
│   ├── AuthenticationFailed
│   ├── ModelNotFound
│   ├── ContextOverflow
│   ├── RequestRejected        the request itself is wrong (400, 422)
│   ├── ContentFiltered
│   ├── ResponseInvalid        an answer that is no chat completion (HTML, empty, malformed)
│   ├── StreamBroken           the stream was cut after it began
│   └── ProviderUnavailable    refused, timed out, 5xx
├── TurnError                  a turn that failed; raised in the cell
├── PlatformError
├── HandoffFailed
└── Cancelled                  the user's interrupt reached this point (not a failure)
"""

from __future__ import annotations


class HermesError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(HermesError):
    """A setting, flag, home folder or plug-in is wrong."""


class NoEndpoint(ConfigError):
    """No model endpoint is configured or found; the message is the help card's text."""


class ExtraMissing(ConfigError):
    """A feature needs an extra that is not installed; the message has the install line."""

    @classmethod
    def for_extra(cls, feature: str, extra: str) -> ExtraMissing:
        return cls(f"{feature} needs the extra [{extra}]. Install it with: pip install 'hermes-nb[{extra}]'")


class StoreError(HermesError):
    """The session store could not do what was asked."""


class StoreBusy(StoreError):
    """The write lock was not free within the bounded retry."""


class StoreNewer(StoreError):
    """The database was written by a newer version of hermes-nb."""


class StoreForked(StoreError):
    """This process is a fork of the one that opened the store; open a new store here."""


class StoreCorrupt(StoreError):
    """The database is damaged and could not be repaired."""


class StoreFull(StoreError):
    """The disk is full or the file is read-only; nothing was written."""


class SessionNotFound(StoreError):
    """No session of this user has that id, prefix or title."""


class SessionLeased(StoreError):
    """Another turn runs in this lineage."""


class LeaseLost(StoreError):
    """This turn no longer holds the right to write; its late rows are in ``late_results``."""


class InvalidTransition(StoreError):
    """A row was not in the state that the change needs."""


class ToolError(HermesError):
    """A tool call failed; the text is for the model, which may try again."""


class ToolNotFound(ToolError):
    """The model named a tool that is not there or is masked."""


class ToolArgumentsInvalid(ToolError):
    """The arguments are not JSON or do not fit the schema; the tool did not run."""


class ToolDenied(ToolError):
    """Policy or the user said no; the tool did not run."""


class ToolTimeout(ToolError):
    """The tool did not end in its time."""


class ProviderError(HermesError):
    """The model endpoint failed. ``retryable`` says whether the same request may succeed later."""

    retryable: bool = False

    def __init__(self, message: str, *, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class RateLimited(ProviderError):
    """Too many requests; ``retry_after`` is the server's wish in seconds, or None."""

    retryable = True

    def __init__(
        self,
        message: str,
        *,
        status: int | None = 429,
        code: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, status=status, code=code)
        self.retry_after = retry_after


class QuotaExhausted(ProviderError):
    """The account has no credit or quota left; waiting does not help."""


class AuthenticationFailed(ProviderError):
    """The endpoint refused the key."""


class ModelNotFound(ProviderError):
    """The endpoint does not serve that model."""


class ContextOverflow(ProviderError):
    """The conversation no longer fits the model's window."""


class RequestRejected(ProviderError):
    """The endpoint says that the request itself is wrong (400, 422)."""


class ContentFiltered(ProviderError):
    """The endpoint's content filter ended the answer."""


class ResponseInvalid(ProviderError):
    """The answer is no chat completion: HTML, empty, or malformed."""


class StreamBroken(ProviderError):
    """The stream was cut after it began; what arrived is kept by the caller."""

    retryable = True


class ProviderUnavailable(ProviderError):
    """Connection refused, timed out, or a 5xx answer."""

    retryable = True


class TurnError(HermesError):
    """A turn failed; raised in the cell so that Run All stops there."""


class PlatformError(HermesError):
    """A chat platform refused or failed."""


class HandoffFailed(HermesError):
    """A session could not be handed over; both sides are as before."""


class Cancelled(HermesError):
    """The user's interrupt reached this point; not a failure."""
