"""Runs a schedule on numpy arrays, and computes a tensor graph with numpy:

The two answers to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tg_codegen.schedule import Schedule, create_schedule
from tg_codegen.schedule.tensor_order import tensor_order
from tg_ir.dtype import DType, dtypes
from tg_ir.graph.evaluate import run_kernel_graph
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.spec import kernel_graph, verify
from tg_ir.graph.uop import UOp

Array = np.ndarray[Any, np.dtype[Any]]

NUMPY_TYPES = {
    dtypes.bool: np.bool_,
    dtypes.int8: np.int8,
    dtypes.uint8: np.uint8,
    dtypes.int32: np.int32,
    dtypes.uint32: np.uint32,
    dtypes.int64: np.int64,
    dtypes.uint64: np.uint64,
    dtypes.float32: np.float32,
    dtypes.float64: np.float64,
    dtypes.index: np.int64,
}


def numpy_type(dtype: DType) -> Any:
    return NUMPY_TYPES[dtype]


def tg_type(array: Array) -> DType:
    return next(k for k, v in NUMPY_TYPES.items() if array.dtype == v and k is not dtypes.index)


UNARY: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: np.negative,
    Ops.EXP2: np.exp2,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.SQRT: np.sqrt,
    Ops.RECIPROCAL: np.reciprocal,
    Ops.ADD: np.add,
    Ops.SUB: np.subtract,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.FLOORDIV: np.floor_divide,
    Ops.FLOORMOD: np.mod,
    Ops.MAX: np.maximum,
    Ops.CMPLT: np.less,
    Ops.CMPNE: np.not_equal,
    Ops.CMPEQ: np.equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.WHERE: np.where,
}
REDUCE: dict[Ops, Any] = {
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.MAX: np.maximum,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
}


@dataclass
class World:
    """Buffers with contents, schedules run on them, and the same graphs computed with numpy."""

    memory: dict[int, bytearray] = field(default_factory=dict)
    initial: dict[UOp, Array] = field(default_factory=dict)
    last: Schedule | None = None

    def tensor(self, values: Any, dtype: Any = None) -> UOp:
        """A BUFFER that holds `values`, in their shape."""
        array = np.asarray(values, dtype=dtype)
        buffer = UOp.new_buffer("CPU", array.size, tg_type(array))
        self.memory[buffer.arg.id] = bytearray(array.tobytes())
        self.initial[buffer] = array.reshape(-1).copy()
        return buffer.reshape(array.shape)

    def schedule(self, *values: UOp, pinned: tuple[UOp, ...] = ()) -> Schedule:
        self.last = create_schedule(UOp.sink(*values), pinned)
        for call in self.last.linear.src:
            if call.arg.kind == "kernel":
                verify(call.src[0], kernel_graph)
        return self.last

    def run(self, *values: UOp, pinned: tuple[UOp, ...] = ()) -> list[Array]:
        """The values, computed by the kernels of a schedule."""
        schedule = self.schedule(*values, pinned=pinned)
        self.execute(schedule)
        return [self.read(schedule.becomes[value]) for value in values]

    def execute(self, schedule: Schedule) -> None:
        for call in schedule.linear.src:
            buffers = [s for s in call.src[1:] if s.op is Ops.BUFFER]
            vals = [s.unbind()[1] for s in call.src[1:] if s.op is Ops.BIND]
            memory = [self._bytes_of(buffer) for buffer in buffers]
            if call.arg.kind == "copy":
                begin, end = (
                    call.src[0].src[0].arg[0]
                    if call.src[0].src[0].op is Ops.SHRINK
                    else (
                        0,
                        buffers[1].arg.size,
                    )
                )
                item = buffers[1].dtype.itemsize
                memory[0][: (end - begin) * item] = memory[1][begin * item : end * item]
                continue
            run_kernel_graph(call.src[0], memory, vals)

    def _bytes_of(self, buffer: UOp) -> bytearray:
        size = buffer.arg.size * buffer.dtype.itemsize
        # what a kernel must write is filled with a pattern that no test expects
        return self.memory.setdefault(buffer.arg.id, bytearray(b"\x5a" * size))

    def read(self, view: UOp) -> Array:
        """The value of movement ops over a BUFFER."""
        node = view
        while node.op is not Ops.BUFFER:
            node = node.src[0]
        raw = np.frombuffer(self._bytes_of(node), numpy_type(node.dtype)).copy()
        return Reference({node: raw[: node.arg.size]}).value(view)

    def expect(self, *values: UOp) -> list[Array]:
        """The values, computed by numpy from the buffers' first contents."""
        reference = Reference(dict(self.initial))
        return [reference.value(value) for value in values]

    def check(self, *values: UOp, rtol: float = 1e-5, kernels: int | None = None) -> None:
        """Both answers are equal, and so is the number of kernels if given."""
        expected = self.expect(*values)
        found = self.run(*values)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.shape == theirs.shape
            if theirs.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-6)
            else:
                np.testing.assert_array_equal(ours, theirs)
        if kernels is not None:
            assert self.last is not None
            assert len(self.last.linear.src) == kernels


class Reference:
    """A tensor graph computed with numpy, one whole tensor after another."""

    def __init__(self, buffers: dict[UOp, Array]) -> None:
        self._values: dict[UOp, Array] = dict(buffers)

    def value(self, root: UOp) -> Array:
        for node in tensor_order((root,)):
            if node not in self._values:
                self._values[node] = self._compute(node)
        return self._values[root]

    def _compute(self, node: UOp) -> Array:
        src = [self._values[s] for s in node.src if s in self._values]
        kind = numpy_type(node.dtype) if node.dtype is not dtypes.void else None
        if node.op in UNARY:
            with np.errstate(all="ignore"):
                return np.asarray(UNARY[node.op](*src)).astype(kind)
        if node.op in GroupOp.Movement:
            return move(node, src[0])
        match node.op:
            case Ops.CONST:
                return np.asarray(node.arg, kind)
            case Ops.BIND:
                return np.asarray(node.src[1].arg, kind)
            case Ops.IOTA:
                return np.arange(node.arg).astype(kind)
            case Ops.CAST | Ops.CONTIGUOUS | Ops.DETACH | Ops.COPY | Ops.REALIZED:
                return src[0].astype(kind)
            case Ops.GATHER:
                return gather(node, src)
            case Ops.STORE:
                return np.zeros(0)
            case Ops.AFTER:
                return self._write(node, src[0].copy())
        return self._combine(node, src[0], kind)

    def _combine(self, node: UOp, x: Array, kind: Any) -> Array:
        match node.op:
            case Ops.REDUCE_AXIS:
                ufunc = REDUCE[node.arg.combine.op]
                return ufunc.reduce(x, axis=node.arg.axes, keepdims=True).astype(kind)
            case Ops.SCAN_AXIS:
                ufunc = REDUCE[node.arg.combine.op]
                return ufunc.accumulate(x, axis=node.arg.axes[0]).astype(kind)
        raise NotImplementedError(node.op)

    def _write(self, node: UOp, result: Array) -> Array:
        """The target, computed on the numbers of the elements, tells where each value goes."""
        flat = result.reshape(-1)
        for store in node.src[1:]:
            target, value = store.src
            numbers = np.arange(1, flat.size + 1).reshape(result.shape)
            places = self._follow(target, node.src[0], numbers).reshape(-1)
            for place, item in zip(places, self._values[value].reshape(-1), strict=True):
                if place > 0:
                    flat[place - 1] = flat[place - 1] + item if store.arg is Ops.ADD else item
        return flat.reshape(result.shape)

    def _follow(self, target: UOp, version: UOp, value: Array) -> Array:
        chain = []
        node = target
        while node is not version:
            chain.append(node)
            node = node.src[0]
        for step in reversed(chain):
            if step.op is Ops.GATHER:
                value = gather(step, [value, *(self._values[s] for s in step.src[1:])])
            else:
                value = move(step, value)
        return value


def gather(node: UOp, src: list[Array]) -> Array:
    axes = node.arg
    shape = src[0].shape
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    source = src[0].transpose(*axes, *rest)
    positions = []
    valid = np.ones(src[1].shape, bool)
    for axis, index in zip(axes, src[1:], strict=True):
        at = index.astype(object)
        at = np.where(at < 0, at + shape[axis], at)
        inside = (at >= 0) & (at < shape[axis])
        valid &= inside.astype(bool)
        positions.append(np.where(inside, at, 0).astype(np.int64))
    result = source[tuple(positions)]
    return np.where(valid.reshape(valid.shape + (1,) * len(rest)), result, 0).astype(
        src[0].dtype
    )


def move(node: UOp, x: Array) -> Array:
    arg = node.marg
    match node.op:
        case Ops.RESHAPE:
            return x.reshape([number(extent) for extent in arg])
        case Ops.EXPAND:
            return np.broadcast_to(x, [number(extent) for extent in arg])
        case Ops.PERMUTE:
            return x.transpose(arg)
        case Ops.PAD:
            return np.pad(x, [(number(b), number(a)) for b, a in arg])
        case Ops.SHRINK:
            return x[tuple(slice(number(b), number(e)) for b, e in arg)]
        case Ops.FLIP:
            return x[tuple(slice(None, None, -1) if f else slice(None) for f in arg)]
    return windows(node, x)


def windows(node: UOp, x: Array) -> Array:
    w = node.arg
    x = np.moveaxis(x, (w.axis, w.window_axis), (0, 1))
    result = np.zeros((w.size, *x.shape[1:]), x.dtype)
    for o in range(w.size):
        for k in range(x.shape[1]):
            if node.op is Ops.SKEW:
                result[o, k] = x[o * w.stride + k * w.dilation, k]
                continue
            at, left = divmod(o - k * w.dilation, w.stride)
            if left == 0 and 0 <= at < x.shape[0]:
                result[o, k] = x[at, k]
    return np.moveaxis(result, (0, 1), (w.axis, w.window_axis))


def number(extent: int | UOp) -> int:
    """A size; the variables of a symbolic one are bound."""
    if isinstance(extent, int):
        return extent
    bound = {n: n.src[1] for n in extent.toposort() if n.op is Ops.BIND}
    value = extent.substitute(bound)
    assert value.vmin == value.vmax
    return int(value.vmin)


@pytest.fixture
def world() -> World:
    return World()
