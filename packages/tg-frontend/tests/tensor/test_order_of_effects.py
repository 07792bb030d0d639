"""Promises 1 and 2 of SEMANTICS, one example each: what reads and writes mean."""

from __future__ import annotations

import numpy as np
import pytest
from tg_frontend import Tensor


@pytest.fixture(params=["lazy", "realized"])
def make(request):
    """A tensor, realised or not: it has to make no difference."""

    def made(values) -> Tensor:
        x = Tensor(np.array(values, np.float32)) * 1
        return x.realize() if request.param == "realized" else x

    return made


def test_what_an_expression_reads_is_pinned_when_it_is_built(make):
    x = make([1, 2])
    y = x + 10
    x.assign(x * 100)
    assert (y.tolist(), x.tolist()) == ([11, 12], [100, 200])


def test_assign_copies_the_value_at_that_point(make):
    source, target = make([1, 2]), make([0, 0])
    target.assign(source)
    source.assign(source + 1)
    assert (target.tolist(), source.tolist()) == ([1, 2], [2, 3])


def test_two_tensors_swap(make):
    a, b = make([1, 2]), make([3, 4])
    old = a + 0
    a.assign(b)
    b.assign(old)
    assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])


def test_a_swap_in_one_schedule(make):
    a, b = make([1, 2]), make([3, 4])
    x, y = a * 1, b * 1
    a.assign(y)
    b.assign(x)
    Tensor.realize(a, b)
    assert (a.tolist(), b.tolist()) == ([3, 4], [1, 2])


def test_an_old_view_keeps_the_old_contents(make):
    x = make([[1, 2], [3, 4]])
    v = x[0]
    x[0] = 5
    assert (v.tolist(), x.tolist()) == ([1, 2], [[5, 5], [3, 4]])


def test_writing_to_a_view_rebinds_view_and_base(make):
    x = make([[1, 2], [3, 4]])
    other = x.T
    v = x[1]
    v += 10
    assert (v.tolist(), x.tolist()) == ([13, 14], [[1, 2], [13, 14]])
    assert other.tolist() == [[1, 3], [2, 4]]


def test_a_view_that_lags_behind_keeps_its_own_value_and_writes_to_the_base(make):
    x = make([1, 2, 3, 4])
    v = x[:2]
    x.assign(x * 10)
    v[0] = -1
    assert (v.tolist(), x.tolist()) == ([-1, 2], [-1, 20, 30, 40])


def test_nested_views_write_to_the_innermost_base(make):
    x = make([[1, 2], [3, 4]])
    x[1][0] = 9
    x.T[0][0] = 7
    x.reshape(-1)[::-1][0] = 5
    assert x.tolist() == [[7, 2], [9, 5]]


def test_results_of_operators_index_tensors_and_detach_are_values_of_their_own(make):
    x = make([1, 2, 3])
    for other in (x + 0, x[[0, 1, 2]], x.detach(), x.contiguous(), x.clone(), x.pad((0, 1))):
        other[0] = 99
        assert x.tolist() == [1, 2, 3]


def test_writes_to_tensors_that_share_memory_stay_apart(make):
    x = make([1, 2, 3])
    y, z = x.detach(), x.detach()
    y += 1
    z += 10
    x += 100
    Tensor.realize(z, x)
    assert [t.tolist() for t in (x, y, z)] == [[101, 102, 103], [2, 3, 4], [11, 12, 13]]


def test_equal_tensors_are_written_apart():
    a, b = Tensor.zeros(3).contiguous(), Tensor.zeros(3).contiguous()
    a[0] = 1
    b[1] = 2
    c = Tensor.zeros(3)
    assert [t.tolist() for t in (a, b, c)] == [[1, 0, 0], [0, 2, 0], [0, 0, 0]]


def test_constants_can_be_written_to():
    x = Tensor.arange(4)
    x[1:3] = 0
    y = Tensor.zeros(2, 2, dtype="int32")
    y += 1
    assert (x.tolist(), y.tolist()) == ([0, 0, 0, 3], [[1, 1], [1, 1]])


def test_reading_while_writing_many_times(make):
    x = make([0, 0, 0])
    seen = []
    for step in range(5):
        x[step % 3] = step + 1
        seen.append(x + 0)
    assert [s.tolist() for s in seen] == [
        [1, 0, 0], [1, 2, 0], [1, 2, 3], [4, 2, 3], [4, 5, 3]
    ]


def test_a_scalar_and_an_empty_tensor_can_be_assigned():
    x = Tensor(1.0)
    x.assign(Tensor(2.0))
    x += 1
    empty = Tensor.zeros(0)
    empty += 1
    assert (x.item(), empty.tolist()) == (3.0, [])


def test_a_view_outlives_its_base(make):
    x = make([1, 2, 3])
    v = x[1:]
    del x
    v += 1
    assert v.tolist() == [3, 4]


def test_realising_part_of_a_program_changes_nothing(make):
    x = make([1, 2])
    y = x * 2
    x += 1
    z = x * 2
    x.realize()
    x += 1
    y.realize()
    x.realize()
    assert [t.tolist() for t in (x, y, z)] == [[3, 4], [2, 4], [4, 6]]
