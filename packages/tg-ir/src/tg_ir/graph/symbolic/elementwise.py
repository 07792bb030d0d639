"""Rules for machine integers, bools and floats, as patterns. Exact unless they say otherwise.

Index arithmetic has functions of its own (`linear`, `integer_division`, `comparison`), because its
sums are put in order as a whole.
"""

from __future__ import annotations

import math

from tg_ir.dtype import DType, dtypes
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.rewrite import Assumption, PatternMatcher, Rule, UPat, rule
from tg_ir.graph.scalar import alu
from tg_ir.graph.uop import UOp

_INTS = frozenset(dtypes.ints)
_FLOATS = frozenset(dtypes.floats)
_NUMBERS = _INTS | _FLOATS

_x = UPat.var("x")
_any_int = UPat.var("x", _INTS)
_any_float = UPat.var("x", _FLOATS)
_number = UPat.var("x", _NUMBERS)
_c1 = UPat.cvar("c1")
_c2 = UPat.cvar("c2")
_zero = UPat.const(None, 0)
_one = UPat.const(None, 1)


def fold_constants(node: UOp) -> UOp | None:
    """op(constants) -> constant."""
    if any(source.op is not Ops.CONST for source in node.src):
        return None
    values = [source.arg for source in node.src]
    value = alu(node.op, node.dtype, values, node.src[0].dtype)
    return UOp.const(node.dtype, value)


def put_constant_last(node: UOp) -> UOp | None:
    """Commutative op(c, x) -> op(x, c)."""
    left, right = node.src
    if left.op is not Ops.CONST or right.op is Ops.CONST:
        return None
    return UOp(node.op, node.dtype, (right, left))


def join_constants(x: UOp, c1: UOp, c2: UOp, node: UOp) -> UOp:
    """(x op c1) op c2 -> x op (c1 op c2), for ops that wrap or saturate nothing."""
    return x.alu(node.op, UOp.const(node.dtype, alu(node.op, node.dtype, (c1.arg, c2.arg))))


def drop_and_of_all_bits(x: UOp, c1: UOp) -> UOp | None:
    """X & ~0 -> x."""
    all_bits = -1 if x.dtype.kind == "int" else dtypes.max(x.dtype)
    return x if c1.arg == all_bits else None


def multiply_by_reciprocal(x: UOp, c1: UOp) -> UOp | None:
    """X / 2**k -> x * 2**-k, where the reciprocal is a normal number: then both round alike."""
    value = c1.arg
    if not math.isfinite(value) or value == 0.0 or abs(math.frexp(value)[0]) != 0.5:
        return None
    reciprocal = 1.0 / value
    layout = dtypes.finfo(x.dtype)
    if not layout.smallest_normal <= abs(reciprocal) <= layout.largest:
        return None
    return x.alu(Ops.MUL, c1.const_like(reciprocal))


def holds_exactly(outer: DType, inner: DType) -> bool:
    """Whether every value of `inner` is one of `outer`."""
    if outer is inner or inner.kind == "bool":
        return True
    if outer.kind == "float" and inner.kind == "float":
        wide, narrow = dtypes.finfo(outer), dtypes.finfo(inner)
        return wide[0] >= narrow[0] and wide[1] >= narrow[1]
    if outer.kind == "float":
        return inner.kind != "index" and inner.bits <= dtypes.finfo(outer).mantissa_bits + 1
    if inner.kind == "float" or outer.kind in {"bool", "void"}:
        return False
    return bool(
        dtypes.min(outer) <= dtypes.min(inner) and dtypes.max(inner) <= dtypes.max(outer)
    )


def drop_cast_through_wider(x: UOp, middle: UOp, outer: UOp) -> UOp | None:
    """cast(cast(x)) -> cast(x), where the type in the middle holds every value of x."""
    first, between, last = (node.dtype.scalar() for node in (x, middle, outer))
    if not holds_exactly(between, first):
        return None
    # from an int straight to an int wraps, by way of a float it saturates
    through_float = between.kind == "float" and first.kind != "float"
    if through_float and last.kind in {"int", "uint", "index"} and not holds_exactly(last, first):
        return None
    return x.cast(outer.dtype)


def lift_broadcast(node: UOp) -> UOp | None:
    """op(broadcast(x), ...) -> broadcast(op(x, ...))."""
    if not node.src or any(source.op is not Ops.BROADCAST for source in node.src):
        return None
    scalars = tuple([source.src[0] for source in node.src])
    return UOp(node.op, node.dtype.scalar(), scalars, node.arg).broadcast(node.dtype.count)


def join_equal_lanes(node: UOp) -> UOp | None:
    """vectorize(x, x, ...) -> broadcast(x)."""
    if any(source is not node.src[0] for source in node.src):
        return None
    return node.src[0].broadcast(len(node.src))


def take_lane(x: UOp, node: UOp) -> UOp | None:
    """gep(broadcast(x)) -> x, and gep(vectorize(...)) -> that lane."""
    if x.op is Ops.BROADCAST:
        return x.src[0]
    return x.src[node.arg] if x.op is Ops.VECTORIZE else None


def choose_branch(c: UOp, x: UOp, y: UOp) -> UOp | None:
    """where(true, x, y) -> x; where(c, x, x) -> x; where(not c, x, y) -> where(c, y, x)."""
    if x is y:
        return x
    if c.op is Ops.CONST:
        return x if c.arg else y
    if c.op is Ops.XOR and c.src[1].op is Ops.CONST and c.src[1].arg:
        return c.src[0].where(y, x)
    if x.op is Ops.WHERE and x.src[0] is c:
        return c.where(x.src[1], y)
    if y.op is Ops.WHERE and y.src[0] is c:
        return c.where(x, y.src[2])
    return None


def drop_true_mask(node: UOp) -> UOp | None:
    """index(buffer, i, true) -> index(buffer, i)."""
    mask = node.src[2] if len(node.src) == 3 else None
    if mask is None or mask.op is not Ops.CONST or not mask.arg:
        return None
    return UOp(Ops.INDEX, node.dtype, node.src[:2], node.arg)


_INT_RULES: list[tuple[str, UPat, UPat]] = [
    ("add_zero", _any_int + 0, _x),
    ("subtract_zero", _any_int - 0, _x),
    ("subtract_itself", _any_int - _x, _zero),
    ("multiply_by_zero", _any_int * 0, _zero),
    ("floor_divide_by_one", _any_int // 1, _x),
    ("floor_modulo_by_one", _any_int % 1, _zero),
    ("truncating_divide_by_one", _any_int.alu(Ops.CDIV, _one), _x),
    ("truncating_modulo_by_one", _any_int.alu(Ops.CMOD, _one), _zero),
    ("and_zero", _any_int & 0, _zero),
    ("and_itself", _any_int & _x, _x),
    ("or_zero", _any_int | 0, _x),
    ("or_itself", _any_int | _x, _x),
    ("xor_zero", _any_int ^ 0, _x),
    ("xor_itself", _any_int ^ _x, _zero),
    ("shift_left_by_zero", _any_int << 0, _x),
    ("shift_right_by_zero", _any_int >> 0, _x),
]

_NUMBER_RULES: list[tuple[str, UPat, UPat]] = [
    ("multiply_by_one", _number * 1, _x),
    ("negate_twice", _number.alu(Ops.NEG).alu(Ops.NEG), _x),
    ("maximum_with_itself", _number.maximum(_x), _x),
    ("truncate_twice", _number.alu(Ops.TRUNC).alu(Ops.TRUNC), _x.alu(Ops.TRUNC)),
    ("divide_by_one", _any_float / 1.0, _x),
    # x + 0.0 would turn -0.0 into 0.0; these keep it
    ("add_minus_zero", _any_float + -0.0, _x),
    ("subtract_plus_zero", _any_float - 0.0, _x),
]

_NO_NAN_RULES: list[tuple[str, UPat, UPat]] = [
    ("add_plus_zero", _any_float + 0, _x),
    ("multiply_float_by_zero", _any_float * 0, UPat.const(None, 0.0)),
    ("subtract_float_itself", _any_float - _x, UPat.const(None, 0.0)),
    ("divide_by_itself", _any_float / _x, UPat.const(None, 1.0)),
]

_REASSOCIATING_RULES: list[tuple[str, UPat, UPat]] = [
    ("join_float_sum", (_any_float + _c1) + _c2, _x + (_c1 + _c2)),
    ("join_float_product", (_any_float * _c1) * _c2, _x * (_c1 * _c2)),
]


def _associative(op: Ops) -> UPat:
    return UPat(op, _INTS, (UPat(op, _INTS, (_x, _c1)), _c2), name="node")


def _rules(table: list[tuple[str, UPat, UPat]], assumption: Assumption) -> list[Rule]:
    if assumption is Assumption.EXACT:
        return [rule(name, before, after, exact=True) for name, before, after in table]
    return [rule(name, before, after, assumes=assumption) for name, before, after in table]


elementwise_rules = PatternMatcher(
    [
        (UPat(GroupOp.Elementwise, name="node"), fold_constants),
        (UPat(GroupOp.Elementwise, name="node"), lift_broadcast),
        (UPat(GroupOp.Commutative, name="node"), put_constant_last),
        (UPat.var("c").where(UPat.var("x"), UPat.var("y")), choose_branch),
        *_rules(_INT_RULES, Assumption.EXACT),
        *_rules(_NUMBER_RULES, Assumption.EXACT),
        *_rules(_NO_NAN_RULES, Assumption.NO_NAN),
        *_rules(_REASSOCIATING_RULES, Assumption.REASSOCIATES),
        *[
            (_associative(op), join_constants)
            for op in (Ops.ADD, Ops.MUL, Ops.AND, Ops.OR, Ops.XOR, Ops.MAX)
        ],
        (_any_int & _c1, drop_and_of_all_bits),
        (_any_float / _c1, multiply_by_reciprocal),
        (_x.cast().named("middle").cast().named("outer"), drop_cast_through_wider),
        (UPat(Ops.VECTORIZE, name="node"), join_equal_lanes),
        (UPat(Ops.GEP, src=(_x,), name="node"), take_lane),
        (UPat(Ops.INDEX, name="node"), drop_true_mask),
    ]
)
