"""Writes:

Every element lands, reads see the version they name, and copies are made only where they must be.
"""

from __future__ import annotations

import numpy as np
from tg_ir.dtype import dtypes
from tg_ir.graph.ops import Ops
from tg_ir.graph.uop import UOp


def base_of(view: UOp) -> UOp:
    while view.op is not Ops.BUFFER:
        view = view.src[0]
    return view


def numbers(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def one_like(x: UOp) -> UOp:
    return UOp.const(x.dtype, 1).reshape((1,) * x.ndim).expand(x.shape)


def written(version: UOp, target: UOp, value: UOp, arg=None) -> UOp:
    return version.after(target.store(value, arg))


def test_assigning_a_function_of_the_old_value_is_one_kernel_in_place(world):
    x = world.tensor(numbers(6))
    old = base_of(x)
    new = written(old, x, x + one_like(x))
    world.check(new, kernels=1)
    held = world.last.becomes[new]
    assert held.op is Ops.BUFFER
    assert (held.arg.id, held.arg.version) == (old.arg.id, old.arg.version + 1)
    call = world.last.linear.src[0]
    assert len(call.src) == 2


def test_an_in_place_write_through_another_shape_is_one_kernel(world):
    x = world.tensor(numbers(2, 3))
    new = written(base_of(x), x, x * x)
    world.check(new, kernels=1)


def test_overlapping_shift_reads_before_it_writes(world):
    x = world.tensor(numbers(6))
    new = written(base_of(x), x.shrink(((1, 6),)), x.shrink(((0, 5),)))
    world.check(new, kernels=2)


def test_reversal_in_place_reads_before_it_writes(world):
    x = world.tensor(numbers(5))
    world.check(written(base_of(x), x, x.flip((True,))), kernels=2)


def test_a_write_of_other_elements_needs_no_temporary_only_for_other_buffers(world):
    x, y = world.tensor(numbers(6)), world.tensor(numbers(3))
    world.check(written(base_of(x), x.shrink(((2, 5),)), y), kernels=1)


def test_reduction_of_the_target_is_read_first(world):
    x = world.tensor(numbers(4))
    total = x.reduce_axis(Ops.ADD, (0,)).expand((4,))
    world.check(written(base_of(x), x, x + total))


def test_a_reader_of_the_old_version_runs_before_the_write(world):
    x = world.tensor(numbers(6))
    old = (x + one_like(x)).flip((True,))
    new = written(base_of(x), x, x * x)
    world.check(new, old, kernels=2)
    assert world.last.snapshots == {}


def test_a_reader_of_both_versions_gets_a_snapshot(world):
    x = world.tensor(numbers(6))
    new = written(base_of(x), x, x * x)
    both = new + x.flip((True,))
    world.check(new, both, kernels=3)


def test_swap_of_two_buffers(world):
    a, b = world.tensor(numbers(4)), world.tensor(-numbers(4))
    new_a = written(base_of(a), a, b)
    new_b = written(base_of(b), b, a)
    world.check(new_a, new_b)
    assert len(world.last.linear.src) == 3


def test_assign_then_assign_back(world):
    a, b = world.tensor(numbers(4)), world.tensor(-numbers(4))
    new_a = written(base_of(a), a, b)
    new_b = written(base_of(b), b, b + one_like(b))
    world.check(new_a, new_b, kernels=1)


def test_chain_of_versions(world):
    x = world.tensor(numbers(8))
    version = base_of(x)
    for place in range(8):
        target = version.shrink(((place, place + 1),))
        previous = version.shrink((((place + 7) % 8, (place + 7) % 8 + 1),))
        version = written(version, target, previous + one_like(previous))
    world.check(version)
    assert world.last.becomes[version].arg.version == 8


def test_a_read_between_two_writes_sees_the_version_it_names(world):
    x = world.tensor(numbers(4))
    first = written(base_of(x), x, x + one_like(x))
    between = first * first
    second = written(first, first, first + first)
    world.check(second, between, kernels=2)


def test_several_stores_run_in_order_and_read_the_version_before_all_of_them(world):
    x = world.tensor(numbers(6))
    version = base_of(x)
    left, right = x.shrink(((0, 4),)), x.shrink(((2, 6),))
    new = version.after(left.store(right), right.store(left))
    world.check(new)


def test_write_to_an_unrealised_result(world):
    x, y = world.tensor(numbers(2, 3)), world.tensor(-numbers(3))
    made = (x + one_like(x)).contiguous()
    row = made.shrink(((1, 2), (0, 3))).reshape((3,))
    new = written(made, row, y)
    world.check(new, kernels=2)
    assert world.last.becomes[new].shape == (2, 3)
    assert made not in world.last.becomes


def test_write_through_permute_flip_and_stride(world):
    x, y = world.tensor(numbers(4, 6)), world.tensor(-numbers(3, 2))
    target = (
        x.permute((1, 0))
        .flip((True, False))
        .reshape((3, 2, 4))
        .shrink(((0, 3), (0, 1), (1, 3)))
    )
    world.check(written(base_of(x), target.reshape((3, 2)), y), kernels=1)


def test_write_to_a_realised_view(world):
    x, y = world.tensor(numbers(4, 6)), world.tensor(-numbers(6))
    view = x.shrink(((1, 3), (0, 6)))
    version = UOp(Ops.REALIZED, view.dtype, (view, view))
    new = written(version, version.shrink(((1, 2), (0, 6))).reshape((6,)), y)
    found = world.run(new)[0]
    expected = numbers(4, 6)[1:3].copy()
    expected[1] = -numbers(6)
    np.testing.assert_array_equal(found, expected)


def test_scatter_drops_out_of_range_wraps_once_and_the_last_wins(world):
    x = world.tensor(numbers(4, 3))
    index = world.tensor(np.array([1, -1, 9, 1, -9], np.int32))
    values = world.tensor(-numbers(5, 3))
    target = UOp(Ops.GATHER, x.dtype, (x, index), (0,))
    world.check(written(base_of(x), target, values), kernels=1)
    kernel = world.last.linear.src[0].src[0]
    assert sorted(n.src[0].arg for n in kernel.toposort() if n.op is Ops.RANGE) == [3, 5]


def test_scatter_add_counts_duplicates(world):
    x = world.tensor(numbers(4, 3))
    index = world.tensor(np.array([1, 1, 2, 1], np.int32))
    values = world.tensor(numbers(4, 3))
    target = UOp(Ops.GATHER, x.dtype, (x, index), (0,))
    world.check(written(base_of(x), target, values, Ops.ADD), kernels=1)


def test_scatter_of_values_gathered_from_the_same_buffer(world):
    x = world.tensor(numbers(5))
    index = world.tensor(np.array([1, 0, 1, 4], np.int32))
    target = UOp(Ops.GATHER, x.dtype, (x, index), (0,))
    value = UOp(Ops.GATHER, x.dtype, (x, index), (0,))
    world.check(written(base_of(x), target, value + one_like(value)))


def test_scatter_whose_index_lies_in_the_written_buffer(world):
    x = world.tensor(np.array([2, 0, 1, 3], np.int32))
    value = world.tensor(np.array([7, 8, 9, 5], np.int32))
    target = UOp(Ops.GATHER, x.dtype, (x, x), (0,))
    world.check(written(base_of(x), target, value))


def test_two_writes_of_one_version_do_not_meet(world):
    x = world.tensor(numbers(4))
    left = written(base_of(x), x.shrink(((0, 2),)), x.shrink(((2, 4),)))
    right = written(base_of(x), x.shrink(((2, 4),)), x.shrink(((0, 2),)))
    world.check(left, right)
    held = [world.last.becomes[v].arg.id for v in (left, right)]
    assert held[0] != held[1]


def test_pinned_version_is_copied_before_it_is_overwritten(world):
    x = world.tensor(numbers(4))
    old = base_of(x)
    new = written(old, x, x + one_like(x))
    (found,) = world.run(new, pinned=(old,))
    snapshot = world.last.snapshots[old]
    np.testing.assert_array_equal(world.read(snapshot), numbers(4))
    np.testing.assert_array_equal(found, numbers(4) + 1)


def test_pinned_versions_made_on_the_way_are_kept(world):
    x = world.tensor(numbers(2, 2))
    made = (x + one_like(x)).contiguous()
    first = written(made, made, made * made)
    second = written(first, first, first + one_like(first))
    (found,) = world.run(second, pinned=(made, first))
    y = numbers(2, 2) + 1
    np.testing.assert_array_equal(world.read(world.last.snapshots[made]), y)
    np.testing.assert_array_equal(world.read(world.last.snapshots[first]), y * y)
    np.testing.assert_array_equal(found, y * y + 1)


def test_pinned_version_that_nothing_overwrites_needs_no_copy(world):
    x = world.tensor(numbers(4))
    world.run(x + one_like(x), pinned=(base_of(x),))
    assert world.last.snapshots == {}
    assert len(world.last.linear.src) == 1


def test_pinned_version_and_a_reader_of_both_share_one_snapshot(world):
    x = world.tensor(numbers(4))
    old = base_of(x)
    new = written(old, x, x * x)
    both = new + x.flip((True,))
    found = world.run(both, new, pinned=(old,))
    np.testing.assert_array_equal(found[0], numbers(4) ** 2 + numbers(4)[::-1])
    assert len(world.last.linear.src) == 3


def test_optimiser_step_writes_all_states_in_place(world):
    p, m, g = (world.tensor(numbers(6) * s) for s in (1, 2, 3))
    half = UOp.const(dtypes.float32, 0.5).reshape((1,)).expand((6,))
    new_m = written(base_of(m), m, m * half + g * half)
    new_p = written(base_of(p), p, p + new_m.alu(Ops.NEG) * half)
    world.check(new_p, new_m)
    assert world.last.snapshots == {}
    assert len(world.last.linear.src) == 1


def test_write_to_an_empty_target_changes_nothing(world):
    x, y = world.tensor(numbers(4)), world.tensor(numbers(0))
    world.check(written(base_of(x), x.shrink(((2, 2),)), y), kernels=0)


def test_an_element_is_read_by_all_outputs_of_a_kernel_before_it_is_overwritten(world):
    x = world.tensor(numbers(6))
    old = x + one_like(x)
    new = written(base_of(x), x, x * x)
    world.check(new, old, new + x, kernels=1)


def test_a_write_that_does_not_read_its_target_is_not_joined_with_a_reader_of_it(world):
    x, y = world.tensor(numbers(6)), world.tensor(-numbers(6))
    old = x + y
    new = written(base_of(x), x, y + y)
    world.check(old, new, kernels=2)


def test_outputs_over_the_same_reduction_are_one_kernel(world):
    x = world.tensor(numbers(4, 6))
    total = x.reduce_axis(Ops.ADD, (1,))
    world.check(total, total + one_like(total))


def test_kernels_with_another_between_them_stay_apart(world):
    x = world.tensor(numbers(6))
    first = (x + one_like(x)).contiguous()
    between = first.reduce_axis(Ops.MAX, (0,)).contiguous().expand((6,))
    world.check(first, x * between, kernels=3)
