"""`Tensor`, the last class of the chain."""

from __future__ import annotations

from tg_frontend.tensor.gradient import Gradient


class Tensor(Gradient):
    """A value of one dtype and shape on one device, computed when it is asked for."""

    __slots__ = ()
