"""Matrix products, einsum and linear maps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tg_frontend import Tensor

from .compare import FLOATS, INTS, check

SHAPES = [
    ((4, 5), (5, 3)), ((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((2, 4, 5), (5, 3)),
    ((2, 4, 5), (2, 5, 3)), ((2, 1, 4, 5), (3, 5, 2)), ((3, 4, 5), (5,)), ((1, 1), (1, 1)),
    ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((17, 33), (33, 19)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]], rng: np.random.Generator) -> None:
    x, y = (rng.uniform(-1, 1, shape) for shape in shapes)
    check(lambda a, b: a @ b, lambda a, b: a @ b, x, y, tolerance=(1e-4, 1e-5))


@pytest.mark.parametrize("dtype", FLOATS)
def test_matmul_of_each_float(dtype: str, rng: np.random.Generator) -> None:
    x, y = rng.uniform(-1, 1, (8, 16)), rng.uniform(-1, 1, (16, 4))
    tolerance = {"float16": (5e-3, 5e-3), "bfloat16": (3e-2, 6e-2)}.get(dtype)
    check(lambda a, b: a.matmul(b), lambda a, b: a.matmul(b), x, y, dtype=dtype,
          tolerance=tolerance)
    check(lambda a, b: a.dot(b), lambda a, b: a.mm(b), x, y, dtype=dtype, tolerance=tolerance)


@pytest.mark.parametrize("dtype", INTS)
def test_matmul_of_integers(dtype: str, rng: np.random.Generator) -> None:
    x = rng.integers(-3 if dtype != "uint8" else 0, 4, (4, 6)).astype(dtype)
    y = rng.integers(-3 if dtype != "uint8" else 0, 4, (6, 3)).astype(dtype)
    check(lambda a, b: a @ b, lambda a, b: a @ b, x, y)


def test_matmul_of_views(rng: np.random.Generator) -> None:
    x, y = rng.uniform(-1, 1, (6, 8)), rng.uniform(-1, 1, (6, 8))
    check(lambda a, b: a.transpose(0, 1) @ b, lambda a, b: a.T @ b, x, y, tolerance=(1e-4, 1e-5))
    check(lambda a, b: a[::2, 1:] @ b[1:4].transpose(0, 1)[:7],
          lambda a, b: a[::2, 1:] @ b[1:4].T[:7], x, y, tolerance=(1e-4, 1e-5))


@pytest.mark.parametrize("has_bias", [True, False])
def test_linear(has_bias: bool, rng: np.random.Generator) -> None:
    arrays = [rng.uniform(-1, 1, (2, 3, 5)), rng.uniform(-1, 1, (4, 5))]
    arrays += [rng.uniform(-1, 1, (4,))] if has_bias else []
    check(lambda x, w, *b: x.linear(w.transpose(), *b), F.linear, *arrays, tolerance=(1e-4, 1e-5))


FORMULAS = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "ij,kj": ((3, 4), (5, 4)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4)),
    "i,j->ij": ((3,), (4,)),
    "i,i->": ((4,), (4,)),
    "ij->ji": ((3, 4),),
    "ij->": ((3, 4),),
    "ij->j": ((3, 4),),
    "ii->i": ((4, 4),),
    "ii": ((4, 4),),
    "...ij,...jk->...ik": ((2, 1, 3, 4), (3, 4, 2)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 2)),
    "ijk,jil->kl": ((2, 3, 4), (3, 2, 5)),
    "ab,bc,ca->": ((2, 3), (3, 4), (4, 2)),
    "bii->b": ((2, 3, 3),),
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_einsum(formula: str, rng: np.random.Generator) -> None:
    arrays = [rng.uniform(-1, 1, shape) for shape in FORMULAS[formula]]
    check(lambda *x: Tensor.einsum(formula, *x), lambda *x: torch.einsum(formula, *x), *arrays,
          tolerance=(1e-4, 1e-5))
