"""Optimisers. Users import `tg_frontend.nn.optim`."""

from tg_frontend.optim.adam import Adam, AdamW
from tg_frontend.optim.errors import OptimizerError
from tg_frontend.optim.optimizer import Optimizer, OptimizerGroup
from tg_frontend.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "OptimizerError", "OptimizerGroup"]
