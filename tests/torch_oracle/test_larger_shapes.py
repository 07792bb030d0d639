"""Shapes large enough for tiles, vectors, threads and split reductions; odd ones among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tg_frontend import Tensor

from .compare import check

LOOSE = (1e-3, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(128, 128, 128), (257, 63, 129), (1, 500, 300), (64, 2000, 3)],
                         ids=str)
def test_matmul(shape: tuple[int, int, int], dtype: str, rng: np.random.Generator) -> None:
    rows, inner, columns = shape
    x, y = rng.uniform(-1, 1, (rows, inner)), rng.uniform(-1, 1, (inner, columns))
    tolerance = {"float16": (1e-2, 5e-2), "bfloat16": (5e-2, 4e-1)}.get(dtype, LOOSE)
    check(lambda a, b: a @ b, lambda a, b: a @ b, x, y, dtype=dtype, tolerance=tolerance)


def test_batched_matmul(rng: np.random.Generator) -> None:
    check(lambda a, b: a @ b, lambda a, b: a @ b, rng.uniform(-1, 1, (6, 65, 33)),
          rng.uniform(-1, 1, (6, 33, 70)), tolerance=LOOSE)


CONVOLUTIONS = {
    "plain": ((4, 8, 28, 28), (16, 8, 3, 3), {"padding": 1}),
    "stride": ((2, 3, 64, 64), (8, 3, 7, 7), {"padding": 3, "stride": 2}),
    "depthwise": ((2, 32, 20, 20), (32, 1, 3, 3), {"padding": 1, "groups": 32}),
    "pointwise": ((2, 64, 14, 14), (96, 64, 1, 1), {}),
    "odd": ((3, 5, 17, 19), (7, 5, 3, 5), {"dilation": 2}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, rng: np.random.Generator) -> None:
    x, w, options = CONVOLUTIONS[name]
    check(lambda a, b: a.conv2d(b, **options), lambda a, b: F.conv2d(a, b, **options),
          rng.uniform(-1, 1, x), rng.uniform(-1, 1, w), tolerance=(1e-3, 1e-3))


REDUCTIONS: dict[str, tuple[tuple[int, ...], Any]] = {
    "sum_of_many": ((300_001,), lambda x: x.sum()),
    "mean_of_rows": ((1000, 257), lambda x: x.mean(1)),
    "mean_of_columns": ((1000, 257), lambda x: x.mean(0)),
    "variance_of_middle": ((20, 300, 31), lambda x: x.var(1)),
    "largest_of_columns": ((3000, 17), lambda x: x.max(0) if isinstance(x, Tensor) else x.amax(0)),
    "softmax": ((100, 1003), lambda x: x.softmax(1)),
    "log_softmax_of_columns": ((1003, 30), lambda x: x.log_softmax(0)),
    "logsumexp": ((50, 2001), lambda x: x.logsumexp(1)),
    "running_sum": ((3, 20_000), lambda x: x.cumsum(1) * 0.01),
    "running_sum_of_columns": ((5000, 7), lambda x: x.cumsum(0) * 0.01),
    "running_maximum": (
        (4, 9000), lambda x: x.cummax(1) if isinstance(x, Tensor) else x.cummax(1).values,
    ),
    "logcumsumexp": ((4, 3000), lambda x: x.logcumsumexp(1)),
    "norm": ((70, 1001), lambda x: x.norm(2.0, 1)),
    "centred_and_scaled": (
        (64, 999), lambda x: (x - x.mean(1, True)) / (x * x + 1).sum(0, True).sqrt(),
    ),
    "transposed_chain": ((300, 400), lambda x: (x.transpose(0, 1).exp() + 1).log().sum(0)),
    "largest_of_all": ((123, 457), lambda x: x.max()),
    "sort": ((3, 1000), lambda x: x.sort(1)[0]),
    "sort_of_columns": ((513, 4), lambda x: x.sort(0)[0]),
    "topk": ((5, 700), lambda x: x.topk(9, 1)[0]),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str, rng: np.random.Generator) -> None:
    shape, function = REDUCTIONS[name]
    check(function, function, rng.uniform(-2, 2, shape), tolerance=LOOSE)


def test_positions_of_extremes(rng: np.random.Generator) -> None:
    x = rng.permutation(300_000).reshape(300, 1000).astype(np.float32)
    for axis in (0, 1, None):
        check(lambda t, a=axis: t.argmax(a), lambda t, a=axis: t.argmax(a), x, gradient=False,
              same_dtype=False)


def test_lookup_and_its_gradient(rng: np.random.Generator) -> None:
    index = rng.integers(0, 5000, (64, 50))
    check(lambda w, i: w[i], lambda w, i: F.embedding(i, w), rng.uniform(-1, 1, (5000, 32)), index,
          tolerance=LOOSE)


def test_scatter_of_many(rng: np.random.Generator) -> None:
    index = rng.integers(0, 400, (1000, 30))
    check(lambda x, i, s: x.scatter(0, i, s, reduce="add"), lambda x, i, s: x.scatter_add(0, i, s),
          rng.uniform(-1, 1, (400, 30)), index, rng.uniform(-1, 1, (1000, 30)), tolerance=LOOSE)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool, rng: np.random.Generator) -> None:
    arrays = [rng.uniform(-1, 1, (2, 4, 65, 32)) for _ in range(3)]
    check(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=causal),
          lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
          *arrays, tolerance=LOOSE)


def test_pools(rng: np.random.Generator) -> None:
    x = rng.permutation(2 * 8 * 45 * 50).reshape(2, 8, 45, 50) * 0.01
    check(lambda t: t.max_pool2d(3, 2, padding=1), lambda t: F.max_pool2d(t, 3, 2, padding=1), x)
    check(lambda t: t.avg_pool2d(3, 2, padding=1), lambda t: F.avg_pool2d(t, 3, 2, padding=1), x)


def test_loss_over_many_classes(rng: np.random.Generator) -> None:
    check(lambda x, y: x.cross_entropy(y), F.cross_entropy, rng.uniform(-3, 3, (128, 1000)),
          rng.integers(0, 1000, 128), tolerance=(1e-4, 1e-7))


def test_a_deep_chain_of_layers(rng: np.random.Generator) -> None:
    def function(x: Any, w: Any) -> Any:
        for _ in range(12):
            x = (x @ w).tanh() + x * 0.5
        return x

    check(function, function, rng.uniform(-1, 1, (16, 40)), rng.uniform(-0.2, 0.2, (40, 40)),
          tolerance=(1e-2, 1e-3))


def test_unaligned_views(rng: np.random.Generator) -> None:
    def function(x: Any) -> Any:
        return (x[1:, 3:-2] * 2 + x[:-1, 5:]).transpose(0, 1)[::3].sum(1)

    check(function, function, rng.uniform(-1, 1, (301, 517)), tolerance=LOOSE)


def test_torch_is_the_pinned_version_or_later() -> None:
    assert tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 13)
