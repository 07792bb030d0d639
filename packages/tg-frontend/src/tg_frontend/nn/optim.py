"""`nn.optim`: the optimisers, under the name that users know."""

from tg_frontend.optim import SGD, Adam, AdamW, Optimizer, OptimizerError, OptimizerGroup

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "OptimizerError", "OptimizerGroup"]
