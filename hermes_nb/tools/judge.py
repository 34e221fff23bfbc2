"""The narrow judge of Python code: clean code only looks at things, everything else needs a yes.

A positive list over the syntax tree, never a list of forbidden words. Clean are names, attributes, subscripts,
arithmetic, comparison, f-strings, assignment to plain names, a short list of pure builtins, and methods that only
inspect, called with literals. Whatever is not named here asks.

What it cannot know, on purpose: ``df.shape``, ``a == b`` or ``x[0]`` may run code of objects that the user has made,
``list(x)`` may use up an iterator, and ``x = 1`` may give a variable another value. Those are acts of the user's own
objects, seen in the cell; the judge stops acts that the user did not allow. Nor can it see that a builtin was
replaced in the user's namespace; the caller passes those names as ``shadowed``.

Clean code must be run through ``guarded``, or IPython could still read a single line such as ``rm -rf * x``, which
is arithmetic in Python, as a command.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence

_MAX_CODE = 20_000
_MAX_NUMBER = 10**7
_MAX_POWER = 64


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ANY = 99
_BUILTINS: dict[str, tuple[int, frozenset[str]]] = {
    # name: positional arguments at most, keywords. No keyword takes a function, a file or an output array.
    **{name: (1, frozenset()) for name in _set("abs all any ascii bin bool callable chr dir float hash hex id len")},
    **{name: (1, frozenset()) for name in _set("list oct ord repr reversed set str tuple type frozenset")},
    **{name: (2, frozenset()) for name in ("complex", "divmod", "isinstance", "issubclass")},
    **{name: (_ANY, frozenset[str]()) for name in ("display", "slice", "range")},
    **{name: (_ANY, frozenset({"default"})) for name in ("max", "min")},
    "dict": (1, frozenset()),
    "enumerate": (2, frozenset({"start"})),
    "int": (2, frozenset({"base"})),
    "print": (_ANY, frozenset({"sep", "end"})),
    "round": (2, frozenset({"ndigits"})),
    "sorted": (1, frozenset({"reverse"})),
    "sum": (2, frozenset({"start"})),
    "zip": (_ANY, frozenset({"strict"})),
}
CALLABLE_BUILTINS = frozenset(_BUILTINS)
"""Builtins that clean code may call; the caller tells which of them the user's namespace replaces."""

_NUMBERS_ONLY = _set("head tail")
# A name that some library also uses for an act (requests.head, Path.replace, logging.info) is either absent here or
# limited to arguments with which that act cannot happen.
_NO_POSITIONAL = _set(
    "info describe keys values items copy corr cov mode isna isnull notna notnull duplicated memory_usage to_list "
    "tolist to_string to_dict item lower upper title strip lstrip rstrip isdigit isalpha isoformat weekday "
    "most_common total_seconds ravel flatten"
)
_ONE_LITERAL = _set(
    "sum mean median min max std var sem skew kurt prod count nunique unique value_counts quantile idxmin idxmax "
    "argmin argmax any all cumsum cumprod cummax cummin diff pct_change rank abs round nlargest nsmallest groupby "
    "size first last nth dropna fillna isin select_dtypes sort_values sort_index reset_index set_index "
    "drop_duplicates astype startswith endswith split rsplit splitlines index find strftime squeeze between contains"
)
_TWO_LITERALS = _set("nlargest nsmallest between split rsplit")
_METHOD_KEYWORDS = _set(
    "axis numeric_only skipna ddof level ascending by normalize dropna sort bins include exclude percentiles deep "
    "verbose memory_usage show_counts max_cols keepdims q interpolation method n periods subset keep as_index "
    "observed na_position ignore_index drop orient min_count min_periods decimals left right inclusive index header "
    "max_rows regex case na"
)
_RESERVED = frozenset(dir(builtins)) | {"display", "get_ipython", "In", "Out", "_", "_dh", "_ih", "_oh", "_i", "_ii"}

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
_MASKS = (ast.BitAnd, ast.BitOr, ast.BitXor)
# IPython ends a line at these, Python does not: what Python takes for a comment could be a command of its own.
_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# To an object that stands for a program (sh.find, repo.git) such a text is an option, and options act.
_OPTION = re.compile(r"--?[A-Za-z]")
_IPYTHON_LINE = re.compile(r"\s*(?:[%!?/,;]|>>>|\.\.\.|In \[)")


class _Asks(Exception):
    """The first thing that is not clean."""


def python_is_clean(code: str, *, shadowed: Iterable[str] = ()) -> str | None:
    """Return None when ``code`` only inspects, else the first reason why it must ask.

    ``shadowed`` are the names of builtins that the user's namespace replaces; calling one of those asks.
    """
    if len(code) > _MAX_CODE:
        return f"the code is longer than {_MAX_CODE:,} characters"
    if _OTHER_LINE_ENDS.search(code):
        return "it has a line end that IPython and Python read differently"
    for number, line in enumerate(code.splitlines(), 1):
        if _IPYTHON_LINE.match(line):
            return f"line {number} may be a magic or a shell command ({line.strip()[:40]})"
    try:
        # feature_version is not given: the code runs in this interpreter's own syntax.
        tree = ast.parse(code, "<python tool>")
        _Judge(frozenset(shadowed)).block(tree.body)
    except SyntaxError as exc:
        return f"it is not plain Python (line {exc.lineno}: {exc.msg})"
    except (ValueError, RecursionError, MemoryError) as exc:
        return f"it cannot be read ({type(exc).__name__})"
    except _Asks as asks:
        return str(asks)
    return None


MARK = "# hermes-nb"
"""The comment line that ``guarded`` adds."""


def guarded(code: str) -> str:
    """Return clean ``code`` in a form that IPython takes for Python only.

    IPython's automagic and autocall look at inputs of one line; with a comment line behind it there are two.
    """
    return f"{code}\n{MARK}" if code.strip() else code


class _Judge:
    def __init__(self, shadowed: frozenset[str]) -> None:
        self.shadowed = shadowed

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Expr(value=value):
                    self.value(value)
                case ast.Assign(targets=targets, value=value):
                    self.value(value)
                    for target in targets:
                        self.target(target)
                case ast.Pass():
                    pass
                case _:
                    raise _Asks(f"line {statement.lineno}: {_words(statement)} is not plain inspection")

    def target(self, node: ast.expr) -> None:
        match node:
            case ast.Name(id=name):
                if name in _RESERVED or _dunder(name):
                    raise _Asks(f"line {node.lineno}: it gives {name!r} another meaning")
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.target(part)
            case _:
                raise _Asks(f"line {node.lineno}: it changes {ast.unparse(node)[:60]}")

    def value(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                pass
            case ast.Name(id=name):
                if _dunder(name):
                    raise _Asks(f"line {node.lineno}: it uses {name}")
            case ast.Attribute(value=inner, attr=name):
                if _dunder(name):
                    raise _Asks(f"line {node.lineno}: it uses {name}")
                self.value(inner)
            case ast.Subscript(value=inner, slice=key):
                self.value(inner)
                self.value(key)
            case ast.Slice(lower=lower, upper=upper, step=step):
                for part in (lower, upper, step):
                    if part is not None:
                        self.value(part)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                self.values(parts)
            case ast.Dict(keys=keys, values=values):
                for key in keys:
                    if key is None:
                        raise _Asks(f"line {node.lineno}: ** unpacking is not plain inspection")
                    self.value(key)
                self.values(values)
            case ast.UnaryOp(operand=inner):
                self.value(inner)
            case ast.BoolOp(values=values):
                self.values(values)
            case ast.Compare(left=left, comparators=others):
                self.values([left, *others])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.values([test, body, orelse])
            case ast.BinOp():
                self.arithmetic(node)
            case ast.JoinedStr(values=values):
                self.fstring(values)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self.comprehension(node)
            case ast.Call():
                self.call(node)
            case _:
                raise _Asks(f"line {node.lineno}: {_words(node)} is not plain inspection")

    def values(self, nodes: Iterable[ast.expr]) -> None:
        for node in nodes:
            self.value(node)

    def arithmetic(self, node: ast.BinOp) -> None:
        self.values([node.left, node.right])
        if isinstance(node.op, _MASKS):
            # Only between conditions, as in df[(a > 1) & (b < 2)]: some libraries run commands with x & y.
            if not (_condition(node.left) and _condition(node.right)):
                raise _Asks(f"line {node.lineno}: it combines with &, | or ^ what are not conditions")
            return
        if not isinstance(node.op, _OPERATORS):
            raise _Asks(f"line {node.lineno}: this operator is not plain arithmetic")
        if isinstance(node.op, ast.Pow):
            power = _number(node.right)
            if power is None or abs(power) > _MAX_POWER or _has(node.left, ast.Pow):
                raise _Asks(f"line {node.lineno}: the power may be too large to compute")
        if isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _is_sequence(one) and not (0 <= (_number(other) or -1) <= 10_000):
                    raise _Asks(f"line {node.lineno}: it may build something very large")
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant) and _wide(node.left.value):
            raise _Asks(f"line {node.lineno}: the width in the format is very large")

    def fstring(self, parts: Sequence[ast.expr]) -> None:
        for part in parts:
            if not isinstance(part, ast.FormattedValue):
                self.value(part)
                continue
            self.value(part.value)
            if part.format_spec is None:
                continue
            spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else [part.format_spec]
            for piece in spec:
                if not isinstance(piece, ast.Constant) or _wide(piece.value):
                    raise _Asks(f"line {part.lineno}: the format specification is not a short constant")

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        if _has(node, ast.Call):
            raise _Asks(f"line {node.lineno}: a comprehension with a call is not plain inspection")
        for generator in node.generators:
            if generator.is_async:
                raise _Asks(f"line {node.lineno}: an async comprehension is not plain inspection")
            self.target(generator.target)
            self.values([generator.iter, *generator.ifs])
        self.values([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    def call(self, node: ast.Call) -> None:
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise _Asks(f"line {node.lineno}: * unpacking in a call is not plain inspection")
        for keyword in node.keywords:
            if keyword.arg is None:
                raise _Asks(f"line {node.lineno}: ** unpacking in a call is not plain inspection")
        match node.func:
            case ast.Name(id=name):
                self.builtin(node, name)
            case ast.Attribute(value=inner, attr=name):
                self.value(inner)
                self.method(node, name)
            case _:
                raise _Asks(f"line {node.lineno}: it calls {ast.unparse(node.func)[:60]}")

    def builtin(self, node: ast.Call, name: str) -> None:
        if name not in _BUILTINS:
            raise _Asks(f"line {node.lineno}: it calls {name}()")
        if name in self.shadowed:
            raise _Asks(f"line {node.lineno}: {name} is not Python's own {name} in this namespace")
        most, keywords = _BUILTINS[name]
        if len(node.args) > most:
            raise _Asks(f"line {node.lineno}: {name}() with {len(node.args)} arguments is not plain inspection")
        for keyword in node.keywords:
            if keyword.arg not in keywords:
                raise _Asks(f"line {node.lineno}: {name}({keyword.arg}=...) is not plain inspection")
        self.values([*node.args, *(keyword.value for keyword in node.keywords)])
        if name == "range" and any(_large(argument) for argument in node.args):
            raise _Asks(f"line {node.lineno}: the range may be very large")

    def method(self, node: ast.Call, name: str) -> None:
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            if any(isinstance(one, ast.Constant) and _is_option(one.value) for one in ast.walk(part)):
                raise _Asks(f"line {node.lineno}: .{name}() with what may be an option of a program")
        most = 2 if name in _TWO_LITERALS else 1 if name in _ONE_LITERAL or name in _NUMBERS_ONLY else 0
        if not most and name not in _NO_POSITIONAL:
            raise _Asks(f"line {node.lineno}: it calls .{name}()")
        if len(node.args) > most:
            raise _Asks(f"line {node.lineno}: .{name}() with {len(node.args)} arguments is not plain inspection")
        for argument in node.args:
            if name in _NUMBERS_ONLY and _number(argument) is None:
                raise _Asks(f"line {node.lineno}: .{name}() with something else than a number")
            if not _literal(argument):
                raise _Asks(f"line {node.lineno}: .{name}() with something else than a literal")
        for keyword in node.keywords:
            if keyword.arg not in _METHOD_KEYWORDS or not _literal(keyword.value):
                raise _Asks(f"line {node.lineno}: .{name}({keyword.arg}=...) is not plain inspection")


def _is_option(value: object) -> bool:
    return isinstance(value, str) and _OPTION.match(value) is not None


def _dunder(name: str) -> bool:
    return name.startswith("__")


def _literal(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _number(inner) is not None
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(_literal(part) for part in parts)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _literal(key) for key in keys) and all(map(_literal, values))
        case _:
            return False


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = _number(inner)
            return None if value is None else -value
        case _:
            return None


def _condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Invert()) | ast.Call() | ast.Set():
            return True
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor()):
            return True
        case _:
            return _number(node) is not None


def _is_sequence(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.Tuple, ast.JoinedStr)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    )


def _large(node: ast.expr) -> bool:
    if _has(node, ast.Pow) or _has(node, ast.Mult):
        return True
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, int) and abs(part.value) > _MAX_NUMBER
        for part in ast.walk(node)
    )


def _wide(value: object) -> bool:
    return bool(re.search(r"\d{4,}|\*", value if isinstance(value, str) else repr(value)))


def _has(node: ast.AST, kind: type[ast.AST]) -> bool:
    return any(isinstance(part, kind) for part in ast.walk(node))


def _words(node: ast.AST) -> str:
    names = {"Import": "an import", "ImportFrom": "an import", "Delete": "del", "FunctionDef": "a function definition"}
    return names.get(type(node).__name__, type(node).__name__)
