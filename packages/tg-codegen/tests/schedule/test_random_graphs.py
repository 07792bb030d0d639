"""Random tensor graphs: the kernels of a schedule compute what numpy does on whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tg_ir.dtype import dtypes
from tg_ir.graph.evaluate import evaluate
from tg_ir.graph.ops import Combine, Ops, ReduceArg, SkewArg
from tg_ir.graph.uop import UOp

PROPERTY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MOVES = ("reshape", "permute", "shrink", "pad", "flip", "expand", "skew", "unskew")
VALUES = (
    "binary",
    "binary",
    "unary",
    "reduce",
    "gather",
    "contiguous",
    "scan",
    "where",
    "iota",
)


class Program:
    """Builds a graph step by step; every choice is drawn by hypothesis."""

    def __init__(self, world: Any, data: Any) -> None:
        self.world = world
        self.data = data
        self.pool: list[UOp] = []
        world.memory.clear()
        world.initial.clear()
        self.made = 0
        for _ in range(2):
            self.pool.append(self.fresh((2, 3)))

    def draw(self, strategy: Any) -> Any:
        return self.data.draw(strategy)

    def fresh(self, shape: tuple[int, ...]) -> UOp:
        self.made += 1
        size = int(np.prod(shape))
        values = (np.arange(size) * 7 + self.made * 3) % 11 - 5
        return self.world.tensor(values.reshape(shape).astype(np.int32))

    def pick(self) -> UOp:
        return self.draw(st.sampled_from(self.pool))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def fit(self, x: UOp, shape: tuple[int, ...]) -> UOp:
        """Some value of `shape` that depends on `x`."""
        while x.ndim > len(shape):
            x = x.shrink(((0, 1), *((0, e) for e in x.shape[1:]))).reshape(x.shape[1:])
        x = x.reshape((1,) * (len(shape) - x.ndim) + x.shape)
        cut = tuple(
            (0, e if e == wanted else 1) for e, wanted in zip(x.shape, shape, strict=True)
        )
        return x.shrink(cut).expand(shape)

    def move(self, x: UOp) -> UOp:
        kind = self.draw(st.sampled_from(MOVES))
        if kind == "reshape":
            shapes = [(x.size,), (1, x.size), (x.size, 1)]
            shapes += [(d, x.size // d) for d in range(2, x.size) if x.size % d == 0]
            return x.reshape(self.draw(st.sampled_from(shapes)))
        if kind == "permute":
            return x.permute(self.draw(st.permutations(range(x.ndim))))
        if kind == "shrink":
            begins = [self.number(0, e - 1) for e in x.shape]
            return x.shrink(
                [(b, self.number(b + 1, e)) for b, e in zip(begins, x.shape, strict=True)]
            )
        if kind == "flip":
            return x.flip([self.draw(st.booleans()) for _ in x.shape])
        if x.size > 40:
            return x
        if kind == "pad":
            return x.pad([(self.number(0, 1), self.number(0, 2)) for _ in x.shape])
        if kind == "expand":
            return x.reshape((*x.shape, 1)).expand((*x.shape, self.number(2, 3)))
        return self.window(x, kind)

    def window(self, x: UOp, kind: str) -> UOp:
        if x.ndim < 1:
            return x
        axis = self.number(0, x.ndim - 1)
        window, stride, dilation = self.number(1, 3), self.number(1, 2), self.number(1, 2)
        shape = (*x.shape[: axis + 1], window, *x.shape[axis + 1 :])
        wide = x.reshape((*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])).expand(shape)
        span = (window - 1) * dilation
        if kind == "skew":
            if x.shape[axis] <= span:
                return x
            size = (x.shape[axis] - 1 - span) // stride + 1
            return UOp(
                Ops.SKEW, x.dtype, (wide,), SkewArg(axis, axis + 1, stride, dilation, size)
            )
        size = (x.shape[axis] - 1) * stride + span + self.number(0, 2)
        return UOp(
            Ops.UNSKEW,
            x.dtype,
            (wide,),
            SkewArg(axis, axis + 1, stride, dilation, max(1, size)),
        )

    def value(self, x: UOp) -> UOp:
        kind = self.draw(st.sampled_from(VALUES))
        if kind == "binary":
            op = self.draw(st.sampled_from((Ops.ADD, Ops.MUL, Ops.MAX, Ops.SUB, Ops.XOR)))
            return x.alu(op, self.fit(self.pick(), x.shape))
        if kind == "unary":
            return x.alu(Ops.NEG) + x.const_like(self.number(-3, 3))
        if kind == "where":
            return (x < self.fit(self.pick(), x.shape)).where(x, self.fit(self.pick(), x.shape))
        if kind == "iota":
            return UOp(Ops.IOTA, dtypes.int32, (), x.size).reshape(x.shape) + x
        if kind == "contiguous":
            return x.contiguous()
        if x.ndim == 0:
            return x
        if kind == "reduce":
            axes = self.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))
            total = x.reduce_axis(self.draw(st.sampled_from((Ops.ADD, Ops.MAX))), axes)
            if self.draw(st.booleans()):
                return total
            return x - total.expand(x.shape)
        axis = self.number(0, x.ndim - 1)
        if kind == "scan":
            arg = ReduceArg(Combine.of(Ops.ADD, x.dtype), (axis,))
            return UOp(Ops.SCAN_AXIS, x.dtype, (x,), arg)
        index = self.fit(self.pick(), (self.number(1, 3),))
        return UOp(Ops.GATHER, x.dtype, (x, index), (axis,))

    def step(self) -> None:
        x = self.pick()
        made = self.move(x) if self.draw(st.booleans()) else self.value(x)
        if made.size <= 200 and made.ndim <= 5:
            self.pool.append(made)


@PROPERTY
@given(data=st.data())
def test_values(world, data):
    program = Program(world, data)
    for _ in range(data.draw(st.integers(1, 12))):
        program.step()
    wanted = [program.pool[-1]]
    if data.draw(st.booleans()):
        wanted.append(program.pick())
    world.check(*wanted)


@settings(PROPERTY, max_examples=50)
@given(data=st.data())
def test_the_evaluator_agrees(world, data):
    program = Program(world, data)
    for _ in range(data.draw(st.integers(1, 12))):
        program.step()
    value = program.pool[-1]
    inputs = {buffer: array.tolist() for buffer, array in world.initial.items()}
    (expected,) = evaluate(UOp.sink(value), inputs)
    (found,) = world.run(value)
    assert found.reshape(-1).tolist() == list(expected.items)


@PROPERTY
@given(data=st.data())
def test_writes_happen_as_if_each_ran_when_it_was_written(world, data):
    """A pool of variables;

    An assignment makes a new version, and what was built before keeps the old one.
    """
    program = Program(world, data)
    versions = [program.fresh((6,)), program.fresh((6,))]
    versions = [v if v.op is Ops.BUFFER else v.src[0] for v in versions]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, 1))
        version = versions[place]
        program.pool = program.pool[-4:] + list(versions)
        for _ in range(data.draw(st.integers(0, 3))):
            program.step()
        begin = data.draw(st.integers(0, 4))
        end = data.draw(st.integers(begin + 1, 6))
        target = version.shrink(((begin, end),))
        if data.draw(st.booleans()):
            target = target.flip((True,))
        add = None
        if data.draw(st.integers(0, 3)) == 0:
            index = program.fit(program.pick(), (data.draw(st.integers(1, 3)),))
            target = UOp(Ops.GATHER, version.dtype, (version, index), (0,))
            add = data.draw(st.sampled_from((None, Ops.ADD)))
        value = program.fit(program.pick(), target.shape)
        versions[place] = version.after(target.store(value, add))
    pinned = tuple(v for v in program.pool if v.op in (Ops.BUFFER, Ops.AFTER))
    wanted = list(dict.fromkeys((*versions, program.pool[-1], program.pick())))
    expected = world.expect(*wanted)
    kept = world.expect(*pinned)
    found = world.run(*wanted, pinned=pinned if data.draw(st.booleans()) else ())
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for version, theirs in zip(pinned, kept, strict=True):
        if version in world.last.snapshots:
            np.testing.assert_array_equal(world.read(world.last.snapshots[version]), theirs)
