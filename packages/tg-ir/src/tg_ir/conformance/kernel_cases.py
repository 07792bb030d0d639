"""Linear kernels for the suites of renderers: small, each about one thing, written by hand.

What they compute is defined by `tg_ir.graph.evaluate`, which no renderer has a part in.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from tg_ir.dtype import DType, dtypes
from tg_ir.dtype.storage import from_bytes, to_bytes
from tg_ir.graph import (
    AxisType,
    DefineArg,
    Ops,
    ParamArg,
    RangeArg,
    UOp,
    VarArg,
    identity_element,
    toposort,
)

COUNT = 48
"""Elements of every buffer; a multiple of the lane counts that the cases use."""

_INT64 = dtypes.int64


@dataclass(frozen=True)
class KernelCase:
    """A kernel with its buffers.

    Attributes:
        name: what it is about.
        kernel: the nodes in order.
        dtypes: the element type of each buffer, buffer 0 being the result.
        vals: the integer arguments.
        begin: first iteration of the THREAD range.
        end: one past the last.
        exact: whether the result is defined to the last bit.
    """

    name: str
    kernel: tuple[UOp, ...]
    dtypes: tuple[DType, ...]
    vals: tuple[int, ...] = ()
    begin: int = 0
    end: int = 1
    exact: bool = True


def linear(*roots: UOp) -> tuple[UOp, ...]:
    """The nodes below `roots`, in the order in which these are given."""
    return tuple(toposort(roots))


def number(value: int) -> UOp:
    """An index constant."""
    return UOp(Ops.CONST, _INT64, (), value)


def param(slot: int, dtype: DType, size: int = COUNT) -> UOp:
    """A buffer argument; slot 0 is the result."""
    return UOp(Ops.PARAM, dtype, (), ParamArg(slot, size, slot == 0))


def loop(bound: int | UOp, axis: int = 0, kind: AxisType = AxisType.LOOP) -> UOp:
    """A loop counter of the machine's index type."""
    extent = number(bound) if isinstance(bound, int) else bound
    return UOp(Ops.RANGE, _INT64, (extent,), RangeArg((axis,), kind))


def row_start(counter: UOp, lanes: int) -> UOp:
    """The first element of the row of `lanes` that an iteration handles."""
    return counter if lanes == 1 else counter * number(lanes)


def sample_values(dtype: DType, seed: str) -> list[bool | int | float]:
    """`COUNT` values of a dtype, its special ones among them; the same for the same seed."""
    chooser = random.Random(f"{dtype.name} {seed}")
    special = _special_values(dtype)
    values = []
    for _ in range(COUNT):
        if chooser.random() < 0.6:
            values.append(chooser.choice(special))
        elif dtype.kind == "float":
            values.append(chooser.uniform(-100.0, 100.0))
        else:
            values.append(chooser.randint(int(dtypes.min(dtype)), int(dtypes.max(dtype))))
    return from_bytes(to_bytes(values, dtype), dtype)


def _special_values(dtype: DType) -> list[bool | int | float]:
    if dtype.kind == "bool":
        return [False, True]
    if dtype.kind == "float":
        form = dtypes.finfo(dtype)
        small = [0.0, 0.5, 1.0, 1.5, 2.5, 127.75, 255.0, 256.0, 32767.5, 65519.0, 65520.0]
        large = [2.0**31, 2.0**32, 2.0**63, 2.0**64, form.largest, math.inf]
        tiny = [form.smallest_normal, form.smallest_subnormal]
        positive = [value for value in (*small, *large, *tiny) if _survives(value, dtype)]
        return [*positive, *(-value for value in positive), math.nan]
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    near_zero = [0, 1, 2, 3, 7, dtype.bits - 1, dtype.bits, dtype.bits + 1]
    negative = [-1, -2, -7] if low < 0 else []
    return [*near_zero, *negative, low, low + 1, high - 1, high]


def _survives(value: float, dtype: DType) -> bool:
    return math.isinf(value) or math.isfinite(float(from_bytes(to_bytes([value], dtype), dtype)[0]))


def elementwise_case(
    op: Ops, sources: Sequence[DType], result: DType, lanes: int = 1, exact: bool = True
) -> KernelCase:
    """`result[i] = op(a[i], b[i], ...)` with vectors of `lanes`."""
    counter = loop(COUNT // lanes)
    start = row_start(counter, lanes)
    buffers = [param(slot, dtype) for slot, dtype in enumerate((result, *sources))]
    loads = [buffer.index(start).load(dtype=buffer.dtype.vec(lanes)) for buffer in buffers[1:]]
    value = UOp(op, result.vec(lanes), tuple(loads))
    store = buffers[0].index(start).store(value)
    name = f"{op.name} of {', '.join(dtype.name for dtype in sources)} to {result.name} x{lanes}"
    return KernelCase(name, linear(store.end(counter)), (result, *sources), exact=exact)


def reduction_case(dtype: DType, lanes: int, op: Ops = Ops.ADD) -> KernelCase:
    """All elements joined in one accumulator of `lanes`, which is joined at the end."""
    vector = dtype.vec(lanes)
    result, source = param(0, dtype), param(1, dtype)
    register = UOp(Ops.DEFINE_REG, vector, (), DefineArg(0, 1))
    initial = UOp.const(vector, identity_element(op, dtype))
    start = register.index(number(0)).store(initial)
    counter = loop(COUNT // lanes, kind=AxisType.REDUCE)
    inside = register.after(start, counter)
    loaded = source.index(row_start(counter, lanes)).load(dtype=vector)
    joined = inside.index(number(0)).load(dtype=vector).alu(op, loaded)
    end = inside.index(number(0)).store(joined).end(counter)
    total = register.after(end).index(number(0)).load(dtype=vector)
    value = total if lanes == 1 else UOp(Ops.REDUCE_LANES, dtype, (total,), op)
    finish = result.index(number(0)).store(value)
    name = f"{op.name} of all elements of {dtype.name} in {lanes} lanes"
    kernel = linear(start, end, finish)
    return KernelCase(name, kernel, (dtype, dtype), exact=dtype.kind != "float")


def masked_case(lanes: int) -> KernelCase:
    """A row shifted by one, the position before the first element masked off, with -7 in its place.

    Every third element of the result is not stored.
    """
    dtype = dtypes.float32
    result, source = param(0, dtype), param(1, dtype)
    counter = loop(COUNT // lanes)
    start = row_start(counter, lanes)
    position = start
    if lanes > 1:
        steps = UOp(Ops.LANES, _INT64.vec(lanes))
        position = start.broadcast(lanes).alu(Ops.ADD, steps)
    shifted = start.alu(Ops.ADD, number(-1))
    one = UOp.const(position.dtype, 1)
    inside = position.alu(Ops.CMPLT, one).logical_not()
    third = position.alu(Ops.CMOD, UOp.const(position.dtype, 3))
    wanted = third.alu(Ops.CMPNE, UOp.const(position.dtype, 2))
    other = UOp.const(dtype.vec(lanes), -7.0)
    value = source.index(shifted, inside).load(other, dtype.vec(lanes))
    store = result.index(start, wanted).store(value)
    return KernelCase(f"masks of {lanes} lanes", linear(store.end(counter)), (dtype, dtype))


def gather_case(lanes: int, index_dtype: DType) -> KernelCase:
    """`result[i] = source[index[i]]` where the index is in range, else 0."""
    dtype = dtypes.float32
    result, source, index = param(0, dtype), param(1, dtype), param(2, index_dtype)
    counter = loop(COUNT // lanes)
    start = row_start(counter, lanes)
    position = index.index(start).load(dtype=index_dtype.vec(lanes))
    low, high = (UOp.const(position.dtype, value) for value in (0, COUNT))
    inside = position.alu(Ops.CMPLT, high)
    if not dtypes.is_unsigned(index_dtype):
        inside = position.alu(Ops.CMPLT, low).logical_not().alu(Ops.AND, inside)
    value = source.index(position, inside).load(dtype=dtype.vec(lanes))
    store = result.index(start).store(value)
    name = f"gather of {lanes} lanes by {index_dtype.name}"
    return KernelCase(name, linear(store.end(counter)), (dtype, dtype, index_dtype))


def spread_case(dtype: DType, lanes: int, stride: int, mask: str) -> KernelCase:
    """Lanes at `base + stride * lane`, read from one buffer and written to another.

    `mask`: "none", "lanes" (the last quarter of the lanes is off), "value" (lanes below 0 are off),
    or "all" (every second row is off).
    """
    result, source = param(0, dtype), param(1, dtype)
    counter = loop(COUNT // (lanes * stride))
    steps = UOp(Ops.LANES, _INT64.vec(lanes)).alu(Ops.MUL, UOp.const(_INT64.vec(lanes), stride))
    base = counter.alu(Ops.MUL, number(lanes * stride)).broadcast(lanes)
    position = base.alu(Ops.ADD, steps)
    other = UOp.const(dtype.vec(lanes), 1)
    taking_part: UOp | None = None
    if mask == "lanes":
        taking_part = steps.alu(Ops.CMPLT, UOp.const(steps.dtype, stride * lanes * 3 // 4))
    elif mask == "value":
        key = param(2, dtypes.int32).index(counter.alu(Ops.MUL, number(lanes)))
        key_lanes = key.load(dtype=dtypes.int32.vec(lanes))
        taking_part = UOp.const(key_lanes.dtype, 0).alu(Ops.CMPLT, key_lanes)
    elif mask == "all":
        taking_part = counter.alu(Ops.CMOD, number(2)).alu(Ops.CMPNE, number(1))
    value = source.index(position, taking_part).load(other)
    store = result.index(position, taking_part).store(value)
    name = f"{lanes} lanes of {dtype.name} at a distance of {stride}, mask: {mask}"
    return KernelCase(name, linear(store.end(counter)), (dtype, dtype, dtypes.int32))


def repeated_case(dtype: DType, lanes: int, repeats: int) -> KernelCase:
    """Each element read by `repeats` neighbouring lanes, some masked off by a value.

    The base of the row is a sum of two, as it is where a window moves over an image.
    """
    result, source, key = param(0, dtype), param(1, dtype), param(2, dtypes.int32)
    counter = loop(COUNT // lanes)
    start = counter.alu(Ops.MUL, number(lanes))
    steps = UOp(Ops.LANES, _INT64.vec(lanes))
    divided = steps.alu(Ops.CDIV, UOp.const(steps.dtype, repeats))
    half = counter.alu(Ops.MUL, number(lanes // repeats))
    fixed = counter.alu(Ops.CMOD, number(2))
    position = half.broadcast(lanes).alu(Ops.ADD, divided).alu(Ops.ADD, fixed.broadcast(lanes))
    keys = key.index(start).load(dtype=dtypes.int32.vec(lanes))
    wanted = UOp.const(keys.dtype, 0).alu(Ops.CMPLT, keys)
    value = source.index(position, wanted).load(dtype=dtype.vec(lanes))
    store = result.index(start).store(value)
    name = f"{lanes} lanes of {dtype.name}, {repeats} of them at an element"
    return KernelCase(name, linear(store.end(counter)), (dtype, dtype, dtypes.int32))


def scatter_case(lanes: int) -> KernelCase:
    """The elements of a row stored in reverse."""
    dtype = dtypes.int32
    result, source = param(0, dtype), param(1, dtype)
    counter = loop(COUNT // lanes)
    start = row_start(counter, lanes)
    steps = UOp(Ops.LANES, _INT64.vec(lanes))
    position = UOp.const(steps.dtype, COUNT - 1).alu(Ops.SUB, start.broadcast(lanes))
    value = source.index(start).load(dtype=dtype.vec(lanes))
    store = result.index(position.alu(Ops.SUB, steps)).store(value)
    return KernelCase(f"scatter of {lanes} lanes", linear(store.end(counter)), (dtype, dtype))


def condition_case() -> KernelCase:
    """A sum of the elements above 0, through IF, in an inner loop of symbolic extent."""
    dtype = dtypes.int32
    result, source = param(0, dtype), param(1, dtype)
    register = UOp(Ops.DEFINE_REG, dtype, (), DefineArg(0, 1))
    place = number(0)
    extent = UOp(Ops.DEFINE_VAR, _INT64, (), VarArg("v0", 0, 8))
    outer, inner = loop(6, 0), loop(extent, 1)
    start = register.after(outer).index(place).store(UOp.const(dtype, 0))
    position = outer.alu(Ops.MUL, number(8)).alu(Ops.ADD, inner)
    value = source.index(position).load()
    condition = UOp(Ops.IF, dtypes.void, (UOp.const(dtype, 0).alu(Ops.CMPLT, value),))
    inside = register.after(start, inner, condition)
    joined = inside.index(place).load().alu(Ops.ADD, value)
    store = inside.index(place).store(joined)
    endif = UOp(Ops.ENDIF, dtypes.void, (condition,))
    end_inner = UOp(Ops.END, dtypes.void, (store, inner))
    total = register.after(end_inner).index(place).load()
    finish = result.index(outer).store(total)
    kernel = linear(start, store, endif, end_inner, finish, finish.end(outer))
    return KernelCase("a condition in a loop", kernel, (dtype, dtype), vals=(5,))


def thread_case() -> KernelCase:
    """The part `[2, 7)` of a THREAD range; the rest of the result stays."""
    dtype = dtypes.float64
    result, source = param(0, dtype), param(1, dtype)
    counter = loop(COUNT, kind=AxisType.THREAD)
    value = source.index(counter).load().alu(Ops.NEG)
    store = result.index(counter).store(value)
    kernel = linear(store.end(counter))
    return KernelCase("a part of a THREAD range", kernel, (dtype, dtype), begin=2, end=7)


def scratch_case() -> KernelCase:
    """A row written to LOCAL memory and read back in reverse."""
    dtype = dtypes.float32
    result, source = param(0, dtype), param(1, dtype)
    scratch = UOp(Ops.DEFINE_LOCAL, dtype, (), DefineArg(0, COUNT))
    writer, reader = loop(COUNT, 0), loop(COUNT, 1)
    fill = scratch.after(writer).index(writer).store(source.index(writer).load()).end(writer)
    position = number(COUNT - 1).alu(Ops.SUB, reader)
    value = scratch.after(fill).index(position).load()
    store = result.index(reader).store(value).end(reader)
    return KernelCase("scratch memory", linear(fill, store), (dtype, dtype))
