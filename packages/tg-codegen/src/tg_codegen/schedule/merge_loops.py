"""Finds loops of a kernel that count as one.

`for a in A: for b in B` where everything reads only `a * B + b`.

Equal computations over differently shaped but equally laid out tensors become equal kernels this
way, and elementwise kernels get one long loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from tg_ir.dtype import dtypes
from tg_ir.graph import Ops, UOp

_CLOSING = frozenset({Ops.END, Ops.REDUCE})
Coefficients = dict[UOp, int]


def merged_loops(order: Iterable[UOp]) -> dict[UOp, UOp | int]:
    """For loops that merge.

    Each to the extent of the merged loop if it is the innermost of them, else to 0.

    `order`: every node of the kernel graph. The result maps the innermost loop to a new RANGE of
    the merged extent with its own axis and kind, the outer ones to the constant 0.
    """
    nodes = list(order)
    lists = _loop_lists(nodes)
    if not any(len(loops) > 1 for loops in lists):
        return {}
    roots = _index_roots(nodes)
    forms = [_linear_form(root) for root in roots]
    pairs = _adjacent_pairs(nodes, lists)
    extents: dict[UOp, int] = {}
    follows: dict[UOp, UOp] = {}
    for outer, inner in pairs:
        # pairs come innermost first, so that the extent of a run of loops is known when one more
        # joins
        last = follows.get(inner, inner)
        extent = extents.get(last, _extent(last))
        if all(form.get(outer, 0) == extent * form.get(last, 0) for form in forms):
            follows[outer] = last
            extents[last] = extent * _extent(outer)
    mapping: dict[UOp, UOp | int] = dict.fromkeys(follows, 0)
    for last, extent in extents.items():
        mapping[last] = UOp.range(extent, last.arg.axis, last.arg.kind)
    return mapping


def _loop_lists(nodes: Iterable[UOp]) -> list[tuple[UOp, ...]]:
    found: dict[tuple[UOp, ...], None] = {}
    for node in nodes:
        if node.op in _CLOSING:
            found[tuple(s for s in node.src if s.op is Ops.RANGE)] = None
    return list(found)


def _extent(loop: UOp) -> int:
    bound = loop.src[0]
    return int(bound.arg) if bound.op is Ops.CONST else 0


def _adjacent_pairs(
    nodes: Iterable[UOp], lists: list[tuple[UOp, ...]]
) -> list[tuple[UOp, UOp]]:
    """Pairs (outer, inner) of loops of one kind that stand side by side wherever they stand."""
    scanned = {node.src[1] for node in nodes if node.op is Ops.SCAN}
    holders: dict[UOp, int] = {}
    together: dict[tuple[UOp, UOp], int] = {}
    for loops in lists:
        for loop in loops:
            holders[loop] = holders.get(loop, 0) + 1
        for pair in zip(loops, loops[1:], strict=False):
            together[pair] = together.get(pair, 0) + 1
    fitting: list[tuple[UOp, UOp]] = []
    for (outer, inner), count in together.items():
        same_kind = outer.arg.kind is inner.arg.kind
        constant = _extent(outer) > 0 and _extent(inner) > 0
        always = holders[outer] == count == holders[inner]
        if same_kind and constant and always and not {outer, inner} & scanned:
            fitting.append((outer, inner))
    fitting.reverse()
    return fitting


def _index_roots(nodes: Iterable[UOp]) -> list[UOp]:
    """Every index value that is used otherwise than as a term of a sum."""
    roots: dict[UOp, None] = {}
    for node in nodes:
        if node.op in _CLOSING or node.op is Ops.RANGE:
            continue
        if node.op is Ops.SCAN or _is_sum(node):
            continue
        for source in node.src:
            if source.dtype is dtypes.index:
                roots[source] = None
    return list(roots)


def _is_sum(node: UOp) -> bool:
    if node.dtype is not dtypes.index:
        return False
    return node.op is Ops.ADD or (node.op is Ops.MUL and node.src[1].op is Ops.CONST)


def _linear_form(root: UOp) -> Coefficients:
    """The factor of each loop in `root`.

    What is no sum of multiples of loops counts as a constant.
    """
    form: Coefficients = {}
    stack = [(root, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.RANGE:
            form[node] = form.get(node, 0) + factor
        elif _is_sum(node):
            if node.op is Ops.ADD:
                stack.extend((source, factor) for source in node.src)
            else:
                stack.append((node.src[0], factor * int(node.src[1].arg)))
    return form
