"""Random tensors: reproducible, independent of when and where they are computed (SEMANTICS 6)."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.compile.driver import _kernels
from tg_frontend import GlobalCounters, Tensor, dtypes


def test_a_seed_gives_one_sequence():
    Tensor.manual_seed(7)
    first = [Tensor.rand(5).tolist(), Tensor.randn(4).tolist(), Tensor.randint(6).tolist()]
    Tensor.manual_seed(7)
    again = [Tensor.rand(5).tolist(), Tensor.randn(4).tolist(), Tensor.randint(6).tolist()]
    assert first == again
    Tensor.manual_seed(8)
    assert Tensor.rand(5).tolist() != first[0]


def test_values_are_bound_when_the_tensor_is_created():
    Tensor.manual_seed(1)
    expected = [Tensor.rand(3).tolist() for _ in range(3)]
    Tensor.manual_seed(1)
    a, b, c = (Tensor.rand(3) for _ in range(3))
    Tensor.manual_seed(99)
    assert c.tolist() == expected[2]
    assert (a + b * 0).tolist() == expected[0]
    assert b.tolist() == expected[1]


def test_every_device_draws_the_same():
    Tensor.manual_seed(3)
    here = Tensor.rand(6, device="CPU").numpy()
    Tensor.manual_seed(3)
    there = Tensor.rand(6, device="PYTHON").numpy()
    np.testing.assert_array_equal(here, there)


def test_draws_in_one_expression_differ():
    a, b = Tensor.rand(100), Tensor.rand(100)
    assert ((a - b).abs() > 0).all().item()


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_uniform_floats_stay_below_one(dtype):
    drawn = Tensor.rand(5000, dtype=dtype).float().numpy()
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)


def test_distributions_have_their_moments():
    Tensor.manual_seed(11)
    normal = Tensor.normal(20000, mean=3.0, std=2.0).numpy()
    assert normal.mean() == pytest.approx(3, abs=0.06)
    assert normal.std() == pytest.approx(2, abs=0.06)
    uniform = Tensor.uniform(20000, low=-2.0, high=4.0).numpy()
    assert (uniform.min() >= -2, uniform.max() < 4) == (True, True)
    assert uniform.mean() == pytest.approx(1, abs=0.06)
    ints = Tensor.randint(20000, low=-3, high=4).numpy()
    assert set(ints.tolist()) == set(range(-3, 4))
    counts = np.bincount(ints + 3)
    assert counts.min() > 20000 / 7 * 0.9
    bound = np.sqrt(3.0) * np.sqrt(2.0 / 1.0001) / np.sqrt(50)
    weights = Tensor.kaiming_uniform(100, 50).numpy()
    assert np.abs(weights).max() <= bound


def test_a_new_seed_compiles_no_new_kernel():
    Tensor.manual_seed(1)
    Tensor.rand(77).realize()
    known = len(_kernels)
    Tensor.manual_seed(2)
    Tensor.rand(77).realize()
    Tensor.rand(77).realize()
    assert len(_kernels) == known


def test_random_tensors_launch_what_they_need():
    GlobalCounters.reset()
    Tensor.rand(10).realize()
    assert GlobalCounters.kernel_count == 1


def test_a_permutation_has_every_number_once():
    order = Tensor.randperm(100).numpy()
    assert sorted(order.tolist()) == list(range(100))
    assert order.tolist() != list(range(100))
