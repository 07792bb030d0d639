"""What each stage may contain, and `verify(graph, spec)`, which checks it."""

from tg_ir.graph.spec.kernel_rules import kernel_graph
from tg_ir.graph.spec.linear_rules import linear_kernel
from tg_ir.graph.spec.model import Fault, OpRule, Spec, is_valid, verify
from tg_ir.graph.spec.schedule_rules import schedule
from tg_ir.graph.spec.tensor_rules import tensor_graph

__all__ = [
    "Fault",
    "OpRule",
    "Spec",
    "is_valid",
    "kernel_graph",
    "linear_kernel",
    "schedule",
    "tensor_graph",
    "verify",
]
