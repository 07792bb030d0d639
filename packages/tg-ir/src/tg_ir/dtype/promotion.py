"""Which dtype an operation on several dtypes has: the JAX promotion lattice.

Python numbers are weak: they sit at `_WEAK_INT` and `_WEAK_FLOAT` in the lattice, below every
tensor dtype of their kind, so that they never widen one. Reference: JAX, "Type promotion
semantics", https://docs.jax.dev/en/latest/type_promotion.html.
"""

from collections.abc import Iterable
from functools import cache

from tg_ir.dtype.data_type import DType, Scalar, dtypes
from tg_ir.errors import DTypeError

_WEAK_INT = "python int"
_WEAK_FLOAT = "python float"

# The direct successors of each node, weakest first.
_LATTICE: dict[str, tuple[str, ...]] = {
    "bool": (_WEAK_INT,),
    _WEAK_INT: ("uint8", "int8"),
    "uint8": ("int16", "uint16"),
    "int8": ("int16",),
    "uint16": ("int32", "uint32"),
    "int16": ("int32",),
    "uint32": ("int64", "uint64"),
    "int32": ("int64",),
    "uint64": (_WEAK_FLOAT,),
    "int64": (_WEAK_FLOAT,),
    _WEAK_FLOAT: ("float16", "bfloat16"),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float64",),
    "float64": (),
}
_FLOAT_NODES = frozenset({_WEAK_FLOAT, "float16", "bfloat16", "float32", "float64"})


@cache
def _at_or_above(node: str) -> frozenset[str]:
    """`node` and everything that it can be promoted to."""
    reached = {node}
    for successor in _LATTICE[node]:
        reached |= _at_or_above(successor)
    return frozenset(reached)


@cache
def _join(nodes: frozenset[str]) -> str:
    """The least node that every one of `nodes` can be promoted to."""
    common = frozenset.intersection(*(_at_or_above(node) for node in nodes))
    return max(common, key=lambda node: len(_at_or_above(node)))


def _resolve(node: str, lanes: int = 1) -> DType:
    """The dtype of a node; a weak one takes the default of its kind, as it is now."""
    if node == _WEAK_INT:
        return dtypes.default_int.vec(lanes)
    if node == _WEAK_FLOAT:
        return dtypes.default_float.vec(lanes)
    return dtypes.from_name(node).vec(lanes)


@cache
def _join_with_index(names: frozenset[str]) -> str:
    """The join of scalar names and weak nodes. Index takes in every integer.

    Beside a float, index counts as a Python int.
    """
    nodes = names - {"index"}
    if len(nodes) == len(names):
        return _join(nodes)
    return _join(nodes | {_WEAK_INT}) if nodes & _FLOAT_NODES else "index"


def least_upper_dtype(*operands: DType) -> DType:
    """The least dtype that all operands can be promoted to.

    Ints with floats give the float; signed with unsigned ints give the next wider signed int;
    uint64 with a signed int gives `dtypes.default_float`; float16 with bfloat16 gives float32.
    Vectors keep their lanes.

    Raises:
        DTypeError: no operand, void among the operands, or different numbers of lanes.
    """
    node, lanes = _join_of_dtypes(operands)
    return _resolve(node, lanes)


# Cached up to the default dtypes, which may change: 0.4 instead of 2.6 us for an operation.
@cache
def _join_of_dtypes(operands: tuple[DType, ...]) -> tuple[str, int]:
    """The lattice node that the operands join at, and their lanes."""
    lanes = {operand.count for operand in operands}
    if len(lanes) != 1 or dtypes.void in operands:
        shown = ", ".join(map(repr, operands)) or "nothing"
        raise DTypeError(f"promotion takes values with equal numbers of lanes, got {shown}")
    return _join_with_index(frozenset(operand.name for operand in operands)), lanes.pop()


def _weak_node(value: Scalar) -> str:
    """The lattice node of a Python number."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return _WEAK_INT
    if isinstance(value, float):
        return _WEAK_FLOAT
    raise DTypeError(f"expected a bool, int or float, got {type(value).__name__}")


def result_type(tensor_dtypes: Iterable[DType], python_scalars: Iterable[Scalar] = ()) -> DType:
    """The dtype of an operation on tensors and Python numbers.

    A Python number never widens a dtype of its own kind: an int with an int8 tensor gives int8,
    a float with a float16 tensor float16. It does change the kind: an int with a bool tensor
    gives `default_int`, a float with an int tensor `default_float`.

    Args:
        tensor_dtypes: scalar dtypes of the tensor operands.
        python_scalars: the other operands.

    Raises:
        DTypeError: no operand at all, void among them, or an operand that is no number.
    """
    strong = list(tensor_dtypes)
    weak = [_weak_node(value) for value in python_scalars]
    if strong and not weak:
        return least_upper_dtype(*strong)
    if any(dtype is dtypes.void or dtype.count != 1 for dtype in strong) or not strong + weak:
        raise DTypeError(f"result_type takes scalar dtypes with values, got {strong}")
    return _resolve(_join_with_index(frozenset([*(dtype.name for dtype in strong), *weak])))


def sum_accumulator(dtype: DType) -> DType:
    """The dtype in which a sum or product over `dtype` is carried out (SEMANTICS 11).

    float16 and bfloat16 accumulate in float32; bool, int8 and int16 in int32; uint8 and uint16
    in uint32; wider types in themselves. Lanes are kept.
    """
    scalar = dtype.scalar()
    if dtypes.is_float(scalar) and scalar.bits < 32:
        return dtypes.float32.vec(dtype.count)
    if scalar.kind in ("bool", "int") and scalar.bits < 32:
        return dtypes.int32.vec(dtype.count)
    if scalar.kind == "uint" and scalar.bits < 32:
        return dtypes.uint32.vec(dtype.count)
    return dtype
