"""What a tensor looks like when it is printed. Printing computes nothing."""

from __future__ import annotations

from tg_ir.graph import Ops, UOp

from tg_frontend.live.walk import is_view_of_storage

_MAX_NODES = 3


def shown(uop: UOp, device: str, has_grad: bool) -> str:
    """One line: shape, dtype, device, and whether the value is stored or what would compute it."""
    state = "realized" if is_view_of_storage(uop) else _expression(uop)
    grad = " with grad" if has_grad else ""
    return f"<Tensor {uop.shape} {uop.dtype.name} on {device}, {state}{grad}>"


def _expression(uop: UOp) -> str:
    if uop.op is Ops.CONST:
        return f"constant {uop.arg}"
    names: list[str] = []
    node = uop
    while node.src and len(names) < _MAX_NODES:
        names.append(node.op.name)
        node = node.src[0]
    return "lazy " + " of ".join(names) if names else f"lazy {uop.op.name}"
