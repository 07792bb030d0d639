"""`simplify`: the canonical form of a graph's integer arithmetic, exact rules for the rest.

One traversal, sources first, each node put in canonical form from canonical sources; the result is
kept on the node, so that simplifying an expression again, or a larger one that contains it, costs
only what is new.
"""

from __future__ import annotations

from collections.abc import Callable

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.rewrite import collection_paused
from tg_ir.graph.symbolic.comparison import equal, less_than, not_equal, truth
from tg_ir.graph.symbolic.elementwise import choose_branch, elementwise_rules
from tg_ir.graph.symbolic.integer_division import (
    add,
    divide_by_symbol,
    floor_divide,
    floor_modulo,
    subtract,
)
from tg_ir.graph.symbolic.linear import constant, multiply
from tg_ir.graph.symbolic.logic import conjunction, disjunction, negate
from tg_ir.graph.uop import UOp, toposort

# A node made by one rule is given to the rules again; more often than this none of ours needs.
_MOST_REWRITES = 20


def simplify(root: UOp, fast_math: bool = False) -> UOp:
    """`root` simplified; equal values for all inputs, bit for bit.

    Index arithmetic comes out in canonical form (see `linear`, `integer_division`, `comparison`),
    so equal expressions usually become the same node.

    Args:
        root: any graph.
        fast_math: use rules that are not exact, too.
    """
    if fast_math:
        return _simplify_fast(root)
    known = root._simple
    if known is not None:
        return root if known is True else known  # type: ignore[return-value]  # never False
    with collection_paused():
        for node in toposort((root,), _is_unknown):
            if node.op is Ops.RANGE:
                # a loop counter is known by its identity: END closes this very node
                node._simple = True
            elif node._simple is None:
                result = simplified_node(_over(node, [simplified(s) for s in node.src]), False)
                result._simple = True
                if result is not node:
                    node._simple = result
    return simplified(root)


def simplified(node: UOp) -> UOp:
    """The result kept on a node that was visited."""
    known = node._simple
    return node if known is True or known is None else known  # type: ignore[return-value]  # not False


def _is_unknown(node: UOp) -> bool:
    return node._simple is None


def _over(node: UOp, sources: list[UOp]) -> UOp:
    src = tuple(sources)
    return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)


def _simplify_fast(root: UOp) -> UOp:
    new: dict[UOp, UOp] = {}
    with collection_paused():
        for node in toposort((root,)):
            new[node] = simplified_node(_over(node, [new[s] for s in node.src]), True)
    return new[root]


def simplified_node(node: UOp, fast_math: bool = False) -> UOp:
    """The canonical form of a node with canonical sources."""
    for _ in range(_MOST_REWRITES):
        known = node._simple
        if known is not None and not fast_math:
            return simplified(node)
        result = _step(node, fast_math)
        if result is None or result is node:
            return node
        if result.dtype is dtypes.index or result.dtype is dtypes.bool or not result.src:
            return result
        node = result
    return node


def _step(node: UOp, fast_math: bool) -> UOp | None:
    """One improvement of `node`; complete for index and bool values."""
    if not node.src:
        return None
    dtype = node.dtype
    if dtype is dtypes.index:
        function = _INDEX.get(node.op)
        if function is not None:
            return function(*node.src)
    elif dtype is dtypes.bool:
        function = _BOOL.get(node.op)
        if function is not None:
            return _fixed(function(*node.src))
    for function_of_node, _ in elementwise_rules.rules_for(node.op, fast_math):
        result = function_of_node(node, None)
        if result is not None and result is not node:
            return result
    if node.op in GroupOp.Elementwise and dtype.count == 1 and dtype.kind != "float":
        return _fixed(node)
    return None


def _fixed(node: UOp) -> UOp:
    """A constant where the bounds leave one value."""
    if node.op is Ops.CONST or node.vmin != node.vmax:
        return node
    return UOp.const(node.dtype, node.vmin)


# ---- index


def _floor_division(x: UOp, y: UOp) -> UOp:
    if y.op is Ops.CONST:
        return floor_divide(x, y.arg)
    parts = divide_by_symbol(x, y)
    return _fixed(UOp(Ops.FLOORDIV, dtypes.index, (x, y))) if parts is None else parts[0]


def _floor_remainder(x: UOp, y: UOp) -> UOp:
    if y.op is Ops.CONST:
        return floor_modulo(x, y.arg)
    parts = divide_by_symbol(x, y)
    return _fixed(UOp(Ops.FLOORMOD, dtypes.index, (x, y))) if parts is None else parts[1]


def _truncating_division(x: UOp, y: UOp) -> UOp:
    if x.vmin >= 0 and y.vmin > 0:
        return _floor_division(x, y)
    return _folded(UOp(Ops.CDIV, dtypes.index, (x, y)))


def _truncating_remainder(x: UOp, y: UOp) -> UOp:
    if x.vmin >= 0 and y.vmin > 0:
        return _floor_remainder(x, y)
    return _folded(UOp(Ops.CMOD, dtypes.index, (x, y)))


def _folded(node: UOp) -> UOp:
    if all(source.op is Ops.CONST for source in node.src):
        return node.src[0].alu(node.op, *node.src[1:])
    return _fixed(node)


def _maximum(x: UOp, y: UOp) -> UOp:
    difference = subtract(x, y)
    if difference.vmin >= 0:
        return x
    if difference.vmax <= 0:
        return y
    if x.op is Ops.CONST:
        x, y = y, x
    if y.op is Ops.CONST and x.op is Ops.MAX and x.src[1].op is Ops.CONST:
        return _maximum(x.src[0], constant(max(x.src[1].arg, y.arg)))
    return UOp(Ops.MAX, dtypes.index, (x, y))


def _where(condition: UOp, yes: UOp, no: UOp) -> UOp:
    chosen = choose_branch(condition, yes, no)
    if chosen is None:
        return _fixed(UOp(Ops.WHERE, yes.dtype, (condition, yes, no)))
    return _where(*chosen.src) if chosen.op is Ops.WHERE else chosen


def _mul_acc(x: UOp, y: UOp, z: UOp) -> UOp:
    return add(multiply(x, y), z)


def _negative(x: UOp) -> UOp:
    return multiply(x, constant(-1))


_INDEX: dict[Ops, Callable[..., UOp]] = {
    Ops.ADD: add,
    Ops.SUB: subtract,
    Ops.NEG: _negative,
    Ops.MUL: multiply,
    Ops.MULACC: _mul_acc,
    Ops.FLOORDIV: _floor_division,
    Ops.FLOORMOD: _floor_remainder,
    Ops.CDIV: _truncating_division,
    Ops.CMOD: _truncating_remainder,
    Ops.MAX: _maximum,
    Ops.WHERE: _where,
}


# ---- bool


def _exclusive_or(x: UOp, y: UOp) -> UOp:
    if x.op is Ops.CONST:
        x, y = y, x
    if y.op is Ops.CONST:
        return negate(x) if y.arg else x
    return truth(False) if x is y else UOp(Ops.XOR, dtypes.bool, (x, y))


def _less(x: UOp, y: UOp) -> UOp:
    if x.dtype is dtypes.index:
        return less_than(x, y)
    # false for NaN as well
    return truth(False) if x is y else _compared(Ops.CMPLT, x, y)


def _same(x: UOp, y: UOp) -> UOp:
    if x.dtype is dtypes.index:
        return equal(x, y)
    if x.dtype is dtypes.bool and dtypes.is_bool(y.dtype):
        return negate(_exclusive_or(x, y))
    return truth(True) if x is y and not dtypes.is_float(x.dtype) else _compared(Ops.CMPEQ, x, y)


def _different(x: UOp, y: UOp) -> UOp:
    if x.dtype is dtypes.index:
        return not_equal(x, y)
    if x.dtype is dtypes.bool and dtypes.is_bool(y.dtype):
        return _exclusive_or(x, y)
    return truth(False) if x is y and not dtypes.is_float(x.dtype) else _compared(Ops.CMPNE, x, y)


def _compared(op: Ops, x: UOp, y: UOp) -> UOp:
    if x.op is Ops.CONST and y.op is not Ops.CONST and op is not Ops.CMPLT:
        x, y = y, x
    node = UOp(op, dtypes.bool, (x, y))
    for function, _ in elementwise_rules.rules_for(op):
        result = function(node, None)
        if result is not None:
            return result
    return node


def _bool_where(condition: UOp, yes: UOp, no: UOp) -> UOp:
    chosen = _where(condition, yes, no)
    if chosen.op is not Ops.WHERE:
        return chosen
    condition, yes, no = chosen.src
    if yes.op is Ops.CONST:
        return disjunction(condition, no) if yes.arg else conjunction(negate(condition), no)
    if no.op is Ops.CONST:
        return disjunction(negate(condition), yes) if no.arg else conjunction(condition, yes)
    return chosen


_BOOL: dict[Ops, Callable[..., UOp]] = {
    Ops.AND: conjunction,
    Ops.OR: disjunction,
    Ops.MUL: conjunction,
    Ops.ADD: disjunction,
    Ops.MAX: disjunction,
    Ops.XOR: _exclusive_or,
    Ops.CMPLT: _less,
    Ops.CMPEQ: _same,
    Ops.CMPNE: _different,
    Ops.WHERE: _bool_where,
}
