from hermes_nb.notebook.markdown import safe_cut


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
