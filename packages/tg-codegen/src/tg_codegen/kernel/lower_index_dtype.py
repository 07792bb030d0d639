"""The pass that gives `index` values a machine width."""

from __future__ import annotations

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp, toposort


def lower_index_dtype(sink: UOp, machine_dtype: DType) -> UOp:
    """Replaces dtype `index` by `machine_dtype`.

    Requires: addresses stay within its bounds. Ensures: no node of dtype `index`; casts that lost
    their purpose are gone.
    """
    new: dict[UOp, UOp] = {}
    for node in toposort((sink,)):
        src = tuple([new[s] for s in node.src])
        dtype = node.dtype
        if dtype.scalar() is dtypes.index:
            dtype = machine_dtype.vec(dtype.count)
        if node.op is Ops.CAST and src[0].dtype is dtype:
            new[node] = src[0]
        elif src == node.src and dtype is node.dtype:
            new[node] = node
        else:
            new[node] = UOp(node.op, dtype, src, node.arg)
    return new[sink]
