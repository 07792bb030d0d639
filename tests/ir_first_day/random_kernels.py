"""Random small kernel graphs and random moves on them, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tg_codegen.errors import OptError
from tg_codegen.kernel.pipeline import KERNEL_PASSES, LoweringContext
from tg_codegen.optimize import Opt, OptOps, apply_opts
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp, toposort
from tg_ir.graph.ops import AddrSpace, AxisType, Combine, DefineArg, Ops, ReduceArg, StageArg
from tg_ir.graph.symbolic import simplify
from tg_ir.graph.uop import as_index

from .kernels import param
from .stages import Array, capabilities

GLOBAL, LOOP, REDUCE, LOCAL = AxisType.GLOBAL, AxisType.LOOP, AxisType.REDUCE, AxisType.LOCAL
I32, F32 = dtypes.int32, dtypes.float32
_MOST_SPLITS = 4

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class RandomKernel:
    """A kernel under construction.

    Attributes:
        draw: hypothesis.
        dtype: of all values.
        arrays: contents of the arguments, by slot.
    """

    draw: Draw
    dtype: DType
    arrays: list[Array] = field(default_factory=list)
    params: list[UOp] = field(default_factory=list)
    axes: int = 0
    scratch: int = 0

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def flag(self) -> bool:
        return bool(self.draw(st.booleans()))

    def new_range(self, kind: AxisType, most: int = 6) -> UOp:
        self.axes += 1
        return UOp.range(self.number(1, most), self.axes - 1, kind)

    # ---- memory

    def new_param(self, size: int, *, writable: bool, dtype: DType | None = None) -> UOp:
        element = dtype or self.dtype
        numbers = (np.arange(size) * 7 + len(self.arrays) * 3) % 11 - 5
        kind = np.float32 if element is F32 else np.int32
        self.arrays.append(np.full(size, -99, kind) if writable else numbers.astype(kind))
        made = param(len(self.arrays) - 1, size, element, writable=writable)
        self.params.append(made)
        return made

    def position(self, ranges: list[UOp]) -> UOp:
        """An index of at least 0 made of some of the ranges."""
        where: UOp = as_index(self.number(0, 2))
        for loop in ranges:
            step = self.number(0, 3)
            if step:
                where = where + loop * step
        shape = self.number(0, 5)
        if shape == 0:
            where = where % self.number(1, 9)
        elif shape == 1:
            where = where // self.number(1, 4)
        return simplify(where)

    def load(self, ranges: list[UOp]) -> UOp:
        where = self.position(ranges)
        mask = None
        if self.number(0, 3) == 0:
            shift = self.number(0, 3)
            where = simplify(where - shift)
            mask = as_index(-1) < where
        buffer = self.new_param(max(1, int(where.vmax) + 1), writable=False)
        other = None if mask is None or self.flag() else UOp.const(self.dtype, 3)
        return buffer.index(where, mask).load(other)

    def gathered(self, ranges: list[UOp]) -> UOp:
        """A load whose position is read from memory."""
        where = self.position(ranges)
        indices = self.new_param(int(where.vmax) + 1, writable=False, dtype=I32)
        size = 6
        at = indices.index(where).load().cast(dtypes.index)
        inside = (as_index(-1) < at) & (at < size)
        return self.new_param(size, writable=False).index(at, inside).load()

    # ---- values

    def value(self, ranges: list[UOp], depth: int) -> UOp:
        kind = self.number(0, 9) if depth else self.number(0, 1)
        match kind:
            case 0:
                return self.load(ranges)
            case 1:
                return self.position(ranges).cast(self.dtype)
            case 2:
                return self.gathered(ranges)
            case 3 | 4:
                return self.reduction(ranges, depth - 1)
            case 5:
                return self.staged(ranges, depth - 1)
            case 6:
                left, right = (self.value(ranges, depth - 1) for _ in range(2))
                return (left < right).where(left, self.value(ranges, 0))
            case _:
                op = self.draw(st.sampled_from((Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX)))
                left, right = (self.value(ranges, depth - 1) for _ in range(2))
                return left.alu(op, right)

    def reduction(self, ranges: list[UOp], depth: int) -> UOp:
        loops = [self.new_range(REDUCE, 9) for _ in range(self.number(1, 2))]
        value = self.value([*ranges, *loops], depth)
        if self.number(0, 2) == 0:
            return self.extreme(value, self.position([*ranges, *loops]).cast(I32), loops)
        op = self.draw(st.sampled_from((Ops.ADD, Ops.MAX)))
        return value.reduce(op, *loops)

    def extreme(self, value: UOp, key: UOp, loops: list[UOp]) -> UOp:
        """The largest value and the largest key that it comes with: a REDUCE over two states."""
        (best, at), (new, new_at) = (
            [UOp(Ops.STATE, kind, (), (side, k)) for k, kind in enumerate((self.dtype, I32))]
            for side in range(2)
        )
        better = (best < new) | (best.alu(Ops.CMPEQ, new) & (at < new_at))
        init = (dtypes.min(self.dtype), -(2**31))
        combine = Combine("extreme", init, (better.where(new, best), better.where(new_at, at)))
        node = UOp(Ops.REDUCE, self.dtype, (value, key, *loops), ReduceArg(combine))
        return node.get_tuple(0, self.dtype) + node.get_tuple(1, I32).cast(self.dtype)

    def staged(self, ranges: list[UOp], depth: int) -> UOp:
        """A tile of a value, read at one place."""
        loops = [self.new_range(LOOP, 4) for _ in range(self.number(1, 2))]
        value = self.value([*ranges, *loops], depth)
        shape = tuple(int(loop.src[0].arg) for loop in loops)
        order = tuple(self.draw(st.permutations(range(len(shape)))))
        space = self.draw(st.sampled_from((AddrSpace.LOCAL, AddrSpace.GLOBAL, AddrSpace.REG)))
        arg = StageArg(space, shape, order, self.number(0, 2))
        tile = UOp(Ops.STAGE, value.dtype, (value, *loops), arg)
        extents = [shape[axis] for axis in order]
        extents[-1] += arg.pad
        where: UOp = as_index(0)
        for place, axis in enumerate(order):
            stride = int(np.prod(extents[place + 1 :], dtype=int))
            where = where + (self.position(ranges) % shape[axis]) * stride
        return tile.index(simplify(where)).load()

    # ---- effects

    def output(self) -> UOp:
        loops = [self.new_range(GLOBAL, 7) for _ in range(self.number(1, 3))]
        value = self.value(loops, self.number(1, 3))
        if self.number(0, 4) == 0:
            value, loops = self.prefix(value, loops)
        if self.number(0, 5) == 0:
            value, loops = self.exchanged(value, loops)
        where: UOp = as_index(0)
        for loop in loops:
            where = where * int(loop.src[0].arg) + loop
        mask = simplify(where % 5).alu(Ops.CMPNE, as_index(3)) if self.number(0, 3) == 0 else None
        out = self.new_param(int(where.vmax) + 1, writable=True)
        return out.index(where, mask).store(value).end(*loops)

    def prefix(self, value: UOp, loops: list[UOp]) -> tuple[UOp, list[UOp]]:
        along = self.new_range(LOOP)
        arg = ReduceArg(Combine.of(Ops.ADD, self.dtype))
        summed = value + self.load([*loops, along])
        place = self.number(0, len(loops))
        scan = UOp(Ops.SCAN, self.dtype, (summed, along), arg)
        return scan, [*loops[:place], along, *loops[place:]]

    def exchanged(self, value: UOp, loops: list[UOp]) -> tuple[UOp, list[UOp]]:
        """Each work-item writes its value to local memory and reads that of another."""
        item = self.new_range(LOCAL)
        count = int(item.src[0].arg)
        value = value + item.cast(self.dtype)
        memory = UOp(Ops.DEFINE_LOCAL, self.dtype, (), DefineArg(self.scratch, count))
        self.scratch += 1
        met = UOp(Ops.BARRIER, dtypes.void, (memory.index(item).store(value),))
        other = (item + self.number(0, count)) % count
        return memory.after(met).index(simplify(other)).load(), [*loops, item]


def random_kernel(draw: Draw) -> tuple[UOp, list[Array]]:
    """A kernel graph and the contents of its arguments."""
    kernel = RandomKernel(draw, draw(st.sampled_from((I32, I32, F32))))
    sink = UOp.sink(*[kernel.output() for _ in range(kernel.number(1, 2))])
    return sink, kernel.arrays


def before_moves(sink: UOp) -> UOp:
    """`sink` after the passes that run before moves are made."""
    context = LoweringContext(capabilities(), ())
    for step in KERNEL_PASSES:
        if step.name == "optimise":
            return sink
        sink = step.run(sink, context)
    raise AssertionError("no pass is called 'optimise'")


def random_opts(draw: Draw, sink: UOp) -> list[Opt]:
    """Moves that the kernel allows."""
    opts: list[Opt] = []
    sink = before_moves(sink)
    for _ in range(draw(st.integers(0, _MOST_SPLITS))):
        shaped = apply_opts(sink, opts)
        axes = sorted(n.arg.axis for n in toposort((shaped,)) if n.op is Ops.RANGE)
        op = draw(st.sampled_from(list(OptOps)))
        axis = draw(st.sampled_from(axes))
        arg: Any = draw(st.integers(2, 8))
        if op is OptOps.ORDER:
            axis, arg = None, tuple(draw(st.permutations(axes)))[:2]
        elif op is OptOps.STAGE:
            axis, arg = None, arg % 2
        elif op is OptOps.THREAD:
            arg = None
        opt = Opt(op, axis, arg)
        try:
            apply_opts(sink, [*opts, opt])
        except OptError:
            continue
        opts.append(opt)
    return opts
