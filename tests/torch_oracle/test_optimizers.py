"""Optimisers over 20 steps, and a small network trained step by step, eager and under the JIT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tg_frontend import Tensor, TinyJit, nn

from .compare import assert_same
from .test_layers import assert_same_state, copy_to_ours

OPTIMIZERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sgd": (lambda p: nn.optim.SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    "sgd_momentum": (
        lambda p: nn.optim.SGD(p, lr=0.05, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    ),
    "sgd_nesterov": (
        lambda p: nn.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    ),
    "sgd_decay": (
        lambda p: nn.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1),
    ),
    "sgd_nesterov_decay": (
        lambda p: nn.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
    ),
    "adam": (lambda p: nn.optim.Adam(p, lr=0.02), lambda p: torch.optim.Adam(p, lr=0.02)),
    "adam_betas": (
        lambda p: nn.optim.Adam(p, lr=0.02, b1=0.7, b2=0.9, eps=1e-4),
        lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.7, 0.9), eps=1e-4),
    ),
    "adamw": (
        lambda p: nn.optim.AdamW(p, lr=0.02, weight_decay=0.1),
        lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
    ),
    "adamw_defaults": (lambda p: nn.optim.AdamW(p), lambda p: torch.optim.AdamW(p)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps(name: str, dtype: str, rng: np.random.Generator) -> None:
    make_ours, make_theirs = OPTIMIZERS[name]
    start = [rng.uniform(-1, 1, (3, 4)).astype(dtype), rng.uniform(-1, 1, 4).astype(dtype)]
    x = rng.uniform(-1, 1, (5, 3)).astype(dtype)
    theirs = [torch.from_numpy(p.copy()).requires_grad_() for p in start]
    ours = [Tensor(p.copy()) for p in start]
    reference, optimizer = make_theirs(theirs), make_ours(ours)
    with Tensor.train():
        for step in range(20):
            reference.zero_grad()
            ((torch.from_numpy(x) @ theirs[0] + theirs[1]).tanh() - 0.5).square().sum().backward()
            reference.step()
            optimizer.zero_grad()
            ((Tensor(x) @ ours[0] + ours[1]).tanh() - 0.5).square().sum().backward()
            optimizer.step()
            for left, right in zip(ours, theirs, strict=True):
                assert_same(left, right, f"step {step}", (2e-4, 2e-5))


class OurNet:
    """Convolution, batch norm, pool, linear."""

    def __init__(self) -> None:
        """Make the layers."""
        # a bias before a batch norm has gradients of rounding errors only, which Adam scales up
        self.conv = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm(4)
        self.linear = nn.Linear(4 * 4 * 4, 3)

    def __call__(self, x: Tensor) -> Tensor:
        """Images to logits."""
        return self.linear(self.norm(self.conv(x)).relu().max_pool2d(2).flatten(1))


class TheirNet(torch.nn.Module):
    """The same with torch."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.linear = torch.nn.Linear(4 * 4 * 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images to logits."""
        hidden = self.norm(self.conv(x)).relu()
        return self.linear(torch.nn.functional.max_pool2d(hidden, 2).flatten(1))


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize("name", ["sgd_nesterov_decay", "adamw"])
def test_a_network_trained_step_by_step(name: str, mode: str, rng: np.random.Generator) -> None:
    torch.manual_seed(1)
    theirs, ours = TheirNet(), OurNet()
    copy_to_ours(theirs, ours)
    make_ours, make_theirs = OPTIMIZERS[name]
    optimizer = make_ours(nn.state.get_parameters(ours))
    reference = make_theirs(theirs.parameters())

    def step(images: Tensor, classes: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = ours(images).cross_entropy(classes).backward()
        optimizer.step()
        return loss.realize()

    run = TinyJit(step) if mode == "jit" else step
    with Tensor.train():
        for _ in range(6):
            images = rng.uniform(-1, 1, (8, 1, 8, 8)).astype(np.float32)
            classes = rng.integers(0, 3, 8)
            reference.zero_grad()
            expected = torch.nn.functional.cross_entropy(
                theirs(torch.from_numpy(images)), torch.from_numpy(classes)
            )
            expected.backward()
            reference.step()
            loss = run(Tensor(images).realize(), Tensor(classes).realize())
            assert_same(loss, expected, "loss", (1e-4, 1e-5))
    for name_of, value in theirs.state_dict().items():
        mine = nn.state.get_state_dict(ours)[name_of]
        assert_same(mine, value, name_of, (2e-3, 2e-4))
    # inference uses the statistics that training moved
    images = rng.uniform(-1, 1, (4, 1, 8, 8)).astype(np.float32)
    with torch.no_grad():
        expected = theirs.eval()(torch.from_numpy(images))
    assert_same(ours(Tensor(images)), expected, "inference", (2e-3, 2e-4))


def test_state_of_both_after_loading_is_the_same() -> None:
    theirs, ours = TheirNet(), OurNet()
    copy_to_ours(theirs, ours)
    assert_same_state(ours, theirs)
