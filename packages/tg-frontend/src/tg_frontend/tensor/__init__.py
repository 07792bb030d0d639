"""`Tensor`, the array that programs compute with, split by topic over the files of this folder."""

from tg_frontend.tensor.tensor import Tensor

__all__ = ["Tensor"]
