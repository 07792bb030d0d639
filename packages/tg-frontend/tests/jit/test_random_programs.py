"""Random programs over state, views, aliases and held results do the same eagerly and replayed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_frontend import Context, Tensor, TinyJit

CALLS = 6
Statement = Callable[["Program", int, int], None]


class Program:
    """State and the value that statements work on, drawn from a seed.

    Attributes:
        states: tensors from outside of the captured function.
        x: its argument.
        value: what the statements have made so far.
        results: what it returns.
        held: tensors that the caller keeps from call to call.
    """

    def __init__(self, seed: int) -> None:
        Tensor.manual_seed(seed)
        numbers = np.random.default_rng(seed)
        arrays = [numbers.integers(0, 5, (2, 3)).astype(np.float32) for _ in range(3)]
        self.states = [Tensor(array).realize() for array in arrays]
        self.held: list[Tensor] = []
        draw = random.Random(seed)
        self.inside = draw_statements(draw, INSIDE, draw.randrange(1, 7))
        self.between = [draw_statements(draw, BETWEEN, draw.randrange(3)) for _ in range(CALLS)]
        self.kind = seed % 4
        self.step = TinyJit(self.body)

    def body(self, x: Tensor) -> list[Tensor]:
        self.x = self.value = x
        self.results: list[Tensor] = []
        for statement, i, j in self.inside:
            statement(self, i, j)
        return [*self.results, self.value + 0]

    def argument(self, number: int) -> Tensor:
        """An argument of one of several kinds: new, a view, or lazy over state."""
        tensor = Tensor(np.full((2, 3), number % 4, np.float32))
        if self.kind == 1:
            return Tensor(np.full((3, 2), number, np.float32)).transpose(0, 1)
        return tensor + self.states[0] * 0.5 if self.kind == 2 else tensor

    def run(self) -> list[np.ndarray]:
        """Every value that could be seen, in order."""
        seen = []
        for number in range(CALLS):
            x = self.argument(number)
            results = self.step(x)
            self.held += results
            for statement, i, j in self.between[number]:
                statement(self, i, j)
            seen += [x.numpy(), *(result.numpy() for result in results)]
        return seen + [tensor.numpy() for tensor in (*self.states, *self.held)]


def draw_statements(
    draw: random.Random, choices: list[Statement], count: int
) -> list[tuple[Statement, int, int]]:
    return [(draw.choice(choices), draw.randrange(3), draw.randrange(3)) for _ in range(count)]


# ---- inside of the captured function


def assign_sum(p: Program, i: int, j: int) -> None:
    p.states[i].assign(p.states[j] + p.value)


def add_in_place(p: Program, i: int, j: int) -> None:
    p.states[i] += p.value


def write_row(p: Program, i: int, j: int) -> None:
    p.states[i][0] = p.states[j][1] + p.value[0]


def write_column(p: Program, i: int, j: int) -> None:
    p.states[i][:, 1] = p.value[:, 2]


def write_by_mask(p: Program, i: int, j: int) -> None:
    p.states[i][p.value > 2] = -1


def swap(p: Program, i: int, j: int) -> None:
    old = p.states[i] * 1
    p.states[i].assign(p.states[j] * 1)
    p.states[j].assign(old)


def write_to_alias(p: Program, i: int, j: int) -> None:
    alias = p.states[i].detach()
    alias += 1
    p.results.append(alias)


def write_to_argument(p: Program, i: int, j: int) -> None:
    p.x += 1


def use(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Statement:
    def statement(p: Program, i: int, j: int) -> None:
        p.value = function(p.value, p.states[i], p.states[j])

    return statement


def return_view_of_state(p: Program, i: int, j: int) -> None:
    p.results += [p.states[i].transpose(0, 1), p.value]


INSIDE: list[Statement] = [
    *(assign_sum, add_in_place, write_row, write_column, write_by_mask, swap),
    *(write_to_alias, write_to_argument, return_view_of_state),
    use(lambda v, a, b: v + b[::-1]),
    use(lambda v, a, b: v.flip(1)),
    use(lambda v, a, b: v + Tensor.rand(2, 3)),
    use(lambda v, a, b: v.realize()),
    use(lambda v, a, b: v[Tensor([1, 0])] + a[Tensor([0, 0])]),
    use(lambda v, a, b: v * 0.5 + a.sum(0)),
    use(lambda v, a, b: v.cat(a, dim=0)[1:3]),
    use(lambda v, a, b: (v > 1).where(v, b)),
]

# ---- between the calls


def assign_half(p: Program, i: int, j: int) -> None:
    p.states[i].assign(p.states[j] * 0.5)


def write_other_row(p: Program, i: int, j: int) -> None:
    p.states[i][1] = p.states[j][0]


def realize(p: Program, i: int, j: int) -> None:
    p.states[i].realize()


def replace(p: Program, i: int, j: int) -> None:
    p.states[i].replace(p.states[j] + 1)


def hold(function: Callable[[Tensor, Tensor], Tensor]) -> Statement:
    return lambda p, i, j: p.held.append(function(p.states[i], p.states[j]))


def let_go(p: Program, i: int, j: int) -> None:
    del p.held[: len(p.held) // 2]


BETWEEN: list[Statement] = [
    *(assign_half, write_other_row, realize, replace, let_go),
    hold(lambda a, b: a[0]),
    hold(lambda a, b: a + b),
    hold(lambda a, b: a.detach()),
]


@pytest.mark.parametrize("seed", range(32))
def test_random_program_does_the_same(seed: int) -> None:
    with Context(JIT=0):
        eager: Any = Program(seed).run()
    replayed = Program(seed).run()
    assert len(eager) == len(replayed)
    for expected, value in zip(eager, replayed, strict=True):
        np.testing.assert_array_equal(value, expected)
