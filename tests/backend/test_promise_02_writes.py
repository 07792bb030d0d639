"""Promise 2: every write lands, whatever the target; one through an expanded view is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tg_frontend import Tensor
from tg_frontend.errors import WriteError

from .programs import Run

X = np.arange(12, dtype=np.float32).reshape(4, 3)
SMALL = settings(max_examples=25)


def slices(extent: int) -> st.SearchStrategy[slice]:
    """Slices of an axis, with bounds that may lie outside and steps of both signs."""
    bound = st.none() | st.integers(-extent - 1, extent + 1)
    return st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, 3, -1, -2, -3]))


def basic_keys() -> st.SearchStrategy[Any]:
    """Ints and slices for a (4, 3) array."""
    first = slices(4) | st.integers(-4, 3)
    second = slices(3) | st.integers(-3, 2)
    return first | st.tuples(first, second) | st.tuples(st.just(Ellipsis), second)


def values_for(shape: tuple[int, ...], draw: Callable[..., Any]) -> np.ndarray:
    """Different numbers for each element, or for each of a broadcast axis."""
    kept = tuple(1 if draw(st.booleans()) and extent > 1 else extent for extent in shape)
    return 100 + np.arange(np.prod(kept), dtype=np.float32).reshape(kept)


def check(run: Run, key: Any, value: np.ndarray | float) -> None:
    """Tensor and array are written to with the same key and value."""
    expected = X.copy()
    expected[key] = value

    def program(x: Tensor) -> Tensor:
        x[key] = value if isinstance(value, float) else Tensor(value)
        return x

    np.testing.assert_array_equal(run(program, X)[0], expected)


# ---- targets


@SMALL
@given(key=basic_keys(), data=st.data())
def test_slices_and_ints(run: Run, key: Any, data: st.DataObject) -> None:
    check(run, key, values_for(X[key].shape, data.draw))


@SMALL
@given(rows=st.lists(st.integers(-4, 3), min_size=1, max_size=6))
def test_int_array_where_the_last_of_equal_indices_wins(run: Run, rows: list[int]) -> None:
    values = 100 + np.arange(len(rows) * 3, dtype=np.float32).reshape(-1, 3)
    expected = X.copy()
    for row, value in zip(rows, values, strict=True):
        expected[row] = value

    def program(x: Tensor, index: Tensor, value: Tensor) -> Tensor:
        x[index] = value
        return x

    np.testing.assert_array_equal(run(program, X, np.int32(rows), values)[0], expected)


@SMALL
@given(
    places=st.lists(st.tuples(st.integers(-4, 3), st.integers(-3, 2)), min_size=1, max_size=6),
    shift=st.booleans(),
)
def test_int_arrays_for_several_axes(
    run: Run, places: list[tuple[int, int]], shift: bool
) -> None:
    rows, columns = np.int32([p[0] for p in places]), np.int32([p[1] for p in places])
    values = 100 + np.arange(len(places), dtype=np.float32)
    expected = X.copy()
    for row, column, value in zip(rows, columns, values, strict=True):
        expected[row, column] = value + expected[0, 0] * 0 + shift

    def program(x: Tensor, i: Tensor, j: Tensor, value: Tensor) -> Tensor:
        x[i, j] = value + int(shift)
        return x

    np.testing.assert_array_equal(run(program, X, rows, columns, values)[0], expected)


@SMALL
@given(mask=st.lists(st.booleans(), min_size=12, max_size=12), number=st.integers(-5, 5))
def test_bool_array(run: Run, mask: list[bool], number: int) -> None:
    chosen = np.array(mask).reshape(4, 3)
    expected = X.copy()
    expected[chosen] = number

    def program(x: Tensor, where: Tensor) -> Tensor:
        x[where] = number
        return x

    np.testing.assert_array_equal(run(program, X, chosen)[0], expected)


def test_bool_array_of_one_axis_takes_a_row(run: Run) -> None:
    chosen = np.array([True, False, True, False])
    row = np.float32([7, 8, 9])
    expected = X.copy()
    expected[chosen] = row

    def program(x: Tensor, where: Tensor, value: Tensor) -> Tensor:
        x[where] = value
        return x

    np.testing.assert_array_equal(run(program, X, chosen, row)[0], expected)


def test_bool_array_takes_as_many_values_as_it_has_true_elements() -> None:
    chosen = X % 2 == 0
    expected = X.copy()
    expected[chosen] = -np.arange(6)
    x = Tensor(X)
    x[Tensor(chosen)] = Tensor(-np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(x.numpy(), expected)


@SMALL
@given(first=slices(4), second=slices(3), data=st.data())
def test_view_of_a_view(run: Run, first: slice, second: slice, data: st.DataObject) -> None:
    expected = X.copy()
    target = expected[first].T[second]
    values = values_for(target.shape, data.draw)
    target[...] = values

    def program(x: Tensor) -> Tensor:
        x[first].T[second].assign(Tensor(values))
        return x

    if target.size:
        np.testing.assert_array_equal(run(program, X)[0], expected)


NESTED: dict[str, Callable[[Any], object]] = {
    "row then slice": lambda x: x[1].__setitem__(slice(None, None, 2), 50.0),
    "reshape then row": lambda x: x.reshape(2, 6)[1].__setitem__(slice(1, 3), 50.0),
    "transpose then row": lambda x: x.T.__setitem__(0, 50.0),
    "flip then slice": lambda x: x[::-1].__setitem__((slice(None), 1), 50.0),
    "new axis": lambda x: x[None].__setitem__((0, 2), 50.0),
    "index array in a slice": lambda x: x[1:].__setitem__(slice(0, 2), 50.0),
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_view_as_target(name: str, run: Run) -> None:
    expected = X.copy()
    NESTED[name](expected)

    def program(x: Tensor) -> Tensor:
        NESTED[name](x)
        return x

    np.testing.assert_array_equal(run(program, X)[0], expected)


def test_index_array_into_a_view(run: Run) -> None:
    index = np.int32([2, 0])
    expected = X.copy()
    expected[::2][:, index] = np.float32([[5, 6], [7, 8]])

    def program(x: Tensor, i: Tensor) -> Tensor:
        x[::2][:, i] = Tensor([[5.0, 6.0], [7.0, 8.0]])
        return x

    np.testing.assert_array_equal(run(program, X, index)[0], expected)


@pytest.mark.parametrize("key", [1, slice(None, None, -2), (slice(1), 2), [0, 2]], ids=str)
def test_in_place_operator_on_a_part(key: Any, run: Run) -> None:
    expected = X.copy()
    expected[key] += 10
    expected[key] *= 3

    def program(x: Tensor) -> Tensor:
        x[key] += 10
        x[key] *= 3
        return x

    np.testing.assert_array_equal(run(program, X)[0], expected)


# ---- what is written to


UNREALIZED: dict[str, tuple[Callable[[Tensor], Tensor], np.ndarray]] = {
    "sum": (lambda x: x + 1, X + 1),
    "reduction": (lambda x: x.sum(1), X.sum(1)),
    "product": (lambda x: x @ x.T, X @ X.T),
    "index": (lambda x: x[[3, 1]], X[[3, 1]]),
    "concatenation": (lambda x: x.cat(x), np.concatenate([X, X])),
    "padding": (lambda x: x.pad(((1, 0), (0, 0))), np.pad(X, ((1, 0), (0, 0)))),
    "cast": (lambda x: x.int(), X.astype(np.int32)),
    "written": (lambda x: x.assign(x * 2), X * 2),
    "where": (lambda x: (x > 3).where(x, 0), np.where(X > 3, X, 0)),
}


@pytest.mark.parametrize("name", UNREALIZED)
def test_target_that_is_not_computed_yet(name: str, run: Run) -> None:
    make, expected = UNREALIZED[name]
    expected = expected.copy()
    expected[1] = 77

    def program(x: Tensor) -> Tensor:
        made = make(x)
        made[1] = 77
        return made

    np.testing.assert_array_equal(run(program, X)[0], expected)


CONSTANTS: dict[str, Callable[[], Tensor]] = {
    "zeros": lambda: Tensor.zeros(4, 3),
    "full": lambda: Tensor.full((4, 3), 2.0),
    "int full": lambda: Tensor.full((4, 3), 2),
    "arange": lambda: Tensor.arange(12).reshape(4, 3),
    "eye": lambda: Tensor.eye(4, 3),
    "rand": lambda: Tensor.rand(4, 3),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constant_as_target(name: str) -> None:
    tensor = CONSTANTS[name]()
    other = CONSTANTS[name]()
    expected = tensor.numpy().copy()
    untouched = other.numpy()
    tensor[2] = 5
    expected[2] = 5
    np.testing.assert_array_equal(tensor.numpy(), expected)
    np.testing.assert_array_equal(other.numpy(), untouched)


SHARED: dict[str, tuple[Callable[[Any], object], Callable[[Any], object]]] = {
    "row to row": (lambda x: x.__setitem__(0, x[2]), lambda x: x.__setitem__(0, x[2])),
    "reversed rows": (
        lambda x: x.assign(x.flip(0)),
        lambda x: x.__setitem__(slice(None), x[::-1].copy()),
    ),
    "shifted rows": (
        lambda x: x.__setitem__(slice(1, None), x[:-1]),
        lambda x: x.__setitem__(slice(1, None), x[:-1].copy()),
    ),
    "square block transposed": (
        lambda x: x[:3].assign(x[:3].T),
        lambda x: x.__setitem__(slice(3), x[:3].T.copy()),
    ),
    "row broadcast over all": (
        lambda x: x.assign(x[1:2].expand(4, 3)),
        lambda x: x.__setitem__(slice(None), x[1].copy()),
    ),
    "rows by index": (
        lambda x: x.__setitem__([1, 0], x[[0, 1]]),
        lambda x: x.__setitem__([1, 0], x[[0, 1]]),
    ),
    "index that is written": (
        lambda x: x.__setitem__((x[0].int(), 0), 90.0),
        lambda x: x.__setitem__((x[0].astype(int), 0), 90.0),
    ),
}


@pytest.mark.parametrize("name", SHARED)
def test_target_and_value_share_memory(name: str, run: Run) -> None:
    write, reference = SHARED[name]
    expected = X.copy()
    reference(expected)

    def program(x: Tensor) -> Tensor:
        write(x)
        return x

    np.testing.assert_array_equal(run(program, X)[0], expected)


# ---- refused


EXPANDED: dict[str, Callable[[Tensor], Tensor]] = {
    "expand": lambda x: x[:1].expand(4, 3),
    "expand then slice": lambda x: x[:1].expand(4, 3)[1:],
    "slice of a repeated tensor": lambda x: x.reshape(4, 3, 1).expand(4, 3, 2)[0],
    "repeat": lambda x: x.repeat(2, 1),
}
WRITES: dict[str, Callable[[Tensor], object]] = {
    "setitem": lambda x: x.__setitem__(0, 1.0),
    "mask": lambda x: x.__setitem__(Tensor(np.ones(x.shape, bool)), 1.0),
    "assign": lambda x: x.assign(x + 1),
    "in place": lambda x: x.__iadd__(1),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", EXPANDED)
def test_write_through_an_expanded_view_is_refused(name: str, write: str) -> None:
    x = Tensor(X)
    with pytest.raises(WriteError, match="expanded view"):
        WRITES[write](EXPANDED[name](x))
    np.testing.assert_array_equal(x.numpy(), X)
