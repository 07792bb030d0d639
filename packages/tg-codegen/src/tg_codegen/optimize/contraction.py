"""Choosing the register tile of a sum of products on a CPU: matmul, convolution, their gradients.

Candidates are compared by an estimate of cycles: fused multiply-adds at two a cycle, loads at two a
cycle, lanes that a padded axis leaves idle, and the cost of copying a tile where a factor does not
lie in the order it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from tg_ir.graph import UOp
from tg_ir.graph.render_api import TargetCapabilities

from tg_codegen.optimize.contraction_problem import Factor, Problem, describe
from tg_codegen.optimize.products import Product
from tg_codegen.optimize.split_range import extent
from tg_codegen.optimize.tile import BLOCKS_A_THREAD, THREAD_WORK, Tile

_MAX_ROWS = 14
_MAX_COLUMNS = 7
_VECTORS = (1, 2, 3, 4, 8, 16)
_L1_SHARE = 32 << 10
_LATENCY = 4.0  # cycles of a multiply-add; a tile with fewer than 8 accumulators waits for it
_LOAD = 0.5
_MASKED_VECTOR_LOAD = 1.0
_MASKED_SCALAR_LOAD = 2.5  # a compare and a branch
_ADD_LANES = 8.0

Choice = tuple[UOp | None, int]
"""An axis and how many of its iterations are copied; (None, 1) for none."""


def choose_tile(sink: UOp, product: Product, capabilities: TargetCapabilities) -> Tile | None:
    """The cheapest tile for `product`, or None where nothing would be reused."""
    problem = describe(sink, product, capabilities)
    candidates: list[Tile] = []
    for number in (0, 1):
        for axis in problem.factors[number].own:
            candidates.extend(_output_lanes(problem, number, axis))
    for axis in problem.summed:
        candidates.extend(_summed_lanes(problem, axis))
    return min(candidates, key=lambda tile: tile.cycles, default=None)


def _padded(axis: UOp | None, part: int) -> float:
    """How much more work a padded axis makes: 1.0 where `part` divides its extent."""
    return 1.0 if axis is None else -(-extent(axis) // part) * part / extent(axis)


def _choices(axes: list[UOp], most: int) -> Iterator[Choice]:
    yield None, 1
    for axis in axes:
        for count in range(2, min(most, extent(axis)) + 1):
            yield axis, count


def _lanes_for(problem: Problem, axis: UOp) -> int:
    """As many lanes as a register has, fewer where the axis is shorter."""
    return min(problem.lanes, 1 << max(1, (extent(axis) - 1).bit_length()))


# ---- lanes along an output axis


def _vector_choices(factor: Factor, axis: UOp, lanes: int) -> Iterator[tuple[int, Choice]]:
    """How many vectors of lanes stand side by side, and how many of another axis of the factor."""
    for vectors in _VECTORS:
        if vectors == 1 or extent(axis) > (vectors - 1) * lanes:
            yield vectors, (None, 1)
    whole = -(-extent(axis) // lanes)
    if whole <= 2:
        # inner axes first: of equal tiles the one that lies closer together is taken
        others = [other for other in reversed(factor.own) if other is not axis]
        for choice in _choices(others, _MAX_COLUMNS):
            if choice[0] is not None:
                yield whole, choice


def _output_lanes(problem: Problem, number: int, axis: UOp) -> Iterator[Tile]:
    """Lanes along an output axis of factor `number`; the other factor is one scalar a row."""
    factor, other = problem.factors[number], problem.factors[1 - number]
    lanes = _lanes_for(problem, axis)
    in_row = factor.reads_in_row(axis)
    for vectors, (columns_axis, columns) in _vector_choices(factor, axis, lanes):
        side_by_side = vectors * columns
        most = min(_MAX_ROWS, (problem.registers - 2 - side_by_side) // side_by_side)
        waste = _padded(axis, vectors * lanes) * _padded(columns_axis, columns)
        for row_axis, rows in _choices(other.own, most):
            step = _step(factor, other, side_by_side, rows)
            cycles = problem.work / lanes / (side_by_side * rows) * step * waste
            if row_axis is None:
                cycles *= 1.0 + 2.0 / side_by_side  # bound by memory, which likes long rows
            cycles *= _padded(row_axis, rows)
            if in_row:
                slow = _cache_penalty(factor, side_by_side * lanes)
                yield Tile(
                    axis, lanes, vectors, row_axis, rows, None, cycles * slow, columns_axis, columns
                )
            extra = _copy_cycles(problem, factor, axis, vectors * lanes, in_row)
            if columns_axis is None and extra is not None:
                cycles += extra * _copies_by_threads(problem, other, row_axis, rows)
                yield Tile(axis, lanes, vectors, row_axis, rows, number, cycles)


def _step(factor: Factor, other: Factor, side_by_side: int, rows: int) -> float:
    """The cycles of one step of the sum: products, or loads where there are too many of them."""
    vector_load = _MASKED_VECTOR_LOAD if factor.is_masked else _LOAD
    scalar_load = _MASKED_SCALAR_LOAD if other.is_masked else _LOAD
    products = max(side_by_side * rows / 2, _LATENCY)
    return max(products, rows * scalar_load + side_by_side * vector_load) + 0.5


def _cache_penalty(factor: Factor, width: int) -> float:
    """How much slower a tile is read in place than from a copy.

    Its rows lie far apart, so they share few cache sets and a page each (measured on matmul 1024:
    155 against 230 GFLOP/s).
    """
    bytes_read = factor.summed_elements * width * 4
    return 1.4 if factor.is_far_apart and bytes_read > _L1_SHARE else 1.0


def _copy_cycles(
    problem: Problem, factor: Factor, axis: UOp, width: int, in_row: bool
) -> float | None:
    """What it costs to copy all of a factor in tiles of `width`; None where a tile is too large."""
    size = factor.summed_elements * width
    if size > problem.stage_limit:
        return None
    copies = float(-(-extent(axis) // width))
    for other in (*factor.own, *problem.shared):
        if other is not axis:
            copies *= extent(other)
    cost_of_row = 12.0 if factor.is_masked else 2.0
    return size * copies * (cost_of_row / problem.lanes if in_row else 1.5)


def _copies_by_threads(problem: Problem, other: Factor, row_axis: UOp | None, rows: int) -> int:
    """How often a tile is copied again, the threaded loop of `other` being outside."""
    if problem.work < THREAD_WORK:
        return 1
    left = [-(-extent(a) // rows) if a is row_axis else extent(a) for a in other.own]
    threaded = next((e for e in left if e >= BLOCKS_A_THREAD), max(left, default=1))
    return BLOCKS_A_THREAD if threaded >= 4 * BLOCKS_A_THREAD else threaded


# ---- lanes along a summed axis


def _summed_lanes(problem: Problem, axis: UOp) -> Iterator[Tile]:
    """Lanes along a summed axis: every factor is a vector, the lanes are added at the end."""
    first, second = problem.factors
    if not (first.reads_in_row(axis) and second.reads_in_row(axis)):
        return
    lanes = _lanes_for(problem, axis)
    load = _MASKED_VECTOR_LOAD if first.is_masked or second.is_masked else _LOAD
    for number in (0, 1):
        for columns_axis, columns in _choices(problem.factors[number].own, 4):
            for row_axis, rows in _choices(problem.factors[1 - number].own, 8):
                tile = rows * columns
                if tile > problem.registers - 6:
                    continue
                step = max(tile / 2, load * (rows + columns), _LATENCY) + 0.5
                cycles = problem.work / lanes / tile * step * _padded(axis, lanes)
                cycles *= _padded(row_axis, rows) * _padded(columns_axis, columns)
                cycles += problem.sums * _ADD_LANES
                yield Tile(axis, lanes, 1, row_axis, rows, None, cycles, columns_axis, columns)
