"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable

from tg_frontend.optim.errors import OptimizerError
from tg_frontend.optim.optimizer import Optimizer, check_rate
from tg_frontend.tensor import Tensor


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    With gradient g at step t: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
    p -= lr * (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay * p).

    Attributes:
        m: first moments, one for each parameter.
        v: second moments, likewise.
        b1_t: b1 to the power of the steps done, shape `(1,)`.
        b2_t: b2 likewise.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        """Take the parameters.

        Raises:
            OptimizerError: none of them requires a gradient, or b1 or b2 is 1 or more.
        """
        for name, value in (("b1", b1), ("b2", b2), ("eps", eps), ("weight_decay", weight_decay)):
            check_rate(f"{type(self).__name__}: {name}", value)
        if not (0 <= b1 < 1 and 0 <= b2 < 1):
            raise OptimizerError(
                f"{type(self).__name__}: b1 and b2 are from 0 to below 1, got {b1} and {b2}"
            )
        super().__init__(params, lr)
        self.b1 = b1
        self.b2 = b2
        self.eps = eps
        self.weight_decay = weight_decay
        self.b1_t = self._shared(1.0)
        self.b2_t = self._shared(1.0)
        self.m = self._state()
        self.v = self._state()

    def _begin_step(self) -> list[Tensor]:
        self.b1_t.assign(self.b1_t * self.b1)
        self.b2_t.assign(self.b2_t * self.b2)
        return [self.b1_t, self.b2_t]

    def _update(self, index: int, param: Tensor, gradient: Tensor) -> tuple[Tensor, list[Tensor]]:
        m = self.m[index]
        v = self.v[index]
        m.assign(self.b1 * m + (1.0 - self.b1) * gradient)
        v.assign(self.b2 * v + (1.0 - self.b2) * gradient.square())
        mean = m / (1.0 - self.b1_t)
        scale = (v / (1.0 - self.b2_t)).sqrt() + self.eps
        direction = mean / scale
        if self.weight_decay:
            direction = direction + self.weight_decay * param
        return self._rate() * direction, [m, v]


class Adam(AdamW):
    """Adam (Kingma and Ba, 2015): `AdamW` without weight decay."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
    ) -> None:
        """Take the parameters.

        Raises:
            OptimizerError: none of them requires a gradient, or b1 or b2 is 1 or more.
        """
        super().__init__(params, lr, b1, b2, eps, weight_decay=0.0)
