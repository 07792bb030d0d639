"""Gradients by tensors: `gradient` and `backward`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from tg_ir.dtype import dtypes
from tg_ir.errors import DTypeError, ShapeError
from tg_ir.graph import UOp

from tg_frontend.autograd import depends_on, gradients
from tg_frontend.errors import GradientError
from tg_frontend.live.history import place_below_movement
from tg_frontend.live.registry import live_holders
from tg_frontend.nodes.broadcasting import filled
from tg_frontend.tensor.core import expect_tensors
from tg_frontend.tensor.ordering import Ordering


class Gradient(Ordering):
    """Gradients."""

    __slots__ = ()

    def gradient(
        self, *targets: Self, gradient: Self | None = None, materialize_grads: bool = False
    ) -> list[Self]:
        """The gradient of this by each target.

        Equal elements share the gradient of a maximum or minimum. In a branch of `where` that was
        not taken it is zero, whatever the derivative there.

        Args:
            targets: float tensors that this was computed from.
            gradient: the gradient by this tensor, of its shape; None if it has one element: 1.
            materialize_grads: give zeros for a target that this does not depend on, rather than
                raise.

        Raises:
            GradientError: this has more than one element and `gradient` is not given, it does not
                depend on a target,
                or the way leads through an operation without a gradient.
        """
        start = self._start_of(gradient)
        expect_tensors("gradient", *targets)
        for target in targets:
            if not dtypes.is_float(target.dtype):
                raise DTypeError(
                    f"only float tensors have gradients, a target is {target.dtype.name}; "
                    "cast it to a float first"
                )
        found = gradients(
            self.uop, start, [target.uop for target in targets], _realized_nodes()
        )
        results = []
        for number, (target, uop) in enumerate(zip(targets, found, strict=True)):
            if uop is None:
                if not materialize_grads:
                    raise GradientError(
                        f"target {number} of shape {target.shape} is not reached: "
                        "the tensor does not depend on it, or only behind detach() or a "
                        "comparison; give materialize_grads=True to get zeros"
                    )
                uop = filled(target.dtype, 0, target.shape)
            results.append(self._from_uop(uop))
        return results

    def _start_of(self, gradient: Self | None) -> UOp:
        if not dtypes.is_float(self.dtype):
            raise DTypeError(f"only float tensors have gradients, this one is {self.dtype.name}")
        if gradient is None:
            if self.numel() != 1:
                raise GradientError(
                    f"gradient of a tensor of shape {self.shape}; expected one element: "
                    "reduce it, by sum() or mean(), or give gradient="
                )
            return filled(self.dtype, 1, self.shape)
        expect_tensors("gradient", gradient)
        if gradient.shape != self.shape:
            raise ShapeError(f"the gradient given is {gradient.shape}, the tensor {self.shape}")
        return gradient.uop.cast(self.dtype)

    def backward(self, gradient: Self | None = None) -> Self:
        """Add the gradient of this to `grad` of every tensor it depends on that requires one.

        Return self.

        Raises:
            GradientError: as `gradient`, or there is no such tensor.
        """
        start = self._start_of(gradient)
        wanted = self._tensors_with_gradient()
        found = gradients(
            self.uop, start, [tensor.uop for tensor in wanted], _realized_nodes()
        )
        for tensor, uop in zip(wanted, found, strict=True):
            if uop is None:
                continue
            new = self._from_uop(uop, False)
            tensor.grad = new if tensor.grad is None else tensor.grad.add(new)
            tensor.grad._requires_grad = False
        return self

    def _tensors_with_gradient(self) -> Sequence[Self]:
        holders = [
            holder
            for holder in live_holders()
            if holder._requires_grad and isinstance(holder, type(self))
        ]
        reached = depends_on(self.uop, [holder.uop for holder in holders])
        wanted = [holder for holder, hit in zip(holders, reached, strict=True) if hit]
        if not wanted:
            raise GradientError(
                "backward() of a tensor that depends on none with requires_grad=True; "
                "set it on the tensors whose grad is wanted; an optimiser sets it on the "
                "parameters of a model, so make one before, or call "
                "requires_grad_() on each of get_parameters(model)"
            )
        return wanted


def _realized_nodes() -> list[UOp]:
    return [place_below_movement(holder.uop) for holder in live_holders()]
