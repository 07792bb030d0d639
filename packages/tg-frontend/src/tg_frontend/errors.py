"""Errors of the frontend. Each says what was expected, what came, and what to do."""

from tg_ir.errors import TgError


class GradientError(TgError, RuntimeError):
    """A gradient was asked for that does not exist, or that no rule can compute."""


class AxisError(TgError, IndexError):
    """An axis that the tensor does not have."""


class IndexOutOfRangeError(TgError, IndexError):
    """A Python integer that indexes outside its axis, or too many indices."""


class EmptyReductionError(TgError, ValueError):
    """A maximum, minimum or their position over no elements."""


class ItemError(TgError, ValueError):
    """One Python value was asked of a tensor that has not exactly one element."""


class WriteError(TgError, ValueError):
    """A write whose target or value does not fit."""


class StaleVersionError(TgError, RuntimeError):
    """A graph reads contents that were overwritten, or a buffer that is gone."""


class DataError(TgError, ValueError):
    """Python data that no tensor can be made of."""


class HostMemoryError(TgError, MemoryError):
    """This process cannot get the memory for a value that is to leave its device."""


class ArgumentError(TgError, TypeError):
    """An argument of a type that the function does not take."""
