"""`VariableNames`: what the variables of a program are called.

A variable that a schedule binds to several values is several variables of its program: a launch
takes each value under a name of its own.
"""

from __future__ import annotations

from tg_ir.graph import Ops, UOp

from tg_codegen.errors import UnsupportedCallError

INTEGERS = (Ops.BIND, Ops.DEFINE_VAR)

# No name of a variable has it, so numbered names meet none of the user's.
_BEFORE_NUMBER = ":"


class VariableNames:
    """Names for the integers of CALLs, asked for in the order of the schedule."""

    def __init__(self) -> None:
        """Start without names."""
        self._names: dict[UOp, str] = {}
        self._variables: dict[str, list[UOp]] = {}

    def name_of(self, node: UOp) -> str:
        """The name of a BIND or DEFINE_VAR.

        The first value of a variable has the variable's own name, the second `name:2`.

        Raises:
            UnsupportedCallError: another variable of that name has other bounds.
        """
        known = self._names.get(node)
        if known is not None:
            return known
        variable = node.src[0] if node.op is Ops.BIND else node
        name: str = variable.arg.name
        earlier = self._variables.setdefault(name, [])
        if earlier and earlier[0] is not variable:
            first, this = earlier[0].arg, variable.arg
            raise UnsupportedCallError(
                f"two variables are called '{name}', with bounds {first.vmin}..{first.vmax} "
                f"and {this.vmin}..{this.vmax}; rename one of them"
            )
        earlier.append(variable)
        numbered = name if len(earlier) == 1 else f"{name}{_BEFORE_NUMBER}{len(earlier)}"
        self._names[node] = numbered
        return numbered


def variable_of(name: str) -> str:
    """The name of the variable that a variable of a program is a value of."""
    return name.partition(_BEFORE_NUMBER)[0]
