"""Gradients, against central differences in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tg_frontend import Tensor

STEP = 1e-5

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "add_multiply": lambda x: (x * x + 3 * x).sum(),
    "cat": lambda x: x.cat(x * 2, dim=0).square().sum(),
    "conv2d": lambda x: x.reshape(1, 1, 3, 4).conv2d(x[:2, :2].reshape(1, 1, 2, 2)).square().sum(),
    "divide": lambda x: (x / (x * x + 1)).sum(),
    "exp_log": lambda x: ((x.exp() + 1).log()).sum(),
    "expand": lambda x: (x.unsqueeze(0).expand(2, 3, 4) * 2).square().sum(),
    "gather": lambda x: x[Tensor([0, 2, 0])].square().sum(),
    "matmul": lambda x: (x @ x.transpose(0, 1)).tanh().sum(),
    "max": lambda x: x.max(1).square().sum(),
    "max_pool": lambda x: x.reshape(1, 1, 3, 4).max_pool2d(2, stride=1).square().sum(),
    "mean_var": lambda x: (x.mean(0) * x.var(0)).sum(),
    "pad_shrink": lambda x: x.pad(((1, 0), (0, 2)))[:3, 1:].square().sum(),
    "permute_flip": lambda x: (x.transpose(0, 1).flip(0).reshape(3, 4) * x).sum(),
    "sigmoid": lambda x: x.sigmoid().sum(),
    "sin": lambda x: (x.sin() * x.cos()).sum(),
    "softmax": lambda x: (x.softmax(1) * x).sum(),
    "sqrt": lambda x: (x.square() + 1).sqrt().sum(),
    "where": lambda x: (x > 0).where(x * x, x * 3).sum(),
}


def central_difference(function: Callable[[Tensor], Tensor], x: np.ndarray) -> np.ndarray:
    """Gradient of a scalar function of an array, by evaluating it twice for each element."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        offset = np.zeros_like(x)
        offset[index] = STEP
        above = function(Tensor(x + offset)).item()
        below = function(Tensor(x - offset)).item()
        gradient[index] = (above - below) / (2 * STEP)
    return gradient


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name: str, rng: np.random.Generator) -> None:
    function = FUNCTIONS[name]
    x = rng.uniform(-1.5, 1.5, (3, 4))
    tensor = Tensor(x, requires_grad=True)
    function(tensor).backward()
    assert tensor.grad is not None
    expected = central_difference(function, x)
    np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-5, atol=1e-7)


def test_gradient_is_structural_zero_in_the_branch_not_taken() -> None:
    x = Tensor(np.float32([0.0, 4.0]), requires_grad=True)
    (x > 0).where(x.sqrt(), 0.0).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [0.0, 0.25])


def test_realising_changes_no_gradient() -> None:
    values = np.float32([1.0, 2.0, 3.0])
    gradients = []
    for realise in (False, True):
        x = Tensor(values, requires_grad=True)
        y = x * x
        if realise:
            y.realize()
        (y * x).sum().backward()
        assert x.grad is not None
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(gradients[0], gradients[1])
    np.testing.assert_allclose(gradients[0], 3 * values**2)
