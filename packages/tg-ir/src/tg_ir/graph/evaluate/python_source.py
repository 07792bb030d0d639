"""Python source under construction, for the evaluators of linear kernels and kernel graphs.

`PythonSource` writes statements; the evaluators decide where each goes. Scalars are Python numbers,
vectors are tuples, memory is a sequence (see `memory`). A failing statement is traced back to its
node by its line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, TracebackType
from typing import Any

from tg_ir.dtype import DType, dtypes
from tg_ir.graph.errors import EvaluationError, OutOfRangeError
from tg_ir.graph.evaluate import expressions, memory
from tg_ir.graph.evaluate.expressions import literal, scalar_expression
from tg_ir.graph.ops import Combine, Ops
from tg_ir.graph.symbolic.bounds import fold_index
from tg_ir.graph.text import neighbourhood
from tg_ir.graph.uop import UOp, toposort

# CPython refuses more than 20 nested loops in a function; deeper ones get functions of their own
_LOOPS_A_FUNCTION = 15
_FILE_NAME = "<kernel>"


class PythonSource:
    """Source under construction, and the name that each node has in it."""

    def __init__(self, yields: bool = False) -> None:
        """`yields`: the source is a generator, which yields at each BARRIER."""
        self.names: dict[UOp, str] = {}
        self.lines: list[str] = []
        self.yields = yields
        self._line_nodes: list[UOp | None] = []
        self._node: UOp | None = None
        self._indent = 0
        self._loops = [0]
        self._open: list[str] = []
        self._count = 0

    # ---- statements and blocks

    def line(self, text: str) -> None:
        """One statement at the current depth."""
        self.lines.append(" " * self._indent + text)
        self._line_nodes.append(self._node)

    def new_name(self, prefix: str = "x") -> str:
        """A name that nothing else has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def at(self, node: UOp) -> None:
        """The lines that follow belong to `node`."""
        self._node = node

    def open_function(self, head: str) -> None:
        """`def head:` with what follows inside."""
        self.line(f"def {head}:")
        self._indent += 1
        self.line("F = array('f', (0.0,))")

    def open_loop(self, variable: str, iterable: str) -> None:
        """`for variable in iterable:` with what follows inside."""
        outlined = ""
        if self._loops[-1] >= _LOOPS_A_FUNCTION:
            outlined = self.new_name("inner")
            self.line(f"def {outlined}():")
            self._indent += 1
            self._loops.append(0)
        self._open.append(outlined)
        self.line(f"for {variable} in {iterable}:")
        self._indent += 1
        self._loops[-1] += 1
        self.line("pass")

    def close_loop(self) -> None:
        """End the innermost loop."""
        self._indent -= 1
        self._loops[-1] -= 1
        outlined = self._open.pop()
        if outlined:
            if self.yields:
                self.line("yield from ()")
            self._loops.pop()
            self._indent -= 1
            self.line(f"yield from {outlined}()" if self.yields else f"{outlined}()")

    def open_if(self, condition: str) -> None:
        """`if condition:` with what follows inside."""
        self.line(f"if {condition}:")
        self._indent += 1
        self.line("pass")

    def close_if(self) -> None:
        """End the innermost condition."""
        self._indent -= 1

    # ---- compiling

    def compile(self, function_name: str) -> Callable[..., Any]:
        """The function of that name which the source defines; its failures name the node."""
        code: CodeType = compile("\n".join(self.lines) + "\n", _FILE_NAME, "exec")
        namespace: dict[str, Any] = {**expressions.FUNCTIONS, **memory.FUNCTIONS}
        exec(code, namespace)
        function: Callable[..., Any] = namespace[function_name]
        return function

    def explain(self, error: Exception, what: str) -> EvaluationError:
        """`error`, raised by the compiled source, as an error that shows the node at fault."""
        number = _line_of(error.__traceback__)
        node = self._line_nodes[number - 1] if 0 < number <= len(self._line_nodes) else None
        where = "" if node is None else f"\nat {node!r}, which computes\n{neighbourhood(node)}"
        out_of_range = isinstance(error, IndexError)
        kind = OutOfRangeError if out_of_range else EvaluationError
        cause = str(error) if isinstance(error, EvaluationError) else f"{_reason(error)}"
        return kind(f"{what}: {cause}{where}")

    # ---- one node

    def name(self, node: UOp) -> str:
        """The name or literal of a value already written."""
        found = self.names.get(node)
        if found is None:
            raise EvaluationError(f"{node!r} is used before it is computed\n{neighbourhood(node)}")
        return found

    def define(self, node: UOp, text: str) -> None:
        """`text` is the value of `node` from here on."""
        name = self.new_name()
        self.line(f"{name} = {text}")
        self.names[node] = name

    def elementwise(self, node: UOp) -> None:
        """Write an ALU op or cast, whose sources are written."""
        src_dtype = node.src[-1].dtype
        if node.op in _WRAPPING and cannot_wrap(node):
            unwrapped = scalar_expression(node.op, dtypes.index, dtypes.index)
            self.define(node, unwrapped.of(*self._names(node.src)))
            return
        self.names[node] = self.apply(node.op, node.dtype, src_dtype, self._names(node.src))

    def _names(self, nodes: Sequence[UOp]) -> list[str]:
        return [self.name(node) for node in nodes]

    def apply(self, op: Ops, dtype: DType, src_dtype: DType, operands: list[str]) -> str:
        """Write `op` of operands given by name; returns the name of the result."""
        expression = scalar_expression(op, dtype.scalar(), src_dtype.scalar())
        result = self.new_name()
        if op is Ops.MULACC and dtype.count > 1 and dtype.scalar() is dtypes.float32:
            self.line(f"{result} = fused_float32_lanes({', '.join(operands)})")
        elif dtype.count > 1:
            lanes = [f"a{k}" for k in range(len(operands))]
            text = f"[{expression.of(*lanes)} for {_zip(lanes)} in {_zip(operands, call=True)}]"
            rounded = f"array('f', {text})" if expression.through_float32 else text
            self.line(f"{result} = tuple({rounded})")
        elif expression.through_float32:
            self.line(f"F[0] = {expression.of(*operands)}")
            self.line(f"{result} = F[0]")
        else:
            self.line(f"{result} = {expression.of(*operands)}")
        return result

    def combine(
        self, combine: Combine, state_dtypes: Sequence[DType], old: list[str], new: list[str]
    ) -> list[str]:
        """Write `combine` of the states named `old` and `new`; returns the names of the result."""
        if combine.op is not None:
            dtype = state_dtypes[0]
            return [self.apply(combine.op, dtype, dtype, [old[0], new[0]])]
        outer = self.names
        self.names = {}
        lanes = state_dtypes[0].count
        sides = (old, new)
        for node in toposort(combine.body):
            if node.op is Ops.STATE:
                side, position = node.arg
                self.names[node] = sides[side][position]
            else:
                self._value_in_lanes(node, lanes)
        results = [self.names[state] for state in combine.body]
        self.names = outer
        return results

    def _value_in_lanes(self, node: UOp, lanes: int) -> None:
        """A node of the body of a combine; a combine of scalars joins vectors lane by lane."""
        if node.op is Ops.CONST:
            text = literal(node.arg)
            self.names[node] = text if lanes == 1 else f"(({text},) * {lanes})"
            return
        wide = node.dtype.vec(lanes)
        self.names[node] = self.apply(node.op, wide, node.src[-1].dtype, self._names(node.src))


_WRAPPING = frozenset({Ops.ADD, Ops.SUB, Ops.MUL})


def cannot_wrap(node: UOp) -> bool:
    """Whether bounds prove that this scalar ADD, SUB or MUL stays in its int dtype.

    Address arithmetic is half of what a kernel does, and wrapping an int in Python takes longer
    than the rest.
    """
    if node.dtype.count > 1 or not dtypes.is_int(node.dtype):
        return False
    left, right = node.src
    ends = [
        fold_index(node.op, (int(a), int(b)))
        for a in (left.vmin, left.vmax)
        for b in (right.vmin, right.vmax)
    ]
    return bool(dtypes.min(node.dtype) <= min(ends) and max(ends) <= dtypes.max(node.dtype))


def _zip(names: Sequence[str], call: bool = False) -> str:
    if len(names) == 1:
        return names[0]
    joined = ", ".join(names)
    return f"zip({joined})" if call else joined


def _line_of(traceback: TracebackType | None) -> int:
    """The line of generated source in which an exception arose; 0 where it is none."""
    number = 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE_NAME:
            number = traceback.tb_lineno
        traceback = traceback.tb_next
    return number


def _reason(error: Exception) -> str:
    if isinstance(error, TypeError) and "NoneType" in str(error):
        return "reads an element of registers or local memory that was never written"
    return f"{type(error).__name__}: {error}"
