"""`Optimizer`, what all optimisers share, and `OptimizerGroup`, several that step together.

A subclass says how a gradient becomes an update; all updates of a step are realised in one
schedule.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from tg_ir.dtype import DType, dtypes

from tg_frontend.errors import ArgumentError
from tg_frontend.optim.errors import OptimizerError
from tg_frontend.tensor import Tensor


class Optimizer(ABC):
    """Moves parameters against their gradients.

    Attributes:
        params: the tensors that are moved, each once.
        buffers: tensors given that require no gradient, such as running statistics; a step realises
            what was assigned to them.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        """Take the parameters; those whose `requires_grad` is not set get it.

        Raises:
            OptimizerError: none of them requires a gradient.
        """
        check_rate(f"{type(self).__name__}: lr", lr)
        given = _without_doubles(params)
        for tensor in given:
            if tensor.requires_grad is None and dtypes.is_float(tensor.dtype):
                tensor.requires_grad = True
        self.params = [tensor for tensor in given if tensor.requires_grad]
        self.buffers = [tensor for tensor in given if not tensor.requires_grad]
        if not self.params:
            raise OptimizerError(
                f"{type(self).__name__}: none of {len(given)} tensors requires a gradient; "
                "give it get_parameters(model)"
            )
        # in the dict itself, so that state dicts call it "lr"
        self.__dict__["lr"] = self._shared(lr)

    @property
    def lr(self) -> Tensor:
        """The learning rate, shape `(1,)`.

        A number or a tensor set here is written into that tensor, so captured programs see it.
        """
        rate: Tensor = self.__dict__["lr"]
        return rate

    @lr.setter
    def lr(self, rate: Tensor | float) -> None:
        if isinstance(rate, Tensor):
            if rate is not self.lr:  # `lr += x` wrote to it already
                value = rate.detach().cast(dtypes.float32).reshape(1).to(self._device())
                self.lr.assign(value)
            return
        check_rate(f"{type(self).__name__}: lr", rate)
        self.lr.assign(self._shared(rate))

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Update all parameters by their gradients, in one schedule.

        Raises:
            OptimizerError: `Tensor.training` is not set, or no parameter has a gradient.
        """
        Tensor.realize(*self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """Write the updates without computing them yet; return every tensor that was written.

        Raises:
            OptimizerError: as `step`.
        """
        if not Tensor.training:
            raise OptimizerError(
                f"{type(self).__name__}.step(): Tensor.training is False; "
                "step inside `with Tensor.train():`"
            )
        indices = [index for index, param in enumerate(self.params) if param.grad is not None]
        if not indices:
            raise OptimizerError(
                f"{type(self).__name__}.step(): no parameter has a gradient; call loss.backward() "
                "first"
            )
        written = self._begin_step()
        for index in indices:
            param = self.params[index]
            dtype = state_dtype(param)
            value = param.detach().cast(dtype)
            update, states = self._update(index, value, self._gradient(param).cast(dtype))
            param.assign((value - update).cast(param.dtype))
            written += [*states, param]
        return [*written, *self.buffers]

    @abstractmethod
    def _begin_step(self) -> list[Tensor]:
        """Write the state that all parameters share; return what was written."""

    @abstractmethod
    def _update(self, index: int, param: Tensor, gradient: Tensor) -> tuple[Tensor, list[Tensor]]:
        """What to subtract from parameter `index`, and the states of it that were written.

        Args:
            index: into `params`.
            param: its value, in `state_dtype`, without history.
            gradient: likewise.
        """

    def _state(self) -> list[Tensor]:
        """Zeros in storage of their own, one for each parameter."""
        return [
            Tensor.zeros(*param.shape, dtype=state_dtype(param), device=param.device)
            .contiguous()
            .requires_grad_(False)
            for param in self.params
        ]

    def _shared(self, value: float) -> Tensor:
        """A number in storage of its own, shape `(1,)`."""
        return Tensor([value], dtype=dtypes.float32, device=self._device()).requires_grad_(False)

    def _rate(self) -> Tensor:
        """The learning rate, without history: no parameter remembers how its rate came about."""
        return self.lr.detach()

    def _device(self) -> str | tuple[str, ...]:
        return self.params[0].device

    @staticmethod
    def _gradient(param: Tensor) -> Tensor:
        if param.grad is None:
            raise OptimizerError("a gradient vanished during the step")
        return param.grad.detach()


class OptimizerGroup(Optimizer):
    """Several optimisers, each with its own parameters, that step together."""

    def __init__(self, *optimizers: Optimizer) -> None:
        """Take the optimisers.

        Raises:
            OptimizerError: none was given.
        """
        if not optimizers:
            raise OptimizerError("OptimizerGroup(): expected at least one optimiser")
        self.optimizers: Sequence[Optimizer] = optimizers
        self.params = [param for optimizer in optimizers for param in optimizer.params]
        self.buffers = [buffer for optimizer in optimizers for buffer in optimizer.buffers]

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first; one set here is set for all."""
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, rate: Tensor | float) -> None:
        for optimizer in self.optimizers:
            optimizer.lr = rate

    def __getitem__(self, index: int) -> Optimizer:
        """The optimiser at `index`."""
        return self.optimizers[index]

    def zero_grad(self) -> None:
        """Forget the gradients of all."""
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        """Write the updates of all without computing them yet; return every tensor written."""
        return [tensor for optimizer in self.optimizers for tensor in optimizer.schedule_step()]

    def _begin_step(self) -> list[Tensor]:
        raise OptimizerError("a group has no state of its own")

    def _update(self, index: int, param: Tensor, gradient: Tensor) -> tuple[Tensor, list[Tensor]]:
        raise OptimizerError("a group has no rule of its own")


def state_dtype(param: Tensor) -> DType:
    """The dtype in which the state of a parameter is kept: its own, at least fp32."""
    return param.dtype if param.dtype is dtypes.float64 else dtypes.float32


def check_rate(what: str, value: float) -> None:
    """Check a number that a user gives an optimiser.

    Raises:
        ArgumentError: it is no number.
    """
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"{what}: expected a number, got {type(value).__name__} {value!r}")


def _without_doubles(tensors: Iterable[Tensor]) -> list[Tensor]:
    is_list = isinstance(tensors, Iterable) and not isinstance(tensors, (Tensor, str))
    given = list(tensors) if is_list else []
    wrong = [tensor for tensor in given if not isinstance(tensor, Tensor)]
    if not is_list or wrong:
        shown = f"one of {wrong[0]!r}" if wrong else type(tensors).__name__
        raise ArgumentError(
            f"an optimiser takes a list of tensors, got {shown}; give it get_parameters(model)"
        )
    return list({id(tensor): tensor for tensor in given}.values())
