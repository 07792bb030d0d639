"""Matmul, einsum, convolution, pooling and attention, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor, dtypes

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4,)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (6, 4, 5)),
        ((1, 1), (1, 1)),
    ],
)
def test_matmul_matches_numpy(left, right):
    a, b = normal(*left), normal(*right)
    result = (Tensor(a) @ Tensor(b)).numpy()
    assert result.shape == (a @ b).shape
    np.testing.assert_allclose(result, a @ b, rtol=1e-5, atol=1e-5)


def test_matmul_over_an_empty_axis_is_zero():
    result = Tensor.zeros(3, 0) @ Tensor.zeros(0, 2)
    np.testing.assert_array_equal(result.numpy(), np.zeros((3, 2)))


def test_matmul_of_halves_accumulates_in_float32():
    a = np.full((1, 4096), 1.0, np.float16)
    result = Tensor(a) @ Tensor(a).T
    assert result.dtype is dtypes.half
    assert result.item() == 4096
    wide = Tensor(a).matmul(Tensor(a).T, dtype=dtypes.float32)
    assert wide.dtype is dtypes.float32


def test_matmul_of_ints_wraps_at_their_width():
    a = np.full((1, 300), 100, np.int8)
    assert Tensor(a).matmul(Tensor(a).T, dtype=dtypes.int32).item() == 3_000_000
    expected = (a.astype(np.int64) @ a.T.astype(np.int64)).astype(np.int8)
    np.testing.assert_array_equal((Tensor(a) @ Tensor(a).T).numpy(), expected)


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("ij,jk->ik", ((2, 3), (3, 4))),
        ("ij,kj", ((2, 3), (4, 3))),
        ("ij->ji", ((2, 3),)),
        ("ij->", ((2, 3),)),
        ("ii->i", ((3, 3),)),
        ("ii", ((3, 3),)),
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("...ij,...jk->...ik", ((2, 3, 4), (2, 4, 5))),
        ("i,j,k->ijk", ((2,), (3,), (4,))),
        ("ij,ij->i", ((2, 3), (2, 3))),
    ],
)
def test_einsum_matches_numpy(formula, shapes):
    arrays = [normal(*shape) for shape in shapes]
    result = Tensor.einsum(formula, *[Tensor(array) for array in arrays])
    np.testing.assert_allclose(result.numpy(), np.einsum(formula, *arrays), rtol=1e-5, atol=1e-5)


def convolve(x, w, stride, padding, dilation, groups):
    """By its definition, in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, channels, height, width = x.shape
    out, per_group, kh, kw = w.shape
    oh = (height - dilation * (kh - 1) - 1) // stride + 1
    ow = (width - dilation * (kw - 1) - 1) // stride + 1
    result = np.zeros((n, out, oh, ow))
    for o in range(out):
        group = o // (out // groups)
        part = x[:, group * per_group : (group + 1) * per_group]
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation, i * dilation + stride * (oh - 1) + 1, stride)
                columns = slice(j * dilation, j * dilation + stride * (ow - 1) + 1, stride)
                result[:, o] += np.einsum("nchw,c->nhw", part[:, :, rows, columns], w[o, :, i, j])
    return result


@given(data=st.data())
@settings(max_examples=15)
def test_convolution_matches_its_definition(data):
    groups = data.draw(st.sampled_from([1, 2]))
    stride = data.draw(st.integers(1, 3))
    padding = data.draw(st.integers(0, 2))
    dilation = data.draw(st.integers(1, 2))
    kernel = data.draw(st.integers(1, 3))
    x = normal(2, 2 * groups, 7, 6)
    w = normal(2 * groups, 2, kernel, kernel)
    b = normal(2 * groups)
    result = Tensor(x).conv2d(
        Tensor(w), Tensor(b), groups=groups, stride=stride, padding=padding, dilation=dilation
    )
    expected = convolve(x, w, stride, padding, dilation, groups) + b.reshape(1, -1, 1, 1)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_convolution_over_one_and_three_axes():
    x, w = normal(2, 3, 9), normal(4, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, 2)
    expected = np.einsum("nclk,ock->nol", windows, w)
    np.testing.assert_allclose(Tensor(x).conv2d(Tensor(w)).numpy(), expected, rtol=1e-4, atol=1e-5)
    x, w = normal(1, 2, 4, 4, 4), normal(3, 2, 2, 2, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2, 2), (2, 3, 4))
    expected = np.einsum("ncdhwxyz,ocxyz->nodhw", windows, w)
    np.testing.assert_allclose(Tensor(x).conv2d(Tensor(w)).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_padding_may_differ_on_each_side():
    x, w = normal(1, 1, 5, 5), normal(1, 1, 3, 3)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 2), (1, 0)))
    expected = convolve(padded, w, 1, 0, 1, 1)
    result = Tensor(x).conv2d(Tensor(w), padding=(1, 0, 0, 2))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("stride", "padding", "extra"), [(1, 0, 0), (2, 1, 1), (3, 2, 0)])
def test_transposed_convolution_is_the_transpose(stride, padding, extra):
    x, w = normal(2, 3, 4, 4), normal(3, 2, 3, 3)
    result = Tensor(x).conv_transpose2d(
        Tensor(w), stride=stride, padding=padding, output_padding=extra
    )
    # <conv(y), x> == <y, conv_transpose(x)> for every y
    y = normal(*result.shape)
    forward = convolve(y, w, stride, padding, 1, 1)[..., :4, :4]
    assert np.vdot(forward, x) == pytest.approx(np.vdot(y, result.numpy()), rel=1e-3)


def pooled(x, size, stride, function):
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (-2, -1))
    return function(windows[..., ::stride, ::stride, :, :], axis=(-2, -1))


@pytest.mark.parametrize(("size", "stride"), [(2, None), (2, 1), (3, 2), (3, None)])
def test_pooling_matches_numpy(size, stride):
    x = normal(2, 3, 7, 8)
    for name, function in (("max_pool2d", np.max), ("avg_pool2d", np.mean)):
        result = getattr(Tensor(x), name)(size, stride=stride)
        expected = pooled(x, size, stride or size, function)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_padding_of_max_pooling_never_wins():
    x = -np.abs(normal(1, 1, 4, 4)) - 1
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    result = Tensor(x).max_pool2d(3, stride=2, padding=1)
    np.testing.assert_array_equal(result.numpy(), pooled(padded, 3, 2, np.max))


def test_padding_of_average_pooling_counts_unless_told_otherwise():
    x = np.ones((1, 1, 4, 4), np.float32)
    counted = Tensor(x).avg_pool2d(2, padding=1).numpy()
    assert counted[0, 0, 0, 0] == 0.25
    uncounted = Tensor(x).avg_pool2d(2, padding=1, count_include_pad=False).numpy()
    np.testing.assert_array_equal(uncounted, np.ones((1, 1, 3, 3)))


def test_ceil_mode_keeps_the_partial_window():
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    result = Tensor(x).max_pool2d(2, ceil_mode=True).numpy()
    np.testing.assert_array_equal(result[0, 0], [[6, 8, 9], [16, 18, 19], [21, 23, 24]])


def attention(q, k, v, mask=None):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_attention_matches_its_definition():
    q, k, v = normal(2, 3, 5, 4), normal(2, 3, 6, 4), normal(2, 3, 6, 4)
    result = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v))
    np.testing.assert_allclose(result.numpy(), attention(q, k, v), rtol=1e-4, atol=1e-5)
    mask = RNG.random((5, 6)) > 0.3
    mask[:, 0] = True
    result = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), attn_mask=Tensor(mask))
    np.testing.assert_allclose(result.numpy(), attention(q, k, v, mask), rtol=1e-4, atol=1e-5)
    causal = Tensor(q).scaled_dot_product_attention(Tensor(q), Tensor(q), is_causal=True)
    expected = attention(q, q, q, np.tril(np.ones((5, 5), bool)))
    np.testing.assert_allclose(causal.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_losses_match_their_definitions():
    logits = normal(6, 4)
    classes = np.array([0, 3, 1, 2, 2, 0], np.int32)
    wide = logits.astype(np.float64)
    log_p = wide - np.log(np.exp(wide).sum(1, keepdims=True))
    each = -log_p[np.arange(6), classes]
    t, y = Tensor(logits), Tensor(classes)
    assert t.cross_entropy(y).item() == pytest.approx(each.mean(), rel=1e-5)
    assert t.sparse_categorical_crossentropy(y).item() == pytest.approx(each.mean(), rel=1e-5)
    np.testing.assert_allclose(t.cross_entropy(y, reduction="none").numpy(), each, rtol=1e-5)
    assert t.log_softmax(1).nll_loss(y).item() == pytest.approx(each.mean(), rel=1e-5)
    smooth = 0.9 * each + 0.1 * -log_p.mean(1)
    assert t.cross_entropy(y, label_smoothing=0.1).item() == pytest.approx(smooth.mean(), rel=1e-5)
    kept = t.sparse_categorical_crossentropy(y, ignore_index=2)
    assert kept.item() == pytest.approx(each[classes != 2].mean(), rel=1e-5)
    target = (RNG.random(6) > 0.5).astype(np.float32)
    x = logits[:, 0].astype(np.float64)
    p = 1 / (1 + np.exp(-x))
    expected = -(target * np.log(p) + (1 - target) * np.log(1 - p)).mean()
    given = Tensor(logits[:, 0].copy())
    wanted = Tensor(target)
    from_logits = given.binary_crossentropy_logits(wanted).item()
    assert from_logits == pytest.approx(expected, rel=1e-5)
    from_probabilities = given.sigmoid().binary_crossentropy(wanted).item()
    assert from_probabilities == pytest.approx(expected, rel=1e-4)


def test_normalisation_matches_numpy():
    x = normal(4, 3, 5)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(Tensor(x).layernorm().numpy(), expected, rtol=1e-4, atol=1e-5)
    mean, var = x.mean((0, 2)), x.var((0, 2))
    w, b = normal(3), normal(3)
    result = Tensor(x).batchnorm(
        Tensor(w), Tensor(b), Tensor(mean), (Tensor(var) + 1e-5).rsqrt()
    )
    per_channel = (1, 3, 1)
    expected = (x - mean.reshape(per_channel)) / np.sqrt(var + 1e-5).reshape(per_channel)
    expected = expected * w.reshape(per_channel) + b.reshape(per_channel)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_dropout_keeps_the_mean_and_acts_only_while_training():
    x = Tensor.ones(20000)
    np.testing.assert_array_equal(x.dropout(0.3).numpy(), x.numpy())
    with Tensor.train():
        dropped = x.dropout(0.3).numpy()
    assert dropped.mean() == pytest.approx(1.0, abs=0.03)
    assert (dropped == 0).mean() == pytest.approx(0.3, abs=0.02)
