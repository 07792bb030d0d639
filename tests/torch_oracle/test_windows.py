"""Convolutions, transposed ones and pools in one, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

from .compare import FLOATS, check

CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE_POOLS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}

# (extents, in channels, out channels, kernel, options)
CASES: dict[str, tuple[tuple[int, ...], int, int, tuple[int, ...], dict[str, Any]]] = {
    "1d": ((9,), 3, 4, (3,), {}),
    "1d_stride": ((9,), 2, 4, (3,), {"stride": 2, "padding": 1}),
    "1d_dilation": ((9,), 2, 2, (3,), {"dilation": 2, "padding": 2}),
    "1d_groups": ((7,), 4, 6, (2,), {"groups": 2}),
    "2d": ((5, 6), 2, 3, (3, 3), {}),
    "2d_uneven_kernel": ((5, 6), 2, 3, (2, 3), {}),
    "2d_stride": ((6, 7), 2, 3, (3, 3), {"stride": 2}),
    "2d_strides": ((6, 7), 2, 3, (3, 2), {"stride": (2, 3)}),
    "2d_padding": ((4, 5), 2, 3, (3, 3), {"padding": 1}),
    "2d_paddings": ((4, 5), 2, 3, (3, 3), {"padding": (2, 0)}),
    "2d_dilation": ((7, 8), 2, 2, (3, 3), {"dilation": 2}),
    "2d_dilations": ((7, 8), 2, 2, (2, 3), {"dilation": (3, 2), "padding": 1}),
    "2d_groups": ((5, 5), 4, 6, (3, 3), {"groups": 2, "padding": 1}),
    "2d_depthwise": ((5, 5), 4, 8, (3, 3), {"groups": 4, "padding": 1}),
    "2d_everything": ((8, 9), 4, 4, (3, 2), {
        "groups": 2, "stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}),
    "2d_point": ((4, 4), 3, 5, (1, 1), {}),
    "2d_kernel_as_large_as_input": ((3, 3), 2, 4, (3, 3), {}),
    "3d": ((4, 4, 5), 2, 3, (2, 3, 2), {}),
    "3d_everything": ((5, 5, 5), 2, 4, (2, 2, 3), {
        "groups": 2, "stride": (1, 2, 1), "padding": (1, 0, 1), "dilation": (2, 1, 1)}),
}


@pytest.mark.parametrize("name", CASES)
def test_convolution(name: str, rng: np.random.Generator) -> None:
    extents, inner, outer, kernel, options = CASES[name]
    groups = options.get("groups", 1)
    arrays = (
        rng.uniform(-1, 1, (2, inner, *extents)),
        rng.uniform(-1, 1, (outer, inner // groups, *kernel)),
        rng.uniform(-1, 1, (outer,)),
    )
    theirs = CONVOLUTIONS[len(kernel)]
    check(lambda x, w, b: x.conv2d(w, b, **options), lambda x, w, b: theirs(x, w, b, **options),
          *arrays, tolerance=(1e-4, 1e-5))


@pytest.mark.parametrize("name", CASES)
def test_transposed_convolution(name: str, rng: np.random.Generator) -> None:
    extents, inner, outer, kernel, options = CASES[name]
    groups = options.get("groups", 1)
    arrays = (
        rng.uniform(-1, 1, (2, inner, *extents)),
        rng.uniform(-1, 1, (inner, outer // groups, *kernel)),
        rng.uniform(-1, 1, (outer,)),
    )
    stride = options.get("stride", 1)
    extra = 1 if stride == 2 else 0
    theirs = TRANSPOSED[len(kernel)]
    check(lambda x, w, b: x.conv_transpose2d(w, b, output_padding=extra, **options),
          lambda x, w, b: theirs(x, w, b, output_padding=extra, **options),
          *arrays, tolerance=(1e-4, 1e-5))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["2d_padding", "2d_groups", "2d_stride"])
def test_convolution_of_each_float(name: str, dtype: str, rng: np.random.Generator) -> None:
    extents, inner, outer, kernel, options = CASES[name]
    groups = options.get("groups", 1)
    arrays = (
        rng.uniform(-1, 1, (2, inner, *extents)),
        rng.uniform(-1, 1, (outer, inner // groups, *kernel)),
    )
    tolerance = {"float16": (5e-3, 5e-3), "bfloat16": (3e-2, 6e-2)}.get(dtype)
    check(lambda x, w: x.conv2d(w, **options), lambda x, w: F.conv2d(x, w, **options), *arrays,
          dtype=dtype, tolerance=tolerance)


POOLS: dict[str, tuple[tuple[int, ...], Any, dict[str, Any]]] = {
    "1d": ((9,), (3,), {}),
    "1d_stride": ((9,), (3,), {"stride": 2}),
    "2d": ((6, 8), (2, 2), {}),
    "2d_rest": ((7, 9), (2, 3), {}),
    "2d_stride": ((7, 8), (3, 3), {"stride": 1}),
    "2d_strides": ((7, 8), (3, 2), {"stride": (2, 3)}),
    "2d_padding": ((5, 6), (3, 3), {"stride": 2, "padding": 1}),
    "2d_paddings": ((5, 6), (3, 2), {"stride": (2, 1), "padding": (1, 0)}),
    "2d_ceil": ((6, 7), (3, 3), {"stride": 2, "ceil_mode": True}),
    "2d_ceil_padding": ((6, 7), (3, 3), {"stride": 2, "padding": 1, "ceil_mode": True}),
    "3d": ((4, 5, 6), (2, 2, 3), {}),
    "3d_padding": ((4, 5, 6), (2, 3, 2), {"stride": 2, "padding": 1}),
}


@pytest.mark.parametrize("name", POOLS)
def test_max_pool(name: str, rng: np.random.Generator) -> None:
    extents, kernel, options = POOLS[name]
    theirs = MAX_POOLS[len(kernel)]
    # all different: torch gives the whole gradient to one of equal elements, we share it
    x = rng.permutation(6 * int(np.prod(extents))).reshape(2, 3, *extents) * 0.25
    check(lambda t: t.max_pool2d(kernel, **options), lambda t: theirs(t, kernel, **options), x)


@pytest.mark.parametrize("name", [name for name in POOLS if "ceil" not in name])
def test_places_of_a_max_pool_and_back(name: str, rng: np.random.Generator) -> None:
    extents, kernel, options = POOLS[name]
    pool = MAX_POOLS[len(kernel)]
    unpool = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}[len(kernel)]
    x = rng.permutation(6 * int(np.prod(extents))).reshape(2, 3, *extents) * 0.25
    check(lambda t: t.max_pool2d(kernel, return_indices=True, **options),
          lambda t: pool(t, kernel, return_indices=True, **options), x, same_dtype=False)
    if "stride" in options:  # an element that two windows chose comes back twice
        return

    def ours(t: Tensor) -> Tensor:
        values, places = t.max_pool2d(kernel, return_indices=True)
        return (values * 2).max_unpool2d(places, kernel, output_size=extents)

    def theirs(t: torch.Tensor) -> torch.Tensor:
        values, places = pool(t, kernel, return_indices=True)
        return unpool(values * 2, places, kernel, output_size=extents)

    check(ours, theirs, x)


def test_max_pool_with_dilation(rng: np.random.Generator) -> None:
    x = rng.permutation(2 * 8 * 9).reshape(1, 2, 8, 9) * 0.5
    for dilation in (2, (1, 3)):
        check(lambda t, d=dilation: t.max_pool2d((2, 2), 1, d),
              lambda t, d=dilation: F.max_pool2d(t, (2, 2), 1, dilation=d), x)


@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("name", POOLS)
def test_average_pool(name: str, count_include_pad: bool, rng: np.random.Generator) -> None:
    extents, kernel, options = POOLS[name]
    theirs = AVERAGE_POOLS[len(kernel)]
    more = {**options, "count_include_pad": count_include_pad}
    check(lambda t: t.avg_pool2d(kernel, **more), lambda t: theirs(t, kernel, **more),
          rng.uniform(-2, 2, (2, 3, *extents)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_pools_of_each_float(dtype: str, rng: np.random.Generator) -> None:
    x = rng.permutation(36).reshape(1, 1, 6, 6) * 0.25
    check(lambda t: t.max_pool2d(2), lambda t: F.max_pool2d(t, 2), x, dtype=dtype)
    check(lambda t: t.avg_pool2d(2), lambda t: F.avg_pool2d(t, 2), x, dtype=dtype)


def test_max_pool_of_special_values() -> None:
    x = np.array([[[[np.nan, 1, -np.inf, -np.inf], [0, 2, -np.inf, -np.inf]]]])
    check(lambda t: t.max_pool2d(2), lambda t: F.max_pool2d(t, 2), x, gradient=False)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[tuple[int, ...], int, int, tuple[int, ...], dict]:
    """A convolution that fits."""
    axes = draw(st.integers(1, 2))
    groups = draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(axes))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(axes))
    stride = tuple(draw(st.integers(1, 3)) for _ in range(axes))
    extents = tuple(
        max(1, d * (k - 1) + 1 - 2 * p) + draw(st.integers(0, 4))
        for k, d, p in zip(kernel, dilation, padding, strict=True)
    )
    inner, outer = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    options = {"groups": groups, "dilation": dilation, "padding": padding, "stride": stride}
    return extents, inner, outer, kernel, options


@settings(max_examples=25)
@given(case=convolutions(), batch=st.integers(1, 3))
def test_random_convolution(case: Any, batch: int) -> None:
    extents, inner, outer, kernel, options = case
    rng = np.random.default_rng(1)
    theirs = CONVOLUTIONS[len(kernel)]
    check(
        lambda x, w: x.conv2d(w, **options), lambda x, w: theirs(x, w, **options),
        rng.uniform(-1, 1, (batch, inner, *extents)),
        rng.uniform(-1, 1, (outer, inner // options["groups"], *kernel)),
        tolerance=(1e-4, 1e-5),
    )


def test_convolution_is_a_sum_over_windows(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (1, 1, 5)).astype(np.float32)
    check(lambda t: t.unfold(2, 3, 1).sum(-1), lambda t: F.conv1d(t, torch.ones(1, 1, 3)), x)
    assert Tensor(x).conv2d(Tensor.ones(1, 1, 3)).shape == (1, 1, 3)
