"""The default choice of optimisations for a kernel, without search.

What a good programmer would do first.

Sums of products get a register tile (`contraction`), other kernels lanes along the axis that lies
in a row in memory, independent accumulators for reductions, and threads over the outermost output
axis where there is enough work.
"""

from __future__ import annotations

from tg_ir.graph import AxisType, Ops, UOp, toposort
from tg_ir.graph.render_api import TargetCapabilities

from tg_codegen.loops import closed_ranges
from tg_codegen.optimize.access import (
    body_loads,
    iterations,
    loads_of,
    output_axes,
    reductions,
    states_of,
    stride,
)
from tg_codegen.optimize.apply import apply_opts, stores_of
from tg_codegen.optimize.contraction import choose_tile
from tg_codegen.optimize.opt import Opt, OptOps
from tg_codegen.optimize.products import Product, product_of
from tg_codegen.optimize.split_range import extent
from tg_codegen.optimize.tile import tile_opts

_THREAD_WORK = 1 << 16
_TILE_WORK = 1 << 10
_SMALL_LOOP = 8


def optimize(sink: UOp, capabilities: TargetCapabilities) -> UOp:
    """`sink` with the moves of the heuristic done; its KernelInfo lists them."""
    opts = choose_opts(sink, capabilities)
    return apply_opts(sink, opts) if opts else sink


def choose_opts(sink: UOp, capabilities: TargetCapabilities) -> list[Opt]:
    """The moves that the heuristic makes on `sink`, in order."""
    work = _total_work(sink)
    opts: list[Opt] = []
    if capabilities.vector_bits:
        opts = _vector_opts(sink, capabilities, work)
    if capabilities.has_threads and not any(o.op is OptOps.THREAD for o in opts):
        opts = opts + _thread_opts(sink, opts, work)
    if not capabilities.has_threads:
        opts = [o for o in opts if o.op is not OptOps.THREAD]
    return opts


def _vector_opts(sink: UOp, capabilities: TargetCapabilities, work: int) -> list[Opt]:
    product = product_of(sink)
    if product is not None and _dominates(sink, product):
        tile = choose_tile(sink, product, capabilities)
        if tile is not None:
            return _small_reductions(sink, product) + tile_opts(sink, product, tile)
    lanes = _lane_count(sink, capabilities)
    if lanes < 2:
        return []
    summed = _reduction_lanes(sink, lanes)
    if summed:
        return summed + _row_lanes(sink, lanes)
    return _output_lanes(sink, lanes)


def _dominates(sink: UOp, product: Product) -> bool:
    """Whether a register tile for `product` serves the whole kernel."""
    others = [r for r in reductions(sink) if r is not product.reduction]
    inside = any(r in others for r in toposort((product.reduction.src[0],)))
    small = all(8 * iterations(r) <= product.work for r in others)
    return product.work >= _TILE_WORK and small and not inside


def _small_reductions(sink: UOp, product: Product) -> list[Opt]:
    """Unrolls the short loops of the other reductions of a kernel."""
    return _unrolled([r for r in reductions(sink) if r is not product.reduction])


def _unrolled(group: list[UOp]) -> list[Opt]:
    """Unrolls the short loops of some reductions (reductions may share a loop)."""
    loops = {
        loop: None
        for reduction in group
        if reduction.arg.combine.op is not None
        for loop in closed_ranges(reduction)
    }
    return [
        Opt(OptOps.UNROLL, loop.arg.axis, extent(loop))
        for loop in loops
        if 1 < extent(loop) <= _SMALL_LOOP and loop.arg.kind is AxisType.REDUCE
    ]


def _total_work(sink: UOp) -> int:
    closers = [*reductions(sink), *[end for end in sink.src if end.op is Ops.END]]
    return max((iterations(c) for c in closers), default=1)


def _lane_count(sink: UOp, capabilities: TargetCapabilities) -> int:
    """Lanes that fill a register with the widest type that the kernel loads, stores or reduces."""
    sizes = [n.dtype.itemsize for n in toposort((sink,)) if n.op in {Ops.LOAD, Ops.REDUCE}]
    sizes += [store.src[1].dtype.itemsize for store in stores_of(sink)]
    return max(1, capabilities.vector_bits // 8 // max(sizes, default=1))


def _power_of_two_at_least(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()


def _lanes_opt(axis: UOp, lanes: int) -> Opt:
    return Opt(OptOps.VECTOR, axis.arg.axis, min(lanes, _power_of_two_at_least(extent(axis))))


def _reads_in_row(loads: list[UOp], axis: UOp) -> bool:
    strides = [stride(load.src[0], axis) for load in loads]
    return 1 in strides and all(s in {0, 1} for s in strides)


def _reduction_lanes(sink: UOp, lanes: int) -> list[Opt]:
    """Lanes and accumulators for each reduction whose operands lie in a row along a summed axis."""
    opts: list[Opt] = []
    done: set[UOp] = set()
    for reduction in reductions(sink):
        if done.intersection(closed_ranges(reduction)):
            continue
        loads = [load for value in states_of(reduction) for load in body_loads(value)]
        for axis in reversed(closed_ranges(reduction)):
            long_enough = extent(axis) >= min(lanes, _SMALL_LOOP)
            if not long_enough or not _reads_in_row(loads, axis):
                continue
            done.add(axis)
            opts.append(_lanes_opt(axis, lanes))
            outer = -(-extent(axis) // lanes)
            for count in (4, 2):
                if outer % count == 0 and outer >= 2 * count:
                    opts.append(Opt(OptOps.UNROLL, (*axis.arg.axis, 0), count))
                    break
            break
    return opts


def _row_lanes(sink: UOp, lanes: int) -> list[Opt]:
    """Lanes for the innermost output axis, where no reduction depends on it (softmax)."""
    axes = output_axes(sink)
    inside = {r for reduction in reductions(sink) for r in reduction.ranges}
    free = [a for a in axes if a not in inside]
    if not free or not _stores_in_row(sink, free[-1]):
        return []
    return [_lanes_opt(free[-1], lanes)]


def _stores_in_row(sink: UOp, axis: UOp) -> bool:
    return any(stride(store.src[0], axis) == 1 for store in stores_of(sink))


def _output_lanes(sink: UOp, lanes: int) -> list[Opt]:
    """Lanes along the output axis in which stores lie in a row.

    Small reductions inside are unrolled.
    """
    axes = [a for a in output_axes(sink) if extent(a) > 1]
    in_row = [a for a in axes if _stores_in_row(sink, a)]
    if not in_row or _has_scan(sink):
        return []
    axis = max(in_row, key=extent)
    opts = [_lanes_opt(axis, lanes)]
    opts.extend(_unrolled(reductions(sink)))
    outer = -(-extent(axis) // lanes)
    if len(loads_of(sink)) <= 4 and reductions(sink):
        # wide rows: each step of a sum over an outer axis then reads whole cache lines of one page
        for count in (32, 16, 8, 4, 2):
            if outer % count == 0 and outer >= 2 * count:
                opts.append(Opt(OptOps.UPCAST, (*axis.arg.axis, 0), count))
                break
    if outer > 1:
        opts.extend(_transposed_order(sink, axis, axes))
    return opts


def _transposed_order(sink: UOp, axis: UOp, axes: list[UOp]) -> list[Opt]:
    """Puts the axis along which a load lies in a row innermost, where that is not `axis`.

    The cache lines that the lanes gather from then serve the next iterations too.
    """
    loads = [load for load in loads_of(sink) if (stride(load.src[0], axis) or 2) > 1]
    across = [a for a in axes if a is not axis and any(stride(x.src[0], a) == 1 for x in loads)]
    if not across or len(sink.src) > 1 or reductions(sink):
        return []
    inner = across[-1]
    others = [r for r in closed_ranges(sink.src[0]) if r is not axis and r is not inner]
    order = (*[r.arg.axis for r in others], (*axis.arg.axis, 0), inner.arg.axis)
    return [Opt(OptOps.ORDER, None, order)]


def _has_scan(sink: UOp) -> bool:
    return any(n.op is Ops.SCAN for n in toposort((sink,)))


def _thread_opts(sink: UOp, opts: list[Opt], work: int) -> list[Opt]:
    """Threads over the outermost loop that is left.

    None where starting them costs more than the work.
    """
    if work < _THREAD_WORK:
        return []
    shaped = apply_opts(sink, opts) if opts else sink
    axes = [a for a in output_axes(shaped) if extent(a) > 1]
    if not axes:
        return []
    best = axes[0] if extent(axes[0]) >= 8 else max(axes, key=extent)
    return [Opt(OptOps.THREAD, best.arg.axis)]
