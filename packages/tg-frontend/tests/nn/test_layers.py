"""Layers against numpy, and against torch where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tg_frontend import Tensor, dtypes, nn
from tg_frontend.nn import LayerError
from tg_frontend.nn.state import get_state_dict

RNG = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def close(tensor: Tensor, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


# ---- formulas


def test_linear() -> None:
    layer, x = nn.Linear(4, 3), normal(2, 5, 4)
    assert layer.bias is not None
    close(layer(Tensor(x)), x @ layer.weight.numpy().T + layer.bias.numpy())


def test_linear_without_bias() -> None:
    layer, x = nn.Linear(4, 3, bias=False), normal(2, 4)
    assert layer.bias is None
    close(layer(Tensor(x)), x @ layer.weight.numpy().T)


def test_embedding() -> None:
    layer = nn.Embedding(7, 3)
    index = np.array([[0, 6, 2], [6, 6, 1]])
    close(layer(Tensor(index)), layer.weight.numpy()[index])
    assert layer(Tensor(np.uint8([3]))).shape == (1, 3)


def test_embedding_gradient_adds_up_where_a_row_is_used_twice() -> None:
    layer = nn.Embedding(4, 2)
    layer.weight.requires_grad = True
    layer(Tensor([1, 3, 1])).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


def convolved(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("ncyxhw,ochw->noyx", windows[:, :, ::stride, ::stride], w)


@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (1, 1), (2, 1)])
def test_conv2d(stride: int, pad: int) -> None:
    layer, x = nn.Conv2d(3, 4, 3, stride, pad), normal(2, 3, 6, 5)
    assert layer.bias is not None
    expected = convolved(x, layer.weight.numpy(), stride, pad)
    close(layer(Tensor(x)), expected + layer.bias.numpy().reshape(1, 4, 1, 1))


def test_conv2d_in_groups() -> None:
    layer, x = nn.Conv2d(4, 6, 3, groups=2, bias=False), normal(1, 4, 5, 5)
    weight = layer.weight.numpy()
    halves = [convolved(x[:, 2 * k : 2 * k + 2], weight[3 * k : 3 * k + 3], 1, 0) for k in (0, 1)]
    close(layer(Tensor(x)), np.concatenate(halves, axis=1))


@pytest.mark.parametrize("kernel", [3, 4, (1, 5)])
def test_same_padding_keeps_the_size(kernel: Any) -> None:
    layer = nn.Conv2d(1, 2, kernel, padding="same", dilation=2)
    assert layer(Tensor(normal(1, 1, 9, 8))).shape == (1, 2, 9, 8)


def test_conv1d() -> None:
    layer, x = nn.Conv1d(2, 3, 3, bias=False), normal(2, 2, 7)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)
    close(layer(Tensor(x)), np.einsum("nclk,ock->nol", windows, layer.weight.numpy()))


def test_conv_transpose_is_the_transpose_of_conv() -> None:
    layer = nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, bias=False)
    x = normal(1, 3, 4, 4)
    result = layer(Tensor(x))
    y = normal(*result.shape)
    forward = Tensor(y).conv2d(layer.weight, stride=2, padding=1)
    # <C y, x> = <y, C^T x>
    np.testing.assert_allclose((forward.numpy() * x).sum(), (y * result.numpy()).sum(), rtol=1e-4)


def test_batch_norm_in_training_uses_the_batch_and_moves_the_statistics() -> None:
    layer, x = nn.BatchNorm(3), normal(4, 3, 2, 2) * 2 + 1
    with Tensor.train():
        result = layer(Tensor(x))
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    shape = (1, 3, 1, 1)
    expected = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + 1e-5)
    close(result, expected)
    close(layer.running_mean, 0.1 * mean)
    close(layer.running_var, 0.9 + 0.1 * variance * 16 / 15)
    assert layer.num_batches_tracked.item() == 1


def test_batch_norm_outside_of_training_uses_the_statistics() -> None:
    layer, x = nn.BatchNorm(2), normal(4, 2)
    layer.running_mean.assign(Tensor([1.0, 2.0]))
    layer.running_var.assign(Tensor([4.0, 9.0]))
    expected = (x - np.float32([1, 2])) / np.sqrt(np.float32([4, 9]) + 1e-5)
    close(layer(Tensor(x)), expected)
    assert layer.num_batches_tracked.item() == 0


def test_batch_norm_without_statistics_always_uses_the_batch() -> None:
    layer, x = nn.BatchNorm(2, affine=False, track_running_stats=False), normal(6, 2)
    close(layer(Tensor(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
    assert get_state_dict(layer) == {}


def test_batch_norm_statistics_carry_no_gradient() -> None:
    layer = nn.BatchNorm(2)
    x = Tensor(normal(4, 2), requires_grad=True)
    with Tensor.train():
        for _ in range(3):
            layer(x).square().sum().backward()
    assert layer.running_mean.requires_grad is False
    assert len(layer.running_mean.uop.toposort()) < 200


def test_layer_norm() -> None:
    layer, x = nn.LayerNorm((3, 4)), normal(2, 3, 4)
    assert layer.weight is not None and layer.bias is not None
    layer.weight.assign(Tensor(normal(3, 4)))
    layer.bias.assign(Tensor(normal(3, 4)))
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    expected = (x - mean) / np.sqrt(variance + 1e-5) * layer.weight.numpy() + layer.bias.numpy()
    close(layer(Tensor(x)), expected)


def test_layer_norm_2d_is_over_channels() -> None:
    x = normal(2, 3, 4, 5)
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    close(nn.LayerNorm2d(3)(Tensor(x)), (x - mean) / np.sqrt(variance + 1e-5))


def test_group_norm() -> None:
    x = normal(2, 4, 3, 3)
    grouped = x.reshape(2, 2, -1)
    mean, variance = grouped.mean(-1, keepdims=True), grouped.var(-1, keepdims=True)
    expected = ((grouped - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
    close(nn.GroupNorm(2, 4)(Tensor(x)), expected)


def test_instance_norm() -> None:
    x = normal(2, 3, 4, 4)
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    close(nn.InstanceNorm(3)(Tensor(x)), (x - mean) / np.sqrt(variance + 1e-5))


def test_rms_norm() -> None:
    layer, x = nn.RMSNorm(4), normal(2, 4)
    close(layer(Tensor(x)), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6))
    assert layer(Tensor(x).half()).dtype is dtypes.float32  # the scale is kept in fp32


# ---- initial values


@pytest.mark.parametrize(
    ("layer", "fan_in"),
    [(nn.Linear(25, 400), 25), (nn.Conv2d(4, 64, 3), 36), (nn.Conv2d(8, 64, 3, groups=2), 36)],
)
def test_parameters_start_uniform_within_the_fan_in(layer: Any, fan_in: int) -> None:
    bound = 1 / np.sqrt(fan_in)
    for values in (layer.weight.numpy(), layer.bias.numpy()):
        assert abs(values).max() <= bound
        assert abs(values).max() > 0.9 * bound
        assert abs(values.mean()) < 0.2 * bound


def test_embedding_starts_glorot_uniform() -> None:
    values = nn.Embedding(100, 20).weight.numpy()
    bound = np.sqrt(6 / 120)
    assert 0.9 * bound < abs(values).max() <= bound


# ---- torch


def test_layers_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x = normal(2, 4, 6, 6)
    pairs = [
        (nn.Conv2d(4, 6, 3, 2, 1, 1, 2), torch.nn.Conv2d(4, 6, 3, 2, 1, 1, 2)),
        (nn.BatchNorm(4), torch.nn.BatchNorm2d(4)),
        (nn.GroupNorm(2, 4), torch.nn.GroupNorm(2, 4)),
        (nn.LayerNorm(6), torch.nn.LayerNorm(6)),
        (nn.Linear(6, 3), torch.nn.Linear(6, 3)),
        (nn.ConvTranspose2d(4, 2, 3, 2, 1, 1), torch.nn.ConvTranspose2d(4, 2, 3, 2, 1, 1)),
    ]
    for ours, theirs in pairs:
        state = {name: t.detach().numpy() for name, t in theirs.state_dict().items()}
        nn.state.load_state_dict(ours, {name: Tensor(array) for name, array in state.items()})
        with Tensor.train():
            close(ours(Tensor(x)), theirs(torch.tensor(x)).detach().numpy(), 1e-4)


# ---- bad input

BAD = {
    "linear": (lambda: nn.Linear(4, 3)(Tensor.ones(2, 5)), r"\(4, 3\).*\(2, 5\).*has to be 4"),
    "linear size": (lambda: nn.Linear(0, 3), r"Linear\(0, 3\): sizes"),
    "conv channels": (
        lambda: nn.Conv2d(3, 4, 3)(Tensor.ones(2, 1, 8, 8)),
        r"Conv2d of 3 input channels.*\(2, 1, 8, 8\); expected \(batch, 3, height, width\)",
    ),
    "conv axes": (lambda: nn.Conv1d(3, 4, 3)(Tensor.ones(3, 8)), r"expected \(batch, 3, length\)"),
    "conv groups": (lambda: nn.Conv2d(3, 4, 3, groups=2), "do not fall into 2 groups"),
    "conv kernel": (lambda: nn.Conv2d(3, 4, (3, 3, 3)), r"\(3, 3, 3\): expected one number, or 2"),
    "conv padding": (lambda: nn.Conv2d(3, 4, 3, 2, "same"), "'same' with stride 2"),
    "batch norm": (lambda: nn.BatchNorm(3)(Tensor.ones(2, 4)), r"\(2, 4\); expected \(batch, 3"),
    "layer norm": (lambda: nn.LayerNorm(3)(Tensor.ones(2, 4)), r"its last axes have to be \(3,\)"),
    "layer norm axes": (lambda: nn.LayerNorm(()), "at least one axis"),
    "group norm": (lambda: nn.GroupNorm(3, 4), "4 channels do not fall into 3 groups"),
    "group norm input": (lambda: nn.GroupNorm(2, 4)(Tensor.ones(2, 3)), "GroupNorm of 4 channels"),
    "rms norm": (lambda: nn.RMSNorm(3)(Tensor.ones(2, 4)), "has to be 3"),
    "embedding": (lambda: nn.Embedding(3, 4)(Tensor.ones(2)), r"dtype float32; .*\.int\(\)"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_both_shapes(name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(LayerError, match=message):
        make()
