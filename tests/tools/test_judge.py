"""The narrow judge: a table of what is clean and what must ask, and how IPython reads what was called clean."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.tools.judge import CALLABLE_BUILTINS, guarded, python_is_clean

CLEAN = [
    "",
    "# only a comment",
    "df",
    "df.shape",
    "df.head()",
    "df.head(10)",
    "df.tail(n=3)",
    "df.describe(include='all')",
    "df.describe()",
    "df['a'].value_counts(normalize=True)",
    "df[['a', 'b']].mean(axis=0)",
    "df.groupby('a').sum(numeric_only=True)",
    "df.info()",
    "df.dtypes",
    "df[df['a'] > 3]",
    "df[(df.a > 1) & (df.b < 2)]",
    "df[(df.a > 1) | ~(df.b == 2)]",
    "df.isna().sum()",
    "df.loc[3:5, 'a']",
    "df.iloc[-1]",
    "df.sort_values('a', ascending=False).head(5)",
    "df.nunique()",
    "df.a.quantile([0.1, 0.9])",
    "df.columns",
    "len(df)",
    "print(df)",
    "print('a', len(x), sep='\\n', end='')",
    "type(x)",
    "isinstance(x, int)",
    "x = 3",
    "x, y = 1, 2",
    "x = y = df.shape",
    "n = len(df)\nprint(f'{n} rows')",
    "f'{x!r:>10} {y:.2f}'",
    "a + b * 2 - c / 4 // 5 % 6",
    "x ** 2",
    "-x",
    "not x",
    "a < b <= c",
    "a is None",
    "'k' in d",
    "d['k'][0]",
    "a and b or c",
    "x if y else z",
    "[1, 2, 3]",
    "{'a': 1, 'b': [2]}",
    "{1, 2}",
    "(1, 2)",
    "sum([1, 2, 3])",
    "sorted(d, reverse=True)",
    "list(d.keys())",
    "d.items()",
    "max(1, 2, 3)",
    "max(xs, default=0)",
    "round(3.14159, 2)",
    "range(10)",
    "list(range(len(df)))",
    "[c for c in df.columns if c != 'a']",
    "{k: v for k, v in pairs}",
    "x[1:2, ::3]",
    "pass",
    "a @ b",
    "'-' * 20",
    "dir(x)",
    "str(df.head())",
    "df.a.str.lower()",
    "'%s rows' % n",
    "1_000_000 * 3",
    "display(df)",
    "s.startswith('a')",
    "s.split(',')",
    "s.split('-')",
    "df.fillna('-1')",
    "enumerate(xs, start=1)",
    "list(zip(a, b))",
    "int('ff', base=16)",
    "变量 = 3\n变量",
    "x = 'rm -rf /; import os; os.system()'",
    "os.environ",
    "df.nlargest(5, 'a')[['a', 'b']]",
    "df[df['a'].str.contains('x', case=False, na=False)]",
    "print(df.to_string(index=False, max_rows=20))",
    "df.shape, df.columns.tolist()",
    "df.isnull().sum()",
    "df['x'].unique()[:10]",
]

ASKS = [
    "import os",
    "from os import system",
    "import pandas as pd",
    "os.system('ls')",
    "__import__('os').system('id')",
    "import subprocess; subprocess.run('rm -rf ./build', shell=True)",
    "open('x')",
    "open('x', 'w').write('y')",
    "eval('1')",
    "exec('1')",
    "compile('1', '', 'eval')",
    "getattr(os, 'system')('id')",
    "globals()['x']",
    "vars()",
    "input()",
    "breakpoint()",
    "help(x)",
    "exit()",
    "get_ipython()",
    "get_ipython().system('ls')",
    "%timeit x",
    "  %matplotlib inline",
    "%%bash\nls",
    "!ls",
    "x = !ls",
    "x = %who_ls",
    "x?",
    "x??",
    "?x",
    "/print x",
    ",print x",
    ";print x",
    ">>> x",
    "In [1]: x",
    "'''\n%%bash\nls\n'''",
    "await x",
    "await f()",
    "async def f(): pass",
    "def f(): pass",
    "class A: pass",
    "@evil\ndef f(): pass",
    "lambda: 1",
    "(lambda: os.remove('x'))()",
    "del x",
    "del d['a']",
    "x.a = 1",
    "d['a'] = 1",
    "df['new'] = df['a']",
    "df.loc[0] = 1",
    "x += 1",
    "x: int = 3",
    "a, d['x'] = 1, 2",
    "(x := 3)",
    "*a, b = c",
    "print(*xs)",
    "dict(**d)",
    "{**d}",
    "[*a]",
    "for i in x: print(i)",
    "while True: pass",
    "if x: y",
    "with open('f') as f: f",
    "try: x\nexcept Exception: pass",
    "assert x",
    "raise ValueError",
    "return 1",
    "yield x",
    "global x",
    "match x:\n    case 1: pass",
    "type X = int",
    "len = x.evil\nlen(y)",
    "print = os.system",
    "print = os.system; print('id')",
    "display = x",
    "get_ipython = x",
    "_ = 3",
    "[len for len in fs]",
    "{print: 1 for print in fs}",
    "[f() for f in fs]",
    "[print(x) for x in xs]",
    "sum(len(x) for x in xs)",
    "[x async for x in xs]",
    "x.__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "__builtins__",
    "__loader__",
    "x.__dict__['y']",
    "__x = 3",
    "f'{x.evil()}'",
    "f'{x:{y}}'",
    "f'{x:{y.evil()}}'",
    "f'{1:100000000}'",
    "f'{__import__(\"os\")}'",
    "'%1000000000d' % 1",
    "'%*d' % (10**9, 1)",
    "'{0.__class__}'.format(x)",
    "10 ** 10 ** 10",
    "x ** y",
    "9 ** 64 ** 64",
    "(2 ** 64) ** 64",
    "pow(2, 10**9)",
    "1 << 10",
    "a >> b",
    "'a' * 10**10",
    "[0] * 1000000000",
    "list(range(10**12))",
    "range(999999999999)",
    "rm['-rf', '/'] & FG",
    "a | b",
    "a & b",
    "x()",
    "f(x)",
    "np.array([1])",
    "np.mean(x)",
    "d['f']()",
    "fs[0](x)",
    "f()()",
    "(f or g)()",
    "df.to_csv('x.csv')",
    "repo.git.diff('--output=/tmp/x')",
    "repo.head.commit.diff('--output=/tmp/x')",
    "sh.find('-delete')",
    "x.split(['a', '-exec'])",
    "x.count(by='-x')",
    "df.to_string('x.txt')",
    "df.info(buf=f)",
    "df.sort_values('a', inplace=True)",
    "df.drop(columns='a', inplace=True)",
    "a.max(0, out)",
    "a.sum(out=b)",
    "a.sort()",
    "xs.append(1)",
    "xs.pop()",
    "d.get('x')",
    "requests.get('http://x')",
    "requests.head('http://x')",
    "requests.head(url)",
    "requests.head(df.head(1))",
    "session.post('http://x')",
    "logging.info('x')",
    "Path('x').unlink()",
    "p.replace('q')",
    "p.rename('q')",
    "shutil.copy('a', 'b')",
    "df.query('a > @f()')",
    "df.eval('a')",
    "df.apply(f)",
    "df.agg('to_clipboard')",
    "df.map(f)",
    "df.pipe(f)",
    "df.groupby(f)",
    "df.nlargest(5, 'a', 'b')",
    "df.nlargest(n, 'a')",
    "df.sample(5)",
    "df.plot()",
    "map(f, xs)",
    "filter(f, xs)",
    "sorted(xs, key=os.remove)",
    "max(xs, key=os.remove)",
    "iter(f, 1)",
    "next(it)",
    "type('X', (A,), {})",
    "setattr(x, 'a', 1)",
    "delattr(x, 'a')",
    "print('x', file=f)",
    "super()",
    "memoryview(x)",
    "x.\u005f_class__",
    "\uff47\uff45\uff54attr(x, 'y')",
    "\uff4f\uff50\uff45\uff4e('x')",
    "if True:\n  import os",
    "x = 1; import os",
    "x = 1\\\n; import os",
    "(",
    "'unclosed",
    "  indented",
    "a\0b",
    "(" * 5000 + ")" * 5000,
    "x." * 3000 + "y",
    "x\n" * 20_000,
    "# \x0cx = !ls",
    "x = 1 # \x0cx = %who_ls",
    "# \u2028!ls",
    "'\x85'",
    "# a\r!ls",
    "# -*- coding: utf-7 -*-\n+AG8-pen('x')",
]


@pytest.mark.parametrize("code", CLEAN)
def test_code_that_only_looks_is_clean(code: str) -> None:
    assert python_is_clean(code) is None


@pytest.mark.parametrize("code", ASKS)
def test_everything_else_asks_with_a_reason(code: str) -> None:
    reason = python_is_clean(code)
    assert reason
    assert "\n" not in reason.strip()


def test_a_builtin_that_the_namespace_replaces_asks_when_it_is_called_but_not_when_it_is_read() -> None:
    assert python_is_clean("len(x)", shadowed={"len"})
    assert python_is_clean("len", shadowed={"len"}) is None
    assert python_is_clean("sum(x)", shadowed={"len"}) is None


def test_the_callable_builtins_are_builtins_or_ipythons_display() -> None:
    import builtins

    assert {name for name in CALLABLE_BUILTINS if not hasattr(builtins, name)} == {"display"}


@given(st.text(max_size=60))
def test_no_text_makes_the_judge_fail(code: str) -> None:
    reason = python_is_clean(code)
    if reason is None:
        ast.parse(code)


@given(st.sampled_from(CLEAN), st.sampled_from([code for code in ASKS if len(code) < 100]))
def test_one_unclean_statement_makes_the_whole_ask(clean: str, dirty: str) -> None:
    assert python_is_clean(f"{clean}\n{dirty}")


@pytest.mark.parametrize("code", ["rm -rf * x", "exit", "quit", "ls", "cd - x", "reset", "df;", "f", "pylab", *CLEAN])
def test_ipython_reads_guarded_code_as_python_and_as_nothing_else(code: str) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    assert python_is_clean(code) is None
    shell = InteractiveShell.instance()
    try:
        shell.autocall = 2
        shown = shell.transform_cell(guarded(code))
    finally:
        shell.autocall = 0
    assert ast.dump(ast.parse(shown)) == ast.dump(ast.parse(code))


def test_guarded_code_still_shows_its_last_expression() -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    assert shell.run_cell(guarded("6 * 7")).result == 42


def test_empty_code_stays_empty() -> None:
    assert guarded(" \n") == " \n"
