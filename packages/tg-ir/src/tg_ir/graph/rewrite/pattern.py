"""`UPat`: the shape of a part of a graph, written as algebra, with names for the nodes it captures.

`UPat.match` here is the plain meaning of a pattern; `compiled.py` turns a pattern into a Python
function that finds the same matches faster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tg_ir.dtype import DType, dtypes
from tg_ir.graph.ops import ConstType, GroupOp, Ops
from tg_ir.graph.uop import UOp

Bindings = dict[str, UOp]
OpChoice = Ops | Iterable[Ops] | None
DTypeChoice = DType | Iterable[DType] | None


def _ops(choice: OpChoice) -> frozenset[Ops] | None:
    if choice is None:
        return None
    return frozenset({choice}) if isinstance(choice, Ops) else frozenset(choice)


def _dtypes(choice: DTypeChoice) -> frozenset[DType] | None:
    if choice is None:
        return None
    return frozenset({choice}) if isinstance(choice, DType) else frozenset(choice)


class UPat:
    """A pattern over `UOp`s. Arithmetic on patterns gives patterns: `UPat.var("x") * 1`.

    Args:
        op: the op, or the ops that fit; None: any.
        dtype: the dtype, or the dtypes that fit (a vector fits if its scalar does); None: any.
        src: tuple: the sources in this order; list: in any order; one pattern: every source fits
        it; None: any.
        arg: the argument; None: any. A float fits only the same bits (0.0 is not -0.0), an int any
        equal number.
        name: the node is captured under this name. A name used twice fits one and the same node.
        allow_any_len: there may be more sources than `src` lists.
    """

    __slots__ = ("op", "dtype", "src", "arg", "name", "allow_any_len", "choices")
    op: frozenset[Ops] | None
    dtype: frozenset[DType] | None
    src: tuple[UPat, ...] | list[UPat] | UPat | None
    arg: Any
    name: str | None
    allow_any_len: bool
    choices: tuple[UPat, ...]

    def __init__(
        self,
        op: OpChoice = None,
        dtype: DTypeChoice = None,
        src: tuple[UPat, ...] | list[UPat] | UPat | None = None,
        arg: Any = None,
        name: str | None = None,
        allow_any_len: bool = False,
    ) -> None:
        self.op = _ops(op)
        self.dtype = _dtypes(dtype)
        self.src = src
        self.arg = arg
        self.name = name
        self.allow_any_len = allow_any_len
        self.choices = ()
        if isinstance(src, list) and allow_any_len:
            raise ValueError("UPat: sources in any order (a list) need their exact number")

    # ---- making patterns

    @staticmethod
    def var(name: str | None = None, dtype: DTypeChoice = None) -> UPat:
        """Any node (of `dtype`)."""
        return UPat(dtype=dtype, name=name)

    @staticmethod
    def cvar(name: str | None = None, dtype: DTypeChoice = None) -> UPat:
        """Any constant (of `dtype`)."""
        return UPat(Ops.CONST, dtype=dtype, name=name)

    @staticmethod
    def const(dtype: DTypeChoice, value: ConstType) -> UPat:
        """The constant `value`."""
        return UPat(Ops.CONST, dtype=dtype, arg=value)

    @staticmethod
    def any(*choices: UPat) -> UPat:
        """Whatever one of `choices` matches, tried in this order."""
        pattern = UPat()
        pattern.choices = choices
        known = [choice.root_ops() for choice in choices]
        if all(ops is not None for ops in known):
            pattern.op = frozenset().union(*[ops for ops in known if ops is not None])
        return pattern

    def named(self, name: str) -> UPat:
        """This pattern, its node captured as `name`."""
        pattern = UPat(self.op, self.dtype, self.src, self.arg, name, self.allow_any_len)
        pattern.choices = self.choices
        return pattern

    def or_casted(self, name: str | None = None) -> UPat:
        """This pattern, or a CAST of it."""
        return UPat.any(self if name is None else self.named(name), UPat(Ops.CAST, src=(self,)))

    def or_broadcasted(self) -> UPat:
        """This pattern, or a BROADCAST of it."""
        return UPat.any(self, UPat(Ops.BROADCAST, src=(self,)))

    def root_ops(self) -> frozenset[Ops] | None:
        """The ops that a matching node may have; None: any."""
        return self.op

    def names(self) -> frozenset[str]:
        """Every name that the pattern may capture."""
        found: set[str] = set()
        stack: list[UPat] = [self]
        while stack:
            pattern = stack.pop()
            if pattern.name is not None:
                found.add(pattern.name)
            stack.extend(pattern.choices)
            if isinstance(pattern.src, UPat):
                stack.append(pattern.src)
            elif pattern.src is not None:
                stack.extend(pattern.src)
        return frozenset(found)

    # ---- algebra

    def _operand(self, other: Any) -> UPat:
        return other if isinstance(other, UPat) else UPat.const(None, other)

    def alu(self, op: Ops, *others: UPat) -> UPat:
        """`op` of these operands, in any order where `op` is commutative."""
        src = (self, *others)
        if op in GroupOp.Comparison:
            return UPat(op, dtypes.bool, list(src) if op in GroupOp.Commutative else src)
        result = others[0].dtype if op is Ops.WHERE else self.dtype
        return UPat(op, result, list(src) if op in GroupOp.Commutative else src)

    def _binary(self, op: Ops, other: Any) -> UPat:
        return self.alu(op, self._operand(other))

    def __add__(self, other: Any) -> UPat:
        return self._binary(Ops.ADD, other)

    def __radd__(self, other: Any) -> UPat:
        return self._operand(other)._binary(Ops.ADD, self)

    def __sub__(self, other: Any) -> UPat:
        return self._binary(Ops.SUB, other)

    def __rsub__(self, other: Any) -> UPat:
        return self._operand(other)._binary(Ops.SUB, self)

    def __mul__(self, other: Any) -> UPat:
        return self._binary(Ops.MUL, other)

    def __rmul__(self, other: Any) -> UPat:
        return self._operand(other)._binary(Ops.MUL, self)

    def __neg__(self) -> UPat:
        return self.alu(Ops.NEG)

    def __truediv__(self, other: Any) -> UPat:
        return self._binary(Ops.FDIV, other)

    def __floordiv__(self, other: Any) -> UPat:
        return self._binary(Ops.FLOORDIV, other)

    def __mod__(self, other: Any) -> UPat:
        return self._binary(Ops.FLOORMOD, other)

    def __lshift__(self, other: Any) -> UPat:
        return self._binary(Ops.SHL, other)

    def __rshift__(self, other: Any) -> UPat:
        return self._binary(Ops.SHR, other)

    def __and__(self, other: Any) -> UPat:
        return self._binary(Ops.AND, other)

    def __or__(self, other: Any) -> UPat:
        return self._binary(Ops.OR, other)

    def __xor__(self, other: Any) -> UPat:
        return self._binary(Ops.XOR, other)

    def __lt__(self, other: Any) -> UPat:
        return self._binary(Ops.CMPLT, other)

    def __gt__(self, other: Any) -> UPat:
        return self._operand(other)._binary(Ops.CMPLT, self)

    def ne(self, other: Any) -> UPat:
        """CMPNE."""
        return self._binary(Ops.CMPNE, other)

    def eq(self, other: Any) -> UPat:
        """CMPEQ."""
        return self._binary(Ops.CMPEQ, other)

    def logical_not(self) -> UPat:
        """XOR with true."""
        return self._binary(Ops.XOR, True)

    def maximum(self, other: Any) -> UPat:
        """MAX."""
        return self._binary(Ops.MAX, other)

    def where(self, yes: Any, no: Any) -> UPat:
        """WHERE with this condition."""
        return self.alu(Ops.WHERE, self._operand(yes), self._operand(no))

    def cast(self, dtype: DTypeChoice = None) -> UPat:
        """A CAST (to `dtype`) of this."""
        return UPat(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DTypeChoice = None) -> UPat:
        """A BITCAST (to `dtype`) of this."""
        return UPat(Ops.BITCAST, dtype, (self,))

    def index(self, position: UPat, mask: UPat | None = None) -> UPat:
        """An INDEX into this buffer, without a mask or with one that fits `mask`."""
        return UPat(Ops.INDEX, src=(self, position) if mask is None else (self, position, mask))

    def load(self, *others: UPat) -> UPat:
        """A LOAD of this INDEX."""
        return UPat(Ops.LOAD, src=(self, *others))

    def store(self, value: UPat) -> UPat:
        """A STORE of `value` to this INDEX."""
        return UPat(Ops.STORE, src=(self, value))

    # ---- meaning

    def match(self, uop: UOp, bindings: Mapping[str, UOp] | None = None) -> Iterator[Bindings]:
        """Every way in which `uop` fits: the captured nodes by name, on top of `bindings`."""
        known = {name: node for name, node in (bindings or {}).items() if node is not None}
        if not fits_node(self, uop) or not fits_length(self, uop):
            return
        if self.name is not None and known.setdefault(self.name, uop) is not uop:
            return
        for choice in self.choices:
            yield from choice.match(uop, known)
        if not self.choices:
            yield from self._match_sources(uop, known)

    def _match_sources(self, uop: UOp, known: Bindings) -> Iterator[Bindings]:
        if self.src is None:
            yield known
        elif isinstance(self.src, UPat):
            yield from match_sequence([self.src] * len(uop.src), uop.src, known)
        elif isinstance(self.src, tuple):
            yield from match_sequence(self.src, uop.src, known)
        else:
            for order in itertools.permutations(uop.src):
                yield from match_sequence(self.src, order, known)

    def __repr__(self) -> str:
        ops = "any op" if self.op is None else "|".join(sorted(op.name for op in self.op))
        name = "" if self.name is None else f" {self.name!r}"
        return f"<UPat{name} {ops}>"


def fits_node(pattern: UPat, uop: UOp) -> bool:
    """Whether op, dtype and argument of `uop` fit, its sources not looked at."""
    if pattern.op is not None and uop.op not in pattern.op:
        return False
    if pattern.dtype is not None:
        if uop.dtype not in pattern.dtype and uop.dtype.scalar() not in pattern.dtype:
            return False
    return pattern.arg is None or same_arg(pattern.arg, uop.arg)


def fits_length(pattern: UPat, uop: UOp) -> bool:
    """Whether `uop` has as many sources as `pattern` lists."""
    wanted = len(pattern.src) if isinstance(pattern.src, (tuple, list)) else len(uop.src)
    return len(uop.src) >= wanted if pattern.allow_any_len else len(uop.src) == wanted


def same_arg(wanted: Any, found: Any) -> bool:
    """Equality of arguments; 0.0 is not -0.0, NaN is NaN, an int is any equal number."""
    if isinstance(wanted, float) and isinstance(found, float):
        if math.isnan(wanted):
            return math.isnan(found)
        return wanted == found and math.copysign(1.0, wanted) == math.copysign(1.0, found)
    return bool(wanted == found)


def match_sequence(
    patterns: Iterable[UPat], nodes: Iterable[UOp], bindings: Bindings
) -> Iterator[Bindings]:
    """Every way in which each of `nodes` fits its pattern at once."""
    ways = [bindings]
    for pattern, node in zip(patterns, nodes, strict=False):
        ways = list(itertools.chain.from_iterable(pattern.match(node, way) for way in ways))
        if not ways:
            return
    yield from ways
