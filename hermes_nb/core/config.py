"""Settings: every key there is, where its value comes from, and how ``config.toml`` is changed.

Order of precedence: defaults < ``config.toml`` < ``HERMES_NB_*`` variables. Flags of a cell or command
are applied by whoever owns them. Secrets in the file never leave this module through ``shown`` or ``repr``.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from hermes_nb.core import tomledit
from hermes_nb.core.errors import ConfigError
from hermes_nb.core.names import ApprovalMode
from hermes_nb.core.paths import Home
from hermes_nb.core.setting import HOME_CHANNEL, SETTINGS, Kind, checked, from_text, is_section, is_setting, setting_of

try:
    import fcntl
except ImportError:  # Windows; two writers at the same moment are then not serialised
    fcntl = None

MODEL_VARIABLE: Final = "HERMES_NB_MODEL"
BASE_URL_VARIABLE: Final = "HERMES_NB_BASE_URL"
API_KEY_VARIABLE: Final = "HERMES_NB_API_KEY"

DEFAULT_ORIGIN: Final = "default"
HIDDEN: Final = "(set, hidden)"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model to speak to; all None means: find one."""

    name: str | None
    base_url: str | None
    key_env: str | None
    fallbacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolsetSettings:
    """``enabled`` None means every toolset that works here."""

    enabled: tuple[str, ...] | None
    disabled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApprovalSettings:
    """``chosen`` says that somebody set the mode; in a headless run only a chosen mode overrides the rules."""

    mode: ApprovalMode
    allow: tuple[str, ...]
    chosen: bool


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Budgets of the memory files, and what an edit does."""

    char_limit: int
    user_char_limit: int
    write: str


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """Who remembers things beside the memory files; ``off`` for nobody."""

    provider: str


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """The background look at finished turns."""

    enabled: bool
    write: str
    memory_interval: int
    skill_interval: int
    verbosity: str


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """When a long session is summarised."""

    threshold: float


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The HTTP adapter. An empty ``allow`` means nobody."""

    enabled: bool
    port: int
    allow: tuple[str, ...]
    token: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """One chat platform. An empty ``allow`` means nobody."""

    base_url: str | None
    allow: tuple[str, ...]
    token: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Chat platforms; ``home`` maps a platform to the target of a handoff that names none."""

    home: Mapping[str, str]
    http: HttpSettings
    discord: PlatformSettings
    telegram: PlatformSettings


@dataclass(frozen=True, slots=True)
class Value:
    """One setting as it stands: ``origin`` is ``default``, the file's path, or a variable's name."""

    key: str
    value: Any = field(repr=False)
    origin: str
    secret: bool

    @property
    def shown(self) -> str:
        """The value for people: lists as JSON, secrets hidden, nothing for a key that is not set."""
        value = self.value
        if value is None:
            return ""
        if self.secret:
            return HIDDEN
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return json.dumps(value, ensure_ascii=False)
        return str(value)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one home, merged once."""

    model: ModelSettings
    toolsets: ToolsetSettings
    approvals: ApprovalSettings
    memory: MemorySettings
    recall: RecallSettings
    review: ReviewSettings
    compaction: CompactionSettings
    gateway: GatewaySettings
    values: Mapping[str, Value] = field(repr=False)

    @classmethod
    def load(cls, home: Home, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the file and the environment. A file that is not there is an empty one.

        Raises ConfigError naming the file, the line and the nearest key.
        """
        values = {setting.key: _value(setting.key, setting.default, DEFAULT_ORIGIN) for setting in SETTINGS}
        for key, value in _read_file(home.config).items():
            values[key] = _value(key, value, str(home.config))
        _apply_environment(values, os.environ if environ is None else environ)
        return _assemble(values)

    def get(self, key: str) -> Any:
        """Return one value. Raises ConfigError with the nearest name for an unknown key."""
        return self.value(key).value

    def value(self, key: str) -> Value:
        """Return one value with its origin; a ``gateway.home.PLATFORM`` that nobody set is None."""
        setting_of(key)
        return self.values.get(key) or _value(key, None, DEFAULT_ORIGIN)


def set_value(home: Home, key: str, text: str) -> Value:
    """Set ``key`` in ``config.toml`` to what ``text`` says, and return it as it was stored.

    The user's comments and order stay. The file is replaced atomically with mode 0600. Raises
    ConfigError when the key is unknown, the value does not fit, or the file cannot be read or written.
    """
    setting = setting_of(key)
    value = checked(setting, from_text(setting, text))
    _edit(home, lambda old: tomledit.set_in(old, tuple(key.split(".")), value))
    return _value(key, value, str(home.config))


def unset_value(home: Home, key: str) -> None:
    """Remove ``key`` from ``config.toml``; a key that is not there is no error, an unknown one may be removed."""
    path = tuple(key.split("."))
    if tomledit.lookup(_parse(home.config, _read_text(home.config)), path) is None:
        setting_of(key)
        return
    _edit(home, lambda old: tomledit.unset_in(old, path))


def _value(key: str, value: Any, origin: str) -> Value:
    return Value(key, value, origin, secret=setting_of(key).kind is Kind.SECRET)


def _apply_environment(values: dict[str, Value], environ: Mapping[str, str]) -> None:
    """Let the variables win. An empty variable counts as not set."""
    if url := environ.get(BASE_URL_VARIABLE):
        try:
            address = checked(setting_of("model.base_url"), url)
        except ConfigError as exc:
            raise ConfigError(f"In the environment variable {BASE_URL_VARIABLE}: {exc}") from exc
        if address != values["model.base_url"].value:
            # The file's key belongs to the file's endpoint; it must not go to another host.
            values["model.key_env"] = _value("model.key_env", None, BASE_URL_VARIABLE)
        values["model.base_url"] = _value("model.base_url", address, BASE_URL_VARIABLE)
    if name := environ.get(MODEL_VARIABLE):
        values["model.name"] = _value("model.name", name, MODEL_VARIABLE)
    if environ.get(API_KEY_VARIABLE):
        values["model.key_env"] = _value("model.key_env", API_KEY_VARIABLE, API_KEY_VARIABLE)


def _assemble(values: Mapping[str, Value]) -> Settings:
    def of(section: str) -> dict[str, Any]:
        """Return the section's own keys, by their last part."""
        return {key.rpartition(".")[2]: item.value for key, item in values.items() if key.rpartition(".")[0] == section}

    approvals = of("approvals")
    chosen = values["approvals.mode"].origin != DEFAULT_ORIGIN
    return Settings(
        model=ModelSettings(**of("model")),
        toolsets=ToolsetSettings(**of("toolsets")),
        approvals=ApprovalSettings(ApprovalMode(approvals["mode"]), approvals["allow"], chosen),
        memory=MemorySettings(**of("memory")),
        recall=RecallSettings(**of("recall")),
        review=ReviewSettings(**of("review")),
        compaction=CompactionSettings(**of("compaction")),
        gateway=GatewaySettings(
            home=of(HOME_CHANNEL),
            http=HttpSettings(**of("gateway.http")),
            discord=PlatformSettings(**of("gateway.discord")),
            telegram=PlatformSettings(**of("gateway.telegram")),
        ),
        values=values,
    )


def _read_file(file: Path) -> dict[str, Any]:
    """Return the file's settings, flat and checked."""
    text = _read_text(file)
    flat: dict[str, Any] = {}
    for path, value in _leaves(_parse(file, text)):
        key = ".".join(path)
        try:
            flat[key] = checked(setting_of(key), value)
        except ConfigError as exc:
            raise ConfigError(f"{file}, line {tomledit.line_of(text, path) or 1}: {exc}") from exc
    return flat


def _leaves(document: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in document.items():
        path = (*above, name)
        key = ".".join(path)
        if isinstance(value, dict) and not is_setting(key) and (value or is_section(key)):
            yield from _leaves(cast("dict[str, Any]", value), path)
        else:
            yield path, value


def _read_text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file} is not UTF-8 text (byte {exc.start}). Save it as UTF-8 or move it away.") from exc
    except OSError as exc:
        raise ConfigError(f"{file} cannot be read ({exc.strerror or exc}). Check its owner and mode.") from exc


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        # The parser's message names line and column.
        raise ConfigError(f"{file} is not valid TOML: {exc}. Correct the line or move the file away.") from exc
    except RecursionError as exc:
        raise ConfigError(f"{file} is nested too deeply to be a configuration.") from exc


def _edit(home: Home, change: Callable[[str], str]) -> None:
    home.ensure()
    # A link (dotfiles in a repository) keeps pointing where it did.
    file = Path(os.path.realpath(home.config))
    with _writer(home):
        old = _read_text(file)
        _parse(file, old)
        try:
            new = change(old)
        except ConfigError as exc:
            raise ConfigError(f"{file}: {exc}") from exc
        _replace_file(file, new)


def _replace_file(file: Path, text: str) -> None:
    """Write ``text`` so that a reader, or a crash, sees the old file or the new one. Mode 0600."""
    temporary: str | None = None
    try:
        # mkstemp gives mode 0600 from the start.
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".config-", suffix=".toml")
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(file)
    except OSError as exc:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise ConfigError(f"{file} cannot be written ({exc.strerror or exc}). Nothing was changed.") from exc


@contextmanager
def _writer(home: Home) -> Generator[None]:
    """Serialise writers of one home, so that two edits at the same moment both stay."""
    if fcntl is None:
        yield
        return
    with (home.root / "config.lock").open("ab") as stream:
        # Some network file systems have no locks; the replacement itself is still atomic there.
        with suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
