"""What `DEBUG` shows of a kernel while it is made.

3 optimisations, 4 source, 5 the graph, 6 the linear kernel, 7 assembly.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_ir.config import DEBUG
from tg_ir.graph import UOp
from tg_ir.graph.render_api import Compiler
from tg_ir.graph.text import show


def report_kernel(
    name: str,
    sink: UOp,
    linear: Sequence[UOp],
    opts: Sequence[str],
    source: str,
    compiler: Compiler,
) -> None:
    """Print what `DEBUG` asks for, in the order in which it came to be."""
    if DEBUG < 3:
        return
    print(f"*** {name}: {', '.join(opts) or 'no optimisation'}")
    if DEBUG >= 5:
        print(show(sink))
    if DEBUG >= 6:
        print(show(tuple(linear)))
    if DEBUG >= 4:
        print(source)
    if DEBUG >= 7:
        print(_assembly(compiler, source))


def _assembly(compiler: Compiler, source: str) -> str:
    try:
        return compiler.assembly(source)
    except NotImplementedError as error:
        return str(error)
