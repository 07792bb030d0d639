"""What a gradient is, where there is none, and that realising changes neither (promises 3, 4)."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor
from tg_frontend.errors import GradientError, StaleVersionError
from tg_ir.dtype import dtypes
from tg_ir.errors import DTypeError


def test_backward_fills_and_adds_up_grad():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = Tensor([3.0, 4.0])
    (x * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 4])
    (x * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5, 8])
    assert y.grad is None


def test_backward_on_many_elements_says_what_to_do():
    x = Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match=r"shape \(2,\); expected one element: reduce it"):
        (x * 2).backward()
    (x * 2).backward(Tensor([1.0, 10.0]))
    np.testing.assert_array_equal(x.grad.numpy(), [2, 20])


def test_backward_without_any_target_is_refused():
    with pytest.raises(GradientError, match="depends on none with requires_grad=True"):
        Tensor([1.0]).sum().backward()


def test_target_that_is_not_reached_raises_unless_asked_otherwise():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0])
    loss = x.sum()
    with pytest.raises(GradientError, match=r"target 0 of shape \(1,\) is not reached"):
        loss.gradient(y)
    (zero,) = loss.gradient(y, materialize_grads=True)
    np.testing.assert_array_equal(zero.numpy(), [0])


def test_detach_cuts_the_path():
    x = Tensor([2.0, 3.0])
    (gradient,) = (x * x.detach()).sum().gradient(x)
    np.testing.assert_array_equal(gradient.numpy(), [2, 3])
    with pytest.raises(GradientError, match="not reached"):
        x.detach().sum().gradient(x)


def test_gradient_by_an_int_tensor_is_refused():
    with pytest.raises(DTypeError, match="only float tensors have gradients, a target is int32"):
        Tensor([1.0]).sum().gradient(Tensor([1]))
    with pytest.raises(DTypeError, match="only float tensors have gradients"):
        Tensor([1], requires_grad=True)


def test_constants_of_one_value_are_different_targets():
    x, w = Tensor.ones(3), Tensor.ones(3)
    dx, dw = (x * w * 2).sum().gradient(x, w)
    np.testing.assert_array_equal(dx.numpy(), [2, 2, 2])
    np.testing.assert_array_equal(dw.numpy(), [2, 2, 2])
    s = Tensor(2.0)
    (ds,) = (s * 2.0).gradient(s)
    assert ds.item() == 2.0


def test_intermediate_values_can_be_targets():
    x = Tensor([1.0, 2.0])
    y = x * 3
    dx, dy = (y * y).sum().gradient(x, y)
    np.testing.assert_array_equal(dy.numpy(), [6, 12])
    np.testing.assert_array_equal(dx.numpy(), [18, 36])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x > 0).where(x.log(), 0.0),
        lambda x: (x > 0).where(x.sqrt(), 0.0),
        lambda x: (x > 0).where(1 / x, x),
        lambda x: (x < 5).where(x, (x * 1e4).exp()),
        lambda x: (x != 0).where(x / x, 1.0) + x * 0.0,
        lambda x: (x > 0).where(x.log().reshape(5, 1).T.reshape(5), 0.0),
        lambda x: (x > 0).where((x > -9).where(x.log(), 0.0), 0.0),
        lambda x: (x > 0).where((x < 3).where(x.sqrt(), x.log()), 0.0),
        lambda x: (x > 0).where(x.log().maximum(0.5), 0.0),
        lambda x: (x > 0).where(x.reshape(5, 1).log().sum(1), 0.0),
        lambda x: (x > 0).where(x.reshape(5, 1).sqrt().max(1), 0.0),
        lambda x: (x > 0).where(x.abs() ** x, 0.0),
    ],
)
def test_nothing_leaks_out_of_the_branch_not_taken(function):
    x = Tensor([-1.0, 0.0, 1.0, 2.0, 4.0])
    (gradient,) = function(x).sum().gradient(x)
    assert np.isfinite(gradient.numpy()).all()


def test_gradient_of_functions_is_finite_far_out_and_right_at_zero():
    x = Tensor([-1e4, -100.0, 0.0, 100.0, 1e4])
    for function, at_zero in (
        (lambda t: t.sigmoid(), 0.25),
        (lambda t: t.tanh(), 1.0),
        (lambda t: t.softplus(), 0.5),
        (lambda t: t.silu(), 0.5),
        (lambda t: t.relu(), 0.0),
        (lambda t: t.abs(), 0.0),
        (lambda t: t.elu(), 1.0),
    ):
        (gradient,) = function(x).sum().gradient(x)
        found = gradient.numpy()
        assert np.isfinite(found).all()
        assert found[2] == pytest.approx(at_zero)


def test_equal_extremes_share_the_gradient():
    x = Tensor([[2.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
    (gradient,) = x.max(1).sum().gradient(x)
    np.testing.assert_allclose(gradient.numpy(), [[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], rtol=1e-6)
    a, b = Tensor([1.0]), Tensor([1.0])
    da, db = a.maximum(b).sum().gradient(a, b)
    assert (da.item(), db.item()) == (0.5, 0.5)


def test_flat_functions_have_gradient_zero():
    x = Tensor([0.5, 1.5])
    for name in ("floor", "ceil", "round", "trunc", "sign"):
        (gradient,) = getattr(x, name)().sum().gradient(x)
        np.testing.assert_array_equal(gradient.numpy(), [0, 0])


def test_second_derivative():
    x = Tensor([2.0])
    (first,) = (x**3).sum().gradient(x)
    (second,) = first.sum().gradient(x)
    assert second.item() == 12.0


@pytest.mark.parametrize("realized", ["nothing", "inputs", "middle", "loss", "all"])
def test_realising_changes_no_gradient(realized):
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((4, 3)).astype(np.float32))
    w = Tensor(rng.standard_normal((3, 2)).astype(np.float32))
    if realized in ("inputs", "all"):
        Tensor.realize(x, w)
    hidden = (x @ w).tanh()
    if realized in ("middle", "all"):
        hidden.realize()
    out = hidden * 2 + hidden.exp()
    loss = (out * out).mean()
    if realized in ("loss", "all"):
        loss.realize()
    dx, dw, dh = loss.gradient(x, w, hidden)
    a, b = x.numpy().astype(np.float64), w.numpy().astype(np.float64)
    h = np.tanh(a @ b)
    o = h * 2 + np.exp(h)
    expected_h = 2 * o / o.size * (2 + np.exp(h))
    inner = expected_h * (1 - h * h)
    np.testing.assert_allclose(dh.numpy(), expected_h, rtol=1e-4)
    np.testing.assert_allclose(dx.numpy(), inner @ b.T, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(dw.numpy(), a.T @ inner, rtol=1e-4, atol=1e-6)


def test_realising_a_random_tensor_keeps_it_a_target():
    x = Tensor.randn(3)
    loss = (x * x).sum().realize()
    (gradient,) = loss.gradient(x)
    np.testing.assert_allclose(gradient.numpy(), 2 * x.numpy(), rtol=1e-6)


def test_gradient_through_a_write_and_by_the_old_value():
    x = Tensor([1.0, 2.0, 3.0])
    y = Tensor([5.0])
    z = x * 2
    z[1] = y[0] * y[0]
    dx, dy = (z * z).sum().gradient(x, y)
    np.testing.assert_array_equal(dx.numpy(), [8, 0, 24])
    np.testing.assert_array_equal(dy.numpy(), [2 * 25 * 10])


def test_gradient_that_needs_overwritten_contents_is_refused():
    x = Tensor([1.0, 2.0]).realize()
    y = (x * x).realize()
    x.assign(x + 1).realize()
    old = Tensor([1.0, 2.0])
    with pytest.raises(GradientError, match="not reached"):
        y.sum().gradient(old)
    del old


def test_reading_contents_that_are_gone_is_an_error():
    x = Tensor([1.0, 2.0]).realize()
    stale = x.uop
    x.assign(x + 1).realize()
    with pytest.raises(StaleVersionError, match=r"is at version 1, version 0 was overwritten"):
        Tensor._from_uop(stale + 1.0).numpy()


def test_histories_do_not_grow_in_a_loop_that_feeds_on_itself():
    running = Tensor([0.0, 0.0]).realize()
    for step in range(5):
        batch = Tensor([float(step), 1.0])
        running.assign(running * 0.9 + batch * 0.1).realize()
        nodes = len(running.uop.toposort())
        del batch
    assert nodes < 25


def test_gradients_have_the_dtype_of_their_target():
    x = Tensor([1.0, 2.0], dtype=dtypes.half)
    (gradient,) = (x.float() * 3).sum().gradient(x)
    assert gradient.dtype is dtypes.half


@pytest.mark.parametrize("kind", ["ones", "clone", "random", "lazy"])
def test_what_a_realised_loss_was_made_of_stays_a_target(kind):
    w = Tensor([1.0, 2.0, 3.0])
    x = {
        "ones": lambda: Tensor.ones(3),
        "clone": lambda: w.clone(),
        "random": lambda: Tensor.rand(3),
        "lazy": lambda: w.detach() * 2,
    }[kind]()
    loss = (x * x * w * Tensor.full((3,), 2.0)).sum().realize()
    x.realize()
    dx, dw = loss.gradient(x, w)
    a = x.numpy()
    np.testing.assert_allclose(dx.numpy(), 4 * a * [1, 2, 3], rtol=1e-6)
    through_clone = 4 * a * [1, 2, 3] if kind == "clone" else 0
    np.testing.assert_allclose(dw.numpy(), 2 * a * a + through_clone, rtol=1e-6)
