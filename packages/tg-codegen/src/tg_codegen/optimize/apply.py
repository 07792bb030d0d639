"""Applying an `Opt` to a kernel graph.

Each move keeps what the kernel computes; an illegal one is refused with a reason.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tg_ir.graph import (
    AddrSpace,
    AxisType,
    KernelInfo,
    Ops,
    RangeArg,
    StageArg,
    UOp,
    substitute,
    toposort,
)
from tg_ir.graph.symbolic import simplify

from tg_codegen.errors import OptError
from tg_codegen.loops import closed_ranges, stored_by
from tg_codegen.optimize.opt import Axis, Opt, OptOps
from tg_codegen.optimize.products import product_of
from tg_codegen.optimize.split_range import (
    block_range,
    extent,
    range_with_axis,
    retag_range,
    split_range,
)
from tg_codegen.stage_layout import stage_position


def apply_opts(sink: UOp, opts: list[Opt]) -> UOp:
    """`sink` after all `opts`, which its `KernelInfo` then lists.

    Raises:
        OptError: a move that the kernel does not allow.
    """
    for opt in opts:
        try:
            sink = apply_opt(sink, opt)
        except (KeyError, OptError) as error:
            raise OptError(f"{opt}: {error.args[0]}") from error
    info: KernelInfo = sink.arg or KernelInfo()
    return sink.replace(arg=replace(info, opts=info.opts + tuple(map(str, opts))))


def apply_opt(sink: UOp, opt: Opt) -> UOp:
    """`sink` after one move."""
    match opt.op:
        case OptOps.VECTOR:
            return _split(sink, opt, AxisType.VECTOR, {AxisType.GLOBAL, AxisType.REDUCE})
        case OptOps.UPCAST:
            return _split(sink, opt, AxisType.UNROLL, {AxisType.GLOBAL})
        case OptOps.UNROLL:
            return _split(sink, opt, AxisType.UNROLL, {AxisType.REDUCE})
        case OptOps.SPLIT:
            return _split(sink, opt, None, {AxisType.GLOBAL, AxisType.REDUCE})
        case OptOps.ORDER:
            return _order(sink, _axes_of(opt))
        case OptOps.THREAD:
            return _thread(sink, _axis_of(opt))
        case OptOps.STAGE:
            return stage_factor(sink, _count_of(opt))
        case _:
            assert_never(opt.op)


def _axis_of(opt: Opt) -> Axis:
    if opt.axis is None:
        raise OptError("expected an axis")
    return opt.axis


def _count_of(opt: Opt) -> int:
    if not isinstance(opt.arg, int):
        raise OptError(f"expected an int as arg, got {opt.arg!r}")
    return opt.arg


def _axes_of(opt: Opt) -> tuple[Axis, ...]:
    if not isinstance(opt.arg, tuple):
        raise OptError(f"expected a tuple of axes as arg, got {opt.arg!r}")
    return opt.arg


def _split(sink: UOp, opt: Opt, kind: AxisType | None, allowed: set[AxisType]) -> UOp:
    axis, count = range_with_axis(sink, _axis_of(opt)), _count_of(opt)
    if axis.arg.kind not in allowed:
        names = " or ".join(sorted(k.name for k in allowed))
        raise OptError(f"expected an axis of kind {names}, this one is {axis.arg.kind.name}")
    if extent(axis) < 0:
        raise OptError("the extent of the axis is symbolic; only constant extents are split")
    if kind is None:
        return block_range(sink, axis, count)
    _check_no_loop_depends_on(sink, axis)
    if kind is AxisType.VECTOR:
        _check_one_vector_axis(sink, axis)
    return split_range(sink, axis, count, kind)


def _check_no_loop_depends_on(sink: UOp, axis: UOp) -> None:
    """Lanes and copies run loops side by side, so that these have to be of one length."""
    for node in toposort((sink,)):
        if node.op is Ops.RANGE and axis in node.src[0].ranges:
            raise OptError(f"the extent of axis {node.arg.axis} depends on this axis")


def _check_one_vector_axis(sink: UOp, axis: UOp) -> None:
    for node in toposort((sink,)):
        loops = node.ranges
        if node.op in {Ops.REDUCE, Ops.END}:
            # lanes of what it closes and of all that stands in it meet there
            loops = loops.union(closed_ranges(node))
        if axis in loops and any(r.arg.kind is AxisType.VECTOR for r in loops):
            raise OptError(f"{node!r} would depend on two vector axes")


def _order(sink: UOp, first: tuple[Axis, ...]) -> UOp:
    """Reorders the loops of every END and REDUCE that has all of `first`."""
    new: dict[UOp, UOp] = {}
    found = False
    for node in toposort((sink,)):
        src = tuple([new[s] for s in node.src])
        if node.op in {Ops.END, Ops.REDUCE}:
            loops = {r.arg.axis: r for r in closed_ranges(node)}
            if all(axis in loops for axis in first):
                found = True
                ordered = [loops[axis] for axis in first]
                ordered += [r for axis, r in loops.items() if axis not in first]
                # workers share the outermost loop
                ordered.sort(key=lambda r: r.arg.kind is not AxisType.THREAD)
                _check_bounds_are_known(ordered)
                src = (*src[: len(src) - len(loops)], *[new[r] for r in ordered])
        new[node] = node.with_sources(src)
    if not found:
        raise OptError("no store and no reduction has all of these axes")
    return new[sink]


def _check_bounds_are_known(loops: list[UOp]) -> None:
    """A loop stands inside of those that its extent depends on."""
    for place, loop in enumerate(loops):
        later = loop.src[0].ranges.intersection(loops[place:])
        if later:
            names = ", ".join(".".join(map(str, r.arg.axis)) for r in later)
            raise OptError(f"axis {loop.arg.axis} has an extent that depends on {names}, inside it")


def _thread(sink: UOp, path: Axis) -> UOp:
    axis = range_with_axis(sink, path)
    if any(n.op is Ops.RANGE and n.arg.kind is AxisType.THREAD for n in toposort((sink,))):
        raise OptError("the kernel has a THREAD axis already")
    if axis.arg.kind is not AxisType.GLOBAL:
        raise OptError(f"only a GLOBAL axis can be threaded, this one is {axis.arg.kind.name}")
    if not all(axis in closed_ranges(end) for end in sink.src):
        raise OptError("not every store of the kernel has this axis")
    ordered = _order(sink, (path,))
    return retag_range(ordered, range_with_axis(ordered, path), AxisType.THREAD)


def stage_factor(sink: UOp, number: int) -> UOp:
    """Copies what factor `number` of the product reads in the loops around it into a local tile.

    The tile spans the loops of the reduction, UNROLL and VECTOR axes of the factor; the outer loops
    stay outside. In memory the reduction is outermost, the lanes innermost.
    """
    product = product_of(sink)
    if product is None:
        raise OptError("the kernel sums no product")
    if number not in (0, 1):
        raise OptError(f"a product has factors 0 and 1, not {number}")
    factor, reduction = product.factors[number], product.reduction
    closed = set(closed_ranges(reduction))
    inner = [r for r in factor.ranges if r in closed or r.arg.kind in _TILE_KINDS]
    inner.sort(key=lambda r: (r not in closed, r.arg.kind is AxisType.VECTOR, r.arg.axis))
    if not inner or any(extent(r) < 0 for r in inner):
        raise OptError("the tile has no constant size")
    tile = _copy_in(sink, factor, inner)
    index = stage_position(tile.arg, tuple(inner))
    read = UOp(Ops.INDEX, factor.dtype, (tile, simplify(index))).load()
    changed = product.with_factor(number, read)
    return substitute((sink,), {reduction: changed})[0]


_TILE_KINDS = frozenset({AxisType.UNROLL, AxisType.VECTOR})


def _copy_in(sink: UOp, factor: UOp, inner: list[UOp]) -> UOp:
    """The STAGE that holds `factor` for all values of `inner`, over loops of its own."""
    taken = max(n.arg.axis[0] for n in toposort((sink,)) if n.op is Ops.RANGE)
    fresh: dict[UOp, UOp] = {}
    for place, loop in enumerate(inner):
        kind = AxisType.VECTOR if loop.arg.kind is AxisType.VECTOR else AxisType.LOOP
        fresh[loop] = UOp(
            Ops.RANGE, loop.dtype, loop.src, RangeArg((taken + 1 + place,), kind)
        )
    copied = substitute((factor,), fresh)[0]
    shape = tuple(extent(r) for r in inner)
    arg = StageArg(AddrSpace.LOCAL, shape, tuple(range(len(shape))))
    return UOp(Ops.STAGE, factor.dtype, (copied, *[fresh[r] for r in inner]), arg)


def stores_of(sink: UOp) -> list[UOp]:
    """All STOREs of a kernel."""
    return [store for end in sink.src if end.op is Ops.END for store in stored_by(end)]
