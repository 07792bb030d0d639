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


# ---- sizes that are equal whatever the variables hold


def test_heads_are_split_and_joined(mode: Callable[[Step], Any]) -> None:
    data = np.random.default_rng(1).standard_normal((1, 6, 8)).astype(np.float32)
    x, n = Tensor(data).realize(), Variable("length", 1, 6)

    def attention(part: Tensor) -> Tensor:
        heads = part.reshape(1, part.shape[1], 2, 4).transpose(1, 2)
        scores = (heads @ heads.transpose(-1, -2)).softmax()
        return (scores @ heads).transpose(1, 2).reshape(1, -1, 8).sum(1)

    step = mode(attention)
    for k in (2, 3, 6, 4):
        heads = data[:, :k].reshape(1, k, 2, 4).swapaxes(1, 2)
        scores = np.exp(heads @ heads.swapaxes(-1, -2))
        scores /= scores.sum(-1, keepdims=True)
        expected = (scores @ heads).swapaxes(1, 2).reshape(1, k, 8).sum(1)
        np.testing.assert_allclose(step(x[:, : n.bind(k)]).numpy(), expected, rtol=2e-5, atol=1e-5)


def test_rest_of_a_reshape_is_the_variable() -> None:
    part = Tensor.zeros(10, 6)[: N.bind(3)]
    assert part.reshape(-1, 2, 3).shape == (N.bind(3), 2, 3)
    assert part.rearrange("n (a b) -> a n b", a=2).shape == (2, N.bind(3), 3)


def test_difference_of_a_variable_and_itself_is_an_int() -> None:
    place = Variable("place", 0, 6).bind(2)
    assert Tensor(DATA)[place : place + 3].shape == (3,)


# ---- reading


@pytest.mark.parametrize("read", [Tensor.tolist, lambda t: t.numpy().tolist()])
def test_values_of_symbolic_shape_are_read(read: Callable[[Tensor], Any]) -> None:
    x = Tensor(DATA).realize()
    for k in (1, 4, 10):
        part = x[: N.bind(k)]
        for value in (part, part.contiguous(), part.contiguous().realize(), part.clone()):
            assert read(value) == DATA[:k].tolist()
        assert read(part * 2) == (DATA[:k] * 2).tolist()
        assert bytes(part.data()) == DATA[:k].tobytes()


def test_inner_symbolic_axes_are_read() -> None:
    data = np.arange(24, dtype=np.float32).reshape(4, 6)
    rows, columns = Variable("rows", 1, 4).bind(3), Variable("columns", 1, 6).bind(2)
    x = Tensor(data).realize()
    assert x[:rows, :columns].numpy().tolist() == data[:3, :2].tolist()
    assert x[:rows, :columns].T.tolist() == data[:3, :2].T.tolist()


def test_results_of_the_jit_are_read() -> None:
    x = Tensor(DATA).realize()
    step = TinyJit(lambda part: (part + 1).realize())
    for k in (2, 3, 4, 9):
        assert step(x[: N.bind(k)]).tolist() == (DATA[:k] + 1).tolist()


def test_gradients_through_symbolic_slices(mode: Callable[[Step], Any]) -> None:
    w = Tensor(DATA, requires_grad=True).realize()
    step = mode(lambda n: w[:n].square().sum().gradient(w)[0].realize())
    for k in (2, 3, 5, 4):
        expected = np.where(np.arange(10) < k, DATA * 2, 0)
        assert step(N.bind(k)).tolist() == expected.tolist()


def test_gradient_of_symbolic_shape_is_read() -> None:
    w = Tensor(DATA, requires_grad=True)
    w[: N.bind(4)].square().sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2, 4, 6, 8, 0, 0, 0, 0, 0, 0]


def test_variable_without_a_value_is_told() -> None:
    with pytest.raises(ValueError, match=r"tolist\(\): size n has no value; bind"):
        Tensor(DATA)[:N].tolist()


# ---- positions


def test_variable_as_an_index(mode: Callable[[Step], Any]) -> None:
    x, place = Tensor(DATA).realize(), Variable("place", 0, 9)
    step = mode(lambda at: x[at] * 2)
    for k in (3, 0, 9, 5):
        assert step(place.bind(k)).item() == DATA[k] * 2


def test_write_at_a_variable(mode: Callable[[Step], Any]) -> None:
    cache, place = Tensor.zeros(6).contiguous().realize(), Variable("place", 0, 5)
    expected = np.zeros(6, np.float32)

    def put(at: Any, value: Tensor) -> Tensor:
        cache[at] = value
        return cache.sum().realize(cache)

    step = mode(put)
    for k in (4, 0, 2, 5, 1):
        expected[k] = k + 1
        assert step(place.bind(k), Tensor(k + 1.0)).item() == expected.sum()
        assert cache.tolist() == expected.tolist()


def test_variable_that_may_leave_the_axis_is_refused() -> None:
    place = Variable("place", 0, 12)
    with pytest.raises(IndexError, match=r"may reach 0\.\.13, outside an axis of 10"):
        Tensor(DATA)[place.bind(3)]
    with pytest.raises(IndexError, match="5:n=3 end before they begin"):
        Tensor(DATA)[5 : N.bind(3)]


def test_negative_positions_count_from_a_symbolic_end() -> None:
    part = Tensor(DATA)[: N.bind(4)]
    assert part[-1].item() == 4
    assert part[:-1].tolist() == [1, 2, 3]
    assert part[-2 :].tolist() == [3, 4]


def test_attention_over_a_growing_cache(mode: Callable[[Step], Any]) -> None:
    inputs = np.random.default_rng(2).standard_normal((5, 1, 4)).astype(np.float32)
    cache, place = Tensor.zeros(6, 4).contiguous().realize(), Variable("place", 0, 5)

    def attend(x: Tensor, at: Any) -> Tensor:
        cache[at : at + 1] = x
        known = cache[: at + 1]
        return x.scaled_dot_product_attention(known, known).realize(cache)

    step = mode(attend)
    for k, x in enumerate(inputs):
        known = inputs[: k + 1, 0]
        weights = np.exp(x @ known.T / 2)
        expected = weights / weights.sum() @ known
        result = step(Tensor(x).realize(), place.bind(k))
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-6)


# ---- joining, ranges, and what has no symbolic sizes


def test_symbolic_sizes_are_joined(mode: Callable[[Step], Any]) -> None:
    x = Tensor(DATA).realize()
    step = mode(lambda part: part.cat(Tensor([7.0, 8.0]), part).realize())
    for k in (2, 3, 4, 1):
        assert step(x[: N.bind(k)]).tolist() == [*DATA[:k], 7, 8, *DATA[:k]]


def test_symbolic_ranges(mode: Callable[[Step], Any]) -> None:
    step = mode(lambda n: (Tensor.arange(n) * 2).sum() + Tensor.arange(n, n + 3).sum())
    for k in (2, 3, 5, 4):
        assert step(N.bind(k)).item() == sum(range(k)) * 2 + sum(range(k, k + 3))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sort(),
        lambda x: x.topk(1),
        lambda x: x.split(2),
        lambda x: x.roll(1),
        lambda x: x.reshape(1, 1, -1, 1).conv2d(Tensor.ones(1, 1, 1, 1)),
        lambda x: x.reshape(1, 1, -1, 1).max_pool2d((1, 1)),
        lambda x: x.reshape(1, 1, -1).interpolate((4,)),
        lambda x: x.logcumsumexp(),
        len,
    ],
    ids=["sort", "topk", "split", "roll", "conv", "pool", "interpolate", "logcumsumexp", "len"],
)
def test_what_is_not_for_symbolic_sizes_says_so(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(ValueError, match=r"not for symbolic sizes, got shape .*n=4"):
        function(Tensor(DATA)[: N.bind(4)])


def test_messages_show_names_and_values() -> None:
    part = Tensor.zeros(10, 6)[: N.bind(4)]
    assert repr(N) == "n"
    assert str((part.shape[0] + 1) * 3) == "(n=4 + 1)*3"
    with pytest.raises(ValueError, match=r"\(n=4, 6\) has \(n=4\)\*6 elements, \(n=4, 4\) has"):
        part.reshape(N.bind(4), 4)
    with pytest.raises(TypeError, match=r"the truth of 3 < \(n=4\) is not known"):
        bool(N.bind(4) > 3)
    with pytest.raises(TypeError, match="n=4 is symbolic"):
        int(N.bind(4))
