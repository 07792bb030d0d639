"""`ConformanceSuite`: the rules that every suite shares, and the check its tests use.

A suite is a class of `test_` methods for pytest. A back end subclasses it, fills in what it is
asked for, and may declare known differences; it cannot delete or override a test.
"""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from typing import Any, ClassVar

from tg_ir.errors import TgError, did_you_mean

__all__ = ["ConformanceFailure", "ConformanceSuite", "SuiteDefinitionError", "check", "refuses"]


class ConformanceFailure(TgError, AssertionError):
    """A back end does not keep a promise of its contract."""


class SuiteDefinitionError(TgError, TypeError):
    """A subclass of a suite changes a test, or names one that does not exist."""


class ConformanceSuite:
    """Base of all suites.

    Attributes:
        known_differences: reason by name of a test that is expected to fail for this back end. A
        test that
            passes although it is listed fails, so that the list stays true.
    """

    known_differences: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse changed tests, and wrap the ones with a known difference.

        Raises:
            SuiteDefinitionError: a test is overridden or deleted, or a listed test does not exist.
        """
        super().__init_subclass__(**kwargs)
        inherited = {
            name
            for base in cls.__mro__[1:]
            for name in vars(base)
            if name.startswith("test_") and issubclass(base, ConformanceSuite)
        }
        changed = sorted(inherited & vars(cls).keys())
        if changed:
            raise SuiteDefinitionError(
                f"{cls.__name__} changes {changed[0]} of its suite; "
                "list it in known_differences with a reason instead"
            )
        for name, reason in vars(cls).get("known_differences", {}).items():
            if name not in inherited:
                raise SuiteDefinitionError(
                    f"{cls.__name__}.known_differences: no test is called {name!r}; "
                    f"{did_you_mean(name, inherited)}"
                )
            if not reason.strip():
                raise SuiteDefinitionError(
                    f"{cls.__name__}.known_differences: {name} has no reason"
                )
            setattr(cls, name, _expected_to_fail(getattr(cls, name), name, reason))


def check(condition: bool, promise: str) -> None:
    """Fail unless `condition` holds.

    Args:
        condition: what should be true.
        promise: the promise of the contract, and what came instead.

    Raises:
        ConformanceFailure: it does not hold.
    """
    if not condition:
        raise ConformanceFailure(promise)


def refuses(
    error: type[BaseException], promise: str, action: Callable[[], object]
) -> BaseException:
    """Run `action`, which must raise `error`, and return what it raised.

    Raises:
        ConformanceFailure: it raised nothing, or something else.
    """
    try:
        action()
    except error as raised:
        return raised
    except Exception as other:
        raise ConformanceFailure(
            f"{promise}: expected {error.__name__}, got {type(other).__name__}: {other}"
        ) from other
    raise ConformanceFailure(f"{promise}: expected {error.__name__}, but nothing was raised")


def _expected_to_fail(test: Callable[..., None], name: str, reason: str) -> Callable[..., None]:
    @functools.wraps(test)
    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            test(self, *args, **kwargs)
        except unittest.SkipTest:
            raise
        except Exception as error:
            raise unittest.SkipTest(f"known difference: {reason} ({error})") from error
        raise ConformanceFailure(
            f"{name} passes, but is listed as a known difference ({reason}); "
            "remove it from the list"
        )

    return run
