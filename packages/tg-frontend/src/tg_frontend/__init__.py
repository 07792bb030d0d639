"""Tensor, autograd, nn, optim, state and JIT: the package that programs import.

Each name is fetched on first use (PEP 562), so that importing this loads neither numpy nor a
device.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tg_ir.config import Context, ContextVar
    from tg_ir.counters import GlobalCounters
    from tg_ir.dtype import dtypes
    from tg_ir.graph import UOp

    from tg_frontend import nn
    from tg_frontend.device import Device
    from tg_frontend.function import function
    from tg_frontend.jit import TinyJit
    from tg_frontend.tensor import Tensor
    from tg_frontend.variable import Variable

__all__ = [
    "Context",
    "ContextVar",
    "Device",
    "GlobalCounters",
    "Tensor",
    "TinyJit",
    "UOp",
    "Variable",
    "dtypes",
    "function",
    "nn",
]

_HOME_OF_NAME = {
    "Context": "tg_ir.config",
    "ContextVar": "tg_ir.config",
    "Device": "tg_frontend.device",
    "GlobalCounters": "tg_ir.counters",
    "Tensor": "tg_frontend.tensor",
    "TinyJit": "tg_frontend.jit",
    "UOp": "tg_ir.graph",
    "Variable": "tg_frontend.variable",
    "dtypes": "tg_ir.dtype",
    "function": "tg_frontend.function",
}


def __getattr__(name: str) -> object:
    """Import the module that holds `name` and keep the name here."""
    if name == "nn":
        return import_module("tg_frontend.nn")
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module 'tg_frontend' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazy names too."""
    return sorted({*globals(), *__all__})
