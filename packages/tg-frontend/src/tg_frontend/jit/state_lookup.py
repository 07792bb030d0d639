"""Where the state of a captured program is now: its tensors may have been written to since."""

from __future__ import annotations

from tg_ir.graph import UOp

from tg_frontend import storage
from tg_frontend.jit.bindings import Owner, State
from tg_frontend.jit.errors import JitError
from tg_frontend.live.walk import is_view_of_storage, place_of
from tg_frontend.tensor import Tensor


class StateMovedError(JitError):
    """State no longer lies as it did at the capture; the call is captured anew."""


def locate_state(state: State) -> UOp | None:
    """The BUFFER that holds a state now; None where only its memory is known.

    Raises:
        StateMovedError: its tensors lie in it in another way, or no longer share one buffer.
    """
    if all(_is_unchanged(owner) for owner in state.owners):
        return state.node
    seen = [(owner, owner.current()) for owner in state.owners]
    places = {_place(owner, tensor) for owner, tensor in seen if tensor is not None}
    if len(places) > 1:
        raise StateMovedError("tensors that shared a buffer at the capture no longer do")
    for place in places:
        state.node = place
    return state.node


def _is_unchanged(owner: Owner) -> bool:
    tensor = owner.current()
    return tensor is None or (owner.seen is not None and tensor.uop is owner.seen)


def _place(owner: Owner, tensor: Tensor) -> UOp:
    tensor.realize()
    uop = tensor.uop
    if not is_view_of_storage(uop) or not owner.template.fits(uop):
        raise StateMovedError("a tensor lies in its buffer in another way than at the capture")
    place = place_of(uop)
    if not storage.is_stored(place):
        raise StateMovedError("the contents of a tensor were overwritten")
    owner.seen = uop
    return place
