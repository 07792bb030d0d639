"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

from tg_frontend.optim.optimizer import Optimizer, check_rate
from tg_frontend.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., 2013, as PyTorch writes it).

    With gradient g of parameter p: g += weight_decay * p; b = momentum * b + g; p -= lr * u, where
    u is b, or g + momentum * b with `nesterov`.

    Attributes:
        b: the momentum buffers, one for each parameter; empty without momentum.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        """Take the parameters.

        Raises:
            OptimizerError: none of them requires a gradient.
        """
        check_rate("SGD: momentum", momentum)
        check_rate("SGD: weight_decay", weight_decay)
        super().__init__(params, lr)
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.b = self._state() if momentum else []

    def _begin_step(self) -> list[Tensor]:
        return []

    def _update(self, index: int, param: Tensor, gradient: Tensor) -> tuple[Tensor, list[Tensor]]:
        direction = gradient + self.weight_decay * param if self.weight_decay else gradient
        if not self.momentum:
            return self._rate() * direction, []
        buffer = self.b[index]
        buffer.assign(self.momentum * buffer + direction)
        moved = direction + self.momentum * buffer if self.nesterov else buffer
        return self._rate() * moved, [buffer]
