"""`PrivateInputs`: the tensor arguments, which in a captured call lie in buffers of their own."""

from __future__ import annotations

from tg_ir.graph import UOp

from tg_frontend.jit.arguments import Arguments, binds_of
from tg_frontend.jit.inputs import InputSpec, bind_mapping, private_copy, realized_input, spec_of
from tg_frontend.live.walk import is_view_of_storage, place_of
from tg_frontend.tensor import Tensor


class PrivateInputs:
    """The tensor arguments, which during the captured call lie in buffers of their own.

    So no program can confuse them with each other or with state.
    """

    def __init__(self, arguments: Arguments) -> None:
        """Point each argument at a copy of its contents."""
        self.variables = arguments.variable_values()
        self.binds = arguments.binds()
        self.paths = list(arguments.tensors)
        self.specs: list[InputSpec] = []
        self.nodes: list[UOp] = []
        self._tensors: list[tuple[Tensor, UOp, int]] = []
        taken: dict[int, int] = {}
        self.number_of: dict[int, int] = taken
        for path, tensor in arguments.tensors.items():
            if id(tensor) not in taken:
                taken[id(tensor)] = len(self.nodes)
                self._add(path, tensor)
        self.positions = [taken[id(tensor)] for tensor in arguments.tensors.values()]

    def _add(self, path: str, tensor: Tensor) -> None:
        node = realized_input(path, tensor)
        spec = spec_of(path, tensor, node)
        copied = private_copy(node)
        self._tensors.append((tensor, tensor.uop, tensor._writes))
        self.specs.append(spec)
        self.nodes.append(copied)
        tensor.uop = spec.template.over(copied, bind_mapping(binds_of(tensor.uop)))

    def restore(self) -> None:
        """Give each argument its own contents back, except where the call wrote to it."""
        for tensor, uop, writes in self._tensors:
            if tensor._writes == writes:
                tensor.uop = uop

    def tensor(self, number: int) -> Tensor:
        """The argument of a number."""
        return self._tensors[number][0]

    def was_written(self, number: int) -> bool:
        """Whether the call wrote to the argument of a number; asked after `restore`."""
        tensor, _, writes = self._tensors[number]
        return tensor._writes != writes

    def shows_writes(self, number: int) -> bool:
        """Whether the argument shows its buffer, not only an alias of it that was written to."""
        uop = self.tensor(number).uop
        return (
            self.was_written(number)
            and is_view_of_storage(uop)
            and place_of(uop).arg.id == self.nodes[number].arg.id
        )
