"""`FloatModel`: how far the float arithmetic of a device or of generated code keeps IEEE 754.

Both sides of the stack declare one: a device in its `DeviceCapabilities`, a renderer in its
`TargetCapabilities`. Promises about values hold as far as the model goes.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FloatModel"]


@dataclass(frozen=True, slots=True)
class FloatModel:
    """What a backend cannot decide, it declares here; the defaults are full IEEE 754.

    Attributes:
        nan: NaN compares and propagates as in IEEE 754.
        inf: overflow gives an infinity.
        subnormals: subnormal operands and results are kept, not flushed to zero.
        contraction: `a*b+c` may be rounded once where the program rounds twice.
        division_ulp: largest error of a division, in units in the last place.
        sqrt_ulp: largest error of a square root, in units in the last place.
    """

    nan: bool = True
    inf: bool = True
    subnormals: bool = True
    contraction: bool = False
    division_ulp: float = 0.5
    sqrt_ulp: float = 0.5
