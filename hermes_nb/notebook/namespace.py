"""Typed, bounded summaries of the user's variables. Secrets are masked by name and by value.

Nothing here imports pandas, numpy or any other data library: objects are known by their type's module and
by the attributes such objects have. A summary never fails: an object whose repr raises says so.
"""

from __future__ import annotations

import difflib
import reprlib
import time
import types
from collections.abc import Mapping, Sequence
from typing import Any

from hermes_nb.core.secrets import is_secret_name, known_values, mask, mask_known, secret_values
from hermes_nb.tools.kernel import Variable

_MAX_SUMMARY = 600
"""Characters of one summary."""
_MAX_COLUMNS = 40
_MASKED = "•••• (masked: the name says it is a secret)"

_LOOK_SECONDS = 0.2

_repr = reprlib.Repr()
_repr.maxlevel = 3
_repr.maxdict = _repr.maxlist = _repr.maxtuple = _repr.maxset = 12
_repr.maxstring = _repr.maxother = 200


class NamespaceMask:
    """Masks text that tool code shows in the cell: a saved notebook must hold no more than the transcript.

    Called for every piece that is written, so names and environment are looked through again only now and then;
    the values of the names are always the present ones.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._names: list[str] = []
        self._elsewhere: tuple[str, ...] = ()
        self._looked = (-1, 0.0)

    def __call__(self, text: str) -> str:
        space, now = self._shell.user_ns, time.monotonic()
        if len(space) != self._looked[0] or now - self._looked[1] > _LOOK_SECONDS:
            self._names = [name for name in list(space) if isinstance(name, str) and is_secret_name(name)]
            self._elsewhere = known_values()
            self._looked = (len(space), now)
        here = secret_values({name: space.get(name) for name in self._names})
        return mask_known(text, [*sorted(here, key=len, reverse=True), *self._elsewhere])


def own_names(shell: Any) -> list[str]:
    """Return the names that the user made, in the order of the namespace."""
    hidden = shell.user_ns_hidden
    return [
        name
        for name, value in list(shell.user_ns.items())
        if not name.startswith("_")
        and name not in hidden
        and name not in ("In", "Out", "get_ipython", "exit", "quit", "open")
        and not isinstance(value, types.ModuleType)
    ]


def summaries(shell: Any, names: Sequence[str] | None) -> list[Variable]:
    """Return summaries of ``names`` (all of the user's own when None). An unknown name says so."""
    found: list[Variable] = []
    for name in own_names(shell) if names is None else names:
        if name not in shell.user_ns:
            found.append(Variable(name, "undefined", "there is no variable of this name"))
            continue
        value = shell.user_ns[name]
        found.append(Variable(name, type_name(value), _MASKED if is_secret_name(name) else summary(value)))
    return found


def unknown_name(shell: Any, names: Sequence[str]) -> str | None:
    """Return what is wrong with the first of ``names`` that is no variable, with a near one; None when all are."""
    for name in names:
        if name not in shell.user_ns:
            near = difflib.get_close_matches(name, own_names(shell), n=1)
            hint = f" Did you mean {near[0]}?" if near else " Run the cell that makes it first."
            return f"-v names {name!r}, and there is no such variable.{hint}"
    return None


def type_name(value: Any) -> str:
    """Return the type's name with its package, e.g. ``pandas.DataFrame``; plain for builtins."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return kind.__qualname__ if package in ("builtins", "__main__") else f"{package}.{kind.__qualname__}"


def summary(value: Any) -> str:
    """Return what is worth knowing of ``value`` in at most a few hundred characters."""
    try:
        text = _describe(value)
    except Exception as exc:  # noqa: BLE001 - the object's own code failed; the summary says so
        text = f"no summary: its {type(exc).__name__} says {str(exc)[:100]}"
    text = mask(text)
    return text if len(text) <= _MAX_SUMMARY else text[:_MAX_SUMMARY] + "…"


def _describe(value: Any) -> str:
    package = type(value).__module__.partition(".")[0]
    kind = type(value).__name__
    if package in ("pandas", "polars", "pyarrow") and kind in ("DataFrame", "LazyFrame", "Table"):
        return _table(value, kind)
    if package in ("pandas", "polars") and kind in ("Series", "Index"):
        return f"{len(value):,} values of {value.dtype}; first: {_repr.repr(list(value[:5]))}"
    if package in ("numpy", "torch", "jax", "jaxlib", "cupy") and hasattr(value, "shape") and hasattr(value, "dtype"):
        shape = "×".join(str(n) for n in value.shape) or "scalar"
        return f"{shape} {value.dtype}" + (f": {_repr.repr(value.tolist())}" if _small(value) else "")
    if isinstance(value, types.FunctionType | types.MethodType | type):
        doc = (value.__doc__ or "").strip().partition("\n")[0]
        return f"{getattr(value, '__qualname__', kind)}" + (f": {doc}" if doc else "")
    if isinstance(value, Mapping):
        return f"{len(value):,} keys: {_repr.repr({k: _hidden(k, v) for k, v in list(value.items())[:13]})}"
    if isinstance(value, str):
        return f"{len(value):,} characters: {_repr.repr(value)}"
    if isinstance(value, list | tuple | set | frozenset):
        return f"{len(value):,} items: {_repr.repr(value)}"
    return _repr.repr(value)


def _hidden(key: Any, value: Any) -> Any:
    return _MASKED if isinstance(key, str) and is_secret_name(key) else value


def _small(value: Any) -> bool:
    size = 1
    for n in value.shape:
        size *= int(n)
    return size <= 24


def _table(value: Any, kind: str) -> str:
    """Rows, columns and dtypes; no cell of the table is shown here."""
    if kind == "LazyFrame":
        schema = value.collect_schema()
        columns = list(schema.items())
        head = f"lazy, {len(columns)} columns"
    elif kind == "Table":
        columns = [(field.name, field.type) for field in value.schema]
        head = f"{value.num_rows:,} rows × {value.num_columns} columns"
    else:
        columns = list(zip(value.columns, value.dtypes, strict=False))
        head = f"{value.shape[0]:,} rows × {value.shape[1]} columns"
    shown = ", ".join(f"{name}: {dtype}" for name, dtype in columns[:_MAX_COLUMNS])
    more = f", … {len(columns) - _MAX_COLUMNS} more" if len(columns) > _MAX_COLUMNS else ""
    return f"{head} ({shown}{more})"
