"""`CapturedCall`: a captured program with all it needs to stand for a call of the function.

A replay checks the arguments, finds the memory of arguments and state, saves what live tensors
still read of what will be overwritten, runs, and then points every tensor at what the function
would have left it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tg_ir.device import Buffer, Executor
from tg_ir.graph import BufferArg, Ops, UOp

from tg_frontend import storage
from tg_frontend.interrupts import interrupts_wait
from tg_frontend.jit.arguments import Arguments
from tg_frontend.jit.bindings import Effects, Made, NewTensor, SameTensor, State, Value
from tg_frontend.jit.inputs import InputSpec, bind_mapping, private_copy, realized_input
from tg_frontend.jit.overwriting import ReaderGuard
from tg_frontend.jit.results import map_leaves
from tg_frontend.jit.state_lookup import StateMovedError, locate_state
from tg_frontend.jit.variables import generator_values
from tg_frontend.jit.watched import Watched
from tg_frontend.tensor import Tensor
from tg_frontend.tensor.random import skip_draws


@dataclass
class CapturedCall:
    """One captured program.

    Attributes:
        executor: the merged program, loaded.
        brought: the slot of each of its inputs.
        inputs: what the tensor arguments have to be; the slots of the first buffers.
        positions: for each tensor argument which of `inputs` it is; one tensor may be given twice.
        input_written: for each of them whether the program writes to it, and its tensor shows that.
        input_copied: for each of them whether the program writes to a copy of it, since its tensor
            shows other contents.
        states: buffers from before the call.
        made: buffers that each call makes anew.
        effects: what shows after a call.
        draws: how many random numbers a call draws.
        readers: saves what live tensors read of what is overwritten.
        watched: what the function saw beside its arguments; None if nothing was.
    """

    executor: Executor
    brought: tuple[int, ...]
    inputs: list[InputSpec]
    positions: list[int]
    input_written: list[bool]
    input_copied: list[bool]
    states: list[State]
    made: list[Made]
    effects: Effects
    draws: int
    readers: ReaderGuard
    watched: Watched | None = None

    def replay(self, arguments: Arguments) -> Any:
        """Run the program on the arguments of a call and return what the function would.

        Raises:
            JitError: the arguments are not what the program was captured for.
            StateMovedError: the state is not; nothing was run, and the call is to be captured anew.
        """
        if self.watched is not None and not self.watched.is_unchanged():
            raise StateMovedError("the function would see another tensor or number")
        tensors = self._distinct(arguments)
        for spec, tensor in zip(self.inputs, tensors, strict=True):
            spec.check(tensor)
        values = arguments.variable_values()
        for tensor in tensors:
            tensor.realize()
        nodes = self._state_nodes()
        nodes |= self._input_nodes(tensors)
        written = self._written_nodes(nodes)
        self.readers.save(written.values(), self._showing(tensors))
        for made in self.made:
            like = made.like.arg
            nodes[made.slot] = storage.new_buffer(like.device, like.size, made.like.dtype)
        values |= generator_values(*skip_draws(self.draws))
        with interrupts_wait():
            self.executor.run(self._memory(nodes), values)
            for slot, node in written.items():
                nodes[slot] = _next_version(node)
            mapping = bind_mapping(arguments.binds())
            result = self._show(_Shown(nodes, mapping, tensors, self))
        return result

    def state_tensors(self) -> set[int]:
        """The ids of the tensors through which the program reads and writes its state."""
        owners = [owner.current() for state in self.states for owner in state.owners]
        changed = [changed.tensor() for changed in self.effects.tensors]
        return {id(tensor) for tensor in (*owners, *changed) if tensor is not None}

    # ---- before the run

    def _distinct(self, arguments: Arguments) -> list[Tensor]:
        """The tensor arguments, one for each of `inputs`.

        Raises:
            StateMovedError: two arguments that were one tensor at the capture are not.
        """
        found: dict[int, Tensor] = {}
        for position, tensor in zip(self.positions, arguments.tensors.values(), strict=True):
            if found.setdefault(position, tensor) is not tensor:
                raise StateMovedError("two arguments were one tensor at the capture")
        return [found[position] for position in range(len(self.inputs))]

    def _state_nodes(self) -> dict[int, UOp]:
        nodes = {}
        for state in self.states:
            node = locate_state(state)
            if node is not None:
                nodes[state.slot] = node
        return nodes

    def _input_nodes(self, tensors: Sequence[Tensor]) -> dict[int, UOp]:
        nodes: dict[int, UOp] = {}
        for slot, (spec, tensor) in enumerate(zip(self.inputs, tensors, strict=True)):
            node = realized_input(spec.path, tensor)
            if self.input_written[slot] and tensor._view is not None:
                raise StateMovedError(f"{spec.path} is a view that the function writes to")
            nodes[slot] = private_copy(node) if self.input_copied[slot] else node
        return nodes

    def _written_nodes(self, nodes: dict[int, UOp]) -> dict[int, UOp]:
        """The BUFFERs that the program overwrites, by slot.

        Raises:
            StateMovedError: one of them is also bound as something else.
        """
        written = {s.slot: nodes[s.slot] for s in self.states if s.written and s.slot in nodes}
        for slot, shown in enumerate(self.input_written):
            if shown or self.input_copied[slot]:
                written[slot] = nodes[slot]
        bound = Counter(nodes.values())
        if any(bound[node] > 1 for node in written.values()):
            raise StateMovedError("two tensors share a buffer that the program writes to")
        return written

    def _showing(self, tensors: Sequence[Tensor]) -> set[int]:
        """The ids of the tensors that show what is written: nothing has to be saved for them."""
        shown = {id(tensors[slot]) for slot, flag in enumerate(self.input_written) if flag}
        for state in self.states:
            if state.written:
                followers = [owner.current() for owner in state.owners if owner.follows]
                shown.update(id(tensor) for tensor in followers)
        shown.update(id(changed.tensor()) for changed in self.effects.tensors)
        return shown

    def _memory(self, nodes: dict[int, UOp]) -> list[Buffer]:
        held = {state.slot: state.memory for state in self.states}
        memory = []
        for slot in self.brought:
            node = nodes.get(slot)
            buffer = held[slot] if node is None else storage.buffer_of(node)
            if buffer is None:
                raise AssertionError("a buffer of a captured program has no memory")
            memory.append(buffer)
        return memory

    # ---- after the run

    def _show(self, shown: _Shown) -> Any:
        for state in self.states:
            if state.written:
                _follow(state, shown.nodes.get(state.slot))
        self._show_inputs(shown)
        for changed in self.effects.tensors:
            tensor = changed.tensor()
            if tensor is not None:
                _point(tensor, shown.uop_of(changed.value))
        for gradient in self.effects.gradients:
            holder = gradient.tensor()
            if gradient.argument is not None:
                holder = shown.argument(gradient.argument)
            if holder is not None:
                holder.grad = None if gradient.value is None else shown.tensor_of(gradient.value)
        return map_leaves(self.effects.result, shown.result)

    def _show_inputs(self, shown: _Shown) -> None:
        for slot, flag in enumerate(self.input_written):
            if flag:
                template = self.inputs[slot].template
                _point(shown.tensors[slot], template.over(shown.nodes[slot], shown.binds))
        for number, value in self.effects.inputs.items():
            _point(shown.tensors[number], shown.uop_of(value))


class _Shown:
    """What tensors show after one replay."""

    def __init__(
        self,
        nodes: dict[int, UOp],
        binds: dict[UOp, UOp],
        tensors: Sequence[Tensor],
        call: CapturedCall,
    ) -> None:
        self.nodes = nodes
        self.binds = binds
        self.tensors = tensors
        self._paths = [spec.path for spec in call.inputs]
        self._new: dict[int, Tensor] = {}

    def uop_of(self, value: Value) -> UOp:
        """What a tensor with this value holds."""
        if value.fixed is not None:
            return value.fixed.uop
        if value.template is None:
            raise AssertionError("a value that is not fixed lies in a buffer")
        return value.template.over(self.nodes[value.slot], self.binds)

    def tensor_of(self, value: Value) -> Tensor:
        """A new tensor with this value."""
        return Tensor._from_uop(self.uop_of(value), value.requires_grad)

    def argument(self, path: str) -> Tensor:
        """The argument at a path."""
        return self.tensors[self._paths.index(path)]

    def result(self, leaf: Any) -> Any:
        """What stands for one leaf of the captured result."""
        if isinstance(leaf, SameTensor):
            return leaf.tensor if leaf.argument is None else self.argument(leaf.argument)
        if not isinstance(leaf, NewTensor):
            return leaf
        if leaf.number not in self._new:
            self._new[leaf.number] = self.tensor_of(leaf.value)
        return self._new[leaf.number]


def _next_version(node: UOp) -> UOp:
    arg = node.arg
    # positional: `dataclasses.replace` took a fifth of the time of a replay with 50 states
    following = UOp(
        Ops.BUFFER,
        node.dtype,
        (),
        BufferArg(arg.id, arg.size, arg.device, arg.version + 1, arg.image),
    )
    storage.written(following)
    return following


def _follow(state: State, node: UOp | None) -> None:
    """Point the tensors that show a written buffer at its new version."""
    if node is None:
        return
    state.node = node
    for owner in state.owners:
        tensor = owner.current()
        if tensor is not None and owner.follows:
            _point(tensor, owner.template.over(node))
            owner.seen = tensor.uop


def _point(tensor: Tensor, uop: UOp) -> None:
    tensor.uop = uop
    tensor._writes += 1
