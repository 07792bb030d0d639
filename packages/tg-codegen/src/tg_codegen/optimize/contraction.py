"""Choosing the register tile of a sum of products on a CPU: matmul, convolution, their gradients.

Candidates are compared by an estimate of cycles: fused multiply-adds at two a cycle, loads at two a
cycle, lanes that a padded axis leaves idle, and the cost of copying a tile where a factor does not
lie in the order it is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.graph.ops import AxisType
from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.uop import UOp

from tg_codegen.loops import closed_ranges
from tg_codegen.optimize.access import body_loads, has_mask, loads_of, output_axes, stride
from tg_codegen.optimize.opt import Opt, OptOps
from tg_codegen.optimize.products import Product
from tg_codegen.optimize.split_range import extent

_MAX_ROWS = 14
_THREAD_WORK = 1 << 18
_FAR_APART = 256
_WINDOW = 8
_PAGE = 1024
_L1_SHARE = 32 << 10
_BLOCKS_A_THREAD = 8


@dataclass(frozen=True, slots=True)
class Tile:
    """A way to run a contraction.

    `lanes_axis` gets `lanes` lanes, `vectors` of them side by side; `rows` of `row_axis` share them
    (and, with lanes along a summed axis, `columns` of `columns_axis`). `staged`: which factor is
    copied into a local tile. `cycles`: the estimate.
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


@dataclass(frozen=True, slots=True)
class _Problem:
    """The factors of the product, the axes that only one of them uses, and the size of it all."""

    reduction: UOp
    factors: tuple[UOp, UOp]
    own: tuple[list[UOp], list[UOp]]
    shared: list[UOp]
    summed: list[UOp]
    work: int
    lanes: int
    registers: int
    stage_limit: int


def choose_tile(
    sink: UOp, product: Product, capabilities: TargetCapabilities
) -> Tile | None:
    """The cheapest tile for `product`, or None where nothing would be reused."""
    problem = _describe(sink, product, capabilities)
    candidates: list[Tile] = []
    for number in (0, 1):
        for axis in problem.own[number]:
            candidates.extend(_output_lanes(problem, number, axis))
    for axis in problem.summed:
        candidates.extend(_summed_lanes(problem, axis))
    return min(candidates, key=lambda tile: tile.cycles, default=None)


def _describe(sink: UOp, product: Product, capabilities: TargetCapabilities) -> _Problem:
    first, second = product.factors
    reduction = product.reduction
    outputs = [r for r in output_axes(sink) if r in reduction.ranges]
    own = (
        [r for r in outputs if r in first.ranges and r not in second.ranges],
        [r for r in outputs if r in second.ranges and r not in first.ranges],
    )
    bits = max(reduction.dtype.itemsize * 8, 8)
    return _Problem(
        reduction,
        (first, second),
        own,
        [r for r in outputs if r in first.ranges and r in second.ranges],
        [r for r in closed_ranges(reduction) if extent(r) > 0],
        product.work,
        max(1, capabilities.vector_bits // bits),
        capabilities.vector_registers or 16,
        min(capabilities.l2_bytes // 2, capabilities.local_bytes) // reduction.dtype.itemsize,
    )


def _padded(total: int, part: int) -> float:
    """How much more work a padded axis makes: 1.0 where `part` divides `total`."""
    return -(-total // part) * part / total


def _row_choices(axes: list[UOp], most: int) -> list[tuple[UOp | None, int]]:
    choices: list[tuple[UOp | None, int]] = [(None, 1)]
    for axis in axes:
        choices.extend((axis, rows) for rows in range(2, min(most, extent(axis)) + 1))
    return choices


def _reads_in_row(value: UOp, axis: UOp) -> bool:
    """Whether every load of `value` that depends on `axis` finds neighbours side by side."""
    strides = [stride(load.src[0], axis) for load in body_loads(value)]
    return bool(strides) and all(s in {0, 1} for s in strides) and 1 in strides


def _tile_elements(problem: _Problem, number: int, width: int) -> int:
    """The size of a staged tile: the summed axes of that factor times the lanes."""
    total = width
    for loop in closed_ranges(problem.reduction):
        if loop in problem.factors[number].ranges:
            total *= int(loop.vmax) + 1
    return total


def _output_lanes(problem: _Problem, number: int, axis: UOp) -> list[Tile]:
    """Lanes along an output axis of factor `number`; the other factor is one scalar a row."""
    other = 1 - number
    in_row = _reads_in_row(problem.factors[number], axis)
    scalar_cost = 2.5 if has_mask(problem.factors[other]) else 0.5
    vector_cost = 1.5 if has_mask(problem.factors[number]) else 0.5
    found: list[Tile] = []
    for vectors in (1, 2, 3, 4):
        if vectors > 1 and extent(axis) <= (vectors - 1) * problem.lanes:
            continue
        most = min(_MAX_ROWS, (problem.registers - 2 - vectors) // vectors)
        waste = _padded(extent(axis), vectors * problem.lanes)
        for row_axis, rows in _row_choices(problem.own[other], most):
            tile_work = rows * vectors
            step = max(tile_work / 2, 0.5 * rows + 0.5 * vectors, 4.0)
            step = max(step, rows * scalar_cost + vectors * vector_cost) + 0.5
            row_waste = _padded(extent(row_axis), rows) if row_axis is not None else 1.0
            cycles = problem.work / problem.lanes / tile_work * step * waste * row_waste
            if in_row:
                slow = _cache_penalty(problem, number, vectors)
                found.append(
                    Tile(axis, problem.lanes, vectors, row_axis, rows, None, cycles * slow)
                )
            extra = _stage_cycles(problem, number, axis, vectors, in_row)
            found.append(
                Tile(axis, problem.lanes, vectors, row_axis, rows, number, cycles + extra)
            )
    return [tile for tile in found if tile.cycles < float("inf")]


def _cache_penalty(problem: _Problem, number: int, vectors: int) -> float:
    """How much slower a tile is read in place than from a copy.

    Its rows lie far apart, so they share few cache sets and a page each (measured on matmul 1024:
    155 against 230 GFLOP/s).
    """
    bytes_read = _tile_elements(problem, number, vectors * problem.lanes) * 4
    far_apart = any(
        (stride(load.src[0], loop) or 0) >= _FAR_APART
        for load in body_loads(problem.factors[number])
        for loop in problem.summed
    )
    return 1.4 if far_apart and bytes_read > _L1_SHARE else 1.0


def _stage_cycles(
    problem: _Problem, number: int, axis: UOp, vectors: int, in_row: bool
) -> float:
    """What it costs to copy factor `number`: once for each block of the other axes."""
    size = _tile_elements(problem, number, vectors * problem.lanes)
    if size > problem.stage_limit:
        return float("inf")
    copies = _padded(extent(axis), vectors * problem.lanes) * extent(axis)
    copies = copies / (vectors * problem.lanes)
    for shared in problem.own[number]:
        if shared is not axis:
            copies *= extent(shared)
    for shared in problem.shared:
        copies *= extent(shared)
    cost_of_element = 2.0 / problem.lanes if in_row else 1.5
    return size * copies * cost_of_element


def _summed_lanes(problem: _Problem, axis: UOp) -> list[Tile]:
    """Lanes along a summed axis: every factor is a vector, the lanes are added at the end."""
    first, second = problem.factors
    fits = all(_reads_in_row(f, axis) or axis not in f.ranges for f in (first, second))
    if not fits or axis not in first.ranges or axis not in second.ranges:
        return []
    waste = _padded(extent(axis), problem.lanes)
    sums = problem.work / max(1, _summed_size(problem))
    found: list[Tile] = []
    mask_cost = 1.5 if has_mask(first) or has_mask(second) else 0.5
    for number in (0, 1):
        for columns_axis, columns in _row_choices(problem.own[number], 4):
            for row_axis, rows in _row_choices(problem.own[1 - number], 8):
                if rows * columns > problem.registers - 6 or (columns_axis is None and rows > 8):
                    continue
                step = max(rows * columns / 2, mask_cost * (rows + columns), 1.0) + 0.5
                if rows * columns < 8:
                    step = max(step, 4.0)
                row_waste = _padded(extent(row_axis), rows) if row_axis is not None else 1.0
                if columns_axis is not None:
                    row_waste *= _padded(extent(columns_axis), columns)
                cycles = problem.work / problem.lanes / (rows * columns) * step * waste * row_waste
                cycles += sums * 8
                found.append(
                    Tile(
                        axis, problem.lanes, 1, row_axis, rows, None, cycles, columns_axis, columns
                    )
                )
    return found


def _summed_size(problem: _Problem) -> int:
    total = 1
    for loop in problem.summed:
        total *= extent(loop)
    return total


def tile_opts(sink: UOp, product: Product, tile: Tile) -> list[Opt]:
    """The moves that make `tile`, the order of the loops and the threads of it."""
    opts: list[Opt] = []
    work = product.work
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
    opts.extend(inner.blocks(path, tile, work))
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

    order: list[tuple[int, ...]]
    extents: dict[tuple[int, ...], int]

    def split(self, path: tuple[int, ...], count: int) -> None:
        """`path` loses `count` iterations to an inner axis that is not a loop."""
        if path not in self.extents:
            return
        outer = -(-self.extents.pop(path) // count)
        place = self.order.index(path)
        self.order.pop(place)
        if outer > 1:
            self.order.insert(place, (*path, 0))
            self.extents[(*path, 0)] = outer

    def blocks(self, lanes_path: tuple[int, ...], tile: Tile, work: int) -> list[Opt]:
        """The loops in the order.

        Threads, then the lanes' own loop (a staged tile is filled there), then the rest.
        """
        opts: list[Opt] = []
        own = [p for p in self.order if p[: len(lanes_path)] == lanes_path]
        others = [p for p in self.order if p not in own]
        threaded: tuple[int, ...] | None = None
        if work >= _THREAD_WORK and self.order:
            threaded, opts = self._threads(own, others, tile)
        if own and tile.staged is not None:
            rest = [p for p in self.order if p != threaded and p not in own]
            front = ([threaded] if threaded is not None else []) + [p for p in own if p != threaded]
            if len(front) + len(rest) > 1:
                opts.append(Opt(OptOps.ORDER, None, tuple(front + rest)))
        if threaded is not None:
            opts.append(Opt(OptOps.THREAD, threaded))
        return opts

    def _threads(
        self, own: list[tuple[int, ...]], others: list[tuple[int, ...]], tile: Tile
    ) -> tuple[tuple[int, ...] | None, list[Opt]]:
        """The axis to thread.

        The largest; with a staged tile one of the others, in blocks that share the tile.
        """
        choices = others if tile.staged is not None and others else own + others
        if not choices:
            return None, []
        # the outermost loop keeps neighbours together; a short one would leave workers idle
        long_enough = [p for p in choices if self.extents[p] >= _BLOCKS_A_THREAD]
        best = long_enough[0] if long_enough else max(choices, key=lambda p: self.extents[p])
        if tile.staged is None or self.extents[best] < 4 * _BLOCKS_A_THREAD:
            return best, []
        count = -(-self.extents[best] // _BLOCKS_A_THREAD)
        place = self.order.index(best)
        self.order[place : place + 1] = [(*best, 0), (*best, 1)]
        self.extents[(*best, 0)] = -(-self.extents.pop(best) // count)
        self.extents[(*best, 1)] = count
        return (*best, 0), [Opt(OptOps.SPLIT, best, count)]
