"""Kernel graphs that the lowering tests share.

Built by hand, with numpy functions that say what they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tg_ir.dtype import DType, dtypes
from tg_ir.graph.ops import AxisType, Combine, Ops, ParamArg, ReduceArg
from tg_ir.graph.uop import UOp, as_index

Array = NDArray[np.generic]
GLOBAL, REDUCE, LOOP = AxisType.GLOBAL, AxisType.REDUCE, AxisType.LOOP
NUMPY_DTYPES = {dtypes.float32: np.float32, dtypes.int32: np.int32}


@dataclass(frozen=True)
class Case:
    """A kernel, the (shape, dtype) of its buffers (the first is the output), and its oracle."""

    sink: UOp
    buffers: tuple[tuple[tuple[int, ...], DType], ...]
    oracle: Callable[..., Array]


def param(slot: int, shape: Sequence[int], dtype: DType = dtypes.float32) -> UOp:
    return UOp(Ops.PARAM, dtype, (), ParamArg(slot, int(np.prod(shape)), slot == 0))


def matmul(m: int, n: int, k: int) -> Case:
    row, column = UOp.range(m, 0, GLOBAL), UOp.range(n, 1, GLOBAL)
    step = UOp.range(k, 2, REDUCE)
    left = param(1, (m, k)).index(row * k + step).load()
    right = param(2, (k, n)).index(step * n + column).load()
    total = (left * right).reduce(Ops.ADD, step)
    store = param(0, (m, n)).index(row * n + column).store(total)
    f32 = dtypes.float32
    buffers = (((m, n), f32), ((m, k), f32), ((k, n), f32))
    return Case(UOp.sink(store.end(row, column)), buffers, lambda a, b: a @ b)


def softmax(rows: int, columns: int) -> Case:
    """exp2-softmax along rows, three loops inside the row loop."""
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, GLOBAL)
    first, second = UOp.range(columns, 2, REDUCE), UOp.range(columns, 3, REDUCE)
    x = param(1, (rows, columns))
    largest = x.index(row * columns + first).load().reduce(Ops.MAX, first)
    powers = (x.index(row * columns + second).load() - largest).alu(Ops.EXP2)
    total = powers.reduce(Ops.ADD, second)
    result = (x.index(row * columns + column).load() - largest).alu(Ops.EXP2) / total
    store = param(0, (rows, columns)).index(row * columns + column).store(result)

    def oracle(a: Array) -> Array:
        powers = np.exp2(a - a.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    shape = ((rows, columns), dtypes.float32)
    return Case(UOp.sink(store.end(row, column)), (shape, shape), oracle)


def convolution(n: int, cin: int, cout: int, size: int) -> Case:
    """3x3, stride 1, padding 1: reads beyond the border are masked."""
    image, channel = UOp.range(n, 0, GLOBAL), UOp.range(cout, 1, GLOBAL)
    row, column = UOp.range(size, 2, GLOBAL), UOp.range(size, 3, GLOBAL)
    c, i, j = UOp.range(cin, 4, REDUCE), UOp.range(3, 5, REDUCE), UOp.range(3, 6, REDUCE)
    y, x = row + i - 1, column + j - 1
    inside = (as_index(-1) < y) & (y < size) & (as_index(-1) < x) & (x < size)
    source = param(1, (n, cin, size, size))
    pixel = source.index(((image * cin + c) * size + y) * size + x, inside).load()
    weight = param(2, (cout, cin, 3, 3)).index(((channel * cin + c) * 3 + i) * 3 + j).load()
    total = (pixel * weight).reduce(Ops.ADD, c, i, j)
    where = ((image * cout + channel) * size + row) * size + column
    store = param(0, (n, cout, size, size)).index(where).store(total)

    def oracle(a: Array, w: Array) -> Array:
        padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, w)

    f32 = dtypes.float32
    buffers = (
        ((n, cout, size, size), f32),
        ((n, cin, size, size), f32),
        ((cout, cin, 3, 3), f32),
    )
    return Case(UOp.sink(store.end(image, channel, row, column)), buffers, oracle)


def weight_gradient(n: int, cin: int, cout: int, size: int, window: int) -> Case:
    """The gradient of a padded convolution for its weight: images and positions are summed."""
    channel, c = UOp.range(cout, 0, GLOBAL), UOp.range(cin, 1, GLOBAL)
    i, j = UOp.range(window, 2, GLOBAL), UOp.range(window, 3, GLOBAL)
    image = UOp.range(n, 4, REDUCE)
    row, column = UOp.range(size, 5, REDUCE), UOp.range(size, 6, REDUCE)
    border = window // 2
    y, x = row + i - border, column + j - border
    inside = (as_index(-1) < y) & (y < size) & (as_index(-1) < x) & (x < size)
    source = param(1, (n, cin, size, size))
    pixel = source.index(((image * cin + c) * size + y) * size + x, inside).load()
    out = param(2, (n, cout, size, size))
    gradient = out.index(((image * cout + channel) * size + row) * size + column).load()
    total = (pixel * gradient).reduce(Ops.ADD, image, row, column)
    where = ((channel * cin + c) * window + i) * window + j
    store = param(0, (cout, cin, window, window)).index(where).store(total)

    def oracle(a: Array, g: Array) -> Array:
        padded = np.pad(a, ((0, 0), (0, 0), (border, border), (border, border)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window), (2, 3))
        return np.einsum("nchwij,nohw->ocij", windows, g)

    f32 = dtypes.float32
    buffers = (
        ((cout, cin, window, window), f32),
        ((n, cin, size, size), f32),
        ((n, cout, size, size), f32),
    )
    return Case(UOp.sink(store.end(channel, c, i, j)), buffers, oracle)


def input_gradient(n: int, cin: int, cout: int, size: int) -> Case:
    """The gradient of a padded 3x3 convolution for its input: the product stands under a guard."""
    image, c = UOp.range(n, 0, GLOBAL), UOp.range(cin, 1, GLOBAL)
    row, column = UOp.range(size, 2, GLOBAL), UOp.range(size, 3, GLOBAL)
    channel = UOp.range(cout, 4, REDUCE)
    i, j = UOp.range(3, 5, REDUCE), UOp.range(3, 6, REDUCE)
    y, x = row - i + 1, column - j + 1
    inside = (as_index(-1) < y) & (y < size) & (as_index(-1) < x) & (x < size)
    out = param(1, (n, cout, size, size))
    where = ((image * cout + channel) * size + y) * size + x
    weight = param(2, (cout, cin, 3, 3)).index(((channel * cin + c) * 3 + i) * 3 + j, inside)
    product = out.index(where, inside).load() * weight.load()
    guarded = inside.where(product, UOp.const(dtypes.float32, 0.0))
    total = guarded.reduce(Ops.ADD, channel, i, j)
    target = ((image * cin + c) * size + row) * size + column
    store = param(0, (n, cin, size, size)).index(target).store(total)

    def oracle(g: Array, w: Array) -> Array:
        padded = np.pad(g, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        return np.einsum("nohwij,ocij->nchw", windows, w[:, :, ::-1, ::-1])

    f32 = dtypes.float32
    buffers = (
        ((n, cin, size, size), f32),
        ((n, cout, size, size), f32),
        ((cout, cin, 3, 3), f32),
    )
    return Case(UOp.sink(store.end(image, c, row, column)), buffers, oracle)


def sum_axis(rows: int, columns: int, axis: int) -> Case:
    row = UOp.range(rows, 0, GLOBAL if axis == 1 else REDUCE)
    column = UOp.range(columns, 1, REDUCE if axis == 1 else GLOBAL)
    kept, summed = (row, column) if axis == 1 else (column, row)
    total = param(1, (rows, columns)).index(row * columns + column).load().reduce(Ops.ADD, summed)
    size = rows if axis == 1 else columns
    store = param(0, (size,)).index(kept).store(total)
    buffers = (((size,), dtypes.float32), ((rows, columns), dtypes.float32))
    return Case(UOp.sink(store.end(kept)), buffers, lambda a: a.sum(axis))


def argmax(rows: int, columns: int) -> Case:
    """The position of the first largest value in each row: a reduction over two states."""
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, REDUCE)
    value = param(1, (rows, columns)).index(row * columns + column).load()
    position = column.cast(dtypes.int32)
    best, new = (UOp(Ops.STATE, dtypes.float32, (), (side, 0)) for side in (0, 1))
    at, new_at = (UOp(Ops.STATE, dtypes.int32, (), (side, 1)) for side in (0, 1))
    # of equal values the first place, so that the order of joining does not matter
    better = (best < new) | (best.eq(new) & (new_at < at))
    combine = Combine(
        "argmax",
        (float("-inf"), columns),
        (better.alu(Ops.WHERE, new, best), better.alu(Ops.WHERE, new_at, at)),
    )
    joined = UOp(Ops.REDUCE, dtypes.float32, (value, position, column), ReduceArg(combine))
    store = param(0, (rows,), dtypes.int32).index(row).store(joined.get_tuple(1, dtypes.int32))
    buffers = (((rows,), dtypes.int32), ((rows, columns), dtypes.float32))
    return Case(UOp.sink(store.end(row)), buffers, lambda a: a.argmax(1).astype(np.int32))


def cumulative_sum(rows: int, columns: int) -> Case:
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, LOOP)
    value = param(1, (rows, columns)).index(row * columns + column).load()
    arg = ReduceArg(Combine.of(Ops.ADD, dtypes.float32))
    prefix = UOp(Ops.SCAN, dtypes.float32, (value, column), arg)
    store = param(0, (rows, columns)).index(row * columns + column).store(prefix)
    shape = ((rows, columns), dtypes.float32)
    return Case(UOp.sink(store.end(row, column)), (shape, shape), lambda a: a.cumsum(1))


def embedding(tokens: int, vocabulary: int, width: int) -> Case:
    """Rows of a table by data-dependent index; out of range reads 0."""
    token, column = UOp.range(tokens, 0, GLOBAL), UOp.range(width, 1, GLOBAL)
    which = param(1, (tokens,), dtypes.int32).index(token).load().cast(dtypes.index)
    inside = (as_index(-1) < which) & (which < vocabulary)
    value = param(2, (vocabulary, width)).index(which * width + column, inside).load()
    store = param(0, (tokens, width)).index(token * width + column).store(value)

    def oracle(index: Array, table: Array) -> Array:
        inside = (index >= 0) & (index < vocabulary)
        return np.where(inside[:, None], table[np.clip(index, 0, vocabulary - 1)], 0)

    buffers = (
        ((tokens, width), dtypes.float32),
        ((tokens,), dtypes.int32),
        ((vocabulary, width), dtypes.float32),
    )
    return Case(UOp.sink(store.end(token, column)), buffers, oracle)


def scatter_add(tokens: int, vocabulary: int) -> Case:
    """Adds each value to the slot that its index names, in order."""
    token = UOp.range(tokens, 0, LOOP)
    which = param(1, (tokens,), dtypes.int32).index(token).load().cast(dtypes.index)
    slot = param(0, (vocabulary,)).index(which)
    store = slot.store(slot.load() + param(2, (tokens,)).index(token).load())

    def oracle(index: Array, values: Array) -> Array:
        out = np.zeros(vocabulary, np.float32)
        np.add.at(out, index, values)
        return out

    buffers = (
        ((vocabulary,), dtypes.float32),
        ((tokens,), dtypes.int32),
        ((tokens,), dtypes.float32),
    )
    return Case(UOp.sink(store.end(token)), buffers, oracle)


def two_outputs(rows: int, columns: int) -> Case:
    """A row sum and a column maximum: two loop nests in one kernel, tested by its first output."""
    row, column = UOp.range(rows, 0, GLOBAL), UOp.range(columns, 1, REDUCE)
    other_column, other_row = UOp.range(columns, 2, GLOBAL), UOp.range(rows, 3, REDUCE)
    x = param(1, (rows, columns))
    total = x.index(row * columns + column).load().reduce(Ops.ADD, column)
    largest = x.index(other_row * columns + other_column).load().reduce(Ops.MAX, other_row)
    out = param(0, (rows + columns,))
    ends = (
        out.index(row).store(total).end(row),
        out.index(other_column + rows).store(largest).end(other_column),
    )
    buffers = (((rows + columns,), dtypes.float32), ((rows, columns), dtypes.float32))
    return Case(
        UOp.sink(*ends), buffers, lambda a: np.concatenate([a.sum(1), a.max(0)])
    )


def inputs_of(case: Case, seed: int = 0) -> list[Array]:
    """Random inputs.

    Integers are indices, a few of them out of range where the kernel masks that.
    """
    generator = np.random.default_rng(seed)
    arrays: list[Array] = []
    for shape, dtype in case.buffers[1:]:
        if dtype is dtypes.int32:
            limit = case.buffers[2][0][0] if len(case.buffers[2][0]) > 1 else case.buffers[0][0][0]
            low = -2 if len(case.buffers[2][0]) > 1 else 0
            arrays.append(generator.integers(low, limit + (2 if low else 0), shape, dtype=np.int32))
        else:
            arrays.append(generator.standard_normal(shape).astype(NUMPY_DTYPES[dtype]))
    return arrays
