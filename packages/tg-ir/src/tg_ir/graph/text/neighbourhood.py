"""`neighbourhood`: the part of a graph around one node, for error messages; always short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tg_ir.graph.text.writing import argument_text, combine_body, dtype_text
from tg_ir.graph.uop import UOp

_LEVELS_DOWN = 2
_USERS = 4
_SOURCES = 8
_ARGUMENT_LENGTH = 70


def neighbourhood(node: UOp, users: Sequence[UOp] = ()) -> str:
    """`node` marked by `>`, its sources two levels down before it, some of its `users` after it."""
    below = _levels_below(node)
    shown_users = [user for user in users if user is not node][:_USERS]
    listed = [*below, node, *shown_users]
    numbers = {known: number for number, known in enumerate(listed)}
    lines = []
    for known in listed:
        mark = ">" if known is node else " "
        lines.append(f"  {mark} {numbers[known]}: {_line(known, numbers)}")
    hidden = len(users) - len(shown_users)
    if hidden > 0 and users:
        lines.append(f"    ... and {hidden} more users")
    return "\n".join(lines)


def _levels_below(node: UOp) -> list[UOp]:
    """The sources of `node` and theirs, deepest first, each once."""
    found: dict[UOp, None] = {}
    level: Iterable[UOp] = (node,)
    for _ in range(_LEVELS_DOWN):
        below = dict.fromkeys(s for known in level for s in (*known.src, *combine_body(known)))
        level = [s for s in below if s is not node][:_SOURCES]
        for source in level:
            found.pop(source, None)
            found[source] = None
    return list(reversed(found))


def _line(node: UOp, numbers: dict[UOp, int]) -> str:
    sources = [str(numbers.get(s, "..")) for s in node.src[:_SOURCES]]
    if len(node.src) > _SOURCES:
        sources.append(f"... {len(node.src)} in all")
    text = f"{node.op.name} {dtype_text(node.dtype)} ({', '.join(sources)})"
    if node.arg is None:
        return text
    return f"{text} {_argument(node, numbers)}"


def _argument(node: UOp, numbers: dict[UOp, int]) -> str:
    known = {s: numbers.get(s, -1) for s in combine_body(node)}
    try:
        text = argument_text(node.arg, known)
    except TypeError:
        text = repr(node.arg)
    return text if len(text) <= _ARGUMENT_LENGTH else f"{text[:_ARGUMENT_LENGTH]}..."
