"""Small parts that the kernels of these tests are built of."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from tg_ir.dtype import DType, dtypes
from tg_ir.graph import UOp
from tg_ir.graph.ops import Ops, ParamArg


def param(
    slot: int, size: int, dtype: DType = dtypes.float32, *, writable: bool | None = None
) -> UOp:
    """Argument `slot`; the first is the output unless `writable` says otherwise."""
    is_written = slot == 0 if writable is None else writable
    return UOp(Ops.PARAM, dtype, (), ParamArg(slot, size, is_written))


def floats(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Normal random numbers, the same in each run."""
    generator = np.random.default_rng(seed + math.prod(shape))
    return generator.standard_normal(shape).astype(np.float32)
