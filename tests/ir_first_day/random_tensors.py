"""Random small tensor graphs over buffers with contents, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.ops import Combine, FunctionArg, Ops, ParamArg, ReduceArg

from .tensors import holding

Draw = Callable[[st.SearchStrategy[Any]], Any]
I32 = dtypes.int32
_MOST_ELEMENTS = 60


@dataclass
class RandomTensors:
    """Values made so far, of one dtype; later ones are made of them."""

    draw: Draw
    dtype: DType
    pool: list[UOp] = field(default_factory=list)
    versions: list[UOp] = field(default_factory=list)
    made: int = 0

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def fresh(self, shape: tuple[int, ...]) -> UOp:
        self.made += 1
        values = (np.arange(int(np.prod(shape))) * 7 + self.made * 3) % 11 - 5
        return holding(values.reshape(shape).astype(self.dtype.name))

    def pick(self) -> UOp:
        found: UOp = self.draw(st.sampled_from(self.pool))
        return found

    def fitted(self, x: UOp, shape: tuple[int, ...]) -> UOp:
        """Some value of `shape` that depends on `x`."""
        flat = x.reshape((x.size,)).shrink(((0, 1),))
        if x.shape == shape:
            return x
        return flat.reshape((1,) * len(shape)).expand(shape) if shape else flat.reshape(())

    def moved(self, x: UOp) -> UOp:
        match self.number(0, 5):
            case 0:
                return x.reshape((x.size,)) if x.ndim != 1 else x.reshape((1, x.size))
            case 1:
                return x.permute(self.draw(st.permutations(range(x.ndim))))
            case 2:
                begins = [self.number(0, extent - 1) for extent in x.shape]
                ends = [self.number(b + 1, e) for b, e in zip(begins, x.shape, strict=True)]
                return x.shrink(list(zip(begins, ends, strict=True)))
            case 3:
                return x.pad([(self.number(0, 1), self.number(0, 2)) for _ in x.shape])
            case 4:
                return x.flip([bool(self.number(0, 1)) for _ in x.shape])
            case _:
                return x.reshape((*x.shape, 1)).expand((*x.shape, self.number(2, 3)))

    def computed(self, x: UOp) -> UOp:
        other = self.fitted(self.pick(), x.shape)
        match self.number(0, 7):
            case 0:
                return x.contiguous()
            case 1:
                return (x < other).where(other, x)
            case 2:
                return self.called(x, other)
            case 3 if x.ndim:
                axes = self.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
                return x.reduce_axis(self.draw(st.sampled_from((Ops.ADD, Ops.MAX))), axes)
            case 4 if x.ndim:
                axis = self.number(0, x.ndim - 1)
                arg = ReduceArg(Combine.of(Ops.ADD, x.dtype), (axis,))
                return UOp(Ops.SCAN_AXIS, x.dtype, (x,), arg)
            case 5 if x.ndim:
                index = self.fitted(self.pick(), (self.number(1, 3),)).cast(I32)
                return UOp(Ops.GATHER, x.dtype, (x, index), (self.number(0, x.ndim - 1),))
            case _:
                op = self.draw(st.sampled_from((Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX)))
                return x.alu(op, other)

    def called(self, x: UOp, y: UOp) -> UOp:
        """A FUNCTION with two results."""
        a, b = (
            UOp(Ops.PARAM, v.dtype, (), ParamArg(slot, shape=v.shape, device="CPU"))
            for slot, v in enumerate((x, y))
        )
        body = UOp(Ops.TUPLE, dtypes.void, (a + b, a.alu(Ops.MAX, b)))
        call = UOp(Ops.FUNCTION, dtypes.void, (body, x, y), FunctionArg("random"))
        return call.get_tuple(0, x.dtype) - call.get_tuple(1, x.dtype)

    def written(self) -> None:
        """A next version of a buffer."""
        place = self.number(0, len(self.versions) - 1)
        version = self.versions[place]
        begin = self.number(0, version.shape[0] - 1)
        target = version.shrink(((begin, self.number(begin + 1, version.shape[0])),))
        add = self.draw(st.sampled_from((None, None, Ops.ADD)))
        value = self.fitted(self.pick(), target.shape)
        self.versions[place] = version.after(target.store(value, add))
        self.pool.append(self.versions[place])

    def step(self) -> None:
        if self.number(0, 5) == 0:
            self.written()
            return
        x = self.pick()
        made = self.moved(x) if self.number(0, 1) else self.computed(x)
        if made.size <= _MOST_ELEMENTS and made.ndim <= 4:
            self.pool.append(made)


def random_tensors(draw: Draw) -> list[UOp]:
    """One to three values over buffers that `tensors.holding` filled."""
    graph = RandomTensors(draw, draw(st.sampled_from((I32, I32, dtypes.float32))))
    graph.versions = [graph.fresh((6,)), graph.fresh((4,))]
    graph.pool = [*graph.versions, graph.fresh((2, 3)), graph.fresh((3, 1, 4))]
    for _ in range(graph.number(1, 12)):
        graph.step()
    wanted = [graph.pool[-1], *[graph.pick() for _ in range(graph.number(0, 2))]]
    return list(dict.fromkeys(wanted))
