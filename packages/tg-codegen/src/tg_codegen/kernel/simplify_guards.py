"""The pass that simplifies masks under a guard.

Inside `where(guard, x, 0)` nobody sees what x is elsewhere.

The scheduler masks every load below a PAD or UNSKEW, to keep it in its buffer. A load that stays in
its buffer anyway needs no mask under a guard that implies it.
"""

from __future__ import annotations

from tg_ir.graph import Ops, UOp, toposort

from tg_codegen.loops import closed_ranges


def simplify_guards(sink: UOp) -> UOp:
    """Joins nested guards and drops the masks that they make superfluous.

    Ensures: no guard directly inside another; a LOAD under a guard has a mask only where its
    position may be out of range, or where the guard does not imply the mask.
    """
    new: dict[UOp, UOp] = {}
    for node in toposort((sink,)):
        result = node.with_sources(tuple([new[s] for s in node.src]))
        if is_guard(result):
            result = _simplified(result)
        new[node] = result
    return new[sink]


def is_guard(node: UOp) -> bool:
    """Whether `node` is `where(condition, x, 0)` of numbers."""
    if node.op is not Ops.WHERE:
        return False
    other = node.src[2]
    return other.op is Ops.CONST and other.arg == 0 and not isinstance(other.arg, bool)


def _simplified(node: UOp) -> UOp:
    condition, value, zero = node.src
    while is_guard(value) and str(value.src[2].arg) == str(zero.arg):
        condition, value = _joined(condition, value.src[0]), value.src[1]
    value = _without_needless_masks(value, frozenset(conjuncts(condition)))
    return node.with_sources((condition, value, zero))


def _joined(left: UOp, right: UOp) -> UOp:
    there = conjuncts(left)
    for part in conjuncts(right):
        if part not in there:
            left = left & part
    return left


def conjuncts(condition: UOp) -> dict[UOp, None]:
    """The parts of a chain of ANDs, in order."""
    parts: dict[UOp, None] = {}
    stack = [condition]
    while stack:
        node = stack.pop()
        if node.op is Ops.AND:
            stack.extend(reversed(node.src))
        else:
            parts[node] = None
    return parts


def _without_needless_masks(value: UOp, known: frozenset[UOp]) -> UOp:
    """`value` with loads unmasked, where `known` holds.

    A reduction below may read elsewhere and stays as it is.
    """
    new: dict[UOp, UOp] = {}
    for node in toposort((value,), lambda n: not closed_ranges(n)):
        if closed_ranges(node):
            new[node] = node
            continue
        result = node.with_sources(tuple([new[s] for s in node.src]))
        if result.op is Ops.LOAD and _is_needless(result, known):
            index = result.src[0]
            result = result.with_sources((index.with_sources(index.src[:2]), *result.src[1:]))
        new[node] = result
    return new[value]


def _is_needless(load: UOp, known: frozenset[UOp]) -> bool:
    index = load.src[0]
    if len(index.src) < 3 or index.src[0].op is not Ops.PARAM:
        return False
    where, mask = index.src[1:]
    in_range = where.vmin >= 0 and where.vmax < index.src[0].arg.size
    return in_range and known.issuperset(conjuncts(mask))
