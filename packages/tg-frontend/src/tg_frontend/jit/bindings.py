"""What a replay binds: tensors that feed a captured program, and those that show what it wrote."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Literal

from tg_ir.device import Buffer
from tg_ir.graph import UOp

from tg_frontend.jit.template import ViewTemplate
from tg_frontend.tensor import Tensor


@dataclass
class Owner:
    """A tensor through which the captured function saw a state buffer.

    Attributes:
        tensor: the tensor.
        gradient_of: the tensor whose `grad` it was, or None; its present `grad` counts.
        template: how it lies in the buffer.
        follows: whether it shows what the program writes there; else the program only reads it.
        seen: what it held when it was last looked at.
    """

    tensor: weakref.ref[Tensor]
    gradient_of: weakref.ref[Tensor] | None
    template: ViewTemplate
    follows: bool = False
    seen: UOp | None = None

    def current(self) -> Tensor | None:
        """The tensor now, or None if it is gone."""
        if self.gradient_of is None:
            return self.tensor()
        holder = self.gradient_of()
        return None if holder is None else holder.grad


@dataclass
class State:
    """A buffer that existed before the captured call.

    Attributes:
        slot: which of the recording.
        owners: the tensors that were views of it.
        written: whether the program writes to it.
        node: its BUFFER as last bound, or None where no tensor sees it.
        memory: where `node` is None: the memory itself.
    """

    slot: int
    owners: list[Owner]
    written: bool
    node: UOp | None
    memory: Buffer | None


@dataclass(frozen=True)
class Made:
    """A buffer that the captured call made and that is wanted after it.

    Attributes:
        slot: which of the recording.
        like: a BUFFER without memory, of its size, dtype and device.
    """

    slot: int
    like: UOp


SourceKind = Literal["input", "state", "made", "fixed"]


@dataclass(frozen=True)
class Value:
    """A value after the call.

    Attributes:
        kind: where it lies.
        slot: of the buffer that it is a view of; -1 where it is fixed.
        template: how it lies there; None where it is fixed.
        fixed: a tensor that holds the value which is the same for every call, or None.
        requires_grad: as the captured tensor had it.
    """

    kind: SourceKind
    slot: int
    template: ViewTemplate | None
    fixed: Tensor | None
    requires_grad: bool | None


@dataclass(frozen=True)
class ChangedTensor:
    """A tensor that is not returned and holds something else after the call.

    Attributes:
        tensor: the tensor.
        value: what it holds.
    """

    tensor: weakref.ref[Tensor]
    value: Value


@dataclass(frozen=True)
class ChangedGradient:
    """A tensor whose `grad` is another after the call.

    Attributes:
        tensor: the tensor, where it is no argument.
        argument: the path of the argument that it is, or None.
        value: the new gradient, or None where the call removed it.
    """

    tensor: weakref.ref[Tensor]
    argument: str | None
    value: Value | None


@dataclass(frozen=True)
class SameTensor:
    """A result that is a tensor from before the call: an argument by its path, or one kept."""

    argument: str | None
    tensor: Tensor | None


@dataclass(frozen=True)
class NewTensor:
    """A result that each call makes anew; equal numbers are one tensor."""

    number: int
    value: Value


@dataclass
class Effects:
    """Everything that shows after a call.

    Attributes:
        result: the result of the function with a `SameTensor` or `NewTensor` for each tensor in it.
        inputs: by number of an argument that no longer shows its buffer, what it holds.
        tensors: tensors that hold something else.
        gradients: tensors whose gradient is another.
    """

    result: object
    inputs: dict[int, Value] = field(default_factory=dict)
    tensors: list[ChangedTensor] = field(default_factory=list)
    gradients: list[ChangedGradient] = field(default_factory=list)
