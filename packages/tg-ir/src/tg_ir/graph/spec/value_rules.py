"""Rules on values that all stages share: constants, elementwise ops, combines, vectors."""

from __future__ import annotations

from tg_ir.dtype import DType, cast_scalar, dtypes
from tg_ir.graph.ops import Combine, GroupOp, Ops, VarArg
from tg_ir.graph.spec.model import Check, OpRule
from tg_ir.graph.uop import UOp, toposort

NO_ARG = type(None)

_FLOAT_ONLY = frozenset(
    {Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.FDIV}
)
_INT_ONLY = frozenset(
    {Ops.FLOORDIV, Ops.FLOORMOD, Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR, Ops.THREEFRY}
)
_NOT_FLOAT = _INT_ONLY | {Ops.AND, Ops.OR, Ops.XOR}
_JOINING = GroupOp.Reduction


def is_exact(value: object, dtype: DType) -> bool:
    """Whether a Python number is one that `dtype` holds, of the Python type that goes with it."""
    scalar = dtype.scalar()
    if not isinstance(value, (bool, int, float)) or scalar is dtypes.void:
        return False
    if type(value) is not _python_type(scalar):
        return False
    cast = cast_scalar(value, scalar)
    return cast == value or value != value


def _python_type(dtype: DType) -> type:
    if dtypes.is_bool(dtype):
        return bool
    return float if dtypes.is_float(dtype) else int


def constant_is_exact(node: UOp) -> str | None:
    """CONST: the argument is exact in the dtype."""
    if is_exact(node.arg, node.dtype):
        return None
    return f"{node.arg!r} ({type(node.arg).__name__}) is no exact value of {node.dtype!r}"


def variable_is_bounded(node: UOp) -> str | None:
    """DEFINE_VAR: bounds in order, an int dtype."""
    arg: VarArg = node.arg
    if arg.vmin > arg.vmax:
        return f"its bounds {arg.vmin}..{arg.vmax} are empty"
    return None if dtypes.is_int(node.dtype) else f"its dtype is an int, got {node.dtype!r}"


def same_dtype_as_first(node: UOp) -> str | None:
    """The dtype is that of the first source."""
    if node.dtype is node.src[0].dtype:
        return None
    return f"its dtype is that of its source {node.src[0].dtype!r}, got {node.dtype!r}"


def image_fits(node: UOp) -> str | None:
    """BUFFER, PARAM: an image has as many elements as the buffer, and of its dtype."""
    image = node.arg.image
    if image is None:
        return None
    if image.base is not node.dtype or image.size != node.arg.size:
        return (
            f"has {node.arg.size} elements of {node.dtype!r}, its image {image.shape} has "
            f"{image.size} of {image.base!r}"
        )
    return None


def is_void(node: UOp) -> str | None:
    """An effect has no value."""
    return None if node.dtype is dtypes.void else f"is an effect of dtype void, got {node.dtype!r}"


def elementwise_dtypes(node: UOp) -> str | None:
    """ALU ops: operands of one dtype, which the op is defined on, and the right result."""
    op, src = node.op, node.src
    values = src[1:] if op is Ops.WHERE else src
    operand = values[0].dtype
    for value in values[1:]:
        if value.dtype is not operand:
            return f"operands have one dtype, got {operand!r} and {value.dtype!r}"
    if op is Ops.WHERE and src[0].dtype is not _bool_like(operand):
        return f"its condition is {_bool_like(operand)!r}, got {src[0].dtype!r}"
    expected = _bool_like(operand) if op in GroupOp.Comparison else operand
    if node.dtype is not expected:
        return f"gives {expected!r}, got {node.dtype!r}"
    return _op_is_defined(op, operand.scalar())


def _bool_like(dtype: DType) -> DType:
    return dtypes.bool if dtype.count == 1 else dtypes.bool.vec(dtype.count)


def _op_is_defined(op: Ops, dtype: DType) -> str | None:
    if dtype is dtypes.void:
        return "has operands without a value"
    if op in _FLOAT_ONLY and not dtypes.is_float(dtype):
        return f"is defined on floats, got {dtype!r}"
    if op in _NOT_FLOAT and dtypes.is_float(dtype):
        return f"is not defined on floats, got {dtype!r}"
    if op in _INT_ONLY and dtypes.is_bool(dtype):
        return f"is defined on ints, got {dtype!r}"
    if op is Ops.THREEFRY and dtype is not dtypes.uint64:
        return f"is defined on uint64, got {dtype!r}"
    return None


def cast_keeps_lanes(node: UOp) -> str | None:
    """CAST: to another dtype of as many lanes; BITCAST: of the same size too."""
    old, new = node.src[0].dtype, node.dtype
    if dtypes.void in (old, new):
        return "casts a value, and void has none"
    if old.count != new.count:
        return f"keeps the number of lanes, got {old!r} to {new!r}"
    if node.op is Ops.BITCAST and old.itemsize != new.itemsize:
        return f"keeps the size, got {old!r} to {new!r}"
    return None


def combine_fault(combine: Combine, states: list[DType]) -> str | None:
    """What is wrong with a combine that joins states of these dtypes."""
    if len(combine.init) != len(states):
        return f"combine '{combine.name}' has {len(combine.init)} states, got {len(states)} values"
    for start, dtype in zip(combine.init, states, strict=True):
        if not is_exact(start, dtype):
            return f"combine '{combine.name}' starts from {start!r}, no exact {dtype!r}"
    if combine.op is not None:
        return _single_op_fault(combine, states)
    if len(combine.body) != len(states):
        return f"combine '{combine.name}' has {len(combine.body)} results for {len(states)} states"
    for joined, dtype in zip(combine.body, states, strict=True):
        if joined.dtype is not dtype.scalar():
            return f"combine '{combine.name}' makes {joined.dtype!r} of a state of {dtype!r}"
    return _body_fault(combine, states)


def _single_op_fault(combine: Combine, states: list[DType]) -> str | None:
    if combine.op not in _JOINING or len(states) != 1:
        return f"combine '{combine.name}' is by one of ADD, MUL, MAX, AND, OR, XOR on one state"
    return _op_is_defined(combine.op, states[0].scalar())


def _body_fault(combine: Combine, states: list[DType]) -> str | None:
    for node in toposort(combine.body):
        if node.op is Ops.STATE:
            side, position = node.arg
            if side not in (0, 1) or not 0 <= position < len(states):
                return f"combine '{combine.name}' has no state {node.arg!r}"
            if node.dtype is not states[position].scalar():
                return f"combine '{combine.name}': STATE {node.arg!r} is of {states[position]!r}"
        elif node.op is not Ops.CONST and node.op not in GroupOp.Elementwise:
            return f"the body of combine '{combine.name}' holds {node.op.name}; only ALU ops may be"
    return None


def operand_count(op: Ops) -> int:
    """How many operands an ALU op has."""
    if op in GroupOp.Ternary:
        return 3
    return 2 if op in GroupOp.Binary else 1


def elementwise_rules(*further: Check) -> dict[Ops, OpRule]:
    """The rules of all ALU ops, CAST and BITCAST, with further checks of a stage."""
    table: dict[Ops, OpRule] = {}
    for op in GroupOp.ALU:
        count = operand_count(op)
        table[op] = OpRule(count, count, NO_ARG, (elementwise_dtypes, *further))
    for op in (Ops.CAST, Ops.BITCAST):
        table[op] = OpRule(1, 1, NO_ARG, (cast_keeps_lanes, *further))
    return table


# ---- vectors


def _lanes_dtype(node: UOp) -> str | None:
    if dtypes.is_int(node.dtype) and node.dtype.count > 1:
        return None
    return f"is a vector of ints, got {node.dtype!r}"


def _broadcast_dtype(node: UOp) -> str | None:
    source = node.src[0].dtype
    if source.count == 1 and node.dtype.count > 1 and node.dtype.scalar() is source:
        return None
    return f"makes a vector of equal lanes of a scalar {source!r}, got {node.dtype!r}"


def _vectorize_dtype(node: UOp) -> str | None:
    scalar = node.dtype.scalar()
    if node.dtype.count != len(node.src):
        return f"has {len(node.src)} lanes, its dtype is {node.dtype!r}"
    for lane in node.src:
        if lane.dtype is not scalar:
            return f"its lanes are {scalar!r}, got {lane.dtype!r}"
    return None


def _lane_exists(node: UOp) -> str | None:
    source = node.src[0].dtype
    if not 0 <= node.arg < source.count:
        return f"takes lane {node.arg} of {source.count}"
    return None if node.dtype is source.scalar() else f"gives {source.scalar()!r}"


def _reduce_lanes_dtype(node: UOp) -> str | None:
    source = node.src[0].dtype
    if node.arg not in _JOINING:
        return f"joins lanes by ADD, MUL, MAX, AND, OR or XOR, got {node.arg!r}"
    if source.count == 1 or node.dtype is not source.scalar():
        return f"joins the lanes of a vector to a scalar, got {source!r} to {node.dtype!r}"
    return _op_is_defined(node.arg, source.scalar())


VECTOR_RULES: dict[Ops, OpRule] = {
    Ops.LANES: OpRule(0, 0, NO_ARG, (_lanes_dtype,)),
    Ops.BROADCAST: OpRule(1, 1, NO_ARG, (_broadcast_dtype,)),
    Ops.VECTORIZE: OpRule(1, None, NO_ARG, (_vectorize_dtype,)),
    Ops.GEP: OpRule(1, 1, int, (_lane_exists,)),
    Ops.REDUCE_LANES: OpRule(1, 1, Ops, (_reduce_lanes_dtype,)),
}

CONST_RULE = OpRule(0, 0, (bool, int, float), (constant_is_exact,))
VARIABLE_RULE = OpRule(0, 0, VarArg, (variable_is_bounded,))
