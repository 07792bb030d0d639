"""The moves that make a register tile: splits, order of the loops around it, threads, packing."""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.graph import AxisType, UOp

from tg_codegen.loops import closed_ranges
from tg_codegen.optimize.access import loads_of, output_axes, stride
from tg_codegen.optimize.opt import Axis, Opt, OptOps
from tg_codegen.optimize.products import Product
from tg_codegen.optimize.split_range import extent

THREAD_WORK = 1 << 18
BLOCKS_A_THREAD = 8
_WINDOW = 8
_PAGE = 1024


@dataclass(frozen=True, slots=True)
class Tile:
    """A way to run a contraction.

    `lanes_axis` gets `lanes` lanes, `vectors` of them side by side, `columns` of `columns_axis`;
    `rows` of `row_axis` share them. `staged`: which factor is copied into a local tile. `cycles`:
    the estimate.
    """

    lanes_axis: UOp
    lanes: int
    vectors: int
    row_axis: UOp | None
    rows: int
    staged: int | None
    cycles: float
    columns_axis: UOp | None = None
    columns: int = 1


def tile_opts(sink: UOp, product: Product, tile: Tile) -> list[Opt]:
    """The moves that make `tile`, the order of the loops and the threads of it."""
    opts: list[Opt] = []
    path = tile.lanes_axis.arg.axis
    summed = tile.lanes_axis.arg.kind is AxisType.REDUCE
    axes = output_axes(sink)
    inner = _Nest([r.arg.axis for r in axes], {r.arg.axis: extent(r) for r in axes})
    opts.append(Opt(OptOps.VECTOR, path, tile.lanes))
    outer_extent = -(-extent(tile.lanes_axis) // tile.lanes)
    if not summed:
        inner.split(path, tile.lanes)
    if tile.vectors > 1 and outer_extent > 1:
        opts.append(Opt(OptOps.UPCAST, (*path, 0), tile.vectors))
        inner.split((*path, 0), tile.vectors)
    for axis, count in ((tile.row_axis, tile.rows), (tile.columns_axis, tile.columns)):
        if axis is not None and count > 1:
            opts.append(Opt(OptOps.UPCAST, axis.arg.axis, count))
            inner.split(axis.arg.axis, count)
    staged = None
    if tile.staged is not None:
        factor = product.factors[tile.staged]
        staged = [axis.arg.axis for axis in axes if axis in factor.ranges]
    opts.extend(inner.blocks(staged, product.work >= THREAD_WORK))
    if not summed:
        opts.extend(_masks_outside(product))
    if tile.staged is not None:
        opts.append(Opt(OptOps.STAGE, None, tile.staged))
    return opts


def _masks_outside(product: Product) -> list[Opt]:
    """Puts short loops that masks depend on, the places in a window, around the other summed loops.

    The masks are then computed once for many products.
    """
    loops = closed_ranges(product.reduction)
    masks = [m for load in loads_of(product.reduction.src[0]) for m in load.src[0].src[2:]]
    if product.guard is not None:
        masks.append(product.guard)
    short = [
        loop
        for loop in loops
        if extent(loop) <= _WINDOW and any(loop in mask.ranges for mask in masks)
    ]
    if not short or len(short) == len(loops) or tuple(short) == loops[: len(short)]:
        return []
    inner = next(loop for loop in reversed(loops) if loop not in short)
    steps = [stride(load.src[0], inner) for load in loads_of(product.reduction.src[0])]
    if any(step is None or step > _PAGE for step in steps):
        return []
    return [Opt(OptOps.ORDER, None, tuple(loop.arg.axis for loop in short))]


@dataclass(slots=True)
class _Nest:
    """The output loops left after the splits: their paths in order, and their extents."""

    order: list[Axis]
    extents: dict[Axis, int]

    def split(self, path: Axis, count: int) -> None:
        """`path` loses `count` iterations to an inner axis that is not a loop."""
        if path not in self.extents:
            return
        outer = -(-self.extents.pop(path) // count)
        place = self.order.index(path)
        self.order.pop(place)
        if outer > 1:
            self.order.insert(place, (*path, 0))
            self.extents[(*path, 0)] = outer

    def blocks(self, staged: list[Axis] | None, is_threaded: bool) -> list[Opt]:
        """The order of the loops, and which one the workers share.

        Args:
            staged: the axes that a staged factor depends on; their loops go outside of the others,
                so that its tile is filled once for all of those. None: nothing is staged.
            is_threaded: there is work for more than one worker.
        """
        opts: list[Opt] = []
        threaded: Axis | None = None
        if is_threaded and self.order:
            threaded, opts = self._threads(staged)
        if staged is not None:
            rest = [p for p in self.order if p != threaded]
            outside = [p for p in rest if _belongs(p, staged)]
            inside = [p for p in rest if not _belongs(p, staged)]
            order = ([threaded] if threaded is not None else []) + outside + inside
            if len(order) > 1:
                opts.append(Opt(OptOps.ORDER, None, tuple(order)))
        if threaded is not None:
            opts.append(Opt(OptOps.THREAD, threaded))
        return opts

    def _threads(self, staged: list[Axis] | None) -> tuple[Axis, list[Opt]]:
        """The loop to share; a long one that would fill a staged tile again goes in blocks."""
        # the outermost loop keeps neighbours together; a short one would leave workers idle
        long_enough = [p for p in self.order if self.extents[p] >= BLOCKS_A_THREAD]
        best = long_enough[0] if long_enough else max(self.order, key=lambda p: self.extents[p])
        fills_once = staged is None or _belongs(best, staged)
        if fills_once or self.extents[best] < 4 * BLOCKS_A_THREAD:
            return best, []
        count = -(-self.extents[best] // BLOCKS_A_THREAD)
        place = self.order.index(best)
        self.order[place : place + 1] = [(*best, 0), (*best, 1)]
        self.extents[(*best, 0)] = -(-self.extents.pop(best) // count)
        self.extents[(*best, 1)] = count
        return (*best, 0), [Opt(OptOps.SPLIT, best, count)]


def _belongs(path: Axis, axes: list[Axis]) -> bool:
    """Whether the loop `path` is a part of one of `axes`."""
    return any(path[: len(axis)] == axis for axis in axes)
