"""Errors of the graph part: of texts, specs, passes and evaluated programs."""

from __future__ import annotations

from tg_ir.errors import TgError, show_caret


class TextError(TgError, ValueError):
    """A text is no graph.

    Attributes:
        line_number: the line at fault, from 1.
        position: index of the first character at fault in that line.
    """

    def __init__(self, message: str, line: str, line_number: int, position: int) -> None:
        """Keep the place, and show it in the message."""
        self.line_number = line_number
        self.position = position
        super().__init__(f"line {line_number}: {message}\n{show_caret(line, position)}")


class VerificationError(TgError, ValueError):
    """A graph breaks the spec of its stage; the message shows the neighbourhood of the fault."""


class EvaluationError(TgError, RuntimeError):
    """A program cannot be evaluated: an input is missing, or it does what no program may do."""


class OutOfRangeError(EvaluationError, IndexError):
    """A kernel touches an element that its buffer does not have."""


class PassError(TgError, RuntimeError):
    """A pass of a pipeline failed; the cause is chained."""


class PipelineError(TgError, ValueError):
    """A pipeline has no pass of that name, or two of one name."""
