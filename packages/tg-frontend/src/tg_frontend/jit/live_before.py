"""`LiveBefore`: the tensors alive before a call, to see afterwards what the call made or changed.

It holds no tensor and no value, or memory that the call lets go of would stay.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tg_ir.device import Buffer
from tg_ir.graph import UOp

from tg_frontend import storage
from tg_frontend.jit.recording import Slot, is_unrealized
from tg_frontend.jit.template import ViewTemplate
from tg_frontend.live.registry import live_holders
from tg_frontend.live.walk import is_view_of_storage, place_of
from tg_frontend.tensor import Tensor


@dataclass(frozen=True)
class TensorBefore:
    """One tensor.

    Attributes:
        tensor: the tensor.
        value: what it held.
        writes: how often it had been written to.
        storage: the id of the BUFFER that it was a view of, or None.
        template: how it lay in that, or None.
        gradient: what its `grad` was, or None.
        gradient_of: the tensor whose `grad` it was, or None.
    """

    tensor: weakref.ref[Tensor]
    value: weakref.ref[UOp]
    writes: int
    storage: int | None
    template: ViewTemplate | None
    gradient: weakref.ref[Tensor] | None
    gradient_of: weakref.ref[Tensor] | None

    def was_changed(self, tensor: Tensor) -> bool:
        """Whether the tensor holds another value now."""
        return tensor.uop is not self.value()


class LiveBefore:
    """The tensors alive at the moment of creation.

    Attributes:
        unrealized: the values among them that were not computed yet.
    """

    def __init__(self) -> None:
        """Look at every live tensor."""
        tensors = live_tensors()
        gradient_of = {id(t.grad): weakref.ref(t) for t in tensors if t.grad is not None}
        self.unrealized = {t.uop for t in tensors if is_unrealized(t.uop)}
        self._by_id = {id(t): _look_at(t, gradient_of.get(id(t))) for t in tensors}
        places = [place_of(t.uop) for t in tensors if is_view_of_storage(t.uop)]
        self._memory = {place.arg.id: storage.buffer_of(place) for place in places}

    def of(self, tensor: Tensor) -> TensorBefore | None:
        """What was known of a tensor, or None if it is new."""
        found = self._by_id.get(id(tensor))
        return found if found is not None and found.tensor() is tensor else None

    def changed(self) -> Iterator[tuple[Tensor, TensorBefore]]:
        """The tensors that are still alive and hold another value now."""
        for before in self._by_id.values():
            tensor = before.tensor()
            if tensor is not None and before.was_changed(tensor):
                yield tensor, before

    def read_by(self, slots: Sequence[Slot]) -> list[TensorBefore]:
        """The tensors whose memory is a state of a recording."""
        used = {id(slot.buffer) for slot in slots if slot.origin == "state"}
        wanted = {key for key, buffer in self._memory.items() if id(buffer) in used}
        return [before for before in self._by_id.values() if before.storage in wanted]

    def memory(self) -> dict[int, Buffer]:
        """The memory that these tensors were views of, by the id of its BUFFER."""
        return self._memory

    def stored_in(self, storage_id: int) -> list[TensorBefore]:
        """The tensors that were views of one BUFFER."""
        return [before for before in self._by_id.values() if before.storage == storage_id]


def live_tensors() -> list[Tensor]:
    """The tensors alive now, oldest first."""
    return [holder for holder in live_holders() if isinstance(holder, Tensor)]


def _look_at(tensor: Tensor, gradient_of: weakref.ref[Tensor] | None) -> TensorBefore:
    uop = tensor.uop
    stored = is_view_of_storage(uop)
    return TensorBefore(
        tensor=weakref.ref(tensor),
        value=weakref.ref(uop),
        writes=tensor._writes,
        storage=place_of(uop).arg.id if stored else None,
        template=ViewTemplate.of(uop) if stored else None,
        gradient=None if tensor.grad is None else weakref.ref(tensor.grad),
        gradient_of=gradient_of,
    )
