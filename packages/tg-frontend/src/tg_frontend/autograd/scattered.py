"""Adding values at index nodes: the transpose of a gather."""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.dtype import sum_accumulator
from tg_ir.graph import Ops, UOp

from tg_frontend.nodes.broadcasting import filled


def scatter_add(like: UOp, indices: Sequence[UOp], axes: tuple[int, ...], values: UOp) -> UOp:
    """Zeros of the shape of `like` with `values` added at `indices` along `axes`.

    Summed in the accumulator dtype, so that many small values to one place are not lost.
    """
    dtype = sum_accumulator(values.dtype)
    zeros = filled(dtype, 0, like.shape).contiguous()
    target = UOp(Ops.GATHER, dtype, (zeros, *indices), axes)
    return zeros.after(target.store(values.cast(dtype), Ops.ADD)).cast(values.dtype)
