"""The language and the contracts of the compiler stack; standard library only.

Importing this loads nothing else: each name is fetched on first use (PEP 562). The parts
`tg_ir.graph` and `tg_ir.device` are doors of their own.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tg_ir.config import Context, ContextVar, cache_key, settings_table
    from tg_ir.counters import GlobalCounters
    from tg_ir.dtype import DType, dtypes, least_upper_dtype
    from tg_ir.errors import TgError
    from tg_ir.graph import Ops, PatternMatcher, UOp, UPat, graph_rewrite
    from tg_ir.target import Target

__all__ = [
    "Context",
    "ContextVar",
    "DType",
    "GlobalCounters",
    "Ops",
    "PatternMatcher",
    "Target",
    "TgError",
    "UOp",
    "UPat",
    "cache_key",
    "dtypes",
    "graph_rewrite",
    "least_upper_dtype",
    "settings_table",
]

_HOME_OF_NAME = {
    "Context": "tg_ir.config",
    "ContextVar": "tg_ir.config",
    "DType": "tg_ir.dtype",
    "GlobalCounters": "tg_ir.counters",
    "Ops": "tg_ir.graph",
    "PatternMatcher": "tg_ir.graph",
    "Target": "tg_ir.target",
    "TgError": "tg_ir.errors",
    "UOp": "tg_ir.graph",
    "UPat": "tg_ir.graph",
    "cache_key": "tg_ir.config",
    "dtypes": "tg_ir.dtype",
    "graph_rewrite": "tg_ir.graph",
    "least_upper_dtype": "tg_ir.dtype",
    "settings_table": "tg_ir.config",
}


def __getattr__(name: str) -> object:
    """Import the module that holds `name` and keep the name here."""
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module 'tg_ir' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the lazy names too."""
    return sorted({*globals(), *__all__})
