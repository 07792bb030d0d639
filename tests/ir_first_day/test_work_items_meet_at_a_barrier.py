"""LOCAL axes and BARRIER: all work-items of a group have done the first part before any goes on."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.optimize import Opt, OptOps
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, DefineArg, Ops
from tg_ir.graph.spec import kernel_graph, verify

from .kernels import floats, param
from .stages import check_kernel

GLOBAL, LOCAL, REDUCE = AxisType.GLOBAL, AxisType.LOCAL, AxisType.REDUCE
ITEMS = 8


def shared(slot: int, size: int) -> UOp:
    return UOp(Ops.DEFINE_LOCAL, dtypes.float32, (), DefineArg(slot, size))


def barrier(*effects: UOp) -> UOp:
    return UOp(Ops.BARRIER, dtypes.void, effects)


def reversed_in_groups(groups: int, *, meet: bool = True) -> UOp:
    """Each group writes its row to local memory, and reads it backwards."""
    group, item = UOp.range(groups, 0, GLOBAL), UOp.range(ITEMS, 1, LOCAL)
    tile = shared(0, ITEMS)
    write = tile.index(item).store(param(1, groups * ITEMS).index(group * ITEMS + item).load())
    filled = tile.after(barrier(write) if meet else write)
    value = filled.index(ITEMS - 1 - item).load()
    store = param(0, groups * ITEMS).index(group * ITEMS + item).store(value)
    return UOp.sink(store.end(group, item))


@pytest.mark.parametrize(
    "opts", [[], [Opt(OptOps.THREAD, (0,))], [Opt(OptOps.UPCAST, (0,), 2)]], ids=str
)
def test_items_read_what_others_wrote_before_the_barrier(opts: list[Opt]) -> None:
    x = floats(6, ITEMS)
    check_kernel(reversed_in_groups(6), [np.zeros_like(x), x], {0: x[:, ::-1]}, opts)


def test_a_second_barrier_orders_a_second_exchange() -> None:
    """Halves are summed, then the sums are handed to the neighbour: two tiles, two barriers."""
    group, item = UOp.range(3, 0, GLOBAL), UOp.range(ITEMS, 1, LOCAL)
    first, second = shared(0, ITEMS), shared(1, ITEMS)
    place = group * ITEMS + item
    filled = first.after(barrier(first.index(item).store(param(1, 3 * ITEMS).index(place).load())))
    partner = (item + ITEMS // 2) % ITEMS
    total = filled.index(item).load() + filled.index(partner).load()
    again = second.after(barrier(second.index(item).store(total)))
    value = again.index((item + 1) % ITEMS).load()
    sink = UOp.sink(param(0, 3 * ITEMS).index(place).store(value).end(group, item))
    x = floats(3, ITEMS)
    sums = x + np.roll(x, -ITEMS // 2, 1)
    check_kernel(sink, [np.zeros_like(x), x], {0: np.roll(sums, -1, 1)})


def test_items_of_two_local_axes_fill_a_tile_inside_a_loop() -> None:
    """A matmul in which each group copies a tile of both factors in every step over k."""
    size, tile = 12, 4
    row, column = UOp.range(size // tile, 0, GLOBAL), UOp.range(size // tile, 1, GLOBAL)
    y, x = UOp.range(tile, 2, LOCAL), UOp.range(tile, 3, LOCAL)
    block, k = UOp.range(size // tile, 4, REDUCE), UOp.range(tile, 5, REDUCE)
    left, right = shared(0, tile * tile), shared(1, tile * tile)
    here = y * tile + x
    a = param(1, size * size).index((row * tile + y) * size + block * tile + x).load()
    b = param(2, size * size).index((block * tile + y) * size + column * tile + x).load()
    met = barrier(left.index(here).store(a), right.index(here).store(b))
    product = (
        left.after(met).index(y * tile + k).load() * right.after(met).index(k * tile + x).load()
    )
    total = product.reduce(Ops.ADD, block, k)
    out = param(0, size * size).index((row * tile + y) * size + column * tile + x)
    sink = UOp.sink(out.store(total).end(row, column, y, x))
    left_values, right_values = floats(size, size), floats(size, size, seed=1)
    check_kernel(
        sink,
        [np.zeros((size, size), np.float32), left_values, right_values],
        {0: left_values @ right_values},
    )


def test_lanes_of_a_group_axis_are_work_items_too() -> None:
    """A VECTOR axis inside of a LOCAL one: four elements an item."""
    group, item = UOp.range(3, 0, GLOBAL), UOp.range(4, 1, LOCAL)
    lane = UOp.range(4, 2, AxisType.VECTOR)
    fill = UOp.range(4, 3, AxisType.VECTOR)
    tile = shared(0, 16)
    x = param(1, 48)
    write = tile.index(item * 4 + fill).store(x.index(group * 16 + item * 4 + fill).load())
    filled = tile.after(barrier(write.end(fill)))
    value = filled.index((3 - item) * 4 + lane).load()
    target = param(0, 48).index(group * 16 + item * 4 + lane)
    sink = UOp.sink(target.store(value).end(group, item, lane))
    values = floats(3, 4, 4)
    check_kernel(sink, [np.zeros_like(values), values], {0: values[:, ::-1]})


def test_reading_what_another_item_wrote_without_a_barrier_is_refused() -> None:
    with pytest.raises(VerificationError, match="another work-item has not written yet"):
        verify(reversed_in_groups(2, meet=False), kernel_graph)


def test_a_barrier_waits_for_effects_only() -> None:
    item = UOp.range(ITEMS, 1, LOCAL)
    tile = shared(0, ITEMS)
    met = barrier(param(1, ITEMS).index(item).load())
    store = param(0, ITEMS).index(item).store(tile.after(met).index(item).load())
    with pytest.raises(VerificationError, match="BARRIER: waits for effects, got LOAD"):
        verify(UOp.sink(store.end(item)), kernel_graph)


def test_the_number_of_work_items_is_constant() -> None:
    item = UOp.range(UOp.variable("v0", 1, 8), 1, LOCAL)
    store = param(0, 8).index(item).store(UOp.const(dtypes.float32, 1))
    with pytest.raises(VerificationError, match="axis of kind LOCAL has a constant bound above 0"):
        verify(UOp.sink(store.end(item)), kernel_graph)


def test_groups_in_lanes_have_a_tile_each() -> None:
    x = floats(6, ITEMS)
    opts = [Opt(OptOps.VECTOR, (0,), 2)]
    check_kernel(reversed_in_groups(6), [np.zeros_like(x), x], {0: x[:, ::-1]}, opts)
