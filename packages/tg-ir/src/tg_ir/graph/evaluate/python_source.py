"""Python source for the nodes of a kernel, shared by the evaluators of linear kernels and of kernel graphs.

`PythonSource` writes statements; the evaluators decide where each goes. Scalars are Python numbers, vectors are
tuples, memory is a sequence (see `memory`). A failing statement is traced back to its node by its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import CodeType, TracebackType
from typing import Any

from tg_ir.dtype import DType, dtypes, struct_code
from tg_ir.graph.errors import EvaluationError, OutOfRangeError
from tg_ir.graph.evaluate import expressions, memory
from tg_ir.graph.evaluate.expressions import joining_function, literal, scalar_expression
from tg_ir.graph.ops import Combine, GroupOp, Ops
from tg_ir.graph.symbolic.bounds import fold_index
from tg_ir.graph.text import neighbourhood
from tg_ir.graph.uop import UOp, toposort

# CPython refuses more than 20 nested loops in a function: deeper ones go into functions of their own
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

    def value(self, node: UOp) -> None:
        """Write the statements that compute `node`, whose sources are written.

        Raises:
            EvaluationError: no kernel has this op.
        """
        self.at(node)
        if node.op in GroupOp.Elementwise:
            self._elementwise(node)
            return
        write = _WRITERS.get(node.op)
        if write is None:
            raise EvaluationError(f"{node.op.name} has no place in a kernel:\n{neighbourhood(node)}")
        write(self, node)

    def _elementwise(self, node: UOp) -> None:
        src_dtype = node.src[-1].dtype
        if node.op in _WRAPPING and cannot_wrap(node):
            self.define(node, scalar_expression(node.op, dtypes.index, dtypes.index).of(*self._names(node.src)))
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
        """Write `combine` of the states `old` and `new`, given by name; returns the names of the result."""
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
            elif lanes == 1:
                self.value(node)
            else:
                self._value_in_lanes(node, lanes)
        results = [self.names[state] for state in combine.body]
        self.names = outer
        return results

    def _value_in_lanes(self, node: UOp, lanes: int) -> None:
        """A node of a scalar combine that joins vectors: the same for each lane."""
        if node.op is Ops.CONST:
            self.names[node] = f"(({literal(node.arg)},) * {lanes})"
            return
        wide = node.dtype.vec(lanes)
        self.names[node] = self.apply(node.op, wide, node.src[-1].dtype, self._names(node.src))


_WRAPPING = frozenset({Ops.ADD, Ops.SUB, Ops.MUL})


def cannot_wrap(node: UOp) -> bool:
    """Whether the bounds of its operands prove that this scalar ADD, SUB or MUL stays in its int dtype.

    Address arithmetic is half of what a kernel does, and wrapping an int in Python takes longer than the rest.
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


def buffer_of(node: UOp) -> UOp:
    """The memory behind a version of it: PARAM, DEFINE_LOCAL, DEFINE_REG or STAGE."""
    while node.op is Ops.AFTER:
        node = node.src[0]
    return node


# ---- leaves and vectors


def _const(source: PythonSource, node: UOp) -> None:
    text = literal(node.arg)
    count = node.dtype.count
    source.names[node] = text if count == 1 else f"(({text},) * {count})"


def _lanes(source: PythonSource, node: UOp) -> None:
    source.names[node] = str(tuple(range(node.dtype.count)))


def _broadcast(source: PythonSource, node: UOp) -> None:
    source.define(node, f"({source.name(node.src[0])},) * {node.dtype.count}")


def _vectorize(source: PythonSource, node: UOp) -> None:
    lanes = ", ".join(source.name(s) for s in node.src)
    source.define(node, f"({lanes},)")


def _gep(source: PythonSource, node: UOp) -> None:
    source.define(node, f"{source.name(node.src[0])}[{node.arg}]")


def _reduce_lanes(source: PythonSource, node: UOp) -> None:
    join = joining_function(node.arg, node.dtype)
    source.define(node, f"reduce({join}, {source.name(node.src[0])})")


def _bind(source: PythonSource, node: UOp) -> None:
    source.names[node] = source.name(node.src[1])


# ---- memory


def _define_private(source: PythonSource, node: UOp) -> None:
    source.define(node, f"[None] * {node.arg.size}")


def _after(source: PythonSource, node: UOp) -> None:
    source.names[node] = source.name(node.src[0])


def _index(source: PythonSource, node: UOp) -> None:
    """An INDEX is written where it is loaded or stored."""


def _elements(access: UOp, value_dtype: DType) -> int:
    """How many elements in a row an access with a scalar index touches."""
    return value_dtype.count // access.dtype.count


def _size_of(source: PythonSource, buffer: UOp) -> str:
    return f"len({source.name(buffer)})"


def _known_size(buffer: UOp) -> int:
    return int(buffer.arg.size) if buffer.op is not Ops.STAGE else 0


def _check(source: PythonSource, access: UOp, count: int) -> None:
    """Write the range check of a scalar position, where the bounds do not already prove it."""
    buffer = buffer_of(access.src[0])
    position = access.src[1]
    if position.vmin >= 0 and position.vmax <= _known_size(buffer) - count:
        return
    name = source.name(position)
    size = _size_of(source, buffer)
    last = size if count == 1 else f"{size} - {count - 1}"
    source.line(f"if not 0 <= {name} < {last}: out_of_range({name}, {count}, {size})")


def _positions(source: PythonSource, access: UOp, count: int) -> str:
    name = source.name(access.src[1])
    return name if access.src[1].dtype.count > 1 else f"range({name}, {name} + {count})"


def _load(source: PythonSource, node: UOp) -> None:
    access = node.src[0]
    buffer = source.name(buffer_of(access.src[0]))
    mask = access.src[2] if len(access.src) > 2 else None
    is_gather = access.src[1].dtype.count > 1
    count = _elements(access, node.dtype)
    if is_gather and mask is None:
        source.define(node, f"load_lanes({buffer}, {source.name(access.src[1])})")
        return
    if mask is not None and (is_gather or mask.dtype.count > 1):
        positions = _positions(source, access, count)
        other = _other(source, node)
        mask_text = _lanes_of(source, mask, count)
        source.define(
            node, f"load_masked_lanes({buffer}, {positions}, {mask_text}, {other})"
        )
        return
    result = source.new_name()
    if mask is not None:
        source.line(f"{result} = {_other(source, node)}")
        source.open_if(source.name(mask))
    _check(source, access, count)
    position = source.name(access.src[1])
    if count == 1:
        source.line(f"{result} = {buffer}[{position}]")
    else:
        source.line(f"{result} = tuple({buffer}[{position}:{position} + {count}])")
    if mask is not None:
        source.close_if()
    source.names[node] = result


def _lanes_of(source: PythonSource, node: UOp, count: int) -> str:
    name = source.name(node)
    return name if node.dtype.count > 1 else f"({name},) * {count}"


def _other(source: PythonSource, node: UOp) -> str:
    """What a masked LOAD gives where it touches nothing, as many lanes as the LOAD."""
    if len(node.src) > 1:
        return _lanes_of(source, node.src[1], node.dtype.count) if (
            node.dtype.count > 1
        ) else source.name(node.src[1])
    scalar = node.dtype.scalar()
    zero = "False" if dtypes.is_bool(scalar) else "0.0" if dtypes.is_float(scalar) else "0"
    return zero if node.dtype.count == 1 else f"({zero},) * {node.dtype.count}"


def _store(source: PythonSource, node: UOp) -> None:
    access, value = node.src[0], node.src[1]
    buffer = source.name(buffer_of(access.src[0]))
    mask = access.src[2] if len(access.src) > 2 else None
    index_lanes = access.src[1].dtype.count
    count = index_lanes if index_lanes > 1 else _elements(access, value.dtype)
    text = source.name(value)
    if count == 1:
        if mask is not None:
            source.open_if(source.name(mask))
        _check(source, access, 1)
        source.line(f"{buffer}[{source.name(access.src[1])}] = {text}")
        if mask is not None:
            source.close_if()
        return
    values = text if value.dtype.count > 1 else f"({text},) * {count}"
    positions = _positions(source, access, count)
    if mask is None and index_lanes == 1:
        _check(source, access, count)
        place = source.name(access.src[1])
        row = _as_row(values, buffer_of(access.src[0]))
        if row:
            source.line(f"{buffer}[{place}:{place} + {count}] = {row}")
            return
    if mask is None:
        source.line(f"store_lanes({buffer}, {positions}, {values})")
    else:
        mask_text = _lanes_of(source, mask, count)
        source.line(f"store_masked_lanes({buffer}, {positions}, {mask_text}, {values})")


def _as_row(values: str, buffer: UOp) -> str:
    """`values` as what a slice of the memory of `buffer` can be set to; empty where it takes lanes one by one."""
    if buffer.op is not Ops.PARAM:
        return values
    code = struct_code(buffer.dtype)
    is_native = code is not None and code not in ("?", "e")
    return f"array({code!r}, {values})" if is_native else ""


def _barrier(source: PythonSource, node: UOp) -> None:
    if source.yields:
        source.line("yield")


def _no_effect(source: PythonSource, node: UOp) -> None:
    """A node that only orders or groups."""


_WRITERS: dict[Ops, Callable[[PythonSource, UOp], None]] = {
    Ops.CONST: _const,
    Ops.LANES: _lanes,
    Ops.BROADCAST: _broadcast,
    Ops.VECTORIZE: _vectorize,
    Ops.GEP: _gep,
    Ops.REDUCE_LANES: _reduce_lanes,
    Ops.BIND: _bind,
    Ops.DEFINE_REG: _define_private,
    Ops.DEFINE_LOCAL: _define_private,
    Ops.AFTER: _after,
    Ops.INDEX: _index,
    Ops.LOAD: _load,
    Ops.STORE: _store,
    Ops.BARRIER: _barrier,
    Ops.SINK: _no_effect,
}


def write_arguments(source: PythonSource, nodes: Iterable[UOp]) -> None:
    """Write where the PARAMs and DEFINE_VARs among `nodes` find themselves in `buffers` and `vals`."""
    for node, position in variable_positions(nodes).items():
        source.define(node, f"vals[{position}]")
    for node in nodes:
        if node.op is Ops.PARAM:
            source.define(node, f"buffers[{node.arg.slot}]")


def variable_positions(nodes: Iterable[UOp]) -> dict[UOp, int]:
    """Where in `vals` each DEFINE_VAR stands: by its name `v0`, `v1`, ..., else in the order of `nodes`."""
    variables = [node for node in nodes if node.op is Ops.DEFINE_VAR]
    if all(v.arg.name[:1] == "v" and v.arg.name[1:].isdigit() for v in variables):
        return {v: int(v.arg.name[1:]) for v in variables}
    return {v: position for position, v in enumerate(variables)}


def bind_buffers(nodes: Iterable[UOp], buffers: Sequence[memory.Buffer]) -> list[memory.Memory]:
    """The buffers as memory of the dtypes of the PARAMs among `nodes`.

    Raises:
        EvaluationError: a buffer is missing, or smaller than its PARAM says.
    """
    found: list[memory.Memory] = [[] for _ in buffers]
    for node in nodes:
        if node.op is not Ops.PARAM:
            continue
        slot = node.arg.slot
        if slot >= len(buffers):
            raise EvaluationError(
                f"the kernel takes a buffer {slot}, but got {len(buffers)} buffers: {node!r}"
            )
        found[slot] = memory.typed_memory(buffers[slot], node.dtype)
        if len(found[slot]) < node.arg.size:
            raise EvaluationError(
                f"buffer {slot} holds {len(found[slot])} elements of {node.dtype.name}, "
                f"the kernel needs {node.arg.size}"
            )
    return found
