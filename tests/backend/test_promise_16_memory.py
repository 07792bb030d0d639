"""Promise 16: intermediates are freed after their last reader; a training loop is flat."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from tg_frontend import Device, Tensor, TinyJit
from tg_frontend.nn import optim
from tg_ir.counters import GlobalCounters
from tg_ir.graph import UOp

from .programs import Run
from .statements import Statement, in_numpy, in_tensors, statements

SIZE = 4096
NBYTES = SIZE * 4


@pytest.fixture(autouse=True)
def counting_alone() -> Iterator[None]:
    """Memory comes back without the garbage collector, whose runs see only what a test makes."""
    gc.collect()
    gc.freeze()
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


def live_nodes() -> int:
    """How many graph nodes are alive."""
    gc.collect()
    return sum(isinstance(item, UOp) for item in gc.get_objects())


def peak_of(action: Callable[[], object]) -> int:
    """Bytes in use at most during `action`, above what was in use before."""
    before = GlobalCounters.mem_used
    GlobalCounters.reset_peak()
    action()
    return GlobalCounters.mem_peak - before


def chain_of_kernels(x: Tensor, count: int) -> Tensor:
    """Each step in storage of its own, read in another order."""
    for _ in range(count):
        x = (x.flip(0) + 1).contiguous()
    return x


def chain_of_reductions(x: Tensor, count: int) -> Tensor:
    """Each step has to be complete before the next begins."""
    for _ in range(count):
        x = (x - x.sum()).contiguous()
    return x


# ---- intermediates


@pytest.mark.parametrize("program", [chain_of_kernels, chain_of_reductions])
def test_peak_of_a_chain_does_not_grow_with_its_length(
    program: Callable[[Tensor, int], Tensor],
) -> None:
    x = Tensor(np.zeros(SIZE, np.float32))
    # what a step reads, what it writes and the result; small sums
    assert peak_of(lambda: program(x, 12).realize()) <= 3 * NBYTES + 64 * 16


def test_peak_of_eager_steps_does_not_grow() -> None:
    def program(requires_grad: bool | None) -> None:
        x = Tensor(np.zeros(SIZE, np.float32), requires_grad=requires_grad)
        for _ in range(12):
            x = (x + 1).detach().realize() if requires_grad is False else (x + 1).realize()

    assert peak_of(lambda: program(False)) <= 2 * NBYTES
    # what a step was computed from stays as long as it, for gradients
    assert peak_of(lambda: program(None)) <= 3 * NBYTES


def test_only_the_result_stays() -> None:
    x = Tensor(np.zeros(SIZE, np.float32))
    before = GlobalCounters.mem_used
    result = chain_of_kernels(x, 5).sum().realize()
    assert GlobalCounters.mem_used - before == 4
    del result
    assert GlobalCounters.mem_used == before


def test_operand_is_freed_when_its_last_tensor_dies() -> None:
    before = GlobalCounters.mem_used
    x = Tensor(np.zeros(SIZE, np.int32))
    y = (x + 1).realize()
    z = (y * 2).realize()
    assert GlobalCounters.mem_used == before + 3 * NBYTES
    del x, y
    assert GlobalCounters.mem_used == before + NBYTES
    del z
    assert GlobalCounters.mem_used == before


def test_float_keeps_what_it_began_with_for_gradients_and_no_intermediate() -> None:
    before = GlobalCounters.mem_used
    x = Tensor(np.zeros(SIZE, np.float32))
    y = (x + 1).realize()
    z = (y * 2).realize()
    apart = (y * 3).detach().realize()
    del x, y
    assert GlobalCounters.mem_used == before + 3 * NBYTES
    del z
    assert GlobalCounters.mem_used == before + NBYTES
    del apart
    assert GlobalCounters.mem_used == before


def test_view_keeps_its_base_and_no_more() -> None:
    before = GlobalCounters.mem_used
    x = Tensor(np.zeros(SIZE, np.float32))
    view = x[:2]
    del x
    assert GlobalCounters.mem_used == before + NBYTES
    assert view.tolist() == [0, 0]
    del view
    assert GlobalCounters.mem_used == before


def test_old_version_is_freed_with_its_last_reader() -> None:
    x = Tensor(np.zeros(SIZE, np.int32))
    before = GlobalCounters.mem_used
    old = x[:]
    x += 1
    x.realize()
    assert GlobalCounters.mem_used == before + NBYTES
    assert old.sum().item() == 0
    del old
    assert GlobalCounters.mem_used == before


def test_no_cache_holds_buffers() -> None:
    gc.collect()
    before = GlobalCounters.mem_used

    def program() -> None:
        x = Tensor(np.ones((12, 12), np.float32), requires_grad=True)
        for _ in range(2):  # the second is answered by the caches
            loss = ((x @ x).relu() - Tensor.rand(12, 12)).square().mean()
            loss.backward()
            assert x.grad is not None
            x.grad.realize()
            x[0] = loss.detach()
            x.realize()
        step = TinyJit(lambda y: (y @ y).sum(0))
        for _ in range(4):
            step(x.detach()).realize()

    program()
    gc.collect()
    assert GlobalCounters.mem_used == before


@settings(max_examples=15)
@given(program=statements())
def test_any_program_leaves_nothing_behind(run: Run, program: list[Statement]) -> None:
    x, y = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    before = GlobalCounters.mem_used
    actual = run(lambda x, y: in_tensors(program, x, y), x, y)
    assert GlobalCounters.mem_used == before
    for result, expected in zip(actual, in_numpy(program, x, y), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_memory_kept_for_reuse_can_be_given_back() -> None:
    x = Tensor(np.zeros(SIZE, np.float32)).realize()
    allocator = Device[Device.DEFAULT].allocator
    del x
    allocator.free_cache()
    assert allocator.free_cache() == 0


# ---- loops


class Training:
    """A small network and its optimiser."""

    def __init__(self, make_optimizer: Callable[[list[Tensor]], optim.Optimizer]) -> None:
        """New weights."""
        rng = np.random.default_rng(1)
        self.first = Tensor(rng.standard_normal((8, 16), np.float32), requires_grad=True)
        self.second = Tensor(rng.standard_normal((16, 4), np.float32), requires_grad=True)
        self.optimizer = make_optimizer([self.first, self.second])

    def step(self, x: Tensor) -> Tensor:
        """One update; the loss."""
        with Tensor.train():
            self.optimizer.zero_grad()
            hidden = (x @ self.first).relu()
            loss = ((hidden @ self.second) - Tensor.rand(4, 4)).square().mean()
            loss.backward()
            self.optimizer.step()
            return loss


OPTIMIZERS = {
    "sgd": lambda weights: optim.SGD(weights, lr=0.01, momentum=0.9),
    "adam": lambda weights: optim.Adam(weights, lr=0.01),
}


@pytest.mark.parametrize("captured", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_flat_after_the_second_step(name: str, captured: bool) -> None:
    training = Training(OPTIMIZERS[name])
    step = TinyJit(training.step) if captured else training.step
    used, nodes, losses = [], [], []
    for number in range(8):
        x = Tensor(np.full((4, 8), number, np.float32))
        losses.append(step(x).item())
        del x
        gc.collect()
        used.append(GlobalCounters.mem_used)
        nodes.append(live_nodes())
    assert len(set(losses)) == len(losses)
    # the JIT captures in the second call and sets itself up for the third
    first = 3 if captured else 2
    assert len(set(used[first - 1 :])) == 1, used
    assert len(set(nodes[first:])) == 1, nodes


@pytest.mark.parametrize("detached", [False, True], ids=["with gradients", "detached"])
def test_loop_that_updates_itself_is_flat(detached: bool) -> None:
    x = Tensor(np.ones(16, np.float32)).realize()
    used, nodes = [], []
    for _ in range(8):
        x = (x.detach() if detached else x) * 0.5 + 1
        x.realize()
        used.append(GlobalCounters.mem_used)
        nodes.append(live_nodes())
    assert len(set(used[2:])) == 1, used
    # what gradients could ask for is remembered as nodes, without memory of a device
    assert not detached or len(set(nodes[2:])) == 1, nodes


def test_loop_of_writes_is_flat() -> None:
    x = Tensor(np.ones(16, np.float32)).realize()
    used, nodes = [], []
    for number in range(8):
        x[number % 2] = x[3] + 1
        x += 1
        x.realize()
        used.append(GlobalCounters.mem_used)
        nodes.append(live_nodes())
    assert len(set(used[1:])) == 1, used
    assert len(set(nodes[3:])) == 1, nodes
