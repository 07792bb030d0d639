"""Layers that keep a state from step to step: `LSTMCell`."""

from __future__ import annotations

import math

from tg_frontend.nn.checks import check_sizes
from tg_frontend.nn.errors import LayerError
from tg_frontend.tensor import Tensor
from tg_frontend.tensor.core import expect_tensors


class LSTMCell:
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997; with forget gate).

    The rows of weights and biases are those of the input, forget, cell and output gate, in this
    order.

    Attributes:
        weight_ih: shape `(4 hidden_size, input_size)`, uniform in +-1/sqrt(hidden_size) at first.
        weight_hh: shape `(4 hidden_size, hidden_size)`, likewise.
        bias_ih: shape `(4 hidden_size,)`, likewise, or None.
        bias_hh: shape `(4 hidden_size,)`, likewise, or None.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        """Make the parameters.

        Raises:
            LayerError: a size is below 1.
        """
        check_sizes("LSTMCell", input_size, hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = 4 * hidden_size
        bound = 1 / math.sqrt(hidden_size)
        self.weight_ih = Tensor.uniform(rows, input_size, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(rows, hidden_size, low=-bound, high=bound)
        self.bias_ih = Tensor.uniform(rows, low=-bound, high=bound) if bias else None
        self.bias_hh = Tensor.uniform(rows, low=-bound, high=bound) if bias else None

    def __call__(
        self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Shape `(batch, input_size)` -> hidden and cell state, each `(batch, hidden_size)`.

        Args:
            x: the input of this step.
            hc: hidden and cell state before it; None means zeros.

        Raises:
            LayerError: `x` has another shape.
        """
        expect_tensors("LSTMCell", x)
        if x.ndim != 2 or x.shape[1] != self.input_size:
            raise LayerError(
                f"LSTMCell({self.input_size}, {self.hidden_size}) got an input of shape "
                f"{x.shape}; expected (batch, {self.input_size})"
            )
        gates = x.linear(self.weight_ih.transpose(), self.bias_ih)
        if hc is not None:
            gates = gates + hc[0].linear(self.weight_hh.transpose(), self.bias_hh)
        elif self.bias_hh is not None:
            gates = gates + self.bias_hh
        entering, kept, candidate, leaving = gates.chunk(4, dim=1)
        cell = entering.sigmoid() * candidate.tanh()
        if hc is not None:
            cell = cell + kept.sigmoid() * hc[1]
        return leaving.sigmoid() * cell.tanh(), cell
