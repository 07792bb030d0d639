"""The base error classes of tg_ir and the two functions that make their texts readable.

Each class also derives from the builtin that fits, so callers may catch either. Errors that
belong to one part (a graph rule, a device) live with that part.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "CompileError",
    "DTypeError",
    "DuplicateSettingError",
    "EventFormatError",
    "LiteralError",
    "RenderError",
    "SettingError",
    "TargetError",
    "TgError",
    "ToolchainConflictError",
    "ToolchainLoadError",
    "UnknownToolchainError",
    "did_you_mean",
    "show_caret",
]


class TgError(Exception):
    """Base of the errors that the base part raises; other parts may derive from it too."""


class DTypeError(TgError, TypeError):
    """A dtype is unknown, or is not one that the operation takes."""


class LiteralError(TgError, ValueError):
    """A Python number cannot be held by the dtype it is used with."""


class SettingError(TgError, ValueError):
    """A setting is unknown, or its value is not accepted."""


class DuplicateSettingError(SettingError):
    """Two places declare a setting of the same name."""


class TargetError(TgError, ValueError):
    """The text of `DEV` is not a target.

    Attributes:
        text: the whole text that was parsed.
        position: index of the first character at fault.
        length: number of characters at fault, at least 1.
    """

    def __init__(self, message: str, text: str, position: int, length: int = 1) -> None:
        """Keep the text and the place, and show both in the message."""
        self.text = text
        self.position = position
        self.length = max(1, length)
        super().__init__(f"{message}\n{show_caret(text, position, length)}")


class EventFormatError(TgError, ValueError):
    """An event file was not written by this format version, or is not an event file."""


def show_caret(text: str, position: int, length: int = 1) -> str:
    """Two lines: the text, and carets under `length` characters from `position`.

    Args:
        text: one line of source text.
        position: index into `text`; its length is allowed and means "at the end".
        length: how many characters to mark; at least one caret is drawn.
    """
    return f"    {text}\n    {' ' * position}{'^' * max(1, length)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A tail for an error text: close matches of `name`, else everything known, sorted.

    Returns:
        "did you mean 'BEAM'?", or "known: BEAM, DEBUG" where nothing is close, or
        "none are known" where `known` is empty.
    """
    names = sorted(known)
    if not names:
        return "none are known"
    by_upper = {candidate.upper(): candidate for candidate in names}
    close = get_close_matches(name.upper(), by_upper, n=3, cutoff=0.6)
    if close:
        quoted = " or ".join(repr(by_upper[match]) for match in close)
        return f"did you mean {quoted}?"
    return f"known: {', '.join(names)}"


class ShapeError(TgError, ValueError):
    """Shapes that do not fit together; the message shows both."""


class RenderError(TgError, NotImplementedError):
    """A renderer cannot express a node of a linear kernel; the message shows the node."""


class CompileError(TgError, RuntimeError):
    """A compiler refused a source text; the message names the file that keeps source and log."""


class UnknownToolchainError(TgError, LookupError):
    """No installed package offers a renderer or a compiler of this name."""


class ToolchainConflictError(TgError, RuntimeError):
    """Two installed packages offer a renderer or a compiler of the same name."""


class ToolchainLoadError(TgError, RuntimeError):
    """A renderer or a compiler is offered, but cannot be loaded or opened on this machine."""
