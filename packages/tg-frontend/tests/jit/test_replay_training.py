"""TinyJit replays a training step: gradients, optimisers, memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_frontend import GlobalCounters, Tensor, TinyJit, nn
from tg_frontend.nn.optim import SGD, Adam

from .both_ways import run_both


def test_gradients_left_by_a_replay_are_those_of_the_call() -> None:
    def make() -> Callable[[int], Any]:
        weight = Tensor([1.0, 2.0], requires_grad=True)

        @TinyJit
        def step(x: Tensor) -> None:
            weight.grad = None
            (weight * x).sum().backward()

        def call(number: int) -> Any:
            step(Tensor([1.0, float(number)]))
            return weight.grad

        return call

    run_both(make)


def test_gradients_accumulate_over_replays() -> None:
    def make() -> Callable[[int], Any]:
        weight = Tensor([1.0, 2.0], requires_grad=True)

        @TinyJit
        def step(x: Tensor) -> None:
            (weight * x).sum().backward()

        def call(number: int) -> Any:
            step(Tensor([1.0, float(number)]))
            assert weight.grad is not None
            return weight.grad * 1

        return call

    run_both(make)


def test_gradient_of_an_input() -> None:
    def make() -> Callable[[int], Any]:
        @TinyJit
        def step(x: Tensor) -> None:
            x.square().sum().backward()

        def call(number: int) -> Any:
            x = Tensor([1.0, float(number)], requires_grad=True)
            step(x)
            return x.grad

        return call

    run_both(make)


@pytest.mark.parametrize("optimizer", [lambda p: Adam(p, 0.1), lambda p: SGD(p, 0.1, 0.9)])
def test_training_is_the_same(optimizer: Callable[[list[Tensor]], Any]) -> None:
    def make() -> Callable[[int], Any]:
        Tensor.manual_seed(5)
        layers = [nn.Linear(4, 3), nn.BatchNorm(3), nn.Linear(3, 1)]
        parameters = nn.state.get_parameters(layers)
        chosen = optimizer(parameters)

        @TinyJit
        def step(x: Tensor, rate: Tensor) -> Tensor:
            chosen.lr.assign(rate)
            chosen.zero_grad()
            y = layers[2](layers[1](layers[0](x)).relu())
            loss = y.square().mean()
            loss.backward()
            chosen.step()
            return loss.detach()

        def call(number: int) -> Any:
            x = Tensor(np.random.default_rng(number).normal(size=(6, 4)).astype(np.float32))
            with Tensor.train():
                loss = step(x, Tensor([0.1 / (number + 1)]))
            return loss, parameters

        return call

    run_both(make)


def test_memory_is_flat_after_the_second_step() -> None:
    layer = nn.Linear(64, 64)
    optimizer = Adam(nn.state.get_parameters(layer))

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = layer(layer(x).relu()).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    used = []
    with Tensor.train():
        for _ in range(8):
            step(Tensor.ones(16, 64)).item()
            gc.collect()
            used.append(GlobalCounters.mem_used)
    assert len(set(used[3:])) == 1, used


def test_a_dead_object_frees_what_its_method_captured() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = Tensor.ones(1000, 1000).realize()

        @TinyJit
        def call(self, x: Tensor) -> Tensor:
            return x * self.weight

    gc.collect()
    before = GlobalCounters.mem_used
    model = Model()
    for _ in range(3):
        model.call(Tensor([1.0])).realize()
    del model
    gc.collect()
    assert GlobalCounters.mem_used - before < 1000
