"""The table of settings: every key, what it holds, its default, and how a value is checked.

Pure: knows no file and no environment. Errors never repeat a value that may be a secret.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast
from urllib.parse import urlsplit

from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ApprovalMode


class Kind(StrEnum):
    """What a setting holds."""

    TEXT = "text"
    SECRET = "secret"
    URL = "http or https address"
    VARIABLE = "name of an environment variable"
    INTEGER = "whole number"
    FRACTION = "number above 0 and up to 1"
    SWITCH = "true or false"
    LIST = "list of texts"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: what it holds, its default, and one line for people."""

    key: str
    kind: Kind
    default: Any
    about: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None


SETTINGS: Final = (
    Setting("model.name", Kind.TEXT, None, "model to use; empty: the endpoint's first or default model"),
    Setting("model.base_url", Kind.URL, None, "address of an OpenAI-compatible endpoint, with its /v1"),
    Setting("model.key_env", Kind.VARIABLE, None, "name of the environment variable that holds the API key"),
    Setting("model.fallbacks", Kind.LIST, (), "models to try for one turn when the first one fails"),
    Setting("toolsets.enabled", Kind.LIST, None, "toolsets to offer; empty: all that work here"),
    Setting("toolsets.disabled", Kind.LIST, (), "toolsets or tools that are never offered"),
    Setting(
        "approvals.mode", Kind.TEXT, "ask", "how much you want to be asked", tuple(mode.value for mode in ApprovalMode)
    ),
    Setting("approvals.allow", Kind.LIST, (), "patterns of calls that need no question"),
    Setting("memory.char_limit", Kind.INTEGER, 2200, "characters that MEMORY.md may hold", low=100, high=100_000),
    Setting("memory.user_char_limit", Kind.INTEGER, 1375, "characters that USER.md may hold", low=100, high=100_000),
    Setting("memory.write", Kind.TEXT, "write", "what a memory edit does", ("write", "stage", "ask")),
    Setting("recall.provider", Kind.TEXT, "history", "what is asked about each question: history, a plug-in, or off"),
    Setting("review.enabled", Kind.SWITCH, True, "look back at finished turns to learn from them"),
    Setting("review.write", Kind.TEXT, "write", "what the review does with what it learned", ("write", "stage")),
    Setting("review.memory_interval", Kind.INTEGER, 10, "user turns between two memory reviews; 0: never"),
    Setting("review.skill_interval", Kind.INTEGER, 10, "tool steps between two skill reviews; 0: never"),
    Setting("review.verbosity", Kind.TEXT, "on", "how much the review says", ("off", "on", "verbose")),
    Setting("compaction.threshold", Kind.FRACTION, 0.5, "share of the model's window at which a session is compacted"),
    Setting("gateway.http.enabled", Kind.SWITCH, False, "serve the HTTP adapter"),
    Setting("gateway.http.port", Kind.INTEGER, 8642, "port of the HTTP adapter; 0: any free one", high=65535),
    Setting("gateway.http.token", Kind.SECRET, None, "bearer token of the HTTP adapter"),
    Setting("gateway.http.allow", Kind.LIST, (), "accounts that may speak; empty: nobody"),
    Setting("gateway.discord.token", Kind.SECRET, None, "bot token for Discord"),
    Setting("gateway.discord.base_url", Kind.URL, None, "address of Discord's API, for tests and proxies"),
    Setting("gateway.discord.allow", Kind.LIST, (), "accounts that may speak; empty: nobody"),
    Setting("gateway.telegram.token", Kind.SECRET, None, "bot token for Telegram"),
    Setting("gateway.telegram.base_url", Kind.URL, None, "address of Telegram's API, for tests and proxies"),
    Setting("gateway.telegram.allow", Kind.LIST, (), "accounts that may speak; empty: nobody"),
)
"""Every key that ``config.toml`` may hold, besides ``gateway.home.PLATFORM``."""

HOME_CHANNEL: Final = "gateway.home"
_PLATFORM = re.compile(r"[a-z][a-z0-9_-]*")
_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}
# What people paste where a variable's name belongs. The value is never repeated in the error.
_LOOKS_LIKE_A_KEY = re.compile(r"(?i)(sk|gsk|xai|hf|ghp|key|pk|AIza)[-_]?[A-Za-z0-9_-]{16,}|[A-Fa-f0-9]{32,}")


def is_section(name: str) -> bool:
    """Say whether ``name`` is a table that holds settings."""
    return name == HOME_CHANNEL or any(key.startswith(name + ".") for key in _BY_KEY)


def is_setting(key: str) -> bool:
    """Say whether ``key`` is one of the fixed settings."""
    return key in _BY_KEY


def setting_of(key: str) -> Setting:
    """Return what is known about ``key``. Raises ConfigError with the nearest name."""
    found = _BY_KEY.get(key)
    if found:
        return found
    head, _, platform = key.rpartition(".")
    if head == HOME_CHANNEL and _PLATFORM.fullmatch(platform):
        return Setting(key, Kind.TEXT, None, f"where a handoff to {platform} goes when no target is named")
    raise ConfigError(f"{key!r} is not a setting.{_nearest(key)} All keys: hermes-nb config get")


def checked(setting: Setting, value: Any) -> Any:
    """Return ``value`` in its stored form, or raise ConfigError that does not repeat a secret."""
    key, kind = setting.key, setting.kind
    if kind is Kind.LIST:
        items = cast("list[Any]", value) if isinstance(value, list | tuple) else None
        if items is None or not all(isinstance(item, str) and item for item in items):
            raise ConfigError(f'{key} takes a list of texts, for example ["one", "two"].')
        return tuple(cast("list[str]", items))
    if kind is Kind.SWITCH:
        if not isinstance(value, bool):
            raise ConfigError(f"{key} takes true or false.")
        return value
    if kind is Kind.INTEGER:
        high = setting.high if setting.high is not None else 1_000_000
        if isinstance(value, bool) or not isinstance(value, int) or not setting.low <= value <= high:
            raise ConfigError(f"{key} takes a whole number from {setting.low} to {high}.")
        return value
    if kind is Kind.FRACTION:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise ConfigError(f"{key} takes a number above 0 and up to 1, for example 0.5.")
        return float(value)
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{key} takes a {kind}. To remove it: hermes-nb config set {key} --unset")
    return _checked_text(setting, value.strip())


def _checked_text(setting: Setting, value: str) -> str:
    key = setting.key
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"{key}: the value is not valid text in UTF-8.") from None
    if "\x00" in value or (setting.kind is not Kind.TEXT and re.search(r"\s", value)):
        raise ConfigError(f"{key}: the value holds blanks or control characters that do not belong there.")
    if setting.choices and value not in setting.choices:
        near = difflib.get_close_matches(value, setting.choices, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ConfigError(f"{key} takes one of {', '.join(setting.choices)}, not {value!r}.{hint}")
    if setting.kind is Kind.VARIABLE and (_LOOKS_LIKE_A_KEY.fullmatch(value) or not value.isidentifier()):
        raise ConfigError(
            f"{key} takes the name of an environment variable, for example OPENAI_API_KEY, not the key itself. "
            "Put the key into that variable; it is never stored."
        )
    if setting.kind is Kind.URL:
        _check_url(key, value)
    return value


def _check_url(key: str, value: str) -> None:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable:
        raise ConfigError(f"{key} takes an address such as http://localhost:11434/v1.")
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"{key} must not hold a password or a query. Put the key into an environment variable and name it "
            "in model.key_env."
        )


def from_text(setting: Setting, text: str) -> Any:
    """Turn what stands on a command line into a value; what does not fit is left to ``checked``."""
    word = text.strip()
    if setting.kind is Kind.SWITCH:
        return {
            "true": True,
            "on": True,
            "yes": True,
            "1": True,
            "false": False,
            "off": False,
            "no": False,
            "0": False,
        }.get(word.lower())
    if setting.kind is Kind.INTEGER:
        return int(word) if re.fullmatch(r"-?[0-9]{1,18}", word) else None
    if setting.kind is Kind.FRACTION:
        return float(word) if re.fullmatch(r"[0-9]{0,9}\.?[0-9]{1,18}", word) else None
    if setting.kind is Kind.LIST:
        try:
            return json.loads(word)
        except ValueError:
            return None
    return text


def _nearest(key: str) -> str:
    known = [*_BY_KEY, f"{HOME_CHANNEL}.PLATFORM"]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    if not near:
        near = [name for name in known if name.rpartition(".")[2] == key.rpartition(".")[2]][:1]
    return f" Did you mean {near[0]}?" if near else ""
