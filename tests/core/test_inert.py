"""Markdown of a model must not act on the page that shows it, whatever it looks like."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_nb.core.inert import inert
from hermes_nb.core.names import TurnStatus
from hermes_nb.core.types import TurnResult

UNCHANGED = [
    "![local](plot.png) and ![in](attachment:a.png)",
    "![d](data:image/png;base64,AA)",
    "`![x](http://a.example/b)`",
    "use `List<int>` here",
    "```html\n<img src=http://a.example>\n```\n",
    "~~~\n![x](http://a)\n~~~\n",
    "```cpp\nvector<int> x;\n",  # still streaming
    "a < b and c <= d, 1<2",
    "[docs](https://a.example/x) [mail](mailto:a@b) [file](a/b.ipynb)",
    "[x][ref]\n\n[ref]: https://a.example",
    "$a < b$ and `x`",
    "see <https://a.example/b?c#d>",
]
CHANGED = [
    ("![x](http://evil.example/?q=1)", "[x](http://evil.example/?q=1)"),
    ("![x](//evil.example/a.png)", "[x](//evil.example/a.png)"),
    ("![x](<https://evil.example/a b>)", "[x](&lt;https://evil.example/a b>)"),
    ("<https://a.example/onclick=act()>", "&lt;https://a.example/onclick=act()>"),
    ("![x][ref]\n\n[ref]: https://evil.example", "[x][ref]\n\n[ref]: https://evil.example"),
    ("![x]\n\n[x]: https://evil.example", "[x]\n\n[x]: https://evil.example"),
    ("![a[b]](http://evil.example)", "[a[b]](http://evil.example)"),
    ("![a](&#104;ttp://evil.example)", "[a](&#104;ttp://evil.example)"),
    ("a <img src=http://evil.example> b", "a &lt;img src=http://evil.example> b"),
    ("List<int> and <CoT>", "List&lt;int> and &lt;CoT>"),
    ("<!-- x -->", "&lt;!-- x -->"),
    ("~~~\n![x](http://a)\n~~~\n![x](http://a)", "~~~\n![x](http://a)\n~~~\n[x](http://a)"),
]
TAGS = [
    "<details open ontoggle='act()'>",
    "<input autofocus onfocus='act()'>",
    "\\`<img src=x onerror=act()>\\`",
    "` one\n\n<img src=x onerror=act()>\n\n two `",
    "a ` b\n`<img src=x onerror=act()>`",
    "- a\n  ```\nb <img src=x onerror=act()>",
    "   ```\nx\n```\n<img src=x onerror=act()>\n",
    "- [ ] ```\nb\n```\n<img src=x onerror=act()>",
    "> ```\nb <img src=x onerror=act()>",
    "| a | b |\n|---|---|\n| ` | <img src=x onerror=act()> ` |",
    "<http://a`> <img src=x onerror=act()> <http://c`>",
    "http://a.example/` <img src=x onerror=act()> http://c.example/`",
    "$$\n```\n$$ <img src=x onerror=act()>\n",
    "\\begin{a}\n```\n\\end{a}\n<img src=x onerror=act()>\n```\n",
    "``` `\n<img src=x onerror=act()>\n```",
    "para ```\n    ```\n    <img src=x onerror=act()>\n    ```",
]
SCRIPTS = [
    "[a](javascript:act())",
    "[a](<javascript:act()>)",
    "[a](JaVaScript&colon;act())",
    "[a](&#106;avascript:act())",
    "[a](java&#9;script:act())",
    "[a][b]\n\n[b]: javascript:act()",
    "[a](vbscript:x)",
]


@pytest.mark.parametrize("text", UNCHANGED)
def test_ordinary_markdown_stays_as_it_is(text: str) -> None:
    assert inert(text) == text


@pytest.mark.parametrize(("text", "shown"), CHANGED)
def test_tags_are_shown_and_images_of_other_hosts_become_links(text: str, shown: str) -> None:
    assert inert(text) == shown


@pytest.mark.parametrize("text", TAGS)
def test_no_tag_is_left_where_a_front_end_may_not_see_code(text: str) -> None:
    assert not re.search("<(?!http)[A-Za-z/!?]", inert(text))


@pytest.mark.parametrize("text", SCRIPTS)
def test_a_script_is_no_link(text: str) -> None:
    assert "\u2060" in inert(text)


@given(st.text(alphabet="`~<ia>!?/[]()\\$ \n-|x:", max_size=60))
def test_outside_code_no_tag_is_left(text: str) -> None:
    shown = inert(text)
    assert shown.replace("\u2060", "").replace("&lt;", "<").replace("!", "") == text.replace("!", "")
    if "`" not in text and "~" not in text:
        assert not re.search("<(?!https?:|mailto:)[A-Za-z/!?]", shown)


def test_a_result_shown_by_itself_is_inert_too() -> None:
    result = TurnResult("<img src=x onerror=act()>", TurnStatus.COMPLETE, "s", "t", "m")
    assert result._repr_markdown_() == "&lt;img src=x onerror=act()>"
