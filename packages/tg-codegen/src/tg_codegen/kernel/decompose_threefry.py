"""THREEFRY in 32-bit integer ops."""

from __future__ import annotations

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(node: UOp) -> UOp | None:
    """Threefry-2x32 with 20 rounds (Salmon et al., SC 2011).

    The counter and the key are two 32-bit words each, the low word first.
    """
    counter, key = node.src
    word = dtypes.uint32 if node.dtype.count == 1 else dtypes.uint32.vec(node.dtype.count)
    x, y = _words(counter, word)
    keys = list(_words(key, word))
    keys.append(keys[0] ^ keys[1] ^ keys[0].const_like(_PARITY))
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = _rotate(y, rotation) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + y.const_like(group + 1)
    high = y.cast(node.dtype).alu(Ops.SHL, node.const_like(32))
    return high | x.cast(node.dtype)


def _words(value: UOp, word: DType) -> tuple[UOp, UOp]:
    """The low and the high 32 bits."""
    return value.cast(word), value.alu(Ops.SHR, value.const_like(32)).cast(word)


def _rotate(value: UOp, amount: int) -> UOp:
    left = value.alu(Ops.SHL, value.const_like(amount))
    return left | value.alu(Ops.SHR, value.const_like(32 - amount))
