import pytest

from hermes_nb.notebook.markdown import safe_cut, without_remote_images


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](http://evil.example/?q=1)", "[x](http://evil.example/?q=1)"),
        ("![x](//evil.example/a.png)", "[x](//evil.example/a.png)"),
        ("![x](<https://evil.example/a b>)", "[x](<https://evil.example/a b>)"),
        ("![x][ref]\n\n[ref]: https://evil.example", "[x][ref]\n\n[ref]: https://evil.example"),
        ("a <img src=http://evil.example> b", "a &lt;img src=http://evil.example> b"),
        ("<IMG SRC=x>", "&lt;IMG SRC=x>"),
        ("![local](plot.png) and ![in](attachment:a.png)", "![local](plot.png) and ![in](attachment:a.png)"),
        ("![d](data:image/png;base64,AA)", "![d](data:image/png;base64,AA)"),
        ("`![x](http://a.example/b)`", "`![x](http://a.example/b)`"),
        ("```html\n<img src=http://a.example>\n```\n", "```html\n<img src=http://a.example>\n```\n"),
        ("~~~\n![x](http://a)\n~~~\n![x](http://a)", "~~~\n![x](http://a)\n~~~\n[x](http://a)"),
        ("List<int> and <CoT>", "List<int> and <CoT>"),
        ("图 ![图](https://例.example/图.png)", "图 [图](https://例.example/图.png)"),
    ],
)
def test_remote_images_become_links_outside_code(text: str, shown: str):
    assert without_remote_images(text) == shown


def test_text_is_cut_at_a_blank_line_only():
    text = "a" * 10 + "\n\n" + "b" * 10
    assert safe_cut(text, 5) == 10
    assert safe_cut(text, 100) == -1
    assert safe_cut("a" * 50, 5) == -1


def test_text_is_never_cut_inside_a_fence():
    text = "intro\n\n```python\nx = 1\n\n\ny = 2\n"
    assert safe_cut(text, 5) == 5
    closed = text + "```\n\nafter"
    assert closed[safe_cut(closed, 5) :] == "\n\nafter"


def test_a_fence_that_shows_shorter_fences_is_one_block():
    text = "````md\n```py\nx\n\n```\n````\n\nend"
    assert text[safe_cut(text, 3) :] == "\n\nend"
