"""Promise 1: tensors are values, and each statement behaves as if it ran when it was written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from tg_frontend import Tensor, dtypes

from .programs import Program, Run, Work
from .statements import Statement, in_numpy, in_tensors, statements

X = np.arange(6, dtype=np.float32) + 1
Y = np.float32([10, 20, 30, 40, 50, 60])


def same(actual: list[np.ndarray], *expected: object) -> None:
    """Each result is what is expected."""
    assert len(actual) == len(expected)
    for result, wanted in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


# ---- any program


@settings(max_examples=30)
@given(program=statements())
def test_any_program_of_writes_gives_what_numpy_copies_give(
    run: Run, program: list[Statement]
) -> None:
    actual = run(lambda x, y: in_tensors(program, x, y), X, Y)
    same(actual, *in_numpy(program, X, Y))


# ---- what each statement reads


def test_assign_takes_the_value_that_the_source_has_then(run: Run) -> None:
    def program(dst: Tensor, src: Tensor) -> tuple[Tensor, ...]:
        dst.assign(src)
        src.assign(src + 1)
        return dst, src

    same(run(program, X, Y), Y, Y + 1)


def test_swap_through_temporaries(run: Run) -> None:
    def program(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        old_a, old_b = a + 0, b + 0
        a.assign(old_b)
        b.assign(old_a)
        return a, b

    same(run(program, X, Y), Y, X)


def test_swap_through_views(run: Run) -> None:
    def program(a: Tensor) -> Tensor:
        left, right = a[:3], a[3:]
        a[:3] = right
        a[3:] = left
        return a

    same(run(program, X), np.concatenate([X[3:], X[:3]]))


SHIFTS: dict[str, tuple[slice, slice]] = {
    "up": (slice(1, None), slice(None, -1)),
    "down": (slice(None, -1), slice(1, None)),
    "reversed": (slice(None), slice(None, None, -1)),
    "every second": (slice(None, 3), slice(None, None, 2)),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_overlapping_copy_reads_before_it_writes(name: str, run: Run) -> None:
    target, source = SHIFTS[name]

    def program(x: Tensor) -> Tensor:
        x[target] = x[source]
        return x

    expected = X.copy()
    expected[target] = X[source]
    same(run(program, X), expected)


def test_overlapping_copies_after_each_other(run: Run) -> None:
    def program(x: Tensor) -> Tensor:
        backwards = x[::-1]
        backwards.assign(x)
        x[1:] = x[:-1]
        backwards = x[::-1]
        backwards.assign(x)
        return x

    same(run(program, X), np.float32([2, 3, 4, 5, 6, 6]))


PINNED: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray]] = {
    "row": (lambda x: x[0], X[0]),
    "whole slice": (lambda x: x[:], X),
    "reshape": (lambda x: x.reshape(2, 3), X.reshape(2, 3)),
    "reshape to the same": (lambda x: x.reshape(6), X),
    "flip": (lambda x: x.flip(0), X[::-1]),
    "permute": (lambda x: x.permute(0), X),
    "T": (lambda x: x.T, X),
    "squeeze": (lambda x: x.squeeze(0), X),
    "expand": (lambda x: x.expand(2, 6), np.stack([X, X])),
    "expand to the same": (lambda x: x.expand(6), X),
    "detach": (lambda x: x.detach(), X),
    "cast": (lambda x: x.half(), X.astype(np.float16)),
    "cast to the same": (lambda x: x.float(), X),
    "bitcast to the same": (lambda x: x.bitcast(dtypes.float32), X),
    "to the same device": (lambda x: x.to(x.device), X),
    "contiguous": (lambda x: x.contiguous(), X),
    "clone": (lambda x: x.clone(), X),
    "dropout when not training": (lambda x: x.dropout(0.5), X),
    "sum": (lambda x: x + 1, X + 1),
    "reduction": (lambda x: x.sum(), X.sum()),
    "index": (lambda x: x[[2, 0]], X[[2, 0]]),
}

WRITES: dict[str, Callable[[Tensor], object]] = {
    "assign": lambda x: x.assign(x * 0 - 1),
    "setitem": lambda x: x.__setitem__(slice(None), -1.0),
    "iadd": lambda x: x.__iadd__(7),
    "view": lambda x: x[:].assign(x * 0 - 1),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", PINNED)
def test_result_keeps_what_it_read_when_its_source_is_written(
    name: str, write: str, run: Run
) -> None:
    read, expected = PINNED[name]

    def program(x: Tensor) -> Tensor:
        result = read(x)
        WRITES[write](x)
        return result

    same(run(program, X), expected)


def test_old_values_are_kept_for_each_of_several_writes(run: Run) -> None:
    def program(x: Tensor) -> list[Tensor]:
        seen = []
        for _ in range(4):
            seen.append(x[1:3])
            x += x.flip(0)
        return [*seen, x]

    value, seen = X.copy(), []
    for _ in range(4):
        seen.append(value[1:3].copy())
        value = value + value[::-1]
    same(run(program, X), *seen, value)


def test_two_sums_of_one_tensor_see_the_write_between_them(run: Run) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        before = x.sum()
        x[0] = 100.0
        return before, x.sum()

    same(run(program, X), 21.0, 120.0)


# ---- writing to a view


def test_write_to_a_view_rebinds_the_base_and_that_view_only(run: Run) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        written, bystander, computed = x[1:4], x[1:4], x * 2
        written[0] = -5.0
        return x, written, bystander, computed

    changed = X.copy()
    changed[1] = -5
    same(run(program, X), changed, changed[1:4], X[1:4], X * 2)


def test_view_that_lags_behind_its_base_keeps_its_own_contents(run: Run) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        view = x[1:4]
        x[2] = 90.0
        view[0] = -5.0
        return x, view

    same(run(program, X), [1, -5, 90, 4, 5, 6], [-5, 3, 4])


MOVED_TARGETS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "slice": (lambda x: x[2:5], lambda x: x[2:5]),
    "negative step": (lambda x: x[::-2], lambda x: x[::-2]),
    "reshape": (lambda x: x.reshape(3, 2), lambda x: x.reshape(3, 2)),
    "transpose": (lambda x: x.reshape(3, 2).T, lambda x: x.reshape(3, 2).T),
    "nothing moved": (lambda x: x[:], lambda x: x[:]),
}


@pytest.mark.parametrize("name", MOVED_TARGETS)
def test_assign_to_a_moved_tensor_writes_to_its_base(name: str, run: Run) -> None:
    move, reference = MOVED_TARGETS[name]

    def program(x: Tensor) -> tuple[Tensor, ...]:
        view = move(x)
        view.assign(view * 2 + 1)
        return x, view

    expected = X.copy()
    reference(expected)[...] = reference(X) * 2 + 1
    same(run(program, X), expected, reference(expected))


UNLINKED: dict[str, Callable[[Tensor], Tensor]] = {
    "result of an op": lambda x: x + 0,
    "detach": lambda x: x.detach(),
    "cast": lambda x: x.float(),
    "contiguous": lambda x: x.contiguous(),
    "clone": lambda x: x.clone(),
    "index array": lambda x: x[[0, 1, 2]],
    "pad": lambda x: x.pad(((0, 1),)),
}


@pytest.mark.parametrize("name", UNLINKED)
def test_write_to_what_is_no_view_leaves_the_source(name: str, run: Run) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        other = UNLINKED[name](x)
        other[0] = -9.0
        return x, other[:3]

    same(run(program, X), X, [-9.0, X[1], X[2]])


def test_numpy_arrays_and_tensors_do_not_share_memory() -> None:
    array = X.copy()
    tensor = Tensor(array)
    array[0] = -1
    np.testing.assert_array_equal(tensor.numpy(), X)
    seen = tensor.numpy()
    seen[0] = -1
    np.testing.assert_array_equal(tensor.numpy(), X)


# ---- copies


def _increment(x: Tensor) -> None:
    x += 1


def _set_part(x: Tensor) -> None:
    x[1:3] = 5.0


def _replace(x: Tensor) -> None:
    x.assign(x.relu() * 2)


def _after_a_view_died(x: Tensor) -> None:
    view = x[0]
    del view
    x[0] = 5.0


def _read_again(x: Tensor) -> None:
    x += (x * 2).sum()


@pytest.mark.parametrize("write", [_increment, _set_part, _replace, _after_a_view_died])
def test_write_that_needs_no_copy_makes_none(write: Program) -> None:
    x = Tensor(X)
    x.realize()
    with Work() as work:
        write(x)
        x.realize()
    assert (work.kernels, work.copies, work.allocated) == (1, 0, 0)


def test_write_after_a_reduction_of_itself_copies_nothing() -> None:
    x = Tensor(np.arange(4096, dtype=np.float32))
    with Work() as work:
        _read_again(x)
        x.realize()
    assert work.copies == 0
    assert work.allocated < 4096 * 4


def test_old_value_that_is_still_held_costs_one_copy() -> None:
    x = Tensor(X)
    view = x[0]
    with Work() as work:
        x += 1
        x.realize()
    assert work.kernels + work.copies == 2
    assert view.item() == X[0]
