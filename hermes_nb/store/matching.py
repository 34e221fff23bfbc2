"""From the query tree to FTS5's language. Pure text; every leaf is quoted, so the user's text is never syntax."""

from __future__ import annotations

from hermes_nb.store.literal import is_one_character, is_wide
from hermes_nb.store.query import Node, Operation, Term
from hermes_nb.store.tokeniser import RUN, without_symbols


def expression(tree: Node) -> str:
    """Return the tree for MATCH."""
    if isinstance(tree, Term):
        return phrase(tree)
    # A chain of one operator is written flat: FTS5's parser has room for a hundred open brackets only.
    operands, left = [expression(tree.right)], tree.left
    while isinstance(left, Operation) and left.kind == tree.kind:
        operands.append(expression(left.right))
        left = left.left
    operands.append(expression(left))
    return "(" + f" {tree.kind} ".join(reversed(operands)) + ")"


def phrase(term: Term) -> str:
    """Return one leaf as a phrase over the index's tokens.

    A run inside the leaf must end where it ends in the text, so its last character follows its pairs; the run at
    the end of the leaf may go on in the text.
    """
    text, words, star, position = without_symbols(term.text), list[str](), term.prefix, 0
    for match in RUN.finditer(text):
        words.append(text[position : match.start()])
        run, last = match.group(), match.end() == len(text)
        words += [run[i : i + 2] for i in range(len(run) - 1)]
        if not last or len(run) == 1:
            words.append(run[-1])
        if last:
            star = len(run) == 1
        position = match.end()
    words.append(text[position:])
    body = " ".join(word for word in words if word.strip()).replace('"', " ")
    return f'"{body}"{" *" if star else ""}'


def loosen(tree: Node) -> tuple[Node, bool]:
    """Return the part of the tree that the index may decide, and whether rows must then be looked at.

    A negated wide leaf would exclude too much. One character beside another leaf would merge all pairs that begin
    with it (28 to 360 ms at a million rows), where the other leaf alone is quick.
    """
    if isinstance(tree, Term):
        return tree, is_wide(tree)
    left, look_left = loosen(tree.left)
    right, look_right = loosen(tree.right)
    if tree.kind == "NOT" and (look_right or is_one_character(tree.right)):
        return left, True
    if tree.kind == "AND" and is_one_character(tree.right) and not is_one_character(tree.left):
        return left, True
    if tree.kind == "AND" and is_one_character(tree.left) and not is_one_character(tree.right):
        return right, True
    return Operation(tree.kind, left, right), look_left or look_right
