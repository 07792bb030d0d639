"""`CompiledKernel`: a binary and what is needed to launch it; how the disk cache keeps them.

The written form of the programs of a CALL is a JSON header and their code, with a version and a
checksum: a damaged record reads as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tg_ir.device import (
    BufferParameter,
    Const,
    IntExpr,
    KernelSignature,
    TinyELF,
    int_expr_from_json,
)

from tg_codegen.kernel.workspace import Workspace

RECORD_VERSION = 3
_MAGIC = b"tg-kernel"
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class CompiledKernel:
    """One program of a CALL.

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


def write_record(kernels: Sequence[CompiledKernel]) -> bytes:
    """The written form of the programs of a CALL."""
    header = {"version": RECORD_VERSION, "programs": [_described(kernel) for kernel in kernels]}
    text = json.dumps(header, sort_keys=True).encode()
    code = b"".join(kernel.elf.code for kernel in kernels)
    body = len(text).to_bytes(4, "little") + text + code
    return _MAGIC + _digest(body) + body


def read_record(data: bytes) -> tuple[CompiledKernel, ...] | None:
    """What `write_record` wrote; None where that is damaged or of another version."""
    start = len(_MAGIC) + _DIGEST_BYTES
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC or data[len(_MAGIC) : start] != _digest(body):
        return None
    size = int.from_bytes(body[:4], "little")
    header = json.loads(body[4 : 4 + size])
    if header["version"] != RECORD_VERSION:
        return None
    kernels = []
    at = 4 + size
    for described in header["programs"]:
        end = at + described["code_bytes"]
        kernels.append(_kernel_of(described, body[at:end]))
        at = end
    return tuple(kernels)


def _described(kernel: CompiledKernel) -> dict[str, Any]:
    elf = kernel.elf
    return {
        "name": elf.name,
        "code_format": elf.code_format,
        "code_bytes": len(elf.code),
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


def _kernel_of(described: dict[str, Any], code: bytes) -> CompiledKernel:
    signature = KernelSignature(
        tuple(BufferParameter(dtype, writable) for dtype, writable in described["buffers"]),
        tuple(described["vals"]),
    )
    elf = TinyELF(
        described["name"], code, described["code_format"], described["target"], signature
    )
    return CompiledKernel(
        elf,
        int_expr_from_json(described["thread_extent"]),
        tuple(Workspace(*fields) for fields in described["workspaces"]),
        int_expr_from_json(described["flops"]),
        int_expr_from_json(described["nbytes"]),
    )


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
