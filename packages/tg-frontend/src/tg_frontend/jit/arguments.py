"""The arguments of a captured function: tensors, variables and plain values, by where they stand.

Lists, tuples and dicts are followed; what stands in other objects is no argument of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tg_ir.graph import GroupOp, Ops, UOp, toposort

from tg_frontend.jit.errors import JitError
from tg_frontend.tensor import Tensor


class Keys(tuple[Any, ...]):
    """Stands for a dict among the values; its entries have paths of their own."""


class Length(int):
    """Stands for a list or tuple among the values, likewise."""


_COMPARED_BY_VALUE = (bool, int, float, complex, str, bytes, type(None), Keys)


@dataclass
class Arguments:
    """What one call was given, each by its path, such as "argument 0" or "argument x['mask']".

    Attributes:
        tensors: the tensors.
        variables: bound variables, as BIND nodes.
        values: everything else; a captured program is good for equal ones only.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    variables: dict[str, UOp] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def binds(self) -> list[UOp]:
        """The BINDs among the arguments and in the shapes of tensors among them."""
        found = list(self.variables.values())
        found += [node for tensor in self.tensors.values() for node in binds_of(tensor.uop)]
        return list(dict.fromkeys(found))

    def variable_values(self) -> dict[str, int]:
        """The value of each variable by name.

        Raises:
            JitError: one variable was given two values.
        """
        found: dict[str, int] = {}
        for bind in self.binds():
            variable, value = bind.unbind()
            name = variable.arg.name
            if found.setdefault(name, value) != value:
                raise JitError(
                    f"the arguments bind variable '{name}' to {found[name]} and to {value}; "
                    "give each variable one value a call"
                )
        return found


def collect_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    """The tensors, variables and values among the arguments of a call.

    Raises:
        JitError: an argument is a numpy array, which would be frozen at the capture.
    """
    arguments = Arguments()
    pending: list[tuple[str, Any]] = [(f"argument {n}", item) for n, item in enumerate(args)]
    pending += [(f"argument {key}", kwargs[key]) for key in sorted(kwargs)]
    while pending:
        path, item = pending.pop(0)
        if isinstance(item, Tensor):
            arguments.tensors[path] = item
        elif isinstance(item, UOp) and item.op is Ops.BIND:
            arguments.variables[path] = item
        elif isinstance(item, dict):
            arguments.values[path] = Keys(item)
            pending[:0] = [(f"{path}[{key!r}]", child) for key, child in item.items()]
        elif isinstance(item, (list, tuple)):
            arguments.values[path] = Length(len(item))
            pending[:0] = [(f"{path}[{n}]", child) for n, child in enumerate(item)]
        elif hasattr(item, "__array_interface__"):  # the documented mark of an array
            raise JitError(
                f"{path} is an array of numpy, whose values a captured program could not see "
                "change; pass Tensor(array)"
            )
        else:
            arguments.values[path] = item
    return arguments


def is_same_value(left: Any, right: Any) -> bool:
    """Whether two plain arguments are equal, or the same object where equality means nothing."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    return isinstance(left, _COMPARED_BY_VALUE) and bool(left == right)


def binds_of(uop: UOp) -> list[UOp]:
    """The BIND nodes that the shape of a value, or its place in storage, depends on.

    None where the shape has no variables, wherever it lies.
    """
    sizes = [extent for extent in uop.shape if isinstance(extent, UOp)]
    if not sizes:
        return []
    while uop.op in GroupOp.Movement or uop.op in (Ops.REALIZED, Ops.DETACH):
        sizes += uop.src[1:] if uop.op in GroupOp.Movement else ()
        uop = uop.src[0]
    return [node for node in toposort(sizes) if node.op is Ops.BIND]
