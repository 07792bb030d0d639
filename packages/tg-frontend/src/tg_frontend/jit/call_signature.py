"""`CallSignature`: what a call was given, apart from the contents of its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tg_ir.config import cache_key
from tg_ir.graph import UOp

from tg_frontend.jit.arguments import Arguments, is_same_value
from tg_frontend.jit.errors import JitError
from tg_frontend.tensor import Tensor

_TENSOR = "a tensor"
_VARIABLE = "a bound variable"


@dataclass(frozen=True)
class CallSignature:
    """What a captured program is good for.

    Attributes:
        kinds: by path what stands there: a tensor, a variable, or a plain value.
        variables: the variable at each path.
        values: the plain value at each path.
        training: `Tensor.training`.
        settings: the settings that captures depend on, with their values.
    """

    kinds: dict[str, str]
    variables: dict[str, UOp]
    values: dict[str, Any]
    training: bool
    settings: object

    @classmethod
    def of(cls, arguments: Arguments) -> CallSignature:
        """The signature of a call that happens now."""
        return cls(
            kinds=_kinds(arguments),
            variables={path: bind.src[0] for path, bind in arguments.variables.items()},
            values=dict(arguments.values),
            training=Tensor.training,
            settings=cache_key("jit"),
        )

    def has_present_settings(self) -> bool:
        """Whether the settings are still those of the capture."""
        return self.settings == cache_key("jit")

    def check(self, arguments: Arguments) -> None:
        """Refuse a call that the captured program does not stand for.

        Raises:
            JitError: says what was expected, what came and what to do.
        """
        if Tensor.training != self.training:
            raise JitError(
                f"Tensor.training was {self.training} at the capture and is {Tensor.training} now; "
                "use one TinyJit for each, or call reset() to capture anew"
            )
        kinds = _kinds(arguments)
        for path in (*self.kinds, *kinds):
            expected = self.kinds.get(path, "nothing")
            given = kinds.get(path, "nothing")
            if expected != given:
                raise JitError(
                    f"{path}: expected {expected}, as at the capture, got {given}; "
                    "use one TinyJit for each form of call, or call reset() to capture anew"
                )
        for path, bind in arguments.variables.items():
            expected_variable = self.variables[path]
            if bind.src[0] is not expected_variable:
                raise JitError(
                    f"{path}: expected the variable {expected_variable.arg}, "
                    f"as at the capture, got {bind.src[0].arg}; pass the same, or call reset()"
                )
        for path, value in arguments.values.items():
            self._check_value(path, value)

    def _check_value(self, path: str, value: Any) -> None:
        expected = self.values[path]
        if not is_same_value(expected, value):
            raise JitError(
                f"{path}: expected {expected!r}, as at the capture, got {value!r}; Python values "
                "are frozen in the captured program: pass a Tensor or a bound Variable, "
                "or call reset()"
            )


def _kinds(arguments: Arguments) -> dict[str, str]:
    kinds = dict.fromkeys(arguments.tensors, _TENSOR)
    kinds |= dict.fromkeys(arguments.variables, _VARIABLE)
    for path, value in arguments.values.items():
        kinds[path] = f"a {type(value).__name__}"
    return kinds
