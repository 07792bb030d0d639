"""COPY between devices.

Whole runs of bytes, from a buffer of one device to a fresh buffer of another.
"""

from __future__ import annotations

from tg_ir.dtype import dtypes
from tg_ir.graph import CallArg, Ops, ParamArg, UOp

from tg_codegen.schedule.errors import ScheduleError
from tg_codegen.schedule.finished_kernel import Kernel
from tg_codegen.schedule.storage import Storage
from tg_codegen.schedule.tensor_order import ADDRESSING, TRANSPARENT


def transfer_call(node: UOp, storage: Storage) -> Kernel:
    """The CALL of a COPY whose source is a run of a BUFFER, as a step to be ordered."""
    source = node.src[0]
    part = contiguous_part(source, storage)
    if part is None:
        if any(isinstance(extent, UOp) for extent in source.shape):
            raise ScheduleError(
                f"a value of symbolic shape {source.shape} is not copied to another device; "
                "copy the whole value that it is a part of, and take the part there"
            )
        raise AssertionError("the source of a COPY was not stored")
    buffer, begin, end = part
    held = UOp(Ops.PARAM, buffer.dtype, (), ParamArg(1, buffer.arg.size))
    copied = UOp(Ops.COPY, node.dtype, (held.shrink(((begin, end),)),), node.arg)
    destination = storage.buffers[node]
    name = f"copy_{end - begin}"
    call = UOp(Ops.CALL, dtypes.void, (copied, destination, buffer), CallArg(name, "copy"))
    return Kernel((), (destination,), frozenset((buffer,)), call=call)


def contiguous_part(value: UOp, storage: Storage) -> tuple[UOp, int, int] | None:
    """The run `[begin, end)` of a BUFFER that holds exactly the elements of `value` in order.

    None if there is none.
    """
    node = value
    begin = 0
    length = 0
    first = True
    while node not in storage.buffers and node.op in ADDRESSING:
        if node.op in {Ops.RESHAPE, *TRANSPARENT}:
            node = node.src[0]
            continue
        run = _leading_run(node) if node.op is Ops.SHRINK else None
        if run is None:
            return None
        begin += run[0]
        length = length if not first else run[1]
        first = False
        node = node.src[0]
    if node.op is not Ops.BUFFER and node not in storage.buffers:
        return None
    if any(not isinstance(extent, int) for extent in node.shape):
        return None
    buffer = node if node.op is Ops.BUFFER else storage.buffers[node]
    if node.op is Ops.AFTER and storage.layouts[node].op in ADDRESSING:
        return None
    size = 1
    for extent in value.shape:
        size *= extent
    return buffer, begin, begin + size


def _leading_run(node: UOp) -> tuple[int, int] | None:
    """Begin and length of the run of elements that a SHRINK keeps.

    None where it keeps no single run.
    """
    source = node.src[0].shape
    ends = [end for bounds in node.marg for end in bounds]
    if any(not isinstance(extent, int) for extent in (*source, *ends)):
        return None
    whole = True
    begin = 0
    stride = 1
    for extent, (low, high) in reversed(tuple(zip(source, node.marg, strict=True))):
        if not whole and high - low != 1:
            return None
        begin += low * stride
        whole = whole and high - low == extent
        stride *= extent
    length = 1
    for extent in node.shape:
        length *= extent
    return begin, length
