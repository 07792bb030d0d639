"""A suite cannot be weakened in silence."""

from __future__ import annotations

import unittest

import pytest
from tg_ir.conformance import (
    ConformanceFailure,
    ConformanceSuite,
    SuiteDefinitionError,
    check,
    refuses,
)


class Example(ConformanceSuite):
    def test_good(self) -> None:
        check(True, "holds")

    def test_bad(self) -> None:
        check(False, "does not hold")


def test_overriding_a_test_is_refused() -> None:
    with pytest.raises(SuiteDefinitionError, match="Changed changes test_bad of its suite"):
        type("Changed", (Example,), {"test_bad": lambda self: None})


def test_deleting_a_test_is_refused() -> None:
    with pytest.raises(SuiteDefinitionError, match="test_bad"):
        type("Deleted", (Example,), {"test_bad": None})


def test_known_difference_needs_a_test_and_a_reason() -> None:
    with pytest.raises(
        SuiteDefinitionError, match="no test is called 'test_bat'; did you mean 'test_bad'"
    ):
        type("Typo", (Example,), {"known_differences": {"test_bat": "why"}})
    with pytest.raises(SuiteDefinitionError, match="test_bad has no reason"):
        type("Silent", (Example,), {"known_differences": {"test_bad": " "}})


def test_known_difference_is_skipped_with_its_reason() -> None:
    suite = type("Honest", (Example,), {"known_differences": {"test_bad": "no such hardware"}})
    with pytest.raises(unittest.SkipTest, match="known difference: no such hardware"):
        suite().test_bad()


def test_known_difference_that_is_none_fails() -> None:
    suite = type("Stale", (Example,), {"known_differences": {"test_good": "once true"}})
    with pytest.raises(ConformanceFailure, match="test_good passes, but is listed"):
        suite().test_good()


def test_refuses_wants_the_right_error() -> None:
    assert str(refuses(ValueError, "int('x')", lambda: int("x"))).startswith("invalid literal")
    with pytest.raises(ConformanceFailure, match="expected KeyError, got ValueError"):
        refuses(KeyError, "int('x')", lambda: int("x"))
    with pytest.raises(ConformanceFailure, match="nothing was raised"):
        refuses(KeyError, "int('1')", lambda: int("1"))
