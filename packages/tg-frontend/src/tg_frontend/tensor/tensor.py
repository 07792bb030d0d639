"""`Tensor`, the last class of the chain."""

from __future__ import annotations

from tg_frontend.tensor.networks import Networks


class Tensor(Networks):
    """A value of one dtype and shape on one device, computed when it is asked for."""

    __slots__ = ()
