"""Random keys between brackets: what is read, its gradient, and what a write leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

DTYPES = ["float32", "float64", "int8", "int32", "int64", "uint8"]


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...], arrays: bool = True) -> tuple[Any, ...]:
    """A key for some of the axes, with new axes and perhaps an ellipsis among them."""
    items: list[Any] = []
    index_shape = draw(st.sampled_from([(2,), (3,), (2, 3), (1,)]))
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kinds = ["int", "slice", "slice", "all", "list" if arrays else "all"]
        kind = draw(st.sampled_from(kinds if size else ["slice", "all"]))
        if kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            items.append(draw(slices(size)))
        elif kind == "all":
            items.append(slice(None))
        else:
            count = int(np.prod(index_shape))
            flat = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            items.append(np.array(flat).reshape(index_shape))
    if len(items) == len(shape) or draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None) if draw(st.booleans()) else None
    else:
        items.append(Ellipsis)
    return tuple(items)


@st.composite
def slices(draw: st.DrawFn, size: int) -> slice:
    """A slice, bounds beyond the axis and negative steps among them."""
    bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


SHAPES = st.sampled_from([(5,), (4, 5), (3, 4, 5), (2, 3, 2, 3), (1, 6), (0, 3)])


def ints_first(x: np.ndarray, key: tuple[Any, ...]) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Beside index arrays numpy takes ints for arrays too; torch and we take them before."""
    if not any(isinstance(item, np.ndarray) for item in key):
        return x, key
    axes = [item for item in key if item is not None and item is not Ellipsis]
    chosen = x[tuple([item if isinstance(item, int) else slice(None) for item in axes])]
    return chosen, tuple([item for item in key if not isinstance(item, int)])


def has_negative_step(key: tuple[Any, ...]) -> bool:
    return any(isinstance(item, slice) and (item.step or 1) < 0 for item in key)


@settings(max_examples=120)
@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_read(data: st.DataObject, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    key = data.draw(keys(shape), label="key")
    x = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    part, rest = ints_first(x, key)
    expected = part[rest]
    tensor = Tensor(x)
    actual = tensor[key]
    assert actual.shape == expected.shape
    assert np.array_equal(actual.numpy(), expected)
    if dtype.startswith("float") and not has_negative_step(key):
        reference = torch.from_numpy(x).requires_grad_()
        weights = np.random.default_rng(1).uniform(0.5, 2, expected.shape).astype(dtype)
        wanted = torch.autograd.grad(
            (reference[key] * torch.from_numpy(np.array(weights))).sum(), reference
        )[0]
        given_ = (actual * Tensor(weights)).sum().gradient(tensor, materialize_grads=True)[0]
        np.testing.assert_allclose(given_.numpy(), wanted.numpy(), rtol=1e-5)


@settings(max_examples=120)
@given(data=st.data(), shape=SHAPES, dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_write(data: st.DataObject, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    """Of doubles in an index array the last wins, as in numpy."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 100, shape).astype(dtype)
    tensor = Tensor(x.copy())
    if data.draw(st.booleans(), label="realized"):
        tensor.realize()
    for _ in range(data.draw(st.integers(1, 4), label="writes")):
        key = data.draw(keys(shape), label="key")
        part, rest = ints_first(x, key)  # a view: writing there writes to x
        wanted = part[rest].shape
        kind = data.draw(st.sampled_from(["array", "number", "row", "add", "self"]), label="kind")
        note(f"{key} {kind}")
        if kind == "number":
            part[rest] = 7
            tensor[key] = 7
        elif kind == "add":
            part[rest] += 3
            tensor[key] += 3
        elif kind == "self":
            part[rest] = part[rest] * 2
            tensor[key] = tensor[key] * 2
        else:
            value_shape = wanted if kind == "array" else wanted[-1:]
            value = rng.integers(0, 100, value_shape).astype(dtype)
            part[rest] = value
            tensor[key] = Tensor(value)
    assert np.array_equal(tensor.numpy(), x)


@settings(max_examples=60)
@given(data=st.data(), seed=st.integers(0, 99))
def test_write_through_a_view(data: st.DataObject, seed: int) -> None:
    """A chain of basic keys and movements leads to where the base is written."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 100, (4, 6)).astype(np.float32)
    tensor = Tensor(x.copy()).realize()
    view, reference = tensor, x
    for _ in range(data.draw(st.integers(1, 3), label="steps")):
        step = data.draw(st.sampled_from(["key", "transpose", "flip", "split"]), label="step")
        if step == "key":
            key = data.draw(keys(reference.shape, arrays=False), label="key")
            if reference[key].ndim == 0:
                continue
            view, reference = view[key], reference[key]
        elif step == "transpose" and reference.ndim > 1:
            view, reference = view.transpose(0, 1), reference.swapaxes(0, 1)
        elif step == "flip":
            view, reference = view.flip(0), np.flip(reference, 0)
        elif step == "split" and reference.shape[-1] % 2 == 0 and reference.size:
            shape = (*reference.shape[:-1], 2, reference.shape[-1] // 2)
            if not np.shares_memory(reference.reshape(shape), x):
                continue
            view, reference = view.reshape(shape), reference.reshape(shape)
    value = rng.integers(0, 100, reference.shape).astype(np.float32)
    view[...] = Tensor(value)
    reference[...] = value
    assert np.array_equal(tensor.numpy(), x)
    assert np.array_equal(view.numpy(), value)


@settings(max_examples=30)
@given(data=st.data(), seed=st.integers(0, 99))
def test_gradient_through_writes(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (3, 4)), rng.uniform(-1, 1, (3, 4))]
    chosen = [
        data.draw(keys((3, 4), arrays=False).filter(lambda k: not has_negative_step(k)))
        for _ in range(2)
    ]

    def function(x: Any, y: Any) -> Any:
        z = x * y
        for key in chosen:
            z[key] = (x * 2 + y)[key]
            z = z * z
        return z

    references = [torch.from_numpy(a).requires_grad_() for a in arrays]
    tensors = [Tensor(a) for a in arrays]
    wanted = torch.autograd.grad(function(*references).sum(), references)
    given_ = function(*tensors).sum().gradient(*tensors)
    for mine, reference in zip(given_, wanted, strict=True):
        np.testing.assert_allclose(mine.numpy(), reference.numpy(), rtol=1e-9, atol=1e-12)
