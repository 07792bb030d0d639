"""The key of a compiled kernel: everything that its code depends on, and nothing else."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tg_ir.config import cache_key
from tg_ir.graph import UOp
from tg_ir.graph.render_api import Compiler, Renderer

_OWN_PACKAGES = ("tg_ir", "tg_codegen")


def kernel_key(call: UOp, renderer: Renderer, compiler: Compiler) -> bytes:
    """The key of the kernel that a CALL runs, 32 bytes, the same in every process."""
    parts = (
        renderer.cachekey,
        compiler.cachekey,
        repr(cache_key("kernel")),
        _code_fingerprint(_package_of(renderer), _package_of(compiler)),
        str(len(call.src)),
    )
    digest = hashlib.sha256(call.src[0].key)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.digest()


def support_key(source: str, compiler: Compiler) -> bytes:
    """The key of compiled support code, 32 bytes: the text is all there is before compiling."""
    return hashlib.sha256(f"{compiler.cachekey}\0{source}".encode()).digest()


def _package_of(part: object) -> str:
    return type(part).__module__.partition(".")[0]


@cache
def _code_fingerprint(*backends: str) -> str:
    """Differs after any change of the packages that make kernels.

    A working copy keeps its version, so that is not enough. Sizes and times of the files are, and
    looking them up takes a hundredth of reading the files.
    """
    digest = hashlib.sha256()
    for package in sorted({*_OWN_PACKAGES, *backends}):
        origin = getattr(sys.modules.get(package), "__file__", None)
        if origin is None:
            continue
        root = Path(origin).parent
        for entry in sorted(_source_files(root), key=lambda found: found.path):
            facts = entry.stat()
            name = os.path.relpath(entry.path, root)
            line = f"{package}/{name} {facts.st_size} {facts.st_mtime_ns}\n"
            digest.update(line.encode())
    return digest.hexdigest()


def _source_files(root: Path) -> Iterator[os.DirEntry[str]]:
    folders = [str(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(".py"):
                    yield entry
