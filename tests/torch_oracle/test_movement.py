"""Movement, joining, padding, creation: values exactly, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tg_frontend import Tensor

from .compare import FLOATS, check

SHAPE = (2, 3, 4)

SAME_IN_BOTH: dict[str, Any] = {
    "reshape": lambda x: x.reshape(4, 6),
    "reshape_minus_one": lambda x: x.reshape(3, -1),
    "view": lambda x: x.view(6, 4),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, 2),
    "transpose_negative": lambda x: x.transpose(-1, -2),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "matrix_transpose": lambda x: x[0].T,
    "expand": lambda x: x[:, :1].expand(2, 5, 4),
    "expand_new_axis": lambda x: x.expand(3, 2, 3, 4),
    "expand_minus_one": lambda x: x[:, :1].expand(-1, 5, -1),
    "flip": lambda x: x.flip(0, 2),
    "flip_one": lambda x: x.flip(-1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unsqueeze_last": lambda x: x.unsqueeze(-1),
    "squeeze": lambda x: x[:, :1].squeeze(1),
    "squeeze_all": lambda x: x[:1, :1].squeeze(),
    "squeeze_nothing": lambda x: x.squeeze(1),
    "flatten": lambda x: x.flatten(),
    "flatten_from": lambda x: x.flatten(1),
    "flatten_range": lambda x: x.flatten(0, 1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "unflatten_minus_one": lambda x: x.unflatten(-1, (-1, 2)),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat_more_axes": lambda x: x.repeat(2, 1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2),
    "repeat_interleave_axis": lambda x: x.repeat_interleave(3, 1),
    "split": lambda x: x.split(2, 1),
    "split_sizes": lambda x: x.split([1, 2], 1),
    "chunk": lambda x: x.chunk(3, 2),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "unfold_steps": lambda x: x.unfold(1, 2, 2),
    "roll": lambda x: x.roll(1, 0),
    "roll_two": lambda x: x.roll((2, -1), (2, 1)),
    "roll_flat": lambda x: x.roll(5),
    "tril": lambda x: x.tril(),
    "tril_above": lambda x: x.tril(1),
    "triu": lambda x: x.triu(),
    "triu_below": lambda x: x.triu(-1),
    "diag": lambda x: x[0, 0].diag(),
    "contiguous": lambda x: x.transpose(0, 1).contiguous(),
    "clone": lambda x: x.clone(),
    "detach_part": lambda x: x * x.detach(),
    "iterate": lambda x: [row * 2 for row in x],
    "chain": lambda x: x.permute(1, 0, 2).reshape(3, 8).flip(1)[:, 1:7].reshape(3, 2, 3),
    "unfold_of_transpose": lambda x: x.transpose(1, 2).unfold(1, 3, 1),
}


@pytest.mark.parametrize("name", SAME_IN_BOTH)
def test_movement(name: str, rng: np.random.Generator) -> None:
    check(SAME_IN_BOTH[name], SAME_IN_BOTH[name], rng.uniform(-2, 2, SHAPE), tolerance=(1e-6, 0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["permute", "flip", "unfold", "repeat", "roll_two", "tril"])
def test_movement_of_each_float(name: str, dtype: str, rng: np.random.Generator) -> None:
    check(SAME_IN_BOTH[name], SAME_IN_BOTH[name], rng.uniform(-2, 2, SHAPE), dtype=dtype)


TWO: dict[str, tuple[Any, Any]] = {
    "cat": (lambda x, y: x.cat(y, dim=1), lambda x, y: torch.cat([x, y], 1)),
    "cat_of_class": (lambda x, y: Tensor.cat(x, y, x, dim=0), lambda x, y: torch.cat([x, y, x])),
    "cat_negative": (lambda x, y: x.cat(y * 2, dim=-1), lambda x, y: torch.cat([x, y * 2], -1)),
    "stack": (lambda x, y: x.stack(y), lambda x, y: torch.stack([x, y])),
    "stack_last": (lambda x, y: x.stack(y, dim=-1), lambda x, y: torch.stack([x, y], -1)),
    "meshgrid": (
        lambda x, y: x[0, 0].meshgrid(y[0, 0]),
        lambda x, y: torch.meshgrid(x[0, 0], y[0, 0], indexing="ij"),
    ),
    "meshgrid_xy": (
        lambda x, y: x[0, 0].meshgrid(y[0, :, 0], indexing="xy"),
        lambda x, y: torch.meshgrid(x[0, 0], y[0, :, 0], indexing="xy"),
    ),
}


@pytest.mark.parametrize("name", TWO)
def test_joining(name: str, rng: np.random.Generator) -> None:
    check(*TWO[name], rng.uniform(-2, 2, SHAPE), rng.uniform(-2, 2, SHAPE), tolerance=(1e-6, 0))


def test_cat_of_two_dtypes_is_promoted() -> None:
    check(lambda x, y: x.cat(y), lambda x, y: torch.cat([x, y]),
          np.ones(2, np.int32), np.array([1.5, 2.5]))


def test_cat_with_an_empty_tensor(rng: np.random.Generator) -> None:
    check(lambda x, y: x.cat(y, dim=1), lambda x, y: torch.cat([x, y], 1),
          np.zeros((2, 0)), rng.uniform(-1, 1, (2, 3)))


PADDINGS = [(1, 2), (1, 2, 3, 0), (0, 1, 2, 0, 1, 1), (-1, 2), (-1, -1, 1, 1)]


@pytest.mark.parametrize("padding", PADDINGS, ids=str)
@pytest.mark.parametrize("value", [0.0, 1.5, -float("inf")])
def test_pad_with_a_constant(
    padding: tuple[int, ...], value: float, rng: np.random.Generator
) -> None:
    check(lambda x: x.pad(padding, value=value), lambda x: F.pad(x, padding, value=value),
          rng.uniform(-2, 2, SHAPE), gradient=np.isfinite(value))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), (2, 0), (1, 1, 2, 1)], ids=str)
def test_pad_from_inside(mode: str, padding: tuple[int, ...], rng: np.random.Generator) -> None:
    check(lambda x: x.pad(padding, mode=mode), lambda x: F.pad(x, padding, mode=mode),
          rng.uniform(-2, 2, (2, 3, 4, 5) if len(padding) == 4 else (2, 3, 4)))


def test_shrink(rng: np.random.Generator) -> None:
    check(lambda x: x.shrink(((0, 2), (1, 3), None)), lambda x: x[:, 1:3],
          rng.uniform(-2, 2, SHAPE))


def test_diagonal(rng: np.random.Generator) -> None:
    for options in ({}, {"dim1": -2, "dim2": -1}, {"offset": 1}, {"offset": 9},
                    {"offset": -1, "dim1": 2, "dim2": 0}):
        check(lambda x, o=options: x.diagonal(**o), lambda x, o=options: x.diagonal(**o),
              rng.uniform(-2, 2, SHAPE))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool"])
def test_creation(dtype: str) -> None:
    of_torch = {"dtype": getattr(torch, dtype)}
    check_equal(Tensor.zeros(2, 3, dtype=dtype), torch.zeros(2, 3, **of_torch))
    check_equal(Tensor.ones(2, 3, dtype=dtype), torch.ones(2, 3, **of_torch))
    check_equal(Tensor.full((2, 3), 1, dtype=dtype), torch.full((2, 3), 1, **of_torch))
    check_equal(Tensor.eye(3, dtype=dtype), torch.eye(3, **of_torch))
    check_equal(Tensor.eye(3, 4, dtype=dtype), torch.eye(3, 4, **of_torch))
    one = Tensor.ones(2, 2, dtype=dtype)
    check_equal(one.zeros_like(), torch.zeros(2, 2, **of_torch))
    check_equal(one.ones_like(), torch.ones(2, 2, **of_torch))
    check_equal(one.full_like(1), torch.ones(2, 2, **of_torch))


@pytest.mark.parametrize(
    "bounds", [(5,), (0,), (2, 9), (2, 9, 3), (9, 2, -2), (0.0, 1.0, 0.25), (-3, 3, 0.7)], ids=str
)
def test_arange(bounds: tuple[Any, ...]) -> None:
    if len(bounds) == 3 and bounds[2] < 0:  # torch has no negative step
        expected = torch.from_numpy(np.arange(*bounds))
    else:
        expected = torch.arange(*bounds)
    check_equal(Tensor.arange(*bounds), expected)


@pytest.mark.parametrize("steps", [1, 2, 5, 10])
def test_linspace(steps: int) -> None:
    check_equal(Tensor.linspace(-1, 3, steps), torch.linspace(-1, 3, steps))


def check_equal(ours: Tensor, theirs: torch.Tensor) -> None:
    """Same shape and elements, floats to an ulp or two."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(
        np.asarray(ours.numpy()).astype(np.float64), theirs.double().numpy(), 1e-6, 1e-7
    )


def test_pad_to_and_shrink_to(rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, (2, 3))
    check(lambda t: t.pad_to(4, 3), lambda t: F.pad(t, (0, 0, 0, 2)), x)
    check(lambda t: t.pad_to((None, 5), value=7.0), lambda t: F.pad(t, (0, 2), value=7.0), x)
    check(lambda t: t.shrink_to(1, None), lambda t: t[:1], x)
    for wrong in ((1, 3), (2,)):
        with pytest.raises(ValueError, match="pad_to"):
            Tensor(x).pad_to(wrong)
    with pytest.raises(ValueError, match="shrink"):
        Tensor(x).shrink_to(3, 3)


RESIZES = [((7,), (5,)), ((4, 6), (8, 9)), ((5, 5), (2, 3)), ((3, 4, 2), (4, 3, 5))]


@pytest.mark.parametrize("sizes", RESIZES, ids=str)
@pytest.mark.parametrize("mode", ["linear", "nearest", "nearest-exact", "corners"])
def test_interpolate(
    mode: str, sizes: tuple[tuple[int, ...], tuple[int, ...]], rng: np.random.Generator
) -> None:
    old, new = sizes
    if mode in ("linear", "corners"):
        their_mode = {1: "linear", 2: "bilinear", 3: "trilinear"}[len(old)]
        corners = mode == "corners"
        check(lambda x: x.interpolate(new, "linear", corners),
              lambda x: F.interpolate(x, new, mode=their_mode, align_corners=corners),
              rng.uniform(-2, 2, (2, 3, *old)), tolerance=(1e-4, 1e-5))
        return
    check(lambda x: x.interpolate(new, mode), lambda x: F.interpolate(x, new, mode=mode),
          rng.uniform(-2, 2, (2, 3, *old)))
