"""`CompiledKernel`: a binary and what is needed to launch it, and how the disk cache keeps it.

The written form is a JSON header and the code, with a version and a checksum: a damaged record
reads as none.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from tg_ir.device import (
    BufferParameter,
    Const,
    IntExpr,
    KernelSignature,
    TinyELF,
    int_expr_from_json,
)

from tg_codegen.kernel.workspace import Workspace

RECORD_VERSION = 2
_MAGIC = b"tg-kernel"
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class CompiledKernel:
    """What one CALL became.

    Attributes:
        elf: the binary. Its buffers are those of the CALL, then the workspaces.
        thread_extent: iterations shared by the workers, over variables `v0`, `v1`, ... in CALL
            order.
        workspaces: extra buffers, in order.
        flops: arithmetic operations of a launch, an estimate.
        nbytes: bytes moved by a launch, an estimate.
    """

    elf: TinyELF
    thread_extent: IntExpr = Const(1)
    workspaces: tuple[Workspace, ...] = ()
    flops: IntExpr = Const(0)
    nbytes: IntExpr = Const(0)


def write_record(kernel: CompiledKernel) -> bytes:
    """The written form of `kernel`."""
    elf = kernel.elf
    header = {
        "version": RECORD_VERSION,
        "name": elf.name,
        "code_format": elf.code_format,
        "target": elf.target,
        "buffers": [[buffer.dtype, buffer.writable] for buffer in elf.signature.buffers],
        "vals": list(elf.signature.vals),
        "thread_extent": kernel.thread_extent.to_json(),
        "workspaces": [
            [workspace.nbytes, workspace.dtype, workspace.alignment]
            for workspace in kernel.workspaces
        ],
        "flops": kernel.flops.to_json(),
        "nbytes": kernel.nbytes.to_json(),
    }
    text = json.dumps(header, sort_keys=True).encode()
    body = len(text).to_bytes(4, "little") + text + elf.code
    return _MAGIC + _digest(body) + body


def read_record(data: bytes) -> CompiledKernel | None:
    """The kernel that `write_record` wrote; None where that is damaged or of another version."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _digest(body):
        return None
    size = int.from_bytes(body[:4], "little")
    header = json.loads(body[4 : 4 + size])
    if header["version"] != RECORD_VERSION:
        return None
    signature = KernelSignature(
        tuple(BufferParameter(dtype, writable) for dtype, writable in header["buffers"]),
        tuple(header["vals"]),
    )
    elf = TinyELF(
        header["name"], body[4 + size :], header["code_format"], header["target"], signature
    )
    return CompiledKernel(
        elf,
        int_expr_from_json(header["thread_extent"]),
        tuple(Workspace(*fields) for fields in header["workspaces"]),
        int_expr_from_json(header["flops"]),
        int_expr_from_json(header["nbytes"]),
    )


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
