"""`ViewTemplate`: how a value lies in its buffer, whichever that is and whatever variables hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tg_ir.graph import GroupOp, Ops, UOp

from tg_frontend.live.walk import place_of

_TRANSPARENT = (Ops.REALIZED, Ops.DETACH)


@dataclass(frozen=True)
class ViewTemplate:
    """A value that is movement over one BUFFER.

    Attributes:
        view: the movement, over `hole`, with variables instead of values that calls may change.
        hole: a BUFFER without memory that stands for the real one.
    """

    view: UOp
    hole: UOp

    @classmethod
    def of(
        cls, uop: UOp, hole: UOp | None = None, binds: Iterable[UOp] = ()
    ) -> ViewTemplate:
        """The template of a realised value.

        Args:
            uop: movement over a BUFFER; histories are left out.
            hole: the one to use, so that templates of buffers of equal size can be compared.
            binds: the BINDs whose values calls may change.
        """
        place = place_of(uop)
        if hole is None:
            hole = hole_like(place)
        return cls(_rebuilt(uop, place, hole, {bind: bind.src[0] for bind in binds}), hole)

    def fits(self, uop: UOp) -> bool:
        """Whether a realised value lies in its buffer in this way."""
        place = place_of(uop)
        if place.op is not Ops.BUFFER or place.dtype is not self.hole.dtype:
            return False
        if place.arg.size != self.hole.arg.size or place.arg.device != self.hole.arg.device:
            return False
        return _rebuilt(uop, place, self.hole, {}) is self.view

    def over(self, buffer: UOp, binds: dict[UOp, UOp] | None = None) -> UOp:
        """The value that lies in `buffer` in this way.

        Args:
            buffer: the BUFFER.
            binds: for each variable its BIND.
        """
        view = self.view
        if view is self.hole:
            return buffer
        if len(view.src) == 1 and view.src[0] is self.hole:
            # made directly: `reshape` would infer the shape of each new version
            return UOp(view.op, view.dtype, (buffer,), view.arg)
        return view.substitute({self.hole: buffer, **(binds or {})})


def hole_like(buffer: UOp) -> UOp:
    """A BUFFER without memory, of the size and device of `buffer`."""
    return UOp.new_buffer(buffer.arg.device, buffer.arg.size, buffer.dtype)


def _rebuilt(uop: UOp, place: UOp, hole: UOp, unbound: dict[UOp, UOp]) -> UOp:
    chain = []
    while uop is not place:
        chain.append(uop)
        uop = uop.src[0]
    value = hole
    for node in reversed(chain):
        if node.op in GroupOp.Movement:
            sizes = tuple(size.substitute(unbound) for size in node.src[1:])
            value = UOp(node.op, node.dtype, (value, *sizes), node.arg)
        elif node.op not in _TRANSPARENT:
            raise AssertionError(f"{node.op.name} is no view")
    return value
