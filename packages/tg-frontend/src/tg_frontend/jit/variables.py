"""What becomes of the variables of recorded programs.

Those of the arguments stay, random counters follow the generator, and others keep the value that
they had at the capture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tg_codegen.compile import variable_of
from tg_ir.device import Add, Const, IntExpr, Var, VariableBounds

from tg_frontend.tensor.random import COUNTER_NAME, KEY_NAME

_LARGEST = (1 << 62) - 1
_GENERATOR_BOUNDS = tuple(VariableBounds(name, 0, _LARGEST) for name in (KEY_NAME, COUNTER_NAME))


@dataclass(frozen=True)
class VariablePlan:
    """How the captured call gave values to variables.

    Attributes:
        arguments: the values of the variables among its arguments.
        key: the key of the random generator.
        first_counter: its next counter when the call began.
        draws: how many numbers the call drew.
    """

    arguments: Mapping[str, int]
    key: int
    first_counter: int
    draws: int

    def replacements(
        self, variables: tuple[VariableBounds, ...], values: Mapping[str, int]
    ) -> dict[str, IntExpr]:
        """What stands for each variable of a recorded program in a replay, if not itself."""
        found: dict[str, IntExpr] = {}
        for bounds in variables:
            name = bounds.name
            value = values[name]
            if name.startswith(f"{KEY_NAME}_") and value == self.key:
                found[name] = Var(KEY_NAME)
            elif name.startswith(f"{COUNTER_NAME}_") and self._was_drawn(value):
                found[name] = Add(Var(COUNTER_NAME), Const(value - self.first_counter))
            elif self.arguments.get(variable_of(name)) != value:
                found[name] = Const(value)
            elif variable_of(name) != name:
                found[name] = Var(variable_of(name))  # another value had the plain name
        return found

    def declared(
        self, variables: tuple[VariableBounds, ...], replaced: Mapping[str, IntExpr]
    ) -> list[VariableBounds]:
        """The variables of a replay that a recorded program with these needs."""
        staying = [bounds for bounds in variables if bounds.name not in replaced]
        renamed = [
            VariableBounds(variable_of(bounds.name), bounds.minimum, bounds.maximum)
            for bounds in variables
            if replaced.get(bounds.name) == Var(variable_of(bounds.name))
        ]
        return [*staying, *renamed, *self.generator_bounds()]

    def generator_bounds(self) -> tuple[VariableBounds, ...]:
        """The variables that say where the generator is at a replay."""
        return _GENERATOR_BOUNDS if self.draws else ()

    def _was_drawn(self, counter: int) -> bool:
        return self.first_counter <= counter < self.first_counter + self.draws


def generator_values(key: int, first_counter: int) -> dict[str, int]:
    """The values of those variables."""
    return {KEY_NAME: key, COUNTER_NAME: first_counter}
