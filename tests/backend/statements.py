"""Random programs of reads and writes over vectors, and what they mean: each variable is a value.

`in_numpy` is the meaning, written with plain copies. A variable made by slicing is a view of a root
variable: writing to it changes the root and itself, and no other variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from tg_frontend import Tensor

KEYS = (
    slice(1, None),
    slice(None, -1),
    slice(None, None, -1),
    slice(None, None, 2),
    slice(2, 0, -1),
)
REALIZING = ("realize", "realize_all")
KINDS = ("compute", "reduce", "view", "write", "index", "mask", "assign", "add", *REALIZING)


@dataclass(frozen=True)
class Statement:
    """What to do (`kind`) with variables `target` and `source`, `KEYS[key]` and `number`."""

    kind: str
    target: int
    source: int
    key: int
    number: int


def statements(
    max_size: int = 7, kinds: Sequence[str] = KINDS
) -> st.SearchStrategy[list[Statement]]:
    """Programs of a few statements."""
    one = st.builds(
        Statement,
        st.sampled_from(kinds),
        st.integers(0, 5),
        st.integers(0, 5),
        st.integers(0, len(KEYS) - 1),
        st.integers(-3, 3),
    )
    return st.lists(one, min_size=2, max_size=max_size)


# ---- with tensors


def in_tensors(program: Sequence[Statement], *inputs: Tensor) -> list[Tensor]:
    """Run a program; the result is every variable."""
    variables = list(inputs)
    for statement in program:
        _run_statement(statement, variables)
    return variables


def _run_statement(statement: Statement, variables: list[Tensor]) -> None:
    target = variables[statement.target % len(variables)]
    source = variables[statement.source % len(variables)]
    key = KEYS[statement.key]
    match statement.kind:
        case "compute":
            variables.append(target * 2 + _fitted(source, len(target)) + statement.number)
        case "reduce":
            variables.append(target - target.max() + _fitted(source, len(target)).min())
        case "view" if len(target) > 2:
            variables.append(target[key])
        case "write":
            written = target[key]
            target[key] = _fitted(source, len(written)) - statement.number
        case "index" if len(source) > 1:
            target[(source[:2] * 0).int() + statement.number % 2] = source[:2]
        case "mask":
            target[target < _fitted(source, len(target))] = statement.number
        case "assign":
            target.assign(_fitted(source, len(target)))
        case "add":
            target += _fitted(source, len(target))
        case "realize":
            target.realize()
        case "realize_all":
            target.realize(*variables)


def _fitted(source: Tensor, length: int) -> Tensor:
    return source[:length] if len(source) >= length else source[:1].expand(length)


# ---- their meaning


class _Variable:
    """A value, and which elements of which root it is where it was made by slicing."""

    def __init__(self, value: np.ndarray, root: _Variable | None, places: np.ndarray) -> None:
        self.value = value.copy()
        self.root = root
        self.places = places

    def view(self, key: slice) -> _Variable:
        root = self if self.root is None else self.root
        return _Variable(self.value[key], root, self.places[key])

    def write(self, key: slice | np.ndarray, value: np.ndarray | np.float32) -> None:
        if self.root is not None:
            self.root.value[self.places[key]] = value
        self.value[key] = value


def in_numpy(program: Sequence[Statement], *inputs: np.ndarray) -> list[np.ndarray]:
    """What each variable holds at the end of a program."""
    variables = [_Variable(array, None, np.arange(len(array))) for array in inputs]
    for statement in program:
        _model_statement(statement, variables)
    return [variable.value for variable in variables]


def _model_statement(statement: Statement, variables: list[_Variable]) -> None:
    target = variables[statement.target % len(variables)]
    source = variables[statement.source % len(variables)].value
    key = KEYS[statement.key]
    length = len(target.value)
    number = np.float32(statement.number)
    match statement.kind:
        case "compute":
            value = target.value * 2 + _fitted_array(source, length) + number
            variables.append(_Variable(value, None, np.arange(length)))
        case "reduce":
            value = target.value - target.value.max() + _fitted_array(source, length).min()
            variables.append(_Variable(value, None, np.arange(length)))
        case "view" if length > 2:
            variables.append(target.view(key))
        case "write":
            target.write(key, _fitted_array(source, len(target.value[key])) - number)
        case "index" if len(source) > 1:
            for value in source[:2].copy():
                target.write(np.array([statement.number % 2]), value)
        case "mask":
            target.write(target.value < _fitted_array(source, length), number)
        case "assign":
            target.write(slice(None), _fitted_array(source, length))
        case "add":
            target.write(slice(None), target.value + _fitted_array(source, length))


def _fitted_array(source: np.ndarray, length: int) -> np.ndarray:
    return source[:length].copy() if len(source) >= length else np.repeat(source[:1], length)
