"""Norms, attention, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from .compare import FLOATS, check

REDUCTIONS = ["mean", "sum", "none"]
LOOSE = (1e-4, 1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", [(-1,), (-2, -1), (1, 2, 3)], ids=str)
def test_layernorm(axes: tuple[int, ...], dtype: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, (3, 2, 4, 5))
    shape = tuple(x.shape[axis] for axis in axes)
    tolerance = {"float16": (1e-2, 5e-3), "bfloat16": (5e-2, 4e-2), "float32": LOOSE}.get(dtype)
    check(lambda t: t.layernorm(axes), lambda t: F.layer_norm(t, shape), x, dtype=dtype,
          tolerance=tolerance)


def test_batchnorm(rng: np.random.Generator) -> None:
    arrays = [rng.uniform(-2, 2, (4, 3, 2)), rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3),
              rng.uniform(-1, 1, 3), rng.uniform(0.5, 2, 3)]
    check(lambda x, w, b, m, v: x.batchnorm(w, b, m, v.rsqrt()),
          lambda x, w, b, m, v: F.batch_norm(x, m.detach(), v.detach(), w, b, eps=0.0)
          + 0 * (m + v).sum(),
          *arrays, gradient=False, tolerance=LOOSE)


def test_statistics_of_values_far_from_zero(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (4, 100)) + 1e4
    check(lambda t: t.var(1), lambda t: t.double().var(1).float(), x, gradient=False,
          tolerance=(1e-5, 1e-6))
    check(lambda t: t.layernorm(), lambda t: F.layer_norm(t.double(), (100,)).float(), x,
          gradient=False, tolerance=(1e-3, 2e-3))


ATTENTION: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 2, 4, 8), (2, 2, 5, 8), {}),
    "three_axes": ((2, 4, 8), (2, 5, 8), {}),
    "causal": ((2, 2, 5, 8), (2, 2, 5, 8), {"is_causal": True}),
    "causal_longer_keys": ((1, 2, 3, 4), (1, 2, 6, 4), {"is_causal": True}),
    "grouped": ((2, 4, 3, 4), (2, 2, 5, 4), {"enable_gqa": True}),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str, rng: np.random.Generator) -> None:
    queries, keys, options = ATTENTION[name]
    values = (*keys[:-1], 6)
    check(
        lambda q, k, v: q.scaled_dot_product_attention(k, v, **options),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options),
        rng.uniform(-1, 1, queries), rng.uniform(-1, 1, keys), rng.uniform(-1, 1, values),
        tolerance=LOOSE,
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_of_each_float(dtype: str, rng: np.random.Generator) -> None:
    arrays = [rng.uniform(-1, 1, (2, 2, 4, 8)) for _ in range(3)]
    tolerance = {"float16": (1e-2, 5e-3), "bfloat16": (5e-2, 4e-2), "float32": LOOSE}.get(dtype)
    check(lambda q, k, v: q.scaled_dot_product_attention(k, v), F.scaled_dot_product_attention,
          *arrays, dtype=dtype, tolerance=tolerance)


@pytest.mark.parametrize("kind", ["bool", "float", "broadcast"])
def test_attention_with_a_mask(kind: str, rng: np.random.Generator) -> None:
    arrays = [rng.uniform(-1, 1, (2, 2, 4, 8)) for _ in range(3)]
    mask: np.ndarray = rng.uniform(-1, 1, (4, 4))
    if kind != "float":
        mask = (mask > -0.3) | np.eye(4, dtype=bool)
    if kind == "broadcast":
        mask = mask[None, None, :1] | True
    check(lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m),
          lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
          *arrays, mask, tolerance=LOOSE)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(5, 4), (2, 4, 3), (2, 4, 3, 2)], ids=str)
def test_cross_entropy(
    shape: tuple[int, ...], smoothing: float, reduction: str, rng: np.random.Generator
) -> None:
    classes = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    check(lambda x, y: x.cross_entropy(y, reduction, smoothing),
          lambda x, y: F.cross_entropy(x, y, reduction=reduction, label_smoothing=smoothing),
          rng.uniform(-3, 3, shape), classes, tolerance=LOOSE)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_with_probabilities(reduction: str, rng: np.random.Generator) -> None:
    for shape in ((5, 4), (2, 4, 3)):
        target = rng.dirichlet([1.0] * 4, (shape[0], *shape[2:]))
        target = np.moveaxis(target, -1, 1)
        check(lambda x, y: x.cross_entropy(y, reduction),
              lambda x, y: F.cross_entropy(x, y, reduction=reduction),
              rng.uniform(-3, 3, shape), target, tolerance=LOOSE)


@pytest.mark.parametrize("dtype", FLOATS)
def test_cross_entropy_of_each_float(dtype: str, rng: np.random.Generator) -> None:
    classes = rng.integers(0, 4, (6,))
    check(lambda x, y: x.cross_entropy(y), F.cross_entropy, rng.uniform(-3, 3, (6, 4)), classes,
          dtype=dtype)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_sparse_categorical_crossentropy(
    smoothing: float, reduction: str, rng: np.random.Generator
) -> None:
    classes = rng.integers(0, 4, (6,))
    classes[2] = 3
    check(
        lambda x, y: x.sparse_categorical_crossentropy(
            y, ignore_index=3, label_smoothing=smoothing, reduction=reduction
        ),
        lambda x, y: F.cross_entropy(
            x, y, ignore_index=3, label_smoothing=smoothing, reduction=reduction
        ),
        rng.uniform(-3, 3, (6, 4)), classes, tolerance=LOOSE,
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("ignore", [None, 1])
def test_nll_loss(
    ignore: int | None, weighted: bool, reduction: str, rng: np.random.Generator
) -> None:
    for shape in ((6, 4), (2, 4, 3)):
        classes = rng.integers(0, 4, (shape[0], *shape[2:]))
        weight = rng.uniform(0.5, 2, 4)
        check(
            lambda x, y, w: x.log_softmax(1).nll_loss(
                y, w if weighted else None, ignore_index=ignore, reduction=reduction
            ),
            lambda x, y, w: F.nll_loss(
                x.log_softmax(1), y, w.detach() if weighted else None,
                ignore_index=-100 if ignore is None else ignore, reduction=reduction,
            ),
            rng.uniform(-3, 3, shape), classes, weight.astype(np.float32),
            gradient=not weighted, tolerance=LOOSE,
        )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_crossentropy(reduction: str, rng: np.random.Generator) -> None:
    target = rng.integers(0, 2, (3, 5)).astype(np.float32)
    check(lambda x: x.binary_crossentropy(target, reduction),
          lambda x: F.binary_cross_entropy(x, torch.from_numpy(target), reduction=reduction),
          rng.uniform(0.05, 0.95, (3, 5)))
    weight = rng.uniform(0.5, 2, 5).astype(np.float32)
    check(
        lambda x, w: x.binary_crossentropy_logits(target, reduction, pos_weight=w.detach()),
        lambda x, w: F.binary_cross_entropy_with_logits(
            x, torch.from_numpy(target), reduction=reduction, pos_weight=w.detach()
        ),
        rng.uniform(-3, 3, (3, 5)), weight,
    )


def test_cross_entropy_with_classes_that_are_ruled_out() -> None:
    x = np.array([[1.0, -np.inf, 0.5], [-np.inf, 2.0, 1.0]])
    check(lambda t, y: t.cross_entropy(y), F.cross_entropy, x, np.array([2, 1]))
    check(lambda t, y: t.sparse_categorical_crossentropy(y), F.cross_entropy, x, np.array([0, 2]))


def test_losses_at_the_ends() -> None:
    x = np.array([[200.0, -200.0, 0.0, 1e4, -1e4]])
    target = np.array([[1.0, 0.0, 0.5, 0.0, 1.0]], np.float32)
    check(lambda t: t.binary_crossentropy_logits(target),
          lambda t: F.binary_cross_entropy_with_logits(t, torch.from_numpy(target)), x)
    check(lambda t: t.cross_entropy(t.argmax(1) * 0), lambda t: F.cross_entropy(
        t, torch.zeros(1, dtype=torch.int64)), x)
    check(lambda t: t.binary_crossentropy(target[:, :2]),
          lambda t: F.binary_cross_entropy(t, torch.from_numpy(target[:, :2])),
          np.array([[1.0, 0.0]]), gradient=False)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_squared_error(reduction: str, rng: np.random.Generator) -> None:
    check(lambda x, y: x.mse_loss(y, reduction),
          lambda x, y: F.mse_loss(x, y, reduction=reduction),
          rng.uniform(-2, 2, (3, 4)), rng.uniform(-2, 2, (3, 4)))
