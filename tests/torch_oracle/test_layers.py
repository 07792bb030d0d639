"""Layers, with the weights copied through state dicts both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tg_frontend import Tensor, nn

from .compare import assert_same, tensor_of

LOOSE = (1e-4, 1e-5)
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")

# name: (ours, torch's, shape of the input)
LAYERS: dict[str, tuple[Callable[[], Any], Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(5, 3), lambda: torch.nn.Linear(5, 3), (2, 4, 5)),
    "linear_without_bias": (
        lambda: nn.Linear(5, 3, bias=False), lambda: torch.nn.Linear(5, 3, bias=False), (4, 5),
    ),
    "conv1d": (
        lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2),
        lambda: torch.nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9),
    ),
    "conv2d": (
        lambda: nn.Conv2d(3, 4, (3, 2), padding=1, dilation=2),
        lambda: torch.nn.Conv2d(3, 4, (3, 2), padding=1, dilation=2), (2, 3, 7, 6),
    ),
    "conv2d_same": (
        lambda: nn.Conv2d(2, 3, (3, 4), padding="same", bias=False),
        lambda: torch.nn.Conv2d(2, 3, (3, 4), padding="same", bias=False), (2, 2, 5, 6),
    ),
    "conv_transpose1d": (
        lambda: nn.ConvTranspose1d(4, 3, 3, stride=2, output_padding=1),
        lambda: torch.nn.ConvTranspose1d(4, 3, 3, stride=2, output_padding=1), (2, 4, 5),
    ),
    "conv_transpose2d": (
        lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2),
        lambda: torch.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 4, 3),
    ),
    "layer_norm": (lambda: nn.LayerNorm(6), lambda: torch.nn.LayerNorm(6), (2, 3, 6)),
    "layer_norm_two_axes": (
        lambda: nn.LayerNorm((3, 6)), lambda: torch.nn.LayerNorm((3, 6)), (2, 3, 6),
    ),
    "layer_norm_plain": (
        lambda: nn.LayerNorm(6, elementwise_affine=False),
        lambda: torch.nn.LayerNorm(6, elementwise_affine=False), (2, 6),
    ),
    "group_norm": (lambda: nn.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (2, 6, 3, 4)),
    "instance_norm": (
        lambda: nn.InstanceNorm(4), lambda: torch.nn.InstanceNorm2d(4, affine=True), (2, 4, 3, 3),
    ),
    "rms_norm": (lambda: nn.RMSNorm(6), lambda: torch.nn.RMSNorm(6, eps=1e-6), (2, 3, 6)),
    "batch_norm": (lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm2d(3), (4, 3, 2, 5)),
    "batch_norm_1d": (lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm1d(3), (6, 3)),
    "batch_norm_3d": (lambda: nn.BatchNorm3d(2), lambda: torch.nn.BatchNorm3d(2), (2, 2, 2, 3, 2)),
    "batch_norm_without_statistics": (
        lambda: nn.BatchNorm(3, track_running_stats=False),
        lambda: torch.nn.BatchNorm2d(3, track_running_stats=False), (4, 3, 2, 2),
    ),
    "batch_norm_plain": (
        lambda: nn.BatchNorm2d(3, affine=False, momentum=0.3, eps=1e-3),
        lambda: torch.nn.BatchNorm2d(3, affine=False, momentum=0.3, eps=1e-3), (4, 3, 2, 2),
    ),
}


def copy_to_ours(theirs: torch.nn.Module, ours: Any) -> None:
    """Torch's state dict loaded into our layer."""
    state = {name: tensor_of(value) for name, value in theirs.state_dict().items()}
    nn.state.load_state_dict(ours, state, verbose=False)


def copy_to_torch(ours: Any, theirs: torch.nn.Module) -> None:
    """Our state dict loaded into torch's layer."""
    state = nn.state.get_state_dict(ours)
    theirs.load_state_dict({name: torch.from_numpy(np.array(value.numpy()))
                            for name, value in state.items()})


def assert_same_state(ours: Any, theirs: torch.nn.Module) -> None:
    """The same names, and the same values."""
    mine, reference = nn.state.get_state_dict(ours), theirs.state_dict()
    assert sorted(mine) == sorted(reference)
    for name, value in reference.items():
        assert_same(mine[name], value, name, LOOSE)


def compare_layer(ours: Any, theirs: torch.nn.Module, x: np.ndarray) -> None:
    """Results, and gradients by input and parameters."""
    reference = torch.from_numpy(x).requires_grad_()
    tensor = Tensor(x).requires_grad_()
    expected, actual = theirs(reference), ours(tensor)
    assert_same(actual, expected, "result", LOOSE)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, tuple(expected.shape)).astype(np.float32)
    named = dict(theirs.named_parameters())
    wanted = torch.autograd.grad(
        (expected * torch.from_numpy(weights)).sum(), [reference, *named.values()]
    )
    mine = nn.state.get_state_dict(ours)
    given = (actual * Tensor(weights)).sum().gradient(tensor, *[mine[name] for name in named])
    for name, left, right in zip(["input", *named], given, wanted, strict=True):
        assert_same(left, right, f"gradient by {name}", LOOSE)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str, training: bool, rng: np.random.Generator) -> None:
    make_ours, make_theirs, shape = LAYERS[name]
    torch.manual_seed(4)
    theirs = make_theirs().train(training)
    for parameter in theirs.parameters():  # ones and zeros would hide a mistake
        torch.nn.init.uniform_(parameter, -1, 1)
    ours = make_ours()
    with Tensor.train(training):
        copy_to_ours(theirs, ours)
        for _ in range(2):  # running statistics move
            compare_layer(ours, theirs, rng.uniform(-2, 2, shape).astype(np.float32))
        assert_same_state(ours, theirs)


@pytest.mark.parametrize("name", LAYERS)
def test_our_initial_weights_in_torch(name: str, rng: np.random.Generator) -> None:
    make_ours, make_theirs, shape = LAYERS[name]
    ours, theirs = make_ours(), make_theirs().eval()
    copy_to_torch(ours, theirs)
    compare_layer(ours, theirs, rng.uniform(-2, 2, shape).astype(np.float32))


def test_embedding(rng: np.random.Generator) -> None:
    theirs = torch.nn.Embedding(7, 4)
    ours = nn.Embedding(7, 4)
    copy_to_ours(theirs, ours)
    index = rng.integers(0, 7, (3, 5))
    expected = theirs(torch.from_numpy(index))
    actual = ours(Tensor(index))
    assert_same(actual, expected)
    weights = rng.uniform(0.5, 1.5, (3, 5, 4)).astype(np.float32)
    (expected * torch.from_numpy(weights)).sum().backward()
    given = (actual * Tensor(weights)).sum().gradient(ours.weight)[0]
    assert_same(given, theirs.weight.grad)


@pytest.mark.parametrize("bias", [True, False])
def test_three_steps_of_a_long_short_term_memory(bias: bool, rng: np.random.Generator) -> None:
    theirs, ours = torch.nn.LSTMCell(5, 4, bias=bias), nn.LSTMCell(5, 4, bias=bias)
    copy_to_ours(theirs, ours)
    state, reference = None, None
    for _ in range(3):
        x = rng.uniform(-1, 1, (3, 5)).astype(np.float32)
        state = ours(Tensor(x), state)
        reference = theirs(torch.from_numpy(x), reference)
    for mine, expected in zip(state, reference, strict=True):
        assert_same(mine, expected, "state", LOOSE)
    reference[0].sum().backward()
    parameters = nn.state.get_state_dict(ours)
    named = dict(theirs.named_parameters())
    gradients = state[0].sum().gradient(*[parameters[name] for name in named])
    for name, gradient in zip(named, gradients, strict=True):
        assert_same(gradient, named[name].grad, name, LOOSE)


def test_layer_norm_over_channels_of_images(rng: np.random.Generator) -> None:
    x = rng.uniform(-2, 2, (2, 4, 3, 5)).astype(np.float32)
    expected = torch.nn.functional.layer_norm(torch.from_numpy(x).permute(0, 2, 3, 1), (4,))
    assert_same(nn.LayerNorm2d(4)(Tensor(x)), expected.permute(0, 3, 1, 2), "", LOOSE)


def test_initial_weights_are_spread_as_torch_spreads_them() -> None:
    Tensor.manual_seed(5)
    for ours, theirs in (
        (nn.Linear(64, 128), torch.nn.Linear(64, 128)),
        (nn.Conv2d(16, 32, 3), torch.nn.Conv2d(16, 32, 3)),
        (nn.ConvTranspose2d(32, 32, 3), torch.nn.ConvTranspose2d(32, 32, 3)),
    ):
        mine, reference = ours.weight.numpy(), theirs.weight.detach().numpy()
        assert mine.shape == reference.shape
        assert np.isclose(mine.std(), reference.std(), rtol=0.1)
        assert np.isclose(np.abs(mine).max(), np.abs(reference).max(), rtol=0.05)
