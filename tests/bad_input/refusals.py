"""What every refusal has to be: one clear error of a fitting type, with the facts in its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest


class Case(NamedTuple):
    """A wrong program.

    Attributes:
        name: what is wrong, the id of the test.
        program: runs it.
        error: the builtin exception that fits.
        texts: parts of the message.
    """

    name: str
    program: Callable[[], object]
    error: type[Exception]
    texts: tuple[str, ...]


def case(
    name: str, program: Callable[[], object], error: type[Exception], *texts: str
) -> Case:
    """A case that is named `name`."""
    return Case(name, program, error, texts)


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """A test of each case, under its name."""
    names = [one.name for one in cases]
    assert len(set(names)) == len(names), "two cases have one name"
    return pytest.mark.parametrize("wrong", cases, ids=names)


def message_of(wrong: Case) -> str:
    """Run a wrong program; the text of its error, which has no other behind it."""
    with pytest.raises(wrong.error) as caught:
        wrong.program()
    error = caught.value
    assert_stands_alone(error)
    text = str(error)
    for part in wrong.texts:
        assert part in text, text
    return text


def assert_stands_alone(error: BaseException) -> None:
    """Check that Python prints no second traceback beside that of `error`."""
    assert error.__cause__ is None, repr(error.__cause__)
    assert error.__context__ is None or error.__suppress_context__, repr(error.__context__)
