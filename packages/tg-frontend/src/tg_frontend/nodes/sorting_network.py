"""The positions that sort rows, by a bitonic network over integer keys.

Source of the network: K. Batcher, "Sorting networks and their applications", 1968. A key orders as
the value does, NaN last (first if descending), and holds the place too where both fit in 64 bits:
a step of the network is then the smaller or the larger of two integers.
"""

from __future__ import annotations

from tg_ir.dtype import DType, dtypes
from tg_ir.graph import Ops, UOp

from tg_frontend.nodes.broadcasting import filled, positions

PLACE = dtypes.int32
_KEY = dtypes.int64
# Neighbours in memory that no comparison of most steps tells apart: several vectors of any machine.
_LANES = 32
# So many steps are one kernel; each doubles what a kernel reads.
_STEPS_IN_KERNEL = 2


def sorted_places(values: UOp, descending: bool) -> UOp:
    """The positions that sort the last axis, int32; equal elements keep their order."""
    size = int(values.shape[-1])
    if size <= 1:
        return filled(PLACE, 0, values.shape)
    width = 1 << (size - 1).bit_length()
    rows = 1
    for extent in values.shape[:-1]:
        rows *= int(extent)
    flat = values.reshape((rows, size)).pad(((0, 0), (0, width - size)))
    network = _Network(rows, width)
    columns = [network.laid_out(column) for column in _columns(flat, size, descending)]
    places = network.in_order(network.sort(columns)[-1])
    places = (places & places.const_like(0xFFFFFFFF)).cast(PLACE)
    return places.shrink(((0, rows), (0, size))).reshape(values.shape)


# ---- keys


def _columns(flat: UOp, size: int, descending: bool) -> list[UOp]:
    """What is sorted: keys with the place in the low half, or keys and places."""
    key = _signed_key(flat)
    if descending:
        key = key ^ key.const_like(-1)
    place = positions(flat.shape, 1, _KEY)
    is_inside = place < size
    last = place.const_like(dtypes.max(_KEY))
    if key.dtype.bits == 64:
        return [is_inside.where(key, last), place]
    wide = key.cast(_KEY)
    packed = wide.alu(Ops.SHL, wide.const_like(32)) | place
    # behind everything, by place
    return [is_inside.where(packed, last)]


def _signed_key(values: UOp) -> UOp:
    """An integer of 32 or 64 signed bits that orders as `values` do, NaN last."""
    dtype = values.dtype
    if dtypes.is_float(dtype):
        return _float_key(values if dtype.bits >= 32 else values.cast(dtypes.float32))
    if dtype.bits < 32:
        return values.cast(dtypes.int32)
    if dtypes.is_unsigned(dtype):
        signed = values.bitcast(_signed(dtype))
        return signed ^ signed.const_like(dtypes.min(signed.dtype))
    return values


def _float_key(values: UOp) -> UOp:
    """The bits of a float; those of negative numbers count down."""
    signed = _signed(values.dtype)
    # of the two zeros and of the many NaN one is taken
    plain = values.eq(values.const_like(0)).where(values.const_like(0), values)
    bits = plain.bitcast(signed)
    largest = bits.const_like(dtypes.max(signed))
    ordered = (bits < 0).where(bits ^ largest, bits)
    return values.ne(values).where(largest, ordered)


def _signed(dtype: DType) -> DType:
    return dtypes.int64 if dtype.bits == 64 else dtypes.int32


# ---- the network


class _Network:
    """Sorts columns of shape (low, top, rows): element `top * lows + low` of each row."""

    def __init__(self, rows: int, width: int) -> None:
        tops = 1
        # the high half of an index takes part in the fewest comparisons, so it is innermost
        while tops * rows < _LANES and tops < width:
            tops *= 2
        self._shape = (width // tops, tops, rows)
        self._width = width
        self._steps = 0

    def laid_out(self, column: UOp) -> UOp:
        """Shape (rows, width) to that of the network."""
        lows, tops, rows = self._shape
        return column.reshape((rows, tops, lows)).permute((2, 1, 0)).contiguous()

    def in_order(self, column: UOp) -> UOp:
        """The inverse of `laid_out`."""
        return column.permute((2, 1, 0)).reshape((self._shape[2], self._width))

    def sort(self, columns: list[UOp]) -> list[UOp]:
        """Sorted runs of 1, 2, 4 ... elements are merged."""
        run = 1
        while run < self._width:
            # the second run is read backwards, so that every comparison sorts upwards
            columns = self._compare(columns, run, is_reversed=True)
            distance = run // 2
            while distance:
                columns = self._compare(columns, distance, is_reversed=False)
                distance //= 2
            run *= 2
        return [column.contiguous() for column in columns]

    def _compare(self, columns: list[UOp], distance: int, is_reversed: bool) -> list[UOp]:
        """Each element keeps the smaller or the larger of itself and its partner."""
        lows, tops, rows = self._shape
        if distance < lows:
            shape = (lows // (2 * distance), 2, distance, tops, rows)
            flips = (False, True, is_reversed, False, False)
            side = 1
        else:
            far = distance // lows
            shape = (lows, tops // (2 * far), 2, far, rows)
            flips = (is_reversed, False, True, is_reversed, False)
            side = 2
        own = [column.reshape(shape) for column in columns]
        other = [column.flip(flips) for column in own]
        is_upper = positions(shape, side, PLACE) > 0
        is_less = _is_less(own, other)
        self._steps += 1
        is_end = self._steps % _STEPS_IN_KERNEL == 0
        result = []
        for a, b in zip(own, other, strict=True):
            kept = is_upper.where(is_less.where(b, a), is_less.where(a, b)).reshape(self._shape)
            result.append(kept.contiguous() if is_end else kept)
        return result


def _is_less(own: list[UOp], other: list[UOp]) -> UOp:
    """Whether the first columns, and where they are equal the next, are less."""
    result = own[-1] < other[-1]
    for a, b in zip(reversed(own[:-1]), reversed(other[:-1]), strict=True):
        result = (a < b) | (a.eq(b) & result)
    return result
