"""Masks of LOAD and STORE: an element whose mask is false is neither read nor written."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, Ops
from tg_ir.graph.spec import kernel_graph, verify
from tg_ir.graph.uop import as_index

from .kernels import floats, param
from .stages import Array, check_kernel

GLOBAL = AxisType.GLOBAL
COUNT, SHIFT = 37, 5
NUMPY = {
    dtypes.float32: np.float32,
    dtypes.int8: np.int8,
    dtypes.bool: np.bool_,
    dtypes.float64: np.float64,
}
MOVES = {
    "plain": [],
    "lanes": [Opt(OptOps.VECTOR, (0,), 8)],
    "wide lanes": [Opt(OptOps.VECTOR, (0,), 64)],
    "copies": [Opt(OptOps.UPCAST, (0,), 4)],
    "lanes of threads": [Opt(OptOps.VECTOR, (0,), 4), Opt(OptOps.THREAD, (0, 0))],
}
moves = pytest.mark.parametrize("opts", MOVES.values(), ids=MOVES)


def inside(where: UOp, bound: int) -> UOp:
    return (as_index(-1) < where) & (where < bound)


def shifted(dtype: DType, other: UOp | None) -> UOp:
    """out[i] = x[i - 5], or `other` where that is outside of x."""
    i = UOp.range(COUNT, 0, GLOBAL)
    where = i - SHIFT
    value = param(1, COUNT, dtype).index(where, inside(where, COUNT)).load(other)
    return UOp.sink(param(0, COUNT, dtype).index(i).store(value).end(i))


def values(dtype: DType) -> Array:
    return (floats(COUNT) * 9).astype(NUMPY[dtype])


@moves
@pytest.mark.parametrize("dtype", NUMPY, ids=lambda dtype: dtype.name)
def test_a_masked_load_gives_zero_or_the_other_value(dtype: DType, opts: list[Opt]) -> None:
    x = values(dtype)
    for other, default in ((None, 0), (UOp.const(dtype, 1), 1)):
        expected = np.roll(x, SHIFT)
        expected[:SHIFT] = default
        check_kernel(shifted(dtype, other), [np.zeros_like(x), x], {0: expected}, opts)


@moves
def test_a_masked_store_leaves_the_rest_as_it_was(opts: list[Opt]) -> None:
    i = UOp.range(COUNT, 0, GLOBAL)
    value = param(1, COUNT).index(i).load()
    mask = as_index(i % 3).alu(Ops.CMPNE, as_index(1)) & (i < COUNT - 2)
    sink = UOp.sink(param(0, COUNT).index(i, mask).store(value).end(i))
    x, before = floats(COUNT), np.full(COUNT, 77, np.float32)
    at = np.arange(COUNT)
    expected = np.where((at % 3 != 1) & (at < COUNT - 2), x, before)
    check_kernel(sink, [before, x], {0: expected}, opts)


@moves
def test_a_mask_read_from_memory_guards_a_gather(opts: list[Opt]) -> None:
    """Where the flag is false the index may be anything, and is not followed."""
    i = UOp.range(COUNT, 0, GLOBAL)
    flag = param(3, COUNT, dtypes.bool).index(i).load()
    where = param(2, COUNT, dtypes.int32).index(i).load().cast(dtypes.index)
    value = param(1, COUNT).index(where, flag).load(UOp.const(dtypes.float32, -1))
    sink = UOp.sink(param(0, COUNT).index(i).store(value).end(i))
    x = floats(COUNT)
    flags = np.arange(COUNT) % 4 != 2
    at = np.where(flags, (np.arange(COUNT) * 7) % COUNT, 10**9).astype(np.int32)
    expected = np.where(flags, x[at % COUNT], -1).astype(np.float32)
    check_kernel(sink, [np.zeros_like(x), x, at, flags], {0: expected}, opts)


def test_a_mask_is_a_bool() -> None:
    i = UOp.range(4, 0, GLOBAL)
    sink = UOp.sink(param(0, 4).index(i, i).store(UOp.const(dtypes.float32, 1)).end(i))
    with pytest.raises(VerificationError, match="INDEX: its mask is a bool, got dtypes.index"):
        verify(sink, kernel_graph)


def test_the_other_value_is_of_the_type_that_is_loaded() -> None:
    i = UOp.range(4, 0, GLOBAL)
    value = param(1, 4).index(i, i < 3).load(UOp.const(dtypes.int32, 1))
    sink = UOp.sink(param(0, 4).index(i).store(value).end(i))
    with pytest.raises(VerificationError, match="gives dtypes.float32 where its mask is false"):
        verify(sink, kernel_graph)
