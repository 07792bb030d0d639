"""Where we differ from torch on purpose: what we promise, beside what torch does.

If torch's side of a test fails, torch has moved and the page on differences has to follow.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tg_frontend import Tensor
from tg_frontend.errors import GradientError
from tg_ir.errors import LiteralError

from .compare import assert_same


def test_a_view_keeps_what_it_read_when_its_base_is_written() -> None:
    ours, theirs = Tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    mine, reference = ours[0], theirs[0]
    ours[0] = 5
    theirs[0] = 5
    assert mine.tolist() == [1.0, 2.0]
    assert reference.tolist() == [5.0, 5.0]
    assert ours.tolist() == theirs.tolist()


def test_a_write_to_a_view_reaches_its_base_but_no_other_view() -> None:
    ours, theirs = Tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0])
    (mine, other), (reference, alias) = (ours[:2], ours[:2]), (theirs[:2], theirs[:2])
    mine[0] = 9
    reference[0] = 9
    assert ours.tolist() == theirs.tolist() == [9.0, 2.0, 3.0]
    assert other.tolist() == [1.0, 2.0]
    assert alias.tolist() == [9.0, 2.0]


def test_an_overlapping_copy_reads_before_it_writes() -> None:
    ours = Tensor([1.0, 2.0, 3.0, 4.0])
    ours[1:] = ours[:-1]
    assert ours.tolist() == [1.0, 1.0, 2.0, 3.0]  # torch refuses or leaves it undefined


def test_a_swap_through_temporaries_needs_no_copy() -> None:
    a, b = Tensor([1.0]).realize(), Tensor([2.0]).realize()
    old = a[:]
    a.assign(b)
    b.assign(old)
    assert (a.item(), b.item()) == (2.0, 1.0)
    x, y = torch.tensor([1.0]), torch.tensor([2.0])
    alias = x[:]
    x.copy_(y)
    y.copy_(alias)
    assert (x.item(), y.item()) == (2.0, 2.0)


def test_no_nan_leaks_from_the_branch_that_where_did_not_take() -> None:
    ours = Tensor([0.0, 4.0], requires_grad=True)
    theirs = torch.tensor([0.0, 4.0], requires_grad=True)
    (ours > 0).where(ours.sqrt(), 0.0).sum().backward()
    torch.where(theirs > 0, theirs.sqrt(), torch.tensor(0.0)).sum().backward()
    assert ours.grad is not None and ours.grad.tolist() == [0.0, 0.25]
    assert theirs.grad is not None and np.isnan(theirs.grad[0].item())


def test_equal_elements_share_the_gradient_of_a_maximum_along_an_axis() -> None:
    ours = Tensor([[2.0, 2.0, 1.0]], requires_grad=True)
    theirs = torch.tensor([[2.0, 2.0, 1.0]], requires_grad=True)
    ours.max(1).sum().backward()
    theirs.max(1).values.sum().backward()
    assert ours.grad is not None and ours.grad.tolist() == [[0.5, 0.5, 0.0]]
    assert theirs.grad is not None and theirs.grad.tolist() == [[1.0, 0.0, 0.0]]


def test_equal_elements_of_a_window_share_the_gradient_of_a_pool() -> None:
    ours = Tensor([[[[1.0, 1.0], [0.0, 1.0]]]], requires_grad=True)
    ours.max_pool2d(2).sum().backward()
    assert ours.grad is not None
    np.testing.assert_allclose(ours.grad.numpy(), [[[[1 / 3, 1 / 3], [0, 1 / 3]]]], rtol=1e-6)


def test_a_value_at_the_bound_of_a_clamp_shares_the_gradient_with_it() -> None:
    ours = Tensor([1.0, 3.0, 0.5], requires_grad=True)
    theirs = torch.tensor([1.0, 3.0, 0.5], requires_grad=True)
    ours.clamp(max=1.0).sum().backward()
    theirs.clamp(max=1.0).sum().backward()
    assert ours.grad is not None and ours.grad.tolist() == [0.5, 0.0, 1.0]
    assert theirs.grad is not None and theirs.grad.tolist() == [1.0, 0.0, 1.0]


def test_a_target_that_is_not_reached_raises_in_both_unless_asked_otherwise() -> None:
    x, y = Tensor([1.0]), Tensor([2.0])
    with pytest.raises(GradientError, match="not reached"):
        (x * 2).sum().gradient(x, y)
    zeros = (x * 2).sum().gradient(x, y, materialize_grads=True)[1]
    assert zeros.tolist() == [0.0]
    a, b = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad((a * 2).sum(), [a, b])
    assert torch.autograd.grad((a * 2).sum(), [a, b], materialize_grads=True)[1].tolist() == [0.0]


def test_a_path_behind_detach_gives_no_gradient_in_either() -> None:
    with pytest.raises(GradientError):
        x = Tensor([3.0])
        x.detach().sum().gradient(x)
    y = torch.tensor([3.0], requires_grad=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(y.detach().sum(), y)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_integer_division_by_zero_gives_zero_where_torch_raises(dtype: str) -> None:
    x = np.array([7, 0, 100], dtype)
    assert (Tensor(x) // Tensor(x * 0)).tolist() == [0, 0, 0]
    assert (Tensor(x) % Tensor(x * 0)).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.from_numpy(x) // torch.from_numpy(x * 0)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_least_integer_over_minus_one_wraps(dtype: str) -> None:
    least = np.iinfo(dtype).min
    assert (Tensor(np.array([least], dtype)) // Tensor(np.array([-1], dtype))).tolist() == [least]


def test_casts_from_float_saturate_or_wrap_as_documented() -> None:
    x = Tensor([np.inf, -np.inf, np.nan, 3e9, -3e9, 300.7, -1.5])
    limits = np.iinfo(np.int32)
    assert x.cast("int32").tolist() == [
        limits.max, limits.min, 0, limits.max, limits.min, 300, -1,
    ]
    assert Tensor([300.7, -1.5, 65535.0]).cast("uint8").tolist() == [44, 255, 255]
    assert Tensor([1e20]).cast("int64").tolist() == [np.iinfo(np.int64).max]


def test_gather_outside_reads_zero_and_scatter_drops_where_torch_raises() -> None:
    x, index = Tensor([1.0, 2.0, 3.0]), Tensor([0, 7, -1])
    assert x.gather(0, index).tolist() == [1.0, 0.0, 3.0]
    assert x[index].tolist() == [1.0, 0.0, 3.0]
    assert x.scatter(0, Tensor([7]), 9.0).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises((RuntimeError, IndexError)):
        torch.tensor([1.0, 2.0, 3.0]).gather(0, torch.tensor([0, 7, 1]))


def test_a_python_index_outside_raises_in_both() -> None:
    for tensor in (Tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])):
        with pytest.raises(IndexError):
            tensor[2]


def test_a_literal_that_does_not_fit_is_refused_where_torch_wraps() -> None:
    x = np.array([1], np.uint8)
    with pytest.raises(LiteralError):
        Tensor(x) + 300
    assert (torch.from_numpy(x) + 300).tolist() == [45]


def test_narrow_sums_are_int32_and_positions_int32() -> None:
    x = np.array([1, 2], np.int8)
    assert Tensor(x).sum().dtype.name == "int32"
    assert torch.from_numpy(x).sum().dtype is torch.int64
    assert Tensor(x).argmax().dtype.name == "int32"


def test_the_sign_of_nan_is_nan_as_in_numpy() -> None:
    assert np.isnan(Tensor(np.float32([np.nan])).sign().item())
    assert torch.tensor([float("nan")]).sign().item() == 0


def test_an_extreme_over_an_empty_axis_raises_in_both() -> None:
    for name in ("max", "min"):
        with pytest.raises(ValueError):
            getattr(Tensor(np.zeros((0, 3), np.float32)), name)(0)
        with pytest.raises((RuntimeError, IndexError)):
            getattr(torch.zeros(0, 3), name)(0)


def test_realising_in_between_changes_neither_values_nor_gradients() -> None:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)

    def function(t: Tensor, realize: bool) -> Tensor:
        y = t.exp().sum(1, keepdim=True)
        if realize:
            y.realize()
        z = (t / y).cumsum(1)
        return (z.realize() if realize else z) * t

    reference = torch.from_numpy(x).requires_grad_()
    y = reference.exp().sum(1, keepdim=True)
    expected = (reference / y).cumsum(1) * reference
    wanted = torch.autograd.grad(expected.sum(), reference)[0]
    for realize in (False, True):
        tensor = Tensor(x)
        actual = function(tensor, realize)
        assert_same(actual, expected)
        assert_same(actual.sum().gradient(tensor)[0], wanted, "gradient", (1e-4, 1e-5))


def test_a_shift_by_the_width_or_more_gives_what_is_left() -> None:
    x = Tensor(np.array([5, -5], np.int32))
    assert (x << 32).tolist() == [0, 0]
    assert (x >> 40).tolist() == [0, -1]
