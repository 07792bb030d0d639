"""Temporaries share memory only where that is safe."""

from __future__ import annotations

import sys
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st
from tg_codegen.compile import memory_plan as module
from tg_codegen.compile import plan_memory
from tg_ir.device import BufferDecl, Copy, Launch, View


def temporary(nbytes: int, device: str = "CPU") -> BufferDecl:
    return BufferDecl(nbytes, device, "temporary")


def launch(*buffers: int) -> Launch:
    return Launch(kernel=0, buffers=buffers)


def arena_size(planned: tuple[BufferDecl, ...]) -> int:
    return max((d.offset + d.nbytes for d in planned if d.arena is not None), default=0)


def test_a_chain_needs_two_buffers_at_a_time() -> None:
    buffers = [BufferDecl(256, "CPU", "input"), *[temporary(256) for _ in range(10)]]
    steps = [launch(number + 1, number) for number in range(10)]
    planned = plan_memory(buffers, steps)
    assert arena_size(planned) == 512
    assert planned[0] == buffers[0]


def test_temporaries_of_one_step_do_not_overlap() -> None:
    planned = plan_memory([temporary(100), temporary(100)], [launch(0, 1)])
    assert {planned[0].offset, planned[1].offset} == {0, 128}


def test_offsets_are_aligned_to_64_bytes() -> None:
    planned = plan_memory([temporary(size) for size in (1, 65, 3, 130)], [launch(0, 1, 2, 3)])
    assert all(decl.offset % 64 == 0 for decl in planned)


def test_what_a_view_shows_lives_as_long_as_the_view() -> None:
    buffers = [temporary(256), temporary(128), temporary(256)]
    steps = [launch(0), View(1, 0), launch(2), launch(2, 1)]
    planned = plan_memory(buffers, steps)
    assert planned[1].arena is None
    assert planned[0].offset != planned[2].offset


def test_each_device_has_an_arena_of_its_own() -> None:
    buffers = [temporary(64, "CPU"), temporary(64, "PYTHON")]
    planned = plan_memory(buffers, [launch(0), Copy(1, 0)])
    assert [decl.offset for decl in planned] == [0, 0]
    assert [decl.device for decl in planned] == ["CPU", "PYTHON"]


lifetimes = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30
)


@given(lifetimes, st.booleans())
def test_two_temporaries_alive_together_never_overlap(
    wanted: list[tuple[int, int, int]], in_order: bool
) -> None:
    spans = [(min(a, b), max(a, b)) for _, a, b in wanted]
    buffers = [temporary(size) for size, _, _ in wanted]
    steps = [
        launch(*[index for index, (a, b) in enumerate(spans) if step in (a, b)])
        for step in range(21)
    ]
    limit = module._MAX_BY_SIZE
    module._MAX_BY_SIZE = 0 if in_order else limit
    try:
        planned = plan_memory(buffers, steps)
    finally:
        module._MAX_BY_SIZE = limit
    for one, first in enumerate(planned):
        for two, second in enumerate(planned[:one]):
            together = spans[one][0] <= spans[two][1] and spans[two][0] <= spans[one][1]
            apart = (
                first.offset + first.nbytes <= second.offset
                or second.offset + second.nbytes <= first.offset
            )
            assert apart or not together


def _training_step(layers: int) -> tuple[list[BufferDecl], list[Launch]]:
    """Layers that write one value each, read again on the way back, which writes gradients."""
    buffers = [temporary(256 + 64 * (number % 7)) for number in range(2 * layers)]
    forward = [launch(0), *[launch(k, k - 1) for k in range(1, layers)]]
    back = [launch(2 * layers - 1, layers - 1)]
    back += [launch(layers + k, layers + k + 1, k) for k in reversed(range(layers - 1))]
    return buffers, forward + back


def test_many_temporaries_take_little_more_memory_than_is_alive_at_once() -> None:
    buffers, steps = _training_step(1000)
    size = arena_size(plan_memory(buffers, steps))
    alive = sum(-(-decl.nbytes // 64) * 64 for decl in buffers[:1000])
    assert alive <= size <= 1.1 * alive


def test_placing_ten_times_the_temporaries_takes_ten_times_the_work() -> None:
    def calls(layers: int) -> int:
        count = 0

        def on_event(frame: FrameType, event: str, arg: object) -> None:
            nonlocal count
            count += 1

        buffers, steps = _training_step(layers)
        sys.setprofile(on_event)
        try:
            plan_memory(buffers, steps)
        finally:
            sys.setprofile(None)
        return count

    assert calls(4000) < 12 * calls(400)
