"""Paths as a model gives them: where they really lead, whether that is inside the workspace, whether it is secret.

Policy and file tools use the same functions, so what was judged is what is opened.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import sys
from pathlib import Path

from hermes_nb.core.errors import ToolArgumentsInvalid


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_FOLDERS = _set(
    ".ssh .aws .azure .gnupg .kube .docker .gcloud .mozilla .password-store .config "
    "keyrings secrets .secrets jupyter_runtime"
)
_SECRET_FILES = _set(
    ".env .env.* *.env .envrc .netrc _netrc .pgpass .my.cnf .git-credentials .npmrc .pypirc .htpasswd .dockercfg "
    "*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.ovpn *.gpg *.asc *_rsa *_dsa *_ecdsa *_ed25519 "
    "id_rsa* id_dsa* id_ecdsa* id_ed25519* *credentials* *.secret *.secrets secret secret.* secrets secrets.* "
    "token token.* *.token service-account*.json service_account*.json *history .bash_history *.cookies "
    "kernel-*.json jpserver-*.json nbserver-*.json jupyter_cookie_secret notebook_cookie_secret "
    "jupyter_*_config.* shadow gshadow master.passwd"
)
_PLAIN_SUFFIXES = _set(
    ".txt .md .rst .csv .tsv .json .jsonl .ndjson .yaml .yml .xml .html .css .svg .tex .bib .log .sql .py .r .jl"
)
_LOADED_UNASKED = _set("conftest sitecustomize usercustomize setup __init__ __main__ noxfile manage")


def resolve(cwd: Path, text: str) -> Path:
    """Return the absolute path that ``text`` leads to, with ``~``, ``..`` and symbolic links followed.

    Raises ToolArgumentsInvalid when it cannot be a path.
    """
    if not text.strip() or "\0" in text:
        raise ToolArgumentsInvalid(f"{text!r} is not a path. Give a path relative to {cwd}, or an absolute one.")
    try:
        return (cwd / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        raise ToolArgumentsInvalid(f"{text!r} cannot be resolved: {exc}") from exc


def inside(path: Path, workspace: Path) -> bool:
    """Tell whether the resolved ``path`` is in ``workspace``; the root of a file system is nobody's workspace."""
    root = workspace.resolve()
    return root != Path(root.anchor) and path.is_relative_to(root)


def read_reason(path: Path, workspace: Path, home: Path) -> str | None:
    """Return why reading the resolved ``path`` needs a yes, or None."""
    if path.is_relative_to(home.resolve()):
        return f"{path} is part of hermes-nb's own home (its database, settings and keys)"
    if secret := _secret_part(path, workspace):
        return f"{path} may hold secrets ({secret})"
    if not inside(path, workspace):
        return f"{path} is outside the workspace {workspace}"
    return None


def write_reason(path: Path, workspace: Path, home: Path) -> str | None:
    """Return why writing the resolved ``path`` is more than a plain new or overwritten file, or None.

    A positive list: ordinary text suffixes, no hidden part, not executable, not code that Python or a tool loads
    by itself.
    """
    if reason := read_reason(path, workspace, home):
        return reason
    hidden = [part for part in path.relative_to(workspace.resolve()).parts if part.startswith(".")]
    if hidden:
        return f"{path} is hidden ({hidden[0]}); hidden files often configure programs"
    suffix, stem = path.suffix.lower(), path.stem.lower()
    if suffix not in _PLAIN_SUFFIXES:
        return f"{path.name} is not a plain text, data or Python file"
    if suffix == ".py" and (stem in _LOADED_UNASKED or stem in sys.stdlib_module_names or _hides(path)):
        return f"{path.name} is loaded by Python itself or hides a module that is installed"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as exc:
        return f"{path} cannot be looked at ({exc.strerror or exc})"
    return f"{path} is executable" if path.is_file() and mode & 0o111 else None


def _hides(path: Path) -> bool:
    """Tell whether an ``import`` of the file's name means another file now: it would run this one instead."""
    try:
        spec = importlib.util.find_spec(path.stem)
    except (ImportError, ValueError):
        return path.stem in sys.modules
    return spec is not None and (spec.origin is None or Path(spec.origin).resolve() != path)


def _secret_part(path: Path, workspace: Path) -> str | None:
    # Names are compared without case: the file system may not know it either.
    parts = path.relative_to(workspace.resolve()).parts if inside(path, workspace) else path.parts
    for part in parts[:-1]:
        if part.lower() in _SECRET_FOLDERS:
            return part
    name = path.name.lower()
    for pattern in _SECRET_FILES:
        if fnmatch.fnmatchcase(name, pattern) and not name.endswith(".pub"):
            return path.name
    try:
        own = Path.home().resolve()
    except RuntimeError:
        own = None
    if own is not None and own != Path(own.anchor) and path.is_relative_to(own) and not _below(workspace, own):
        first = path.relative_to(own).parts[:1]
        if first and first[0].startswith("."):
            return f"~/{first[0]}"
    return None


def _below(workspace: Path, own: Path) -> bool:
    """Tell whether the workspace is itself inside a hidden folder of the user's home, which is then no sign."""
    root = workspace.resolve()
    return root.is_relative_to(own) and any(part.startswith(".") for part in root.relative_to(own).parts[:1])
