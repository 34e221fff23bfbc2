"""Markdown of others on its way to a notebook page, made unable to act there. Pure; knows no front end.

A front end renders new outputs as trusted: raw HTML in them runs scripts with the rights of the page, and showing
an image sends a request to its host. So no tag, no script link and no image of another host is left outside code.

Which text is code is told by strict, small rules. Where front ends could see it otherwise (an indented fence, a
backtick that has no partner, mathematics around a fence), the text is not taken for code: then an invisible joiner
stands behind each ``<`` there, which looks the same and is no tag.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_FENCE = re.compile(r"^(?:(`{3,})(?=[^`\n]*$)|(~{3,}))", re.M)
_FENCE_END = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(?:\n|\Z)")
# A fence that begins elsewhere than at the start of a line: in a list, a quotation, or indented.
_ODD_FENCE = re.compile(r"^(?:[ \t>*+\-\d.)\[\]xX]+(?:`{3}|~{3})|`{3,}[^`\n]*`)", re.M)
# JupyterLab takes mathematics out before it looks for Markdown.
_MATHEMATICS = re.compile(r"\$|\\(?:begin|end|\(|\[|\\)|@@")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
# What binds at least as tightly as a code span, or may do so somewhere.
_TIGHT = re.compile(r"[<\\\[]|://|www\.")
# Written as <https://host/path>, an address is a link; with "=" it could be read as a tag with attributes.
_TAG = re.compile(r"<(?!(?:https?://|mailto:)[\w.~:/?#@%+-]*>)(?=[A-Za-z/!?])")
_IMAGE = re.compile(r"!(?=\[)")
_OWN_IMAGE = re.compile(
    r"!\[[^\[\]\\\n]*\]\((?:attachment:[\w.-]+|data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]*|"
    r"[\w.-][\w./-]*)(?: +\"[^\"\n]*\")?\)"
)
_LINK = re.compile(r"\](?=\([\s<]*([^\s)]*))")
_DEFINITION = re.compile(r"^([ \t>]*\[[^\]\n]+\])(?=:\s*<?([^\s>]*))", re.M)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")
_OPEN_SCHEMES = frozenset({"http", "https", "mailto", "attachment", "data"})
_JOINER = "\u2060"


def inert(markdown: str) -> str:
    """Return ``markdown`` without anything that would act when a front end renders it.

    The text reads the same: a tag is shown as it is written, an image of another host becomes a link.
    """
    pieces = list(_parts(markdown))
    unsure = bool(_MATHEMATICS.search(markdown)) or any(not code and _ODD_FENCE.search(text) for text, code in pieces)
    if unsure:
        return "".join(_joined(text) if code else _prose(text, sure=False) for text, code in pieces)
    return "".join(text if code else _prose(text, sure=True) for text, code in pieces)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield ``(piece, is_fenced_code)`` in order; joined they are ``text``."""
    at = 0
    while opening := _FENCE.search(text, at):
        yield text[at : opening.start()], False
        mark, end = opening[1] or opening[2], len(text)
        line = text.find("\n", opening.end())
        while line >= 0:
            closing = _FENCE_END.match(text, line + 1)
            if closing and closing[1][0] == mark[0] and len(closing[1]) >= len(mark):
                end = closing.end()
                break
            line = text.find("\n", line + 1)
        yield text[opening.start() : end], True
        at = end
    yield text[at:], False


def _prose(text: str, *, sure: bool) -> str:
    lines: list[str] = []
    paragraph_sure = sure
    for line in text.splitlines(keepends=True):
        if not line.strip():
            paragraph_sure = sure
        outside = _SPAN.sub("", line)
        paragraph_sure = paragraph_sure and "`" not in outside
        certain = paragraph_sure and not _TIGHT.search(outside) and "|" not in line
        last = 0
        for span in _SPAN.finditer(line):
            lines += [_defused(line[last : span.start()]), span[0] if certain else _joined(span[0])]
            last = span.end()
        lines.append(_defused(line[last:]))
    return _DEFINITION.sub(_unlinked, "".join(lines))


def _defused(text: str) -> str:
    kept: list[str] = []
    last = 0
    for own in _OWN_IMAGE.finditer(text):
        kept += [_IMAGE.sub("", text[last : own.start()]), own[0]]
        last = own.end()
    kept.append(_IMAGE.sub("", text[last:]))
    return _LINK.sub(_unlinked, _TAG.sub("&lt;", "".join(kept)))


def _joined(code: str) -> str:
    """Return code that a front end may take for text: it looks the same and is neither tag, image nor link."""
    code = _IMAGE.sub(f"!{_JOINER}", _TAG.sub(f"<{_JOINER}", code))
    return _DEFINITION.sub(_unlinked, _LINK.sub(_unlinked, code))


def _unlinked(found: re.Match[str]) -> str:
    target = re.sub(r"[\x00-\x20\\<]", "", html.unescape(found[found.re.groups])).lower()
    scheme = _SCHEME.match(target)
    return found[0] if scheme is None or scheme[1] in _OPEN_SCHEMES else found[0] + _JOINER
