"""One line a measurement: what it is, the ratio, what it is a ratio of, and the target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A ratio.

    `at_least`: whether `target` is a lower bound. `detail` says what was divided by what. `ratio`
    is None where it could not be measured; `detail` then says why.
    """

    name: str
    ratio: float | None
    target: float
    at_least: bool
    detail: str

    @property
    def is_met(self) -> bool:
        """Whether the target was met, or could not be measured."""
        if self.ratio is None:
            return True
        return self.ratio >= self.target if self.at_least else self.ratio <= self.target


def heading() -> str:
    """The line above the rows."""
    return f"{'measurement':<34} {'ratio':>7} {'target':>8}        detail"


def show(row: Row) -> str:
    """One row as text."""
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    sign = ">=" if row.at_least else "<="
    verdict = "" if row.ratio is None else "ok" if row.is_met else "MISSED"
    return f"{row.name:<34} {ratio:>7} {sign} {row.target:<5} {verdict:<7} {row.detail}"
