"""The op codes of the IR, the axis kinds and the plain values that nodes carry as arguments.

What each op means, its sources and its stages: docs/explanation/ir.md. Nothing here builds or
changes a graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import TYPE_CHECKING

from tg_ir.dtype import DType, ImageDType, dtypes

if TYPE_CHECKING:
    from tg_ir.graph.uop import UOp


class Ops(IntEnum):
    """The kinds of node.

    An IntEnum, because its hash is C code (a third of the cost of interning a node).
    """

    # what to compute, and in what order
    SINK = auto()
    LINEAR = auto()
    CALL = auto()
    PROGRAM = auto()
    SOURCE = auto()
    BINARY = auto()
    FUNCTION = auto()
    CUSTOM = auto()
    TUPLE = auto()
    GETTUPLE = auto()
    # leaves
    BUFFER = auto()
    PARAM = auto()
    CONST = auto()
    DEFINE_VAR = auto()
    BIND = auto()
    IOTA = auto()
    RANGE = auto()
    SPECIAL = auto()
    DEFINE_LOCAL = auto()
    DEFINE_REG = auto()
    LANES = auto()
    STATE = auto()
    # versions of storage
    CONTIGUOUS = auto()
    DETACH = auto()
    COPY = auto()
    AFTER = auto()
    REALIZED = auto()
    # movement
    RESHAPE = auto()
    EXPAND = auto()
    PERMUTE = auto()
    PAD = auto()
    SHRINK = auto()
    FLIP = auto()
    SKEW = auto()
    UNSKEW = auto()
    # reductions and data-dependent access
    REDUCE_AXIS = auto()
    SCAN_AXIS = auto()
    REDUCE = auto()
    SCAN = auto()
    GATHER = auto()
    STAGE = auto()
    # memory
    INDEX = auto()
    LOAD = auto()
    STORE = auto()
    # control flow
    END = auto()
    IF = auto()
    ENDIF = auto()
    BARRIER = auto()
    # vectors
    BROADCAST = auto()
    VECTORIZE = auto()
    GEP = auto()
    REDUCE_LANES = auto()
    # elementwise
    CAST = auto()
    BITCAST = auto()
    NEG = auto()
    EXP2 = auto()
    LOG2 = auto()
    SIN = auto()
    SQRT = auto()
    RECIPROCAL = auto()
    TRUNC = auto()
    ADD = auto()
    SUB = auto()
    MUL = auto()
    FDIV = auto()
    FLOORDIV = auto()
    FLOORMOD = auto()
    CDIV = auto()
    CMOD = auto()
    MAX = auto()
    CMPLT = auto()
    CMPNE = auto()
    CMPEQ = auto()
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()
    SHR = auto()
    THREEFRY = auto()
    WHERE = auto()
    MULACC = auto()


class GroupOp:
    """Sets of ops that rules and passes ask for together."""

    Unary = frozenset(
        {Ops.NEG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC}
    )
    Comparison = frozenset({Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ})
    Binary = frozenset(
        {
            Ops.ADD,
            Ops.SUB,
            Ops.MUL,
            Ops.FDIV,
            Ops.FLOORDIV,
            Ops.FLOORMOD,
            Ops.CDIV,
            Ops.CMOD,
            Ops.MAX,
            Ops.AND,
            Ops.OR,
            Ops.XOR,
            Ops.SHL,
            Ops.SHR,
            Ops.THREEFRY,
        }
    ) | Comparison
    Ternary = frozenset({Ops.WHERE, Ops.MULACC})
    ALU = Unary | Binary | Ternary
    Elementwise = ALU | {Ops.CAST, Ops.BITCAST}
    Commutative = frozenset(
        {Ops.ADD, Ops.MUL, Ops.MAX, Ops.CMPNE, Ops.CMPEQ, Ops.AND, Ops.OR, Ops.XOR}
    )
    Movement = frozenset(
        {
            Ops.RESHAPE,
            Ops.EXPAND,
            Ops.PERMUTE,
            Ops.PAD,
            Ops.SHRINK,
            Ops.FLIP,
            Ops.SKEW,
            Ops.UNSKEW,
        }
    )
    Version = frozenset({Ops.BUFFER, Ops.CONTIGUOUS, Ops.AFTER, Ops.REALIZED})
    Reduction = frozenset({Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR})


class AxisType(IntEnum):
    """What the iterations of a RANGE mean; see "Axis kinds" in docs/explanation/ir.md."""

    GLOBAL = auto()
    LOCAL = auto()
    THREAD = auto()
    LOOP = auto()
    REDUCE = auto()
    VECTOR = auto()
    UNROLL = auto()
    DEVICE = auto()


class AddrSpace(IntEnum):
    """Where the elements of a buffer live."""

    GLOBAL = auto()
    LOCAL = auto()
    REG = auto()


ConstType = bool | int | float


@dataclass(frozen=True, slots=True)
class BufferArg:
    """Storage of `size` elements.

    `id` is unique in the process; a realised write makes `version + 1`. `image`: the layout of its
    elements where that is one of an image.
    """

    id: int
    size: int
    device: str | tuple[str, ...]
    version: int = 0
    image: ImageDType | None = None


@dataclass(frozen=True, slots=True)
class VarArg:
    """A symbolic integer with `vmin <= value <= vmax`."""

    name: str
    vmin: int
    vmax: int


@dataclass(frozen=True, slots=True)
class SkewArg:
    """The window geometry of SKEW and UNSKEW; `size` is the extent of the resulting `axis`."""

    axis: int
    window_axis: int
    stride: int
    dilation: int
    size: int


@dataclass(frozen=True, slots=True)
class ParamArg:
    """Argument `slot` of a kernel.

    A buffer of `size` elements, or of a FUNCTION body: a tensor of `shape`. `image`: as of the
    buffer.
    """

    slot: int
    size: int = 0
    writable: bool = False
    shape: tuple[int, ...] | None = None
    device: str | tuple[str, ...] | None = None
    image: ImageDType | None = None


@dataclass(frozen=True, slots=True)
class RangeArg:
    """A loop. `axis` tells it from the other loops of the kernel; a split appends one number."""

    axis: tuple[int, ...]
    kind: AxisType


@dataclass(frozen=True, slots=True)
class Combine:
    """How a reduction joins two states of `len(init)` scalars each.

    `init`: the identity, one scalar a state. `body`: the joined state, one UOp a state over STATE
    leaves `(side, i)`, side 0 = accumulated so far, side 1 = new. `op` is set where the combine is
    that one op.
    """

    name: str
    init: tuple[ConstType, ...]
    body: tuple[UOp, ...] = field(default=())
    op: Ops | None = None

    @staticmethod
    def of(op: Ops, dtype: DType) -> Combine:
        """The combine of one state by `op`.

        One of ADD, MUL, MAX, AND, OR, XOR, with its identity in `dtype`.
        """
        return Combine(op.name.lower(), (identity_element(op, dtype),), (), op)


def identity_element(op: Ops, dtype: DType) -> ConstType:
    """The value `e` with `op(e, x) == x` for every x of `dtype` (for MAX on floats.

    Minus infinity).
    """
    scalar = dtype.scalar()
    zero: ConstType = False if scalar is dtypes.bool else 0.0 if dtypes.is_float(scalar) else 0
    match op:
        case Ops.ADD | Ops.OR | Ops.XOR:
            return zero
        case Ops.MUL:
            return True if scalar is dtypes.bool else 1.0 if dtypes.is_float(scalar) else 1
        case Ops.MAX:
            return dtypes.min(scalar)
        case Ops.AND:
            if scalar is dtypes.bool:
                return True
            return dtypes.max(scalar) if dtypes.is_unsigned(scalar) else -1
        case _:
            raise ValueError(f"no reduction by {op.name}; expected ADD, MUL, MAX, AND, OR or XOR")


@dataclass(frozen=True, slots=True)
class ReduceArg:
    """How to join (`combine`) and, in a tensor graph, along which `axes`."""

    combine: Combine
    axes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StageArg:
    """A tile held in `space`.

    `shape`: extent of each of its ranges, in the order of the ranges; `order`: the axes from
    outermost to innermost in memory; `pad`: elements added to the innermost row.
    """

    space: AddrSpace
    shape: tuple[int, ...]
    order: tuple[int, ...]
    pad: int = 0


@dataclass(frozen=True, slots=True)
class DefineArg:
    """Memory of a kernel: `size` elements, `slot` tells it from others of its kind.

    `workspace`: DEFINE_LOCAL that lowering shall place in a workspace buffer, however small it is.
    """

    slot: int
    size: int
    workspace: bool = False


@dataclass(frozen=True, slots=True)
class FunctionArg:
    """A differentiable call.

    `gradient` names a registered gradient; empty: the body is differentiated.
    """

    name: str
    gradient: str = ""


@dataclass(frozen=True, slots=True)
class CustomArg:
    """A user-written kernel and how to evaluate and differentiate it.

    `source` in the language of `renderer`, its result shapes and dtypes, the name of the registered
    function that evaluates it and of its gradient.
    """

    name: str
    renderer: str
    source: str
    results: tuple[tuple[tuple[int, ...], DType], ...]
    evaluate: str = ""
    gradient: str = ""


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """Facts on the SINK of a kernel graph.

    Its name and the optimisations done, as text, in order.
    """

    name: str = "kernel"
    opts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallArg:
    """What a CALL runs: `kind` is `kernel`, `copy` or `graph`."""

    name: str
    kind: str = "kernel"
