"""Gradients of gradients, as a gradient penalty or a Hessian product takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tg_frontend import Tensor

from .compare import assert_same, tensor_of

ONE: dict[str, tuple[Any, Any]] = {
    name: (lambda x, n=name: getattr(x, n)(), lambda x, n=name: getattr(x, n)())
    for name in ("exp", "sin", "cos", "tanh", "sigmoid", "square", "sinh", "cosh", "atan", "asinh",
                 "erf", "relu", "abs")
}
ONE |= {
    "log": (lambda x: (x + 3).log(), lambda x: (x + 3).log()),
    "sqrt": (lambda x: (x + 3).sqrt(), lambda x: (x + 3).sqrt()),
    "reciprocal": (lambda x: (x + 3).reciprocal(), lambda x: (x + 3).reciprocal()),
    "power": (lambda x: (x + 3) ** 2.7, lambda x: (x + 3) ** 2.7),
    "cube": (lambda x: x**3, lambda x: x**3),
    "gelu": (lambda x: x.gelu(), lambda x: F.gelu(x, approximate="tanh")),
    "silu": (lambda x: x.silu(), F.silu),
    "softplus": (lambda x: x.softplus(), F.softplus),
    "softmax": (lambda x: x.softmax(1), lambda x: x.softmax(1)),
    "log_softmax": (lambda x: x.log_softmax(1), lambda x: x.log_softmax(1)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda x: x.logsumexp(1)),
    "layernorm": (lambda x: x.layernorm(), lambda x: F.layer_norm(x, (4,))),
    "variance": (lambda x: x.var(1), lambda x: x.var(1)),
    "deviation": (lambda x: x.std(1), lambda x: x.std(1)),
    "product": (lambda x: x.prod(1), lambda x: x.prod(1)),
    "running_sum": (lambda x: x.cumsum(1) ** 2, lambda x: x.cumsum(1) ** 2),
    "running_product": (lambda x: x.cumprod(1), lambda x: x.cumprod(1)),
    "largest": (lambda x: x.max(1) ** 2, lambda x: x.amax(1) ** 2),
    "matmul": (lambda x: (x @ x.transpose(0, 1)).tanh(), lambda x: (x @ x.T).tanh()),
    "rows": (lambda x: x[[0, 2, 2]] ** 3, lambda x: x[[0, 2, 2]] ** 3),
    "pad_and_flip": (lambda x: x.pad((1, 1)).flip(1) ** 3, lambda x: F.pad(x, (1, 1)).flip(1) ** 3),
    "windows": (lambda x: x.unfold(1, 2, 1) ** 3, lambda x: x.unfold(1, 2, 1) ** 3),
    "pool": (
        lambda x: x.reshape(1, 1, 3, 4).max_pool2d((1, 2)) ** 2,
        lambda x: F.max_pool2d(x.reshape(1, 1, 3, 4), (1, 2)) ** 2,
    ),
    "convolution": (
        lambda x: x.reshape(1, 1, 3, 4).conv2d(x[:2, :2].reshape(1, 1, 2, 2)).tanh(),
        lambda x: F.conv2d(x.reshape(1, 1, 3, 4), x[:2, :2].reshape(1, 1, 2, 2)).tanh(),
    ),
    "where": (
        lambda x: (x > 0).where(x**3, x.sin()), lambda x: torch.where(x > 0, x**3, x.sin()),
    ),
    "quotient": (lambda x: x / (x * x + 1), lambda x: x / (x * x + 1)),
    "norm": (lambda x: x.norm(2.0, 1), lambda x: x.norm(2.0, 1)),
}


@pytest.mark.parametrize("name", ONE)
def test_gradient_of_a_gradient(name: str, rng: np.random.Generator) -> None:
    ours, theirs = ONE[name]
    reference = torch.from_numpy(rng.uniform(-1.5, 1.5, (3, 4))).requires_grad_()
    weights = rng.uniform(-1, 1, (3, 4))
    first = torch.autograd.grad(theirs(reference).sum(), reference, create_graph=True)[0]
    penalty = (first * torch.from_numpy(weights)).sum()
    if penalty.requires_grad:
        expected = torch.autograd.grad(penalty, reference, allow_unused=True)[0]
    else:
        expected = None
    x = tensor_of(reference)
    mine = ours(x).sum().gradient(x)[0]
    assert_same(mine, first, "first", (1e-9, 1e-10))
    second = (mine * Tensor(weights)).sum().gradient(x, materialize_grads=True)[0]
    nothing = torch.zeros_like(reference)
    expected = nothing if expected is None else nothing + expected
    assert_same(second, expected, "second", (1e-7, 1e-8))
