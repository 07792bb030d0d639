"""Runs an elementwise graph on numpy arrays: a second meaning of the ops, for tests only."""

import numpy as np
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops

TYPES = {
    dtypes.bool: np.bool_,
    dtypes.float16: np.float16,
    dtypes.float32: np.float32,
    dtypes.float64: np.float64,
} | {dtype: np.dtype(dtype.name).type for dtype in dtypes.ints}


def _fused(x, y, z):
    if x.dtype == np.float32:
        return (x.astype(np.float64) * y + z).astype(np.float32)
    if x.dtype != np.float64:
        return x * y + z
    # the product as an exact sum of two doubles (Veltkamp, Dekker), then the sum as one
    product = x * y
    cut = np.float64(2**27 + 1)
    x_high, y_high = x * cut - (x * cut - x), y * cut - (y * cut - y)
    x_low, y_low = x - x_high, y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    total = product + z
    part = total - product
    return total + (((product - (total - part)) + (z - part)) + error)


def _shift(x, y, left):
    width = x.dtype.itemsize * 8
    amount = np.minimum(y.astype(np.uint64), width - 1).astype(x.dtype)
    shifted = x << amount if left else x >> amount
    sign = np.where(x < 0, -1, 0).astype(x.dtype) if not left else np.zeros_like(x)
    return np.where(y.astype(np.uint64) >= width, sign, shifted)


def _c_quotient(x, y):
    if x.dtype.kind == "u":
        return np.where(y == 0, 0, x // np.where(y == 0, 1, y)).astype(x.dtype)
    minus_one = y == -1
    safe = np.where((y == 0) | minus_one, 1, y)
    floor = x // safe
    floor = floor + ((x - floor * safe != 0) & ((x < 0) != (safe < 0)))
    quotient = np.where(minus_one, (0 - x).astype(x.dtype), floor)
    return np.where(y == 0, 0, quotient).astype(x.dtype)


OPS = {
    Ops.ADD: lambda x, y: x + y,
    Ops.SUB: lambda x, y: x - y,
    Ops.MUL: lambda x, y: x * y,
    Ops.FDIV: lambda x, y: x / y,
    Ops.MAX: np.maximum,
    Ops.NEG: lambda x: -x,
    Ops.AND: lambda x, y: x & y,
    Ops.OR: lambda x, y: x | y,
    Ops.XOR: lambda x, y: x ^ y,
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPNE: lambda x, y: x != y,
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.WHERE: np.where,
    Ops.MULACC: _fused,
    Ops.SHL: lambda x, y: _shift(x, y, True),
    Ops.SHR: lambda x, y: _shift(x, y, False),
    Ops.CDIV: _c_quotient,
    Ops.CMOD: lambda x, y: np.where(y == 0, 0, x - _c_quotient(x, y) * y).astype(x.dtype),
}


def run_graph(root, inputs):
    """The value of `root`, its leaves given as arrays."""
    values = dict(inputs)
    with np.errstate(all="ignore"):
        for node in root.toposort():
            if node in values:
                continue
            kind = TYPES[node.dtype.scalar()]
            src = [values[s] for s in node.src]
            if node.op is Ops.CONST:
                values[node] = np.array([node.arg]).astype(kind)
            elif node.op is Ops.BITCAST:
                values[node] = np.ascontiguousarray(src[0]).view(kind)
            elif node.op is Ops.CAST:
                values[node] = src[0].astype(kind)
            else:
                values[node] = OPS[node.op](*src)
                assert values[node].dtype == kind, (node, values[node].dtype)
    return values[root]
