"""Sizes and positions that are bound variables: what they give, eagerly and under the JIT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_frontend import Tensor, TinyJit, Variable

DATA = np.arange(10, dtype=np.float32) + 1
N = Variable("n", 1, 10)

Step = Callable[..., Tensor]


def _plain(step: Step) -> Step:
    return step


@pytest.fixture(params=[_plain, TinyJit], ids=["eager", "jit"])
def mode(request: pytest.FixtureRequest) -> Callable[[Step], Any]:
    """The function itself, or its JIT."""
    chosen: Callable[[Step], Any] = request.param
    return chosen


# ---- one variable with several values


def test_each_value_of_a_variable_counts(mode: Callable[[Step], Any]) -> None:
    x = Tensor(DATA).realize()
    step = mode(lambda: x[: N.bind(2)].sum() + x[: N.bind(3)].sum() * 100)
    for _ in range(4):
        assert step().item() == DATA[:2].sum() + 100 * DATA[:3].sum()


def test_each_value_of_a_variable_counts_in_a_stack(mode: Callable[[Step], Any]) -> None:
    x = Tensor(DATA).realize()
    step = mode(lambda: Tensor.stack(*[x[: N.bind(k)].sum() for k in (2, 3, 4, 2)]))
    for _ in range(4):
        assert step().tolist() == [DATA[:k].sum() for k in (2, 3, 4, 2)]


def test_writes_at_several_values_of_a_variable_in_one_graph() -> None:
    place = Variable("place", 0, 7)
    cache = Tensor.zeros(8).contiguous().realize()
    for k in range(4):
        cache[place.bind(k) : place.bind(k) + 1] = Tensor([k + 1.0])
    assert cache.tolist() == [1, 2, 3, 4, 0, 0, 0, 0]


def test_argument_and_other_value_of_one_variable(mode: Callable[[Step], Any]) -> None:
    x = Tensor(DATA).realize()
    step = mode(lambda part: x[: N.bind(2)].sum() * 100 + part.sum() * part.shape[0])
    for k in (3, 4, 5, 2, 7):
        expected = DATA[:2].sum() * 100 + DATA[:k].sum() * k
        assert step(x[: N.bind(k)]).item() == expected


def test_result_keeps_a_value_that_is_no_argument(mode: Callable[[Step], Any]) -> None:
    x = Tensor(DATA).realize()
    step = mode(lambda y: (x[: N.bind(3)] * y).realize())
    for k in range(5):
        result = step(Tensor([float(k)]))
        assert result.shape == (N.bind(3),)
        assert (result * 2).sum().item() == DATA[:3].sum() * k * 2


def test_result_follows_the_value_of_a_variable_argument(mode: Callable[[Step], Any]) -> None:
    x = Tensor(DATA).realize()
    step = mode(lambda n: (x[:n] * 2).realize())
    for k in (2, 3, 5, 4):
        result = step(N.bind(k))
        assert result.shape == (N.bind(k),)
        assert result.sum().item() == DATA[:k].sum() * 2
