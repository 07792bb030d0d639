"""Promise 3: realising or reading anything, anywhere, changes neither values nor gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor

from .programs import Run, as_arrays, assert_same_floats
from .statements import REALIZING, Statement, in_numpy, in_tensors, statements

X = np.float32([0.5, -1.25, 3.7, 0.0, 1e-3, -8.1])
Y = np.float32([2.5, 0.3, -0.7, 11.0, -3e4, 0.9])
Look = Callable[[Tensor], object]

# under the JIT only what gives Python no value
LOOKS_IN_JIT: tuple[Look, ...] = (
    lambda t: None,
    lambda t: t.realize(),
    lambda t: repr(t),
    lambda t: t.contiguous().realize(),
    lambda t: (t * 2).realize(),
    lambda t: t.reshape(-1)[:1].realize(),
)
LOOKS: tuple[Look, ...] = (
    *LOOKS_IN_JIT,
    lambda t: t.numpy(),
    lambda t: t.tolist(),
    lambda t: t.sum().item(),
    lambda t: t.float().data(),
    lambda t: f"{t.sum():.3f}",
)


def elementwise_chain(x: Tensor, y: Tensor, look: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Steps that round, and products before sums that could be contracted."""
    a = look(x * y + 1.1)
    b = look(a * x - y)
    c = look((a < b).where(a / 3.0, b * b))
    d = look(c.exp() + a.sin())
    return [a, b, c, d, look((d * a).half() * 3 + c.half()).float()]


class Looking:
    """Looks at each value in turn, in the way that a list of numbers says."""

    def __init__(self, looks: Sequence[Look], choices: Sequence[int]) -> None:
        """`choices` are counted round, as are `looks`."""
        self._looks = looks
        self._choices = choices
        self._number = 0

    def __call__(self, tensor: Tensor) -> Tensor:
        """Look, and give the tensor back."""
        choice = self._choices[self._number % len(self._choices)]
        self._looks[choice % len(self._looks)](tensor)
        self._number += 1
        return tensor


CHOICES = st.lists(st.integers(0, len(LOOKS) - 1), min_size=1, max_size=5)


@settings(max_examples=20)
@given(choices=CHOICES)
def test_elementwise_values_are_the_same_bit_for_bit(run: Run, choices: list[int]) -> None:
    plain = as_arrays(elementwise_chain(Tensor(X), Tensor(Y), lambda t: t))
    actual = run(
        lambda x, y: elementwise_chain(x, y, Looking(LOOKS_IN_JIT, choices)), X, Y
    )
    for result, expected in zip(actual, plain, strict=True):
        assert_same_floats(result, expected)


@settings(max_examples=20)
@given(choices=CHOICES)
def test_values_leave_for_python_without_a_trace(choices: list[int]) -> None:
    plain = as_arrays(elementwise_chain(Tensor(X), Tensor(Y), lambda t: t))
    looked = as_arrays(elementwise_chain(Tensor(X), Tensor(Y), Looking(LOOKS, choices)))
    for result, expected in zip(looked, plain, strict=True):
        assert_same_floats(result, expected)


def reductions(x: Tensor, y: Tensor, look: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Sums of sums and products, whose order is not specified."""
    table = look(x.reshape(6, 1) * y.reshape(1, 6))
    rows = look(table.sum(1))
    spread = look(table - table.max(1, keepdim=True))
    return [rows, look(spread.exp().sum(0)), look(table @ table.T), look(rows.mean()), spread]


@settings(max_examples=15)
@given(choices=CHOICES)
def test_reductions_stay_within_their_bound(run: Run, choices: list[int]) -> None:
    plain = as_arrays(reductions(Tensor(X), Tensor(Y), lambda t: t))
    actual = run(lambda x, y: reductions(x, y, Looking(LOOKS_IN_JIT, choices)), X, Y)
    for result, expected in zip(actual, plain, strict=True):
        # no term is larger than the largest product of six others
        scale = np.abs(expected).max() + np.float32(1e-30)
        np.testing.assert_allclose(result / scale, expected / scale, atol=1e-5, rtol=1e-5)


@settings(max_examples=25)
@given(program=statements(), choices=st.lists(st.booleans(), min_size=9, max_size=9))
def test_realising_between_any_statements_changes_nothing(
    run: Run, program: list[Statement], choices: list[bool]
) -> None:
    plain = [s for s in program if s.kind not in REALIZING]
    more: list[Statement] = []
    for statement, chosen in zip(program, choices, strict=False):
        more.append(statement)
        if chosen:
            more.append(Statement("realize", statement.source, 0, 0, 0))
    x, y = np.arange(6, dtype=np.float32), np.arange(6, dtype=np.float32) * 10
    expected = in_numpy(plain, x, y)
    actual = run(lambda x, y: in_tensors(more, x, y), x, y)
    for result, wanted in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


# ---- gradients


def gradients(x: Tensor, y: Tensor, look: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Gradients through elementwise steps, a view, a write, a reused value and a detached one."""
    x.requires_grad_()
    y.requires_grad_()
    a = look(x * y + 1.0)
    b = look(a[1:] * x[:-1])
    c = look(a * 2.0)
    c[1:3] = b[:2] * 3.0
    d = look(c * a.detach() + look(x.relu()))
    return look((d * d).sum()).gradient(x, y)


@settings(max_examples=20)
@given(choices=CHOICES)
def test_gradients_are_the_same(run: Run, choices: list[int]) -> None:
    plain = as_arrays(gradients(Tensor(X), Tensor(Y), lambda t: t))
    actual = run(lambda x, y: gradients(x, y, Looking(LOOKS_IN_JIT, choices)), X, Y)
    for result, expected in zip(actual, plain, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@settings(max_examples=20)
@given(choices=CHOICES)
def test_gradients_are_the_same_after_values_left_for_python(choices: list[int]) -> None:
    plain = as_arrays(gradients(Tensor(X), Tensor(Y), lambda t: t))
    looked = as_arrays(gradients(Tensor(X), Tensor(Y), Looking(LOOKS, choices)))
    for result, expected in zip(looked, plain, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("realized", [False, True])
def test_backward_reaches_through_realised_values(realized: bool) -> None:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    z = y + 1
    if realized:
        assert y.tolist() == [1, 4, 9]
        z.realize()
    (z * y).sum().backward()
    assert x.grad is not None
    # d/dx (x^4 + x^2)
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 36.0, 114.0])


@pytest.mark.parametrize("realized", [False, True])
def test_parameter_that_is_realised_keeps_its_gradient(realized: bool) -> None:
    weight = Tensor.full((3,), 2.0, requires_grad=True)
    if realized:
        weight.realize()
    loss = (weight * Tensor([1.0, 2.0, 3.0])).sum()
    if realized:
        assert loss.item() == 12
    loss.backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1, 2, 3]


def test_a_realised_view_of_a_version_is_still_written_to_in_its_base(run: Run) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        view = x[1:]
        view[1:] = y[:4]
        reader = x * 3
        x[1:] = x[:5]
        view.realize()
        return x, view, reader

    once = np.concatenate([X[:2], Y[:4]])
    twice = np.concatenate([X[:1], once[:5]])
    for actual, expected in zip(run(program, X, Y), (twice, once[1:], once * 3), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_versions_and_views_realised_together_can_be_read(run: Run) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        view = x[1:]
        view += x[:5]
        backwards = view[::-1]
        backwards += view
        x.realize(view, backwards)
        return x * 1, view * 1, backwards * 1

    once = X[1:] + X[:5]
    twice = once[::-1] + once
    expected = (np.concatenate([X[:1], twice[::-1]]), once, twice)
    for actual, wanted in zip(run(program, X), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


def test_index_that_is_written_after_it_chose_what_was_realised(run: Run) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        index = (y * 0).int()
        index = index + 2
        part = x[index]
        x[index] = 7.0
        index += 1
        part.realize()
        return x, part, index

    expected = X.copy()
    expected[2] = 7
    written, part, index = run(program, X, Y)
    np.testing.assert_array_equal(written, expected)
    np.testing.assert_array_equal(part, np.full(6, X[2]))
    np.testing.assert_array_equal(index, np.full(6, 3))


def test_a_view_stays_a_write_target_when_its_base_is_realised(run: Run) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        base = x + 1
        view = base[1:3]
        base.realize()
        view.assign(view * 0)
        return base, view

    base, view = run(program, X)
    np.testing.assert_array_equal(view, [0, 0])
    np.testing.assert_array_equal(base, [X[0] + 1, 0, 0, *(X[3:] + 1)])
