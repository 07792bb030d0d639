"""Promise 6: a random tensor's numbers are fixed when it is created, on every device alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Device, Tensor
from tg_frontend.tensor.random import generator_position
from tg_ir.graph import Ops

from .programs import Run

DRAWS: dict[str, Callable[..., Tensor]] = {
    "rand": lambda device: Tensor.rand(3, 4, device=device),
    "rand of float16": lambda device: Tensor.rand(7, dtype="float16", device=device),
    "rand of float64": lambda device: Tensor.rand(5, dtype="float64", device=device),
    "randint": lambda device: Tensor.randint(9, low=-5, high=70, device=device),
    "uniform": lambda device: Tensor.uniform(2, 3, low=-2.0, high=5.0, device=device),
    "randn": lambda device: Tensor.randn(4, 2, device=device),
    "normal": lambda device: Tensor.normal(6, mean=3.0, std=0.5, device=device),
}
SEED = 1234


def threefry(counter: np.ndarray, key: int) -> np.ndarray:
    """Threefry-2x32 with 20 rounds (Salmon and others, 2011), the low word first."""
    mask = np.uint64(0xFFFFFFFF)
    keys = [key & 0xFFFFFFFF, key >> 32]
    keys.append(0x1BD11BDA ^ keys[0] ^ keys[1])
    low = ((counter & mask) + np.uint64(keys[0])) & mask
    high = ((counter >> np.uint64(32)) + np.uint64(keys[1])) & mask
    for number in range(20):
        turn = np.uint64((13, 15, 26, 6, 17, 29, 16, 24)[number % 8])
        low = (low + high) & mask
        high = ((high << turn) | (high >> (np.uint64(32) - turn))) & mask
        high ^= low
        if number % 4 == 3:
            step = number // 4 + 1
            low = (low + np.uint64(keys[step % 3])) & mask
            high = (high + np.uint64(keys[(step + 1) % 3] + step)) & mask
    return (high << np.uint64(32)) | low


@settings(max_examples=15)
@given(seed=st.integers(0, 2**40), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_any_draw_is_the_next_part_of_one_sequence(
    run: Run, seed: int, sizes: list[int]
) -> None:
    def program(x: Tensor) -> list[Tensor]:
        draws = [Tensor.rand(size) for size in sizes]
        return [draw + x for draw in reversed(draws)]

    Tensor.manual_seed(seed)
    run(program, np.zeros(1, np.float32))
    key, following, _ = generator_position()
    actual = run(program, np.zeros(1, np.float32))
    # the last of the calls that `run` makes
    first = generator_position().next_counter - sum(sizes)
    assert first >= following
    bits = threefry(np.arange(first, first + sum(sizes), dtype=np.uint64), key)
    numbers = ((bits >> np.uint64(40)).astype(np.float64) * 2.0**-24).astype(np.float32)
    expected = np.split(numbers, np.cumsum(sizes)[:-1])
    for result, wanted in zip(reversed(actual), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def drawn(
    names: list[str], order: list[int], device: str | None = None, seed: int = SEED
) -> list[np.ndarray]:
    """Draw in the order of `names`, look at the results in the order that `order` says."""
    Tensor.manual_seed(seed)
    tensors = [DRAWS[name](device) for name in names]
    for place in order:
        tensors[place % len(tensors)].realize()
    return [tensor.numpy() for tensor in tensors]


@settings(max_examples=25)
@given(
    names=st.lists(st.sampled_from(sorted(DRAWS)), min_size=1, max_size=4),
    order=st.lists(st.integers(0, 3), max_size=4),
)
def test_order_of_realising_makes_no_difference(names: list[str], order: list[int]) -> None:
    for actual, expected in zip(drawn(names, order), drawn(names, []), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("name", DRAWS)
def test_every_device_draws_the_same(name: str) -> None:
    for seed in range(3):
        (here,) = drawn([name], [], Device.DEFAULT, seed)
        for device in ("CPU", "PYTHON"):
            np.testing.assert_array_equal(drawn([name], [], device, seed)[0], here)


def test_value_stays_however_often_it_is_read() -> None:
    x = Tensor.rand(5)
    first = (x + 0).numpy()
    np.testing.assert_array_equal((x + 0).numpy(), first)
    np.testing.assert_array_equal(x.numpy(), first)
    np.testing.assert_array_equal((x - x).numpy(), np.zeros(5))
    np.testing.assert_array_equal(x.numpy(), first)


def test_expressions_of_two_draws_use_both() -> None:
    Tensor.manual_seed(3)
    a, b = Tensor.rand(50), Tensor.rand(50)
    difference = a - b
    np.testing.assert_array_equal(difference.numpy(), a.numpy() - b.numpy())
    assert np.abs(difference.numpy()).max() > 0.1


def test_draw_that_is_never_looked_at_counts() -> None:
    Tensor.manual_seed(8)
    Tensor.rand(3)
    second = Tensor.rand(2).numpy()
    Tensor.manual_seed(8)
    Tensor.rand(3).numpy()
    np.testing.assert_array_equal(Tensor.rand(2).numpy(), second)


def test_seeding_again_repeats_and_another_seed_does_not() -> None:
    first = drawn(["rand", "randn"], [])
    again = drawn(["rand", "randn"], [])
    other = drawn(["rand", "randn"], [], seed=SEED + 1)
    for one, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert (one != different).any()


def test_seeding_after_a_draw_does_not_change_it() -> None:
    Tensor.manual_seed(1)
    drawn_before = Tensor.rand(4)
    Tensor.manual_seed(2)
    late = drawn_before.numpy()
    Tensor.manual_seed(1)
    np.testing.assert_array_equal(Tensor.rand(4).numpy(), late)


def test_draws_do_not_repeat() -> None:
    Tensor.manual_seed(0)
    numbers = np.concatenate([Tensor.rand(64).numpy() for _ in range(4)])
    assert len(np.unique(numbers)) == 256


def test_threefry_is_the_published_one() -> None:
    # Random123's known answers for Threefry-2x32 with 20 rounds: counter, key, result
    cases = [
        (0, 0, 0x6B200159, 0x99BA4EFE),
        (0xFFFFFFFF_FFFFFFFF, 0xFFFFFFFF_FFFFFFFF, 0x1CB996FC, 0xBB002BE7),
    ]
    for counter, key, low, high in cases:
        x = Tensor(np.array([counter], np.uint64))
        k = Tensor(np.array([key], np.uint64))
        word = Tensor(x.uop.alu(Ops.THREEFRY, k.uop)).item()
        assert (word & 0xFFFFFFFF, word >> 32) == (low, high)


@pytest.mark.parametrize("count", [4000])
def test_uniform_numbers_are_spread_evenly(count: int) -> None:
    Tensor.manual_seed(11)
    x = Tensor.rand(count).numpy()
    assert 0 <= x.min()
    assert x.max() < 1
    counts, _ = np.histogram(x, 16, (0, 1))
    # chi squared of 15 degrees of freedom is below 44 but once in 10,000 seeds
    assert ((counts - count / 16) ** 2 / (count / 16)).sum() < 44
