"""The gradient of every operator against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor

RNG = np.random.default_rng(5)
A = RNG.standard_normal((3, 4))
B = RNG.standard_normal((3, 4))
POSITIVE = np.abs(A) + 0.5
WITH_ZEROS = np.where(np.arange(12).reshape(3, 4) % 5 == 1, 0.0, A)
IMAGE = RNG.standard_normal((2, 2, 6, 6))

CASES = {
    "add": (lambda x, y: x + y, A, B),
    "subtract": (lambda x, y: x - y, A, B),
    "multiply": (lambda x, y: x * y, A, B),
    "divide": (lambda x, y: x / y, A, POSITIVE),
    "broadcast": (lambda x, y: x * y, A, B[:, :1]),
    "negate": (lambda x: -x, A),
    "maximum": (lambda x, y: x.maximum(y), A, B),
    "minimum": (lambda x, y: x.minimum(y), A, B),
    "power": (lambda x: x**3, A),
    "fractional_power": (lambda x: x**2.5, POSITIVE),
    "power_of_tensors": (lambda x, y: x**y, POSITIVE, B),
    "exp": (lambda x: x.exp(), A),
    "exp2": (lambda x: x.exp2(), A),
    "log": (lambda x: x.log(), POSITIVE),
    "log2": (lambda x: x.log2(), POSITIVE),
    "sqrt": (lambda x: x.sqrt(), POSITIVE),
    "rsqrt": (lambda x: x.rsqrt(), POSITIVE),
    "reciprocal": (lambda x: x.reciprocal(), POSITIVE),
    "sin": (lambda x: x.sin(), A),
    "cos": (lambda x: x.cos(), A),
    "tan": (lambda x: x.tan(), A / 3),
    "tanh": (lambda x: x.tanh(), A),
    "sigmoid": (lambda x: x.sigmoid(), A),
    "relu": (lambda x: x.relu(), A),
    "leaky_relu": (lambda x: x.leaky_relu(), A),
    "gelu": (lambda x: x.gelu(), A),
    "silu": (lambda x: x.silu(), A),
    "softplus": (lambda x: x.softplus(), A),
    "elu": (lambda x: x.elu(), A),
    "celu": (lambda x: x.celu(), A),
    "mish": (lambda x: x.mish(), A),
    "abs": (lambda x: x.abs(), A),
    "where": (lambda x, y: (x > 0).where(x * 2, y * 3), A, B),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), A),
    "lerp": (lambda x, y: x.lerp(y, 0.3), A, B),
    "sum": (lambda x: x.sum(0), A),
    "mean": (lambda x: x.mean(1), A),
    "max": (lambda x: x.max(1), A),
    "min": (lambda x: x.min(), A),
    "prod": (lambda x: x.prod(1), A),
    "prod_with_zeros": (lambda x: x.prod(1), WITH_ZEROS),
    "prod_of_two_axes": (lambda x: x.reshape(2, 2, 3).prod((0, 2)), A),
    "var": (lambda x: x.var(1), A),
    "std": (lambda x: x.std(), A),
    "norm": (lambda x: x.norm(axis=0), A),
    "softmax": (lambda x: x.softmax(), A),
    "log_softmax": (lambda x: x.log_softmax(0), A),
    "logsumexp": (lambda x: x.logsumexp(1), A),
    "cumsum": (lambda x: x.cumsum(1), A),
    "cumprod": (lambda x: x.cumprod(1), A),
    "cumprod_with_zeros": (lambda x: x.cumprod(1), WITH_ZEROS),
    "cummax": (lambda x: x.cummax(0), A),
    "reshape": (lambda x: x.reshape(2, 6) * 2, A),
    "permute": (lambda x: x.T * 3, A),
    "flip": (lambda x: x.flip(0), A),
    "pad": (lambda x: x.pad(((1, 0), (2, 1)), value=2.0), A),
    "pad_reflect": (lambda x: x.pad((2, 2), mode="reflect"), A),
    "shrink": (lambda x: x[1:, ::2], A),
    "negative_step": (lambda x: x[::-1, 3:0:-2], A),
    "gather": (lambda x: x[[0, 2, 0]], A),
    "gather_two_axes": (lambda x: x[[0, 2], [1, 1]], A),
    "gather_along_axis": (lambda x: x.gather(1, Tensor([[0, 0], [3, 1], [2, 2]])), A),
    "cat": (lambda x, y: x.cat(y, dim=1), A, B),
    "stack": (lambda x, y: x.stack(y), A, B),
    "repeat": (lambda x: x.repeat(2, 3), A),
    "roll": (lambda x: x.roll(1, 1), A),
    "unfold": (lambda x: x.unfold(1, 3, 1), A),
    "tril": (lambda x: x.tril(), A),
    "matmul": (lambda x, y: x @ y.T, A, B),
    "vector_product": (lambda x, y: x @ y, A, B[0]),
    "einsum": (lambda x, y: Tensor.einsum("ij,kj->ik", x, y), A, B),
    "conv": (
        lambda x, w: x.conv2d(w, padding=1, stride=2),
        IMAGE,
        RNG.standard_normal((3, 2, 3, 3)),
    ),
    "conv_groups": (
        lambda x, w: x.conv2d(w, groups=2, dilation=2),
        IMAGE,
        RNG.standard_normal((4, 1, 3, 3)),
    ),
    "conv_transpose": (
        lambda x, w: x.conv_transpose2d(w, padding=1, stride=2, output_padding=1),
        IMAGE[..., :3, :3],
        RNG.standard_normal((2, 3, 3, 3)),
    ),
    "max_pool": (lambda x: x.max_pool2d(), IMAGE),
    "overlapping_max_pool": (lambda x: x.max_pool2d(3, stride=2, padding=1), IMAGE),
    "avg_pool": (lambda x: x.avg_pool2d(3, stride=1), IMAGE),
    "layernorm": (lambda x: x.layernorm(), A),
    "cross_entropy": (lambda x: x.cross_entropy(Tensor([0, 3, 1])), A),
    "sparse_cross_entropy": (lambda x: x.sparse_categorical_crossentropy(Tensor([0, 3, 1])), A),
    "attention": (lambda x, y: x.scaled_dot_product_attention(y, y), A, B),
    "written_part": (lambda x, y: written(x, y), A, B),
    "written_doubles": (lambda x, y: written_doubles(x, y), A, B),
    "scatter_add": (
        lambda x, y: x.scatter(1, Tensor([[0, 0], [1, 2], [3, 3]]), y, reduce="add"),
        A,
        B,
    ),
}


def written(x: Tensor, y: Tensor) -> Tensor:
    z = x * 1
    z[1:] = y[1:] * 2
    z[:, 0] *= 3
    return z


def written_doubles(x: Tensor, y: Tensor) -> Tensor:
    z = x * 1
    z[[0, 1, 0]] = y
    return z


@pytest.mark.parametrize("name", CASES)
def test_gradient_matches_central_differences(name):
    function, *arrays = CASES[name]
    arrays = [np.array(array, np.float64) for array in arrays]
    tensors = [Tensor(array) for array in arrays]
    result = function(*tensors)
    weights = RNG.standard_normal(tuple(result.shape))
    found = (result * Tensor(weights)).sum().gradient(*tensors)
    step = 1e-5
    for position, (array, gradient) in enumerate(zip(arrays, found, strict=True)):
        direction = RNG.standard_normal(array.shape)
        values = []
        for sign in (1, -1):
            moved = list(arrays)
            moved[position] = array + sign * step * direction
            values.append(float((function(*[Tensor(m) for m in moved]).numpy() * weights).sum()))
        expected = (values[0] - values[1]) / (2 * step)
        actual = float((gradient.numpy() * direction).sum())
        assert actual == pytest.approx(expected, rel=1e-4, abs=1e-6)
