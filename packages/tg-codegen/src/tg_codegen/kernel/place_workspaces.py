"""The pass that moves scratch memory which a worker has no room for to workspace buffers.

It runs when lanes and copies have made the scratch as large as it gets.
"""

from __future__ import annotations

from collections.abc import Iterable

from tg_ir.graph import AxisType, Ops, ParamArg, UOp, toposort

from tg_codegen.errors import LoweringError
from tg_codegen.kernel.private_memory import memory_of
from tg_codegen.kernel.workspace import MAX_WORKSPACE_BYTES


def place_workspaces(sink: UOp, scratch_bytes: int) -> UOp:
    """Replaces DEFINE_LOCALs by PARAMs until the others take at most `scratch_bytes`.

    The largest go first. A workspace has a part for each iteration of the THREAD range; workers run
    different ones, so no two share memory.

    Requires: machine dtypes only. Ensures: a PARAM that was not in the kernel before is a
    workspace.

    Raises:
        LoweringError: a workspace would be beyond all measure.
    """
    order = toposort((sink,))
    chosen = _too_large([n for n in order if n.op is Ops.DEFINE_LOCAL], scratch_bytes)
    if not chosen:
        return sink
    slot = 1 + max((n.arg.slot for n in order if n.op is Ops.PARAM), default=-1)
    worker = next((n for n in order if _is_shared_among_workers(n)), None)
    parts = 1 if worker is None else int(worker.vmax) + 1
    buffers = {
        memory: _workspace(memory, slot + number, parts) for number, memory in enumerate(chosen)
    }
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node in buffers:
            new[node] = buffers[node]
        elif node.op is Ops.INDEX and worker is not None and memory_of(node.src[0]) in buffers:
            place = _own_part(src[1], worker, memory_of(node.src[0]).arg.size)
            new[node] = UOp(node.op, node.dtype, (src[0], place, *src[2:]), node.arg)
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]


def _is_shared_among_workers(node: UOp) -> bool:
    return node.op is Ops.RANGE and node.arg.kind is AxisType.THREAD


def _nbytes(memory: UOp) -> int:
    return int(memory.arg.size * memory.dtype.itemsize)


def _too_large(memories: Iterable[UOp], scratch_bytes: int) -> list[UOp]:
    """Those to move, in a fixed order."""
    chosen = [memory for memory in memories if memory.arg.workspace]
    kept = [memory for memory in memories if not memory.arg.workspace]
    kept.sort(key=lambda memory: (_nbytes(memory), memory.arg.slot))
    while sum(map(_nbytes, kept)) > scratch_bytes:
        chosen.append(kept.pop())
    return sorted(chosen, key=lambda memory: int(memory.arg.slot))


def _workspace(memory: UOp, slot: int, parts: int) -> UOp:
    nbytes = parts * _nbytes(memory)
    if nbytes > MAX_WORKSPACE_BYTES:
        raise LoweringError(
            f"scratch of {memory.arg.size} x {memory.dtype.name} for each of {parts} THREAD "
            f"iterations takes {nbytes} bytes, more than {MAX_WORKSPACE_BYTES}; use a smaller "
            "tile, or split the axis and thread its outer part"
        )
    arg = ParamArg(slot, parts * memory.arg.size, writable=True)
    return UOp(Ops.PARAM, memory.dtype, (), arg)


def _own_part(position: UOp, worker: UOp, size: int) -> UOp:
    offset = worker * UOp.const(worker.dtype, size)
    return position + offset.broadcast(position.dtype.count)
