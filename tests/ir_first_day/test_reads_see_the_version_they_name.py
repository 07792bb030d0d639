"""Buffer versions and AFTER: a read names the version it sees, however late it is computed."""

from __future__ import annotations

import numpy as np
import pytest
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.ops import AxisType, BufferArg, CallArg, Ops
from tg_ir.graph.spec import kernel_graph, schedule, tensor_graph, verify

from .kernels import floats, param
from .stages import Array, check_kernel
from .tensors import check_tensors, holding

COUNT = 8


def doubled_in_place(version: UOp) -> UOp:
    return version.after(version.store(version + version))


def test_old_and_new_version_are_both_read() -> None:
    x = floats(COUNT)
    old = holding(x)
    new = doubled_in_place(old)
    made = check_tensors([new, old * old, new - old], [2 * x, x * x, x])
    assert made.becomes[new].arg.version == old.arg.version + 1
    assert made.becomes[new].arg.id == old.arg.id


def test_writes_to_parts_follow_each_other() -> None:
    x = floats(COUNT)
    first = holding(x)
    second = first.after(first.shrink(((0, 5),)).store(first.shrink(((3, 8),))))
    third = second.after(second.shrink(((2, 8),)).flip((True,)).store(second.shrink(((1, 7),))))
    expected = x.copy()
    expected[:5] = x[3:]
    expected[2:][::-1] = expected[1:7].copy()
    check_tensors([third], [expected])


def test_a_swap_through_the_values_of_before() -> None:
    x, y = floats(COUNT), floats(COUNT, seed=1)
    a, b = holding(x), holding(y)
    check_tensors([a.after(a.store(b)), b.after(b.store(a))], [y, x])


def test_two_next_versions_of_one_version_are_two_values() -> None:
    x = floats(COUNT)
    version = holding(x)
    plus = version.after(version.store(version + version))
    square = version.after(version.store(version * version))
    check_tensors([plus, square, version], [2 * x, x * x, x], pinned=(version,))


def test_a_pinned_version_gets_a_copy_of_what_is_overwritten() -> None:
    x = floats(COUNT)
    old = holding(x)
    made = check_tensors([doubled_in_place(old)], [2 * x], pinned=(old,))
    assert old in made.snapshots
    assert made.snapshots[old].arg.id != old.arg.id


def test_in_a_kernel_a_read_comes_after_the_write_it_names() -> None:
    i, j = UOp.range(COUNT, 0, AxisType.GLOBAL), UOp.range(COUNT, 1, AxisType.GLOBAL)
    buffer = param(0, COUNT)
    value = buffer.index(i).load()
    written = buffer.after(buffer.index(i).store(value * value).end(i))
    flipped = written.index(COUNT - 1 - j).load()
    sink = UOp.sink(param(1, COUNT, writable=True).index(j).store(flipped).end(j))
    x = floats(COUNT)
    check_kernel(sink, [x, np.zeros_like(x)], {0: x * x, 1: (x * x)[::-1]})


# ---- what breaks the rules


def test_a_read_of_either_version_is_refused_in_a_kernel() -> None:
    i, j = UOp.range(COUNT, 0, AxisType.GLOBAL), UOp.range(COUNT, 1, AxisType.GLOBAL)
    buffer = param(0, COUNT)
    sink = UOp.sink(
        buffer.index(i).store(UOp.const(dtypes.float32, 1)).end(i),
        param(1, COUNT, writable=True).index(j).store(buffer.index(j).load()).end(j),
    )
    with pytest.raises(VerificationError, match="it may see either version"):
        verify(sink, kernel_graph)


def test_a_write_to_a_read_only_argument_is_refused() -> None:
    i = UOp.range(COUNT, 0, AxisType.GLOBAL)
    sink = UOp.sink(param(1, COUNT).index(i).store(UOp.const(dtypes.float32, 1)).end(i))
    with pytest.raises(VerificationError, match="writes argument 1, which is not writable"):
        verify(sink, kernel_graph)


def test_the_next_version_is_made_by_writes_to_the_one_before() -> None:
    a, b = holding(floats(COUNT)), holding(floats(COUNT, seed=1))
    with pytest.raises(VerificationError, match="its STOREs write the version that it follows"):
        verify(UOp.sink(a.after(b.store(a))), tensor_graph)


def test_a_write_through_an_expanded_view_is_refused() -> None:
    version = holding(floats(1))
    target = version.expand((COUNT,))
    with pytest.raises(VerificationError, match="writes through an expanded view"):
        verify(UOp.sink(version.after(target.store(holding(floats(COUNT))))), tensor_graph)


def calls_that_go_back(array: Array) -> UOp:
    """A schedule whose second kernel reads the version that the first has overwritten."""
    i = UOp.range(COUNT, 0, AxisType.GLOBAL)
    old, other = holding(array), holding(array)
    new = old.replace(arg=BufferArg(old.arg.id, COUNT, "CPU", 1))
    value = param(1, COUNT).index(i).load()
    sink = UOp.sink(param(0, COUNT).index(i).store(value).end(i))
    writes = UOp(Ops.CALL, dtypes.void, (sink, new, other), CallArg("writes"))
    reads = UOp(Ops.CALL, dtypes.void, (sink, other, old), CallArg("reads"))
    return UOp(Ops.LINEAR, dtypes.void, (writes, reads))


def test_a_schedule_that_reads_a_dead_version_is_refused() -> None:
    with pytest.raises(VerificationError, match=r"reads version 0 of buffer \d+, which 'writes'"):
        verify(calls_that_go_back(floats(COUNT)), schedule)
