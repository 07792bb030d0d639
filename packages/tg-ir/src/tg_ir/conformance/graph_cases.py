"""Small graphs of each stage with inputs, for `GraphSuite`: one for each construct."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tg_ir.dtype import DType, dtypes, to_bytes
from tg_ir.graph import (
    AxisType,
    Combine,
    KernelInfo,
    Ops,
    ParamArg,
    ReduceArg,
    SkewArg,
    UOp,
    VarArg,
)

__all__ = ["KERNEL_CASES", "TENSOR_CASES", "GraphCase"]

_F32, _I32 = dtypes.float32, dtypes.int32


@dataclass(frozen=True, slots=True)
class GraphCase:
    """A graph and what it reads.

    Attributes:
        name: what the graph does.
        graph: a SINK.
        buffers: bytes of each PARAM by slot (kernel graph), or of each BUFFER of `leaves`.
        leaves: the BUFFERs of a tensor graph, in the order of `buffers`.
        vals: the value of each DEFINE_VAR of a kernel graph.
    """

    name: str
    graph: UOp
    buffers: tuple[bytes, ...]
    leaves: tuple[UOp, ...] = ()
    vals: tuple[int, ...] = ()


def _values(count: int, dtype: DType = _F32) -> bytes:
    """Numbers whose float32 sums and products are exact, so that their order does not matter."""
    numbers = [(k * 7 + 3) % 11 - 5 for k in range(count)]
    return to_bytes(numbers if dtypes.is_int(dtype) else [k / 4 for k in numbers], dtype)


def _param(slot: int, size: int, writable: bool = False, dtype: DType = _F32) -> UOp:
    return UOp(Ops.PARAM, dtype, (), ParamArg(slot, size, writable))


def _kernel(name: str, *effects: UOp) -> UOp:
    return UOp.sink(*effects, arg=KernelInfo(name))


def _zeros(count: int) -> bytes:
    return bytes(4 * count)


def elementwise() -> GraphCase:
    """Twice the input, plus one."""
    i = UOp.range(12, 0, AxisType.GLOBAL)
    x = _param(1, 12).index(i).load()
    store = _param(0, 12, True).index(i).store(x + x + 1.0)
    return GraphCase("elementwise", _kernel("elementwise", store.end(i)), (_zeros(12), _values(12)))


def matmul() -> GraphCase:
    """Rows of 4 and 5 columns over 3 products."""
    i, j = UOp.range(4, 0, AxisType.GLOBAL), UOp.range(5, 1, AxisType.GLOBAL)
    k = UOp.range(3, 2, AxisType.REDUCE)
    left = _param(1, 12).index(i * 3 + k).load()
    right = _param(2, 15).index(k * 5 + j).load()
    value = (left * right).reduce(Ops.ADD, k)
    store = _param(0, 20, True).index(i * 5 + j).store(value)
    buffers = (_zeros(20), _values(12), _values(15))
    return GraphCase("matmul", _kernel("matmul", store.end(i, j)), buffers)


def padded() -> GraphCase:
    """Reads under a mask, whose other value is stored at the edges."""
    i = UOp.range(8, 0, AxisType.GLOBAL)
    inside = (i >= 2) & (i < 6)
    value = _param(1, 4).index(i - 2, inside).load(UOp.const(_F32, -1.0))
    store = _param(0, 8, True).index(i).store(value)
    return GraphCase("padded", _kernel("padded", store.end(i)), (_zeros(8), _values(4)))


def gathered() -> GraphCase:
    """Addresses that are read from memory."""
    i = UOp.range(6, 0, AxisType.GLOBAL)
    place = _param(2, 6, dtype=_I32).index(i).load().cast(dtypes.index)
    inside = (place >= 0) & (place < 5)
    store = _param(0, 6, True).index(i).store(_param(1, 5).index(place, inside).load())
    buffers = (_zeros(6), _values(5), _values(6, _I32))
    return GraphCase("gathered", _kernel("gathered", store.end(i)), buffers)


def largest_position() -> GraphCase:
    """A reduction of two states: the largest of 7 numbers and where it is."""
    states = [
        [UOp(Ops.STATE, dtype, (), (side, place)) for side in (0, 1)]
        for place, dtype in enumerate((_F32, _I32))
    ]
    better = states[0][0].alu(Ops.CMPLT, states[0][1])
    body = tuple([better.where(new, old) for old, new in states])
    combine = Combine("argmax", (-math.inf, 0), body)
    i, k = UOp.range(3, 0, AxisType.GLOBAL), UOp.range(7, 1, AxisType.REDUCE)
    x = _param(1, 21).index(i * 7 + k).load()
    both = UOp(Ops.REDUCE, _F32, (x, k.cast(_I32), k), ReduceArg(combine))
    place = both.get_tuple(1, _I32)
    store = _param(0, 3, True, _I32).index(i).store(place)
    return GraphCase("argmax", _kernel("argmax", store.end(i)), (_zeros(3), _values(21)))


def prefixes() -> GraphCase:
    """Sums of everything up to here."""
    i, r = UOp.range(2, 0, AxisType.GLOBAL), UOp.range(5, 1, AxisType.LOOP)
    x = _param(1, 10).index(i * 5 + r).load()
    total = UOp(Ops.SCAN, _F32, (x, r), ReduceArg(Combine.of(Ops.ADD, _F32)))
    store = _param(0, 10, True).index(i * 5 + r).store(total)
    return GraphCase("prefixes", _kernel("prefixes", store.end(i, r)), (_zeros(10), _values(10)))


def symbolic() -> GraphCase:
    """A loop whose length is an argument."""
    length = UOp(Ops.DEFINE_VAR, dtypes.index, (), VarArg("v0", 1, 9))
    i = UOp.range(length, 0, AxisType.GLOBAL)
    store = _param(0, 9, True).index(i).store(_param(1, 9).index(i).load() * 2.0)
    sink = _kernel("symbolic", store.end(i))
    return GraphCase("symbolic", sink, (_zeros(9), _values(9)), vals=(5,))


def two_outputs() -> GraphCase:
    """Stores over loops that have nothing in common."""
    i, j = UOp.range(4, 0, AxisType.GLOBAL), UOp.range(6, 1, AxisType.GLOBAL)
    first = _param(0, 4, True).index(i).store(_param(2, 6).index(i).load())
    second = _param(1, 6, True).index(j).store(_param(2, 6).index(j).load().alu(Ops.NEG))
    sink = _kernel("two_outputs", first.end(i), second.end(j))
    return GraphCase("two outputs", sink, (_zeros(4), _zeros(6), _values(6)))


KERNEL_CASES: tuple[Callable[[], GraphCase], ...] = (
    elementwise,
    matmul,
    padded,
    gathered,
    largest_position,
    prefixes,
    symbolic,
    two_outputs,
)


def _tensor(size: int, dtype: DType = _F32) -> UOp:
    return UOp.new_buffer("CPU", size, dtype)


def moved() -> GraphCase:
    """Every movement op."""
    x = _tensor(12)
    y = x.reshape((3, 4)).permute((1, 0)).flip((True, False)).pad(((1, 0), (0, 2)))
    y = y.shrink(((0, 4), (1, 5))).reshape((1, 4, 4)).expand((2, 4, 4))
    return GraphCase("moved", UOp.sink(y), (_values(12),), (x,))


def convolved() -> GraphCase:
    """Windows of three, weighted and added."""
    x, weight = _tensor(8), _tensor(3)
    wide = x.reshape((8, 1)).expand((8, 3))
    windows = UOp(Ops.SKEW, _F32, (wide,), SkewArg(0, 1, 1, 1, 6))
    product = windows * weight.reshape((1, 3)).expand((6, 3))
    sink = UOp.sink(product.reduce_axis(Ops.ADD, (1,)))
    return GraphCase("convolved", sink, (_values(8), _values(3)), (x, weight))


def looked_up() -> GraphCase:
    """Rows of a table, some of them missing."""
    table, places = _tensor(10), _tensor(4, _I32)
    rows = UOp(Ops.GATHER, _F32, (table.reshape((5, 2)), places), (0,))
    return GraphCase(
        "looked up", UOp.sink(rows), (_values(10), _values(4, _I32)), (table, places)
    )


def written() -> GraphCase:
    """A read before a write, and one after it."""
    x, y = _tensor(6), _tensor(3)
    new = x.after(x.shrink(((1, 4),)).store(y))
    return GraphCase("written", UOp.sink(x + x, new * new), (_values(6), _values(3)), (x, y))


TENSOR_CASES: tuple[Callable[[], GraphCase], ...] = (moved, convolved, looked_up, written)
