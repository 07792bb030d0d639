"""The content hash of a graph: what disk caches are keyed by.

Equal graphs have equal keys in every process.
"""

from __future__ import annotations

import hashlib

from tg_ir.graph.ops import ReduceArg
from tg_ir.graph.uop import UOp, toposort


def content_keys(root: UOp) -> None:
    """Fills `_key` of `root` and of everything below it."""
    for node in toposort((root,), lambda n: n._key is None):
        if node._key is not None:
            continue
        digest = hashlib.sha256(f"{node.op.name}|{node.dtype!r}|".encode())
        digest.update(_arg_key(node))
        for source in node.src:
            digest.update(source.key)
        node._key = digest.digest()


def _arg_key(node: UOp) -> bytes:
    if not isinstance(node.arg, ReduceArg):
        return repr(node.arg).encode()
    combine = node.arg.combine
    body = b"".join(state.key for state in combine.body)
    return repr((combine.name, combine.init, combine.op, node.arg.axes)).encode() + body
