"""Optimisers against their formulas in numpy, and against torch where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from tg_frontend import Tensor, TinyJit, dtypes, nn
from tg_frontend.nn.optim import SGD, Adam, AdamW, Optimizer, OptimizerError, OptimizerGroup

STEPS = 4
RNG = np.random.default_rng(7)
START = [RNG.normal(size=(3, 2)), RNG.normal(size=(4,))]
TARGETS = [RNG.normal(size=(3, 2)), RNG.normal(size=(4,))]

Rule = Callable[[np.ndarray, np.ndarray, int, dict[str, np.ndarray]], np.ndarray]


@pytest.fixture(autouse=True)
def training() -> Iterator[None]:
    with Tensor.train():
        yield


def gradient(p: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Of the sum of (p - target)^2 * p."""
    return 2 * (p - target) * p + (p - target) ** 2


def sgd(momentum: float, decay: float, nesterov: bool, lr: float = 0.05) -> Rule:
    def rule(p: np.ndarray, g: np.ndarray, t: int, state: dict[str, np.ndarray]) -> np.ndarray:
        g = g + decay * p
        state["b"] = momentum * state.get("b", 0) + g
        return p - lr * (g + momentum * state["b"] if nesterov else state["b"])

    return rule


def adam(decay: float, lr: float = 0.05, b1: float = 0.8, b2: float = 0.95) -> Rule:
    def rule(p: np.ndarray, g: np.ndarray, t: int, state: dict[str, np.ndarray]) -> np.ndarray:
        state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
        state["v"] = b2 * state.get("v", 0) + (1 - b2) * g * g
        m, v = state["m"] / (1 - b1**t), state["v"] / (1 - b2**t)
        return p - lr * (m / (np.sqrt(v) + 1e-8) + decay * p)

    return rule


CASES: dict[str, tuple[Callable[[list[Tensor]], Optimizer], Rule]] = {
    "sgd": (lambda p: SGD(p, 0.05), sgd(0.0, 0.0, False)),
    "sgd decay": (lambda p: SGD(p, 0.05, weight_decay=0.1), sgd(0.0, 0.1, False)),
    "sgd momentum": (lambda p: SGD(p, 0.05, momentum=0.9), sgd(0.9, 0.0, False)),
    "sgd nesterov": (
        lambda p: SGD(p, 0.05, momentum=0.9, weight_decay=0.1, nesterov=True),
        sgd(0.9, 0.1, True),
    ),
    "adam": (lambda p: Adam(p, 0.05, b1=0.8, b2=0.95), adam(0.0)),
    "adamw": (lambda p: AdamW(p, 0.05, b1=0.8, b2=0.95, weight_decay=0.1), adam(0.1)),
}


def in_numpy(rule: Rule) -> list[np.ndarray]:
    params = [p.copy() for p in START]
    states: list[dict[str, np.ndarray]] = [{} for _ in params]
    for t in range(1, STEPS + 1):
        for k, (p, target) in enumerate(zip(params, TARGETS, strict=True)):
            params[k] = rule(p, gradient(p, target), t, states[k])
    return params


def ours(make: Callable[[list[Tensor]], Optimizer], dtype: dtypes, jit: bool) -> list[np.ndarray]:
    params = [Tensor(p, dtype=dtype) for p in START]
    targets = [Tensor(t, dtype=dtype) for t in TARGETS]
    optimizer = make(params)

    def step() -> None:
        optimizer.zero_grad()
        losses = [((p - t).square() * p).sum() for p, t in zip(params, targets, strict=True)]
        (losses[0] + losses[1]).backward()
        optimizer.step()

    run = TinyJit(step) if jit else step
    for _ in range(STEPS):
        run()
    return [p.numpy() for p in params]


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CASES)
def test_steps_follow_the_formula(name: str, jit: bool) -> None:
    make, rule = CASES[name]
    for result, expected in zip(ours(make, dtypes.float64, jit), in_numpy(rule), strict=True):
        # the learning rate and powers of b1, b2 are kept in fp32
        np.testing.assert_allclose(result, expected, rtol=2e-6)


def test_half_precision_parameters_keep_state_in_fp32() -> None:
    param = Tensor([1.0, 2.0], dtype=dtypes.float16)
    optimizer = Adam([param], 0.01)
    (param.float() * 3).sum().backward()
    optimizer.step()
    assert param.dtype is dtypes.float16
    assert optimizer.m[0].dtype is dtypes.float32
    np.testing.assert_allclose(param.numpy(), np.float16([0.99, 1.99]))


@pytest.mark.parametrize("name", ["sgd nesterov", "adam", "adamw"])
def test_agrees_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    params = [torch.nn.Parameter(torch.tensor(p)) for p in START]
    make = {
        "sgd nesterov": lambda: torch.optim.SGD(params, 0.05, 0.9, weight_decay=0.1, nesterov=True),
        "adam": lambda: torch.optim.Adam(params, 0.05, betas=(0.8, 0.95)),
        "adamw": lambda: torch.optim.AdamW(params, 0.05, betas=(0.8, 0.95), weight_decay=0.1),
    }
    optimizer = make[name]()
    for _ in range(STEPS):
        optimizer.zero_grad()
        sum(
            ((p - torch.tensor(t)) ** 2 * p).sum() for p, t in zip(params, TARGETS, strict=True)
        ).backward()
        optimizer.step()
    for result, expected in zip(ours(CASES[name][0], dtypes.float64, False), params, strict=True):
        np.testing.assert_allclose(result, expected.detach().numpy(), rtol=2e-6)


# ---- what all share


def test_step_realises_everything_it_writes() -> None:
    param = Tensor([1.0, 2.0])
    optimizer = Adam([param])
    param.square().sum().backward()
    optimizer.step()
    assert all(t.is_realized for t in (param, *optimizer.m, *optimizer.v, optimizer.b1_t))


def test_steps_keep_no_history() -> None:
    param = Tensor([1.0, 2.0])
    optimizer = SGD([param], momentum=0.9)
    sizes = []
    for _ in range(4):
        optimizer.zero_grad()
        param.square().sum().backward()
        optimizer.step()
        sizes.append(sum(len(t.uop.toposort()) for t in (param, *optimizer.b)))
    assert len(set(sizes)) == 1


def test_learning_rate_can_be_changed() -> None:
    param = Tensor([1.0])
    optimizer = SGD([param], lr=0.5)
    for rate, expected in ((0.5, 0.5), (0.25, 0.25)):
        optimizer.lr.assign(Tensor([rate]))
        optimizer.zero_grad()
        param.sum().backward()
        optimizer.step()
        assert param.item() == pytest.approx(1.0 - 0.5 if rate == 0.5 else expected)


def test_buffers_are_realised_with_the_step() -> None:
    norm = nn.BatchNorm(2)
    optimizer = SGD(nn.state.get_parameters(norm), lr=0.1)
    norm(Tensor([[1.0, 2.0], [3.0, 4.0]])).square().sum().backward()
    optimizer.step()
    assert any(buffer is norm.running_mean for buffer in optimizer.buffers)
    assert norm.running_mean.is_realized and norm.num_batches_tracked.is_realized


def test_parameter_without_gradient_stays() -> None:
    used, unused = Tensor([1.0]), Tensor([2.0])
    optimizer = Adam([used, unused])
    used.sum().backward()
    optimizer.step()
    assert unused.item() == 2.0


def test_parameter_given_twice_is_moved_once() -> None:
    param = Tensor([1.0])
    optimizer = SGD([param, param], lr=0.5)
    param.sum().backward()
    optimizer.step()
    assert param.item() == 0.5


def test_group_steps_all() -> None:
    first, second = Tensor([1.0]), Tensor([1.0])
    group = OptimizerGroup(SGD([first], lr=0.5), SGD([second], lr=0.25))
    (first + second).sum().backward()
    group.step()
    assert (first.item(), second.item()) == (0.5, 0.75)
    group.zero_grad()
    assert first.grad is None and second.grad is None
    assert [id(param) for param in group.params] == [id(first), id(second)]


def test_nothing_to_optimise_is_refused() -> None:
    with pytest.raises(OptimizerError, match="SGD: none of 1 tensors requires a gradient"):
        SGD([Tensor([1, 2])])


def test_step_without_gradients_is_refused() -> None:
    with pytest.raises(OptimizerError, match="no parameter has a gradient; call loss.backward"):
        SGD([Tensor([1.0])]).step()


def test_step_outside_of_training_is_refused() -> None:
    optimizer = SGD([Tensor([1.0])])
    with Tensor.train(False), pytest.raises(OptimizerError, match="Tensor.training is False"):
        optimizer.step()


def test_empty_group_is_refused() -> None:
    with pytest.raises(OptimizerError, match="at least one"):
        OptimizerGroup()
