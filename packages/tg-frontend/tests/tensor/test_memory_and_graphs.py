"""Bounds: memory of loops, depth of graphs, what an import loads."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import numpy as np
import pytest
from tg_frontend import GlobalCounters, Tensor
from tg_frontend.nn import Linear
from tg_frontend.nn.optim import Adam
from tg_frontend.nn.state import get_parameters


def used() -> int:
    gc.collect()
    return GlobalCounters.mem_used


def test_a_training_loop_is_flat_after_its_second_step():
    layers = [Linear(20, 30), Linear(30, 10)]
    optimizer = Adam(get_parameters(layers), lr=0.01)
    sizes = []
    with Tensor.train():
        for step in range(6):
            x = Tensor(np.full((8, 20), step, np.float32))
            optimizer.zero_grad()
            out = layers[1](layers[0](x).relu())
            loss = out.sparse_categorical_crossentropy(Tensor([1] * 8))
            loss.backward()
            optimizer.step()
            loss.item()
            sizes.append(used())
    assert len(set(sizes[2:])) == 1


def test_a_value_is_freed_with_its_tensor():
    before = used()
    x = Tensor(np.zeros(100_000, np.float32))
    y = (x + 1).realize()
    assert used() >= before + 800_000
    del x
    y.numpy()
    del y
    assert used() == before


def test_intermediates_are_freed_after_the_run():
    x = Tensor(np.zeros(100_000, np.float32)).realize()
    before = used()
    total = (x + 1).contiguous().exp().contiguous().sum().realize()
    assert used() - before < 4096
    assert total.numpy().shape == ()


def test_writing_in_place_takes_no_new_memory():
    x = Tensor(np.zeros(100_000, np.float32)).realize()
    before = used()
    for _ in range(3):
        x += 1
        x.realize()
    assert used() == before
    assert x.max().item() == 3


def test_a_reader_of_the_old_contents_gets_a_copy_and_only_then():
    x = Tensor(np.arange(5, dtype=np.float32)).realize()
    GlobalCounters.reset()
    x += 1
    x.realize()
    assert GlobalCounters.kernel_count == 1
    old = x * 2
    x += 1
    x.realize()
    np.testing.assert_array_equal(old.numpy(), 2 * np.arange(1, 6))
    np.testing.assert_array_equal(x.numpy(), np.arange(2, 7))


def test_deep_graphs_need_no_recursion():
    x = Tensor([1.0])
    y = x
    for _ in range(3000):
        y = y + 1
    assert y.item() == 3001
    (gradient,) = (y * y).sum().gradient(x)
    assert gradient.item() == 6002


def test_building_a_graph_takes_time_linear_in_its_size():
    def seconds(count: int) -> float:
        y = Tensor([1.0])
        started = time.perf_counter()
        for _ in range(count):
            y = y * 2 + 1
        return (time.perf_counter() - started) / count

    seconds(200)
    assert seconds(8000) < 4 * min(seconds(800) for _ in range(3))


@pytest.mark.parametrize("module", ["numpy", "llvmlite", "tg_runtime_cpu", "tg_renderers"])
def test_importing_loads_nothing_heavy(module):
    code = f"import sys; from tg_frontend import Tensor; sys.exit('{module}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
