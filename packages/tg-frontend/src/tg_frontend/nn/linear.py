"""Layers that multiply or look up: `Linear`, `Embedding`."""

from __future__ import annotations

import math

from tg_ir.dtype import dtypes

from tg_frontend.nn.checks import check_sizes
from tg_frontend.nn.errors import LayerError
from tg_frontend.tensor import Tensor
from tg_frontend.tensor.core import expect_tensors


class Linear:
    """`x @ weight.T + bias`, over the last axis.

    Attributes:
        weight: shape `(out_features, in_features)`, uniform in +-1/sqrt(in_features) at first.
        bias: shape `(out_features,)`, likewise, or None.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        """Make the parameters.

        Raises:
            LayerError: a size is below 1.
        """
        check_sizes("Linear", in_features, out_features)
        self.in_features = in_features
        bound = 1 / math.sqrt(in_features)
        self.weight = Tensor.uniform(out_features, in_features, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Shape `(..., in_features)` -> `(..., out_features)`.

        Raises:
            LayerError: the last axis of `x` has another size.
        """
        expect_tensors("Linear", x)
        if not x.shape or x.shape[-1] != self.in_features:
            raise LayerError(
                f"Linear({self.in_features}, {self.weight.shape[0]}) got an input of shape "
                f"{x.shape}; "
                f"its last axis has to be {self.in_features}: flatten or reshape it first"
            )
        return x.linear(self.weight.transpose(), self.bias)


class Embedding:
    """Rows of a table by index.

    Attributes:
        weight: shape `(vocab_size, embed_size)`, Glorot uniform at first.
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        """Make the table.

        Raises:
            LayerError: a size is below 1.
        """
        check_sizes("Embedding", vocab_size, embed_size)
        self.vocab_size = vocab_size
        self.embed_size = embed_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        """Shape `(...)` of ints -> `(..., embed_size)`; an index outside the table gives zeros.

        Raises:
            LayerError: `idx` holds no integers.
        """
        expect_tensors("Embedding", idx)
        if not dtypes.is_int(idx.dtype):
            raise LayerError(
                f"Embedding({self.vocab_size}, {self.embed_size}) got indices of dtype "
                f"{idx.dtype.name}; "
                "expected integers: cast them with .int()"
            )
        return self.weight[idx]
