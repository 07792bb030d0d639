"""Layers, and below them `nn.optim` and `nn.state`."""

from tg_frontend.nn import optim, state
from tg_frontend.nn.convolution import Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d
from tg_frontend.nn.errors import LayerError
from tg_frontend.nn.linear import Embedding, Linear
from tg_frontend.nn.normalization import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)
from tg_frontend.nn.recurrent import LSTMCell

__all__ = [
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "LSTMCell",
    "LayerError",
    "LayerNorm",
    "LayerNorm2d",
    "Linear",
    "RMSNorm",
    "optim",
    "state",
]
