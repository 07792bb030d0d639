"""Choosing the register tile of a sum of products on a CPU: matmul, convolution, their gradients.

Candidates are compared by an estimate of cycles: fused multiply-adds at two a cycle, loads at two a
cycle, lanes that a padded axis leaves idle, and the cost of copying a tile where a factor does not
lie in the order it is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.graph.render_api import TargetCapabilities
from tg_ir.graph.uop import UOp

from tg_codegen.loops import closed_ranges
from tg_codegen.optimize.access import body_loads, has_mask, output_axes, stride
from tg_codegen.optimize.products import Product
from tg_codegen.optimize.split_range import extent
from tg_codegen.optimize.tile import BLOCKS_A_THREAD, THREAD_WORK, Tile

_MAX_ROWS = 14
_FAR_APART = 256
_L1_SHARE = 32 << 10


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


def choose_tile(sink: UOp, product: Product, capabilities: TargetCapabilities) -> Tile | None:
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
    for vectors in (1, 2, 3, 4, 8, 16):
        if vectors > 1 and extent(axis) <= (vectors - 1) * problem.lanes:
            continue
        most = min(_MAX_ROWS, (problem.registers - 2 - vectors) // vectors)
        waste = _padded(extent(axis), vectors * problem.lanes)
        for row_axis, rows in _row_choices(problem.own[other], most):
            tile_work = rows * vectors
            step = max(tile_work / 2, 0.5 * rows + 0.5 * vectors, 4.0)
            step = max(step, rows * scalar_cost + vectors * vector_cost) + 0.5
            if row_axis is None:
                row_waste = 1.0 + 2.0 / vectors  # bound by memory, which likes long rows
            else:
                row_waste = _padded(extent(row_axis), rows)
            cycles = problem.work / problem.lanes / tile_work * step * waste * row_waste
            if in_row:
                slow = _cache_penalty(problem, number, vectors)
                found.append(
                    Tile(axis, problem.lanes, vectors, row_axis, rows, None, cycles * slow)
                )
            extra = _stage_cycles(problem, number, axis, vectors, in_row)
            extra *= _copies_by_threads(problem, number, row_axis, rows)
            found.append(Tile(axis, problem.lanes, vectors, row_axis, rows, number, cycles + extra))
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


def _stage_cycles(problem: _Problem, number: int, axis: UOp, vectors: int, in_row: bool) -> float:
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
    cost_of_row = 12.0 if has_mask(problem.factors[number]) else 2.0
    cost_of_element = cost_of_row / problem.lanes if in_row else 1.5
    return size * copies * cost_of_element


def _copies_by_threads(problem: _Problem, number: int, row_axis: UOp | None, rows: int) -> int:
    """How often the tile of factor `number` is copied again, the threaded loop being outside."""
    if problem.work < THREAD_WORK:
        return 1
    left = [
        -(-extent(axis) // rows) if axis is row_axis else extent(axis)
        for axis in problem.own[1 - number]
    ]
    threaded = next((e for e in left if e >= BLOCKS_A_THREAD), max(left, default=1))
    return BLOCKS_A_THREAD if threaded >= 4 * BLOCKS_A_THREAD else threaded


def _summed_lanes(problem: _Problem, axis: UOp) -> list[Tile]:
    """Lanes along a summed axis: every factor is a vector, the lanes are added at the end."""
    first, second = problem.factors
    fits = all(_reads_in_row(f, axis) or axis not in f.ranges for f in (first, second))
    if not fits or axis not in first.ranges or axis not in second.ranges:
        return []
    lanes = min(problem.lanes, 1 << max(1, (extent(axis) - 1).bit_length()))
    waste = _padded(extent(axis), lanes)
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
                cycles = problem.work / lanes / (rows * columns) * step * waste * row_waste
                cycles += sums * 8
                found.append(
                    Tile(axis, lanes, 1, row_axis, rows, None, cycles, columns_axis, columns)
                )
    return found


def _summed_size(problem: _Problem) -> int:
    total = 1
    for loop in problem.summed:
        total *= extent(loop)
    return total
