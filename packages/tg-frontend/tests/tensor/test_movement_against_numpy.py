"""Movement and joining, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, Variable


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


X = numbers(2, 3, 4)

CASES = {
    "reshape": (lambda t: t.reshape(4, -1), lambda a: a.reshape(4, -1)),
    "view_with_a_tuple": (lambda t: t.view((6, 4)), lambda a: a.reshape(6, 4)),
    "reshape_keeping_an_axis": (lambda t: t.reshape(None, 12), lambda a: a.reshape(2, 12)),
    "permute": (lambda t: t.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute_negative": (lambda t: t.permute((-1, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda t: t.transpose(0, 2), lambda a: a.swapaxes(0, 2)),
    "default_transpose": (lambda t: t.transpose(), lambda a: a.swapaxes(0, 1)),
    "flip": (lambda t: t.flip(0, -1), lambda a: a[::-1, :, ::-1]),
    "shrink": (lambda t: t.shrink(((0, 1), None, (1, 3))), lambda a: a[0:1, :, 1:3]),
    "expand": (
        lambda t: t.reshape(2, 1, 12).expand(-1, 5, -1),
        lambda a: np.broadcast_to(a.reshape(2, 1, 12), (2, 5, 12)),
    ),
    "squeeze": (lambda t: t.reshape(2, 1, 3, 1, 4).squeeze(), lambda a: a),
    "squeeze_one": (lambda t: t.reshape(2, 1, 3, 4).squeeze(1), lambda a: a),
    "squeeze_of_a_larger_axis": (lambda t: t.squeeze(1), lambda a: a),
    "unsqueeze": (lambda t: t.unsqueeze(-1), lambda a: a[..., None]),
    "flatten": (lambda t: t.flatten(), lambda a: a.reshape(-1)),
    "flatten_some": (lambda t: t.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda t: t.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "repeat": (lambda t: t.repeat(2, 1, 3), lambda a: np.tile(a, (2, 1, 3))),
    "repeat_more_axes": (lambda t: t.repeat((2, 1, 1, 1)), lambda a: np.tile(a, (2, 1, 1, 1))),
    "repeat_interleave": (lambda t: t.repeat_interleave(2, 1), lambda a: a.repeat(2, 1)),
    "repeat_interleave_flat": (lambda t: t.repeat_interleave(2), lambda a: a.repeat(2)),
    "roll": (lambda t: t.roll(1, 1), lambda a: np.roll(a, 1, 1)),
    "roll_flat": (lambda t: t.roll(-5), lambda a: np.roll(a, -5)),
    "roll_two": (lambda t: t.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2))),
    "pad_pairs": (
        lambda t: t.pad((None, (1, 2), (0, 1)), value=7),
        lambda a: np.pad(a, ((0, 0), (1, 2), (0, 1)), constant_values=7),
    ),
    "pad_flat": (lambda t: t.pad((1, 0, 2, 1)), lambda a: np.pad(a, ((0, 0), (2, 1), (1, 0)))),
    "pad_negative": (
        lambda t: t.pad((-1, 1)),
        lambda a: np.pad(a[..., 1:], ((0, 0), (0, 0), (0, 1))),
    ),
    "pad_reflect": (
        lambda t: t.pad((2, 3), mode="reflect"),
        lambda a: np.pad(a, ((0, 0), (0, 0), (2, 3)), mode="reflect"),
    ),
    "pad_replicate": (
        lambda t: t.pad((2, 3, 1, 0), mode="replicate"),
        lambda a: np.pad(a, ((0, 0), (1, 0), (2, 3)), mode="edge"),
    ),
    "pad_circular": (
        lambda t: t.pad((2, 4), mode="circular"),
        lambda a: np.pad(a, ((0, 0), (0, 0), (2, 4)), mode="wrap"),
    ),
    "cat": (lambda t: t.cat(t + 1, t, dim=1), lambda a: np.concatenate([a, a + 1, a], 1)),
    "stack": (lambda t: t.stack(t * 2, dim=-1), lambda a: np.stack([a, a * 2], -1)),
    "unfold": (
        lambda t: t.unfold(2, 2, 1),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2),
    ),
    "diag": (lambda t: t[0, 0].diag(), lambda a: np.diag(a[0, 0])),
    "diagonal": (lambda t: t.diagonal(), np.diagonal),
    "tril": (lambda t: t.tril(), np.tril),
    "triu": (lambda t: t.triu(1), lambda a: np.triu(a, 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_movement_matches_numpy(name):
    function, reference = CASES[name]
    result = function(Tensor(X))
    expected = reference(X)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)


def test_split_and_chunk_match_numpy():
    a = numbers(7, 2)
    for pieces, expected in (
        (Tensor(a).split(3), np.split(a, [3, 6])),
        (Tensor(a).split([2, 5]), np.split(a, [2])),
        (Tensor(a).chunk(3), np.split(a, [3, 6])),
    ):
        assert len(pieces) == len(expected)
        for piece, wanted in zip(pieces, expected, strict=True):
            np.testing.assert_array_equal(piece.numpy(), wanted)


def test_cat_promotes_and_skips_nothing_of_empty_parts():
    joined = Tensor([1, 2]).cat(Tensor([0.5]), Tensor.zeros(0))
    np.testing.assert_array_equal(joined.numpy(), np.float32([1, 2, 0.5]))


def test_cat_keeps_minus_zero():
    joined = Tensor([-0.0]).cat(Tensor([-0.0]))
    assert np.signbit(joined.numpy()).all()


@given(data=st.data())
@settings(max_examples=40)
def test_chains_of_movement_match_numpy(data):
    array = numbers(2, 3, 4)
    tensor = Tensor(array)
    for _ in range(data.draw(st.integers(1, 6))):
        step = data.draw(st.sampled_from(["permute", "flip", "shrink", "pad", "flat", "double"]))
        axis = data.draw(st.integers(0, array.ndim - 1))
        if step == "permute":
            order = data.draw(st.permutations(range(array.ndim)))
            array, tensor = array.transpose(order), tensor.permute(order)
        elif step == "flip":
            array, tensor = np.flip(array, axis), tensor.flip(axis)
        elif step == "shrink":
            end = data.draw(st.integers(1, array.shape[axis]))
            bounds = [(0, end if k == axis else s) for k, s in enumerate(array.shape)]
            array = array[tuple(slice(*b) for b in bounds)]
            tensor = tensor.shrink(bounds)
        elif step == "pad":
            pairs = [(1, 1) if k == axis else (0, 0) for k in range(array.ndim)]
            array, tensor = np.pad(array, pairs), tensor.pad(pairs)
        elif step == "flat":
            array, tensor = array.reshape(array.shape[0], -1), tensor.reshape(array.shape[0], -1)
        else:
            array, tensor = array * 2, tensor * 2
        if array.size > 2000:
            break
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_a_symbolic_size_runs_one_kernel_for_many_values():
    x = Tensor(numbers(8, 3)).realize()
    size = Variable("size", 1, 8)
    for value in (2, 5, 8):
        total = (x.shrink(((0, size.bind(value)), None)) * 2).sum(0)
        np.testing.assert_array_equal(total.numpy(), (numbers(8, 3)[:value] * 2).sum(0))
