"""REDUCE over a tuple of states with a combine of one's own: argmax, Welford, online softmax."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import DType, dtypes
from tg_ir.errors import TgError
from tg_ir.graph import UOp
from tg_ir.graph.ops import AxisType, Combine, Ops, ReduceArg
from tg_ir.graph.spec import kernel_graph, tensor_graph, verify

from .kernels import floats, param
from .stages import check_kernel
from .tensors import check_tensors, holding

GLOBAL, REDUCE = AxisType.GLOBAL, AxisType.REDUCE
F32, I32 = dtypes.float32, dtypes.int32


def states(*kinds: DType) -> tuple[list[UOp], list[UOp]]:
    """STATE leaves of what is accumulated and of what is new."""
    sides = [
        [UOp(Ops.STATE, kind, (), (side, k)) for k, kind in enumerate(kinds)] for side in (0, 1)
    ]
    return sides[0], sides[1]


def argmax_combine() -> Combine:
    """Largest value and its first position, in whatever order elements come."""
    (best, at), (new, new_at) = states(F32, I32)
    is_better = (best < new) | (best.alu(Ops.CMPEQ, new) & (new_at < at))
    body = (is_better.where(new, best), is_better.where(new_at, at))
    return Combine("argmax", (float("-inf"), 2**31 - 1), body)


def welford_combine() -> Combine:
    """Count, mean and sum of squared distances (T. Chan et al., 1979)."""
    (count, mean, spread), (more, other, other_spread) = states(F32, F32, F32)
    total = count + more
    is_empty = total.alu(Ops.CMPEQ, UOp.const(F32, 0))
    divisor = is_empty.where(UOp.const(F32, 1), total)
    distance = other - mean
    body = (
        total,
        mean + distance * more / divisor,
        spread + other_spread + distance * distance * count * more / divisor,
    )
    return Combine("welford", (0.0, 0.0, 0.0), body)


def softmax_combine() -> Combine:
    """Largest value and the sum of powers of two below it, rescaled as it grows."""
    (largest, total), (new, more) = states(F32, F32)
    top = largest.alu(Ops.MAX, new)
    zero = UOp.const(F32, 0)
    low = UOp.const(F32, float("-inf"))

    def scale(value: UOp) -> UOp:
        return value.alu(Ops.CMPEQ, low).where(zero, (value - top).alu(Ops.EXP2))

    rescaled = total * scale(largest) + more * scale(new)
    return Combine("softmax", (float("-inf"), 0.0), (top, rescaled))


def reduced(combine: Combine, values: list[UOp], *loops: UOp) -> list[UOp]:
    node = UOp(Ops.REDUCE, values[0].dtype, (*values, *loops), ReduceArg(combine))
    return [node.get_tuple(k, value.dtype) for k, value in enumerate(values)]


def argmax(rows: int, columns: int) -> UOp:
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, REDUCE)
    value = param(1, rows * columns).index(row * columns + column).load()
    _, at = reduced(argmax_combine(), [value, column.cast(I32)], column)
    return UOp.sink(param(0, rows, I32).index(row).store(at).end(row))


def welford(rows: int, columns: int) -> UOp:
    """Mean and variance of each row, two outputs of one loop."""
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, REDUCE)
    value = param(2, rows * columns).index(row * columns + column).load()
    one, zero = UOp.const(F32, 1), UOp.const(F32, 0)
    count, mean, spread = reduced(welford_combine(), [one, value, zero], column)
    ends = (
        param(0, rows).index(row).store(mean).end(row),
        param(1, rows, writable=True).index(row).store(spread / count).end(row),
    )
    return UOp.sink(*ends)


def online_softmax(rows: int, columns: int) -> UOp:
    """One loop over the row for maximum and sum, one for the results."""
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, REDUCE)
    place = UOp.range(columns, 2, GLOBAL)
    x = param(1, rows * columns)
    one = UOp.const(F32, 1)
    value = x.index(row * columns + column).load()
    largest, total = reduced(softmax_combine(), [value, one], column)
    power = (x.index(row * columns + place).load() - largest).alu(Ops.EXP2)
    store = param(0, rows * columns).index(row * columns + place).store(power / total)
    return UOp.sink(store.end(row, place))


V, UPCAST, UNROLL = OptOps.VECTOR, OptOps.UPCAST, OptOps.UNROLL
MOVES = {
    "plain": [],
    "vector of outputs": [Opt(V, (0,), 4)],
    "vector that does not divide": [Opt(V, (0,), 8)],
    "tile of outputs": [Opt(UPCAST, (0,), 3)],
    "independent accumulators": [Opt(UNROLL, (1,), 4)],
    "lanes of the reduction": [Opt(V, (1,), 8)],
    "lanes and accumulators": [Opt(V, (1,), 4), Opt(UNROLL, (1, 0), 2)],
    "vector of outputs and accumulators": [Opt(V, (0,), 4), Opt(UNROLL, (1,), 3)],
}
moves = pytest.mark.parametrize("opts", MOVES.values(), ids=MOVES)


@moves
def test_argmax_gives_the_first_of_the_largest(opts: list[Opt]) -> None:
    values = np.array([[1, 5, 5, 2, 5, 0, 1, 5, 3, 3, 2], [7, 1, 7, 7, 0, 0, 0, 0, 0, 0, 7]] * 3)
    x = values.astype(np.float32) - 9
    check_kernel(argmax(6, 11), [np.zeros(6, np.int32), x], {0: x.argmax(1).astype(np.int32)}, opts)


@moves
def test_welford_gives_mean_and_variance(opts: list[Opt]) -> None:
    x = floats(6, 50) + np.float32(1000)  # a naive sum of squares loses all digits here
    zeros = np.zeros(6, np.float32)
    exact = x.astype(np.float64)
    check_kernel(
        welford(6, 50), [zeros, zeros, x], {0: exact.mean(1), 1: exact.var(1)}, opts, rtol=1e-4
    )


@moves
def test_online_softmax_agrees_with_softmax_in_two_passes(opts: list[Opt]) -> None:
    x = floats(5, 23) * 40
    powers = np.exp2(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    check_kernel(online_softmax(5, 23), [np.zeros_like(x), x], {0: expected}, opts)


def test_an_empty_reduction_gives_the_initial_states() -> None:
    row, column = UOp.range(2, 0, GLOBAL), UOp.range(0, 1, REDUCE)
    value = param(1, 2).index(row + column).load()
    _, at = reduced(argmax_combine(), [value, column.cast(I32)], column)
    sink = UOp.sink(param(0, 2, I32).index(row).store(at).end(row))
    check_kernel(sink, [np.zeros(2, np.int32), floats(2)], {0: np.full(2, 2**31 - 1, np.int32)})


def test_the_accumulators_are_phis() -> None:
    x = floats(6, 50)
    zeros = np.zeros(6, np.float32)
    text = check_kernel(welford(6, 50), [zeros, zeros, x], {0: x.mean(1), 1: x.var(1)}).text
    assert "alloca" not in text
    assert text.count("= phi float ") >= 3


def test_a_combine_that_makes_another_type_than_its_state_is_refused() -> None:
    column = UOp.range(4, 1, REDUCE)
    value = param(1, 4).index(column).load()
    combine = Combine("wrong", (0.0, 0), (UOp.const(F32, 0), UOp.const(F32, 0)))
    node = UOp(Ops.REDUCE, F32, (value, column.cast(I32), column), ReduceArg(combine))
    sink = UOp.sink(param(0, 1).index(0).store(node.get_tuple(0, F32)))
    with pytest.raises(TgError, match=r"makes dtypes.float32 of a state of dtypes.int32"):
        verify(sink, kernel_graph)


# ---- as tensors


def tensor_states(combine: Combine, values: list[UOp], axes: tuple[int, ...]) -> list[UOp]:
    node = UOp(Ops.REDUCE_AXIS, values[0].dtype, tuple(values), ReduceArg(combine, axes))
    return [node.get_tuple(k, value.dtype) for k, value in enumerate(values)]


def test_welford_of_a_tensor_is_one_kernel() -> None:
    x = floats(6, 50) + np.float32(1000)
    source = holding(x)
    ones, zeros = source.const_like(1), source.const_like(0)
    count, mean, spread = tensor_states(welford_combine(), [ones, source, zeros], (1,))
    exact = x.astype(np.float64)
    check_tensors(
        [mean, spread / count],
        [exact.mean(1, keepdims=True), exact.var(1, keepdims=True)],
        rtol=1e-4,
    )


def test_argmax_of_a_tensor_along_two_axes() -> None:
    x = floats(4, 6, 5)
    source = holding(x)
    places = UOp(Ops.IOTA, I32, (), 4 * 5).reshape((4, 1, 5)).expand((4, 6, 5))
    _, at = tensor_states(argmax_combine(), [source, places], (0, 2))
    flat = x.transpose(1, 0, 2).reshape(6, 20)
    check_tensors([at], [flat.argmax(1).astype(np.int32).reshape(1, 6, 1)])


def test_an_online_softmax_of_a_tensor() -> None:
    x = floats(5, 23) * 40
    source = holding(x)
    largest, total = tensor_states(softmax_combine(), [source, source.const_like(1)], (1,))
    power = (source - largest.expand((5, 23))).alu(Ops.EXP2)
    powers = np.exp2(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    check_tensors([power / total.expand((5, 23))], [expected])


def test_states_of_other_shapes_are_refused() -> None:
    node = UOp(
        Ops.REDUCE_AXIS,
        F32,
        (holding(floats(4)), holding(np.zeros(5, np.int32))),
        ReduceArg(argmax_combine(), (0,)),
    )
    with pytest.raises(TgError, match=r"its states share a shape, got \(4,\) and \(5,\)"):
        verify(UOp.sink(node.get_tuple(0, F32)), tensor_graph)
