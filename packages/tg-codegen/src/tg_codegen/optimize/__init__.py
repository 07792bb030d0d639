"""Optimisation of one kernel over an explicit loop nest.

The moves (`Opt`), their application, and the default choice.
"""

from tg_codegen.errors import OptError
from tg_codegen.optimize.apply import apply_opt, apply_opts
from tg_codegen.optimize.heuristic import choose_opts, optimize
from tg_codegen.optimize.opt import Opt, OptOps

__all__ = ["Opt", "OptError", "OptOps", "apply_opt", "apply_opts", "choose_opts", "optimize"]
