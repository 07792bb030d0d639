"""A full device: the message has device, bytes asked and bytes in use; then everything goes on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from tg_frontend import Context, Device, GlobalCounters, Tensor, TinyJit
from tg_ir.device.errors import OutOfDeviceMemory

from .refusals import Case, assert_stands_alone, case, each, message_of

MEBI = 1 << 20


@pytest.fixture
def small_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A CPU device that has no pieces larger than a mebibyte."""
    allocator = Device["CPU"].allocator
    allocate = allocator._alloc

    def refuse_large(size: int, options: object) -> object:
        if size > MEBI:
            raise MemoryError
        return allocate(size, options)  # type: ignore[arg-type]  # passed on as it came

    allocator.free_cache()
    monkeypatch.setattr(allocator, "_alloc", refuse_large)
    yield
    allocator.free_cache()


def refused(program: Callable[[], object]) -> OutOfDeviceMemory:
    """Run a program that needs too much; its error, checked against the memory then in use."""
    gc.collect()
    before = GlobalCounters.mem_used
    with pytest.raises(OutOfDeviceMemory) as caught:
        program()
    error = caught.value
    del caught
    assert_stands_alone(error)
    # they keep the frames, which keep the tensors
    error.__traceback__ = None
    error.__context__ = None
    gc.collect()
    assert GlobalCounters.mem_used == before
    return error


def test_message_has_device_bytes_asked_and_bytes_in_use(small_cpu: None) -> None:
    held = Tensor.ones(1000).realize()
    before = GlobalCounters.mem_used
    error = refused(lambda: Tensor.ones(MEBI).realize())
    assert str(error) == (
        f"CPU: out of memory: asked for {4 * MEBI} bytes (4.0 MiB), "
        f"{before} bytes in use ({before / 1024:.1f} KiB); "
        "drop tensors that are no longer needed or work on smaller pieces"
    )
    assert isinstance(error, MemoryError)
    assert (error.device, error.bytes_asked, error.bytes_in_use) == ("CPU", 4 * MEBI, before)
    assert held.sum().item() == 1000


def test_the_next_allocation_works(small_cpu: None) -> None:
    for _ in range(3):
        refused(lambda: Tensor.ones(MEBI).realize())
        assert (Tensor.ones(1000) * 2).sum().item() == 2000


def test_temporaries_of_a_schedule_that_fails_are_freed(small_cpu: None) -> None:
    x = Tensor.ones(200, 200).realize()
    refused(lambda: (x.reshape(200, 200, 1).expand(200, 200, 50).contiguous() + x[0, 0]).realize())
    assert (x + 1).sum().item() == 80000


def test_a_write_in_a_schedule_that_fails_is_not_done_twice(small_cpu: None) -> None:
    x = Tensor.ones(4).realize()
    x += 1
    refused(lambda: x.realize((x.reshape(4, 1).expand(4, MEBI) * 2).contiguous()))
    assert x.tolist() == [2.0] * 4
    x += 1
    assert x.tolist() == [3.0] * 4


def test_a_write_is_not_done_twice_when_another_device_fails() -> None:
    x = Tensor.ones(4).realize()
    x += 1
    y = x.to("PYTHON") + 1
    with Context(DEV="CPU;PYTHON:NONE"), pytest.raises(ValueError, match="renderer 'NONE'"):
        y.realize()
    assert x.tolist() == [2.0] * 4
    assert y.tolist() == [3.0] * 4


def test_backward_that_fails_leaves_no_memory_and_the_parameters(small_cpu: None) -> None:
    weight = Tensor.ones(1000, requires_grad=True)
    weight.realize()

    def train() -> None:
        product = weight.reshape(-1, 1) @ weight.reshape(1, -1)
        (product.relu().contiguous() @ product).sum().backward()
        assert weight.grad is not None
        gradient = weight.grad
        weight.grad = None
        gradient.realize()

    refused(train)
    assert weight.sum().item() == 1000


def test_a_captured_function_that_fails_works_with_less(small_cpu: None) -> None:
    state = Tensor([0.0]).realize()

    def step(x: Tensor) -> Tensor:
        state.assign(state + 1)
        return Tensor.realize((x.reshape(-1, 1) + x.reshape(1, -1)).contiguous(), state)

    jit = TinyJit(step)
    large = Tensor.ones(1000).realize()
    for _ in range(3):
        with pytest.raises(MemoryError):
            jit(large)
    done = state.item()
    for calls in range(1, 5):
        assert jit(Tensor.ones(10)).sum().item() == 200
        assert state.item() == done + calls


HUGE = [
    case("zeros", lambda: Tensor.zeros(1 << 50).realize(), MemoryError, "(4096.0 TiB)"),
    case("empty", lambda: Tensor.empty(1 << 50).numpy(), MemoryError, "numpy(): cannot get"),
    case("ints", lambda: Tensor.zeros(1 << 50, dtype="int8").tolist(), MemoryError, "(1024.0 TiB)"),
    case("arange", lambda: Tensor.arange(1 << 50, dtype="int64").tolist(), MemoryError, "8192.0"),
    case("outer", lambda: outer(1 << 26).realize(), MemoryError, "CPU: out of memory"),
]


def outer(size: int) -> Tensor:
    line = Tensor.arange(size)
    return (line.reshape(-1, 1) * line.reshape(1, -1)).contiguous()


@each(HUGE)
def test_sizes_beyond_any_machine(wrong: Case) -> None:
    message_of(wrong)
