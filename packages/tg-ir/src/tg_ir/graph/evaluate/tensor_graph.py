"""`evaluate`: the value of a tensor graph, on flat lists of Python numbers.

Values never change: a STORE gives its AFTER a new list, so each read sees the version that it
names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tg_ir.dtype import DType, cast_scalar, from_bytes
from tg_ir.errors import did_you_mean
from tg_ir.graph.errors import EvaluationError
from tg_ir.graph.evaluate.expressions import zero_of
from tg_ir.graph.evaluate.list_functions import elementwise_function, fold_groups
from tg_ir.graph.evaluate.movement import (
    TensorValue,
    gather,
    move,
)
from tg_ir.graph.ops import GroupOp, Ops
from tg_ir.graph.text import neighbourhood
from tg_ir.graph.uop import Symbol, UOp

Input = int | bool | float | Sequence[bool | int | float] | bytes | bytearray | memoryview
CustomFunction = Callable[[Sequence[TensorValue]], Sequence[TensorValue]]
_Result = TensorValue | tuple[TensorValue, ...]

_OUTSIDE = -1  # in place of a position: this element of the target is nowhere in storage

_custom_functions: dict[str, CustomFunction] = {}


def register_custom(name: str, function: CustomFunction) -> None:
    """Say what a CUSTOM kernel whose argument names `evaluate=name` computes.

    Raises:
        EvaluationError: the name is taken by another function.
    """
    known = _custom_functions.setdefault(name, function)
    if known is not function:
        raise EvaluationError(
            f"two functions evaluate '{name}': {known!r} and {function!r}; rename one"
        )


def evaluate(
    graph: UOp | Sequence[UOp], inputs: Mapping[UOp, Input] | None = None
) -> list[TensorValue]:
    """The values of a tensor graph.

    Args:
        graph: a SINK, or one or several tensors.
        inputs: for each BUFFER (and PARAM) its elements, as numbers or as bytes; for each
            DEFINE_VAR its value.

    Returns:
        One value for each source of the SINK, or for each tensor given.

    Raises:
        EvaluationError: an input is missing or of the wrong size, or an op does not fit its
            operands; shows the node.
    """
    roots = (graph,) if isinstance(graph, UOp) else tuple(graph)
    if len(roots) == 1 and roots[0].op is Ops.SINK:
        roots = roots[0].src
    results = _Evaluator(dict(inputs or {}), ()).run(roots)
    return [_single(result, root) for result, root in zip(results, roots, strict=True)]


def _single(result: _Result, node: UOp) -> TensorValue:
    if isinstance(result, tuple):
        around = neighbourhood(node)
        raise EvaluationError(f"{node!r} has several results; take one by GETTUPLE\n{around}")
    return result


def _needed(node: UOp) -> tuple[UOp, ...]:
    """The sources whose values `node` needs: no history of REALIZED, no body of FUNCTION."""
    match node.op:
        case Ops.REALIZED:
            return node.src[:1]
        case Ops.FUNCTION:
            return node.src[1:]
        case Ops.BIND:
            return node.src[1:]
        case Ops.STORE:
            return _store_needs(node)
        case Ops.AFTER:
            return _after_needs(node)
        case _:
            return node.src


def _after_needs(after: UOp) -> tuple[UOp, ...]:
    found = [after.src[0]]
    for effect in after.src[1:]:
        found.extend(_store_needs(effect) if effect.op is Ops.STORE else (effect,))
    return tuple(found)


def _store_needs(store: UOp) -> tuple[UOp, ...]:
    found = list(store.src[1:])
    target = store.src[0]
    while target.op in GroupOp.Movement or target.op is Ops.GATHER:
        found.extend(target.src[1:])
        target = target.src[0]
    found.append(target)
    return tuple(found)


def _order(roots: Sequence[UOp]) -> list[UOp]:
    """What must be computed for `roots`, sources first."""
    order: dict[UOp, None] = {}
    for root in roots:
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if node in order:
                continue
            needs = _needed(node)
            if done or not needs:
                order[node] = None
                continue
            stack.append((node, True))
            stack.extend((need, False) for need in reversed(needs) if need not in order)
    return list(order)


class _Evaluator:
    """Values of nodes, each dropped when its last reader has run."""

    def __init__(self, inputs: dict[UOp, Input], arguments: tuple[TensorValue, ...]) -> None:
        self._inputs = inputs
        self._arguments = arguments
        self._values: dict[UOp, _Result] = {}

    def run(self, roots: Sequence[UOp]) -> list[_Result]:
        order = _order(roots)
        readers = Counter(need for node in order for need in set(_needed(node)))
        readers.update(roots)
        for node in order:
            try:
                self._values[node] = self._value(node)
            except EvaluationError as error:
                if "\nat " in str(error):
                    raise
                raise EvaluationError(f"{error}\nat {node!r} of\n{neighbourhood(node)}") from error
            for need in set(_needed(node)):
                readers[need] -= 1
                if readers[need] == 0:
                    del self._values[need]
        return [self._values[root] for root in roots]

    def _tensor(self, node: UOp) -> TensorValue:
        return _single(self._values[node], node)

    def _tensors(self, nodes: Sequence[UOp]) -> list[TensorValue]:
        return [self._tensor(node) for node in nodes]

    def _value(self, node: UOp) -> _Result:
        if node.op in GroupOp.Elementwise:
            return self._elementwise(node)
        if node.op in GroupOp.Movement:
            value, argument = self._tensor(node.src[0]), self._argument(node)
            return move(node.op, value, argument, zero_of(node.dtype))
        compute = _COMPUTE.get(node.op)
        if compute is None:
            raise EvaluationError(f"{node.op.name} has no place in a tensor graph")
        return compute(self, node)

    def _argument(self, node: UOp) -> Any:
        """The argument of a movement op with the values of its symbolic sizes."""

        def plain(item: Any) -> Any:
            if isinstance(item, Symbol):
                return int(self._tensor(node.src[int(item)]).item)
            return tuple(plain(part) for part in item) if isinstance(item, tuple) else item

        return plain(node.arg)

    def _elementwise(self, node: UOp) -> TensorValue:
        operands = self._tensors(node.src)
        shape = operands[0].shape
        for operand in operands[1:]:
            if operand.shape != shape:
                raise EvaluationError(f"operands of unequal shapes {shape} and {operand.shape}")
        function = elementwise_function(node.op, node.dtype, node.src[-1].dtype, len(operands))
        return TensorValue(shape, function(*[operand.items for operand in operands]))

    # ---- leaves

    def input(self, node: UOp) -> TensorValue:
        given = self._inputs.get(node)
        if given is None:
            known = ", ".join(repr(key) for key in self._inputs) or "none"
            raise EvaluationError(f"no input is given for {node!r}; inputs: {known}")
        if node.op is Ops.DEFINE_VAR:
            return TensorValue((), [given])
        size = int(node.arg.size)
        shape: tuple[int, ...] = (size,)
        if node.op is Ops.PARAM and node.arg.shape is not None:
            shape = tuple(node.arg.shape)
            size = math.prod(shape)
        items = _elements(given, node.dtype)
        if len(items) != size:
            raise EvaluationError(f"{node!r} has {size} elements, its input has {len(items)}")
        return TensorValue(shape, items)

    def parameter(self, node: UOp) -> TensorValue:
        if node.arg.slot < len(self._arguments):
            return self._arguments[int(node.arg.slot)]
        return self.input(node)

    def iota(self, node: UOp) -> TensorValue:
        count = int(self._tensor(node.src[0]).item) if node.src else int(node.arg)
        return TensorValue((count,), [cast_scalar(k, node.dtype) for k in range(count)])

    # ---- reductions and calls

    def reduce_axis(self, node: UOp) -> _Result:
        states = self._tensors(node.src)
        axes = node.arg.axes
        shape = states[0].shape
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        order = (*kept, *axes)
        groups = [move(Ops.PERMUTE, state, order, 0).items for state in states]
        results = fold_groups(
            node.arg.combine,
            [s.dtype for s in node.src],
            groups,
            math.prod(shape[axis] for axis in axes),
            is_scan=False,
            count=math.prod(shape[axis] for axis in kept),
        )
        reduced = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        found = tuple(TensorValue(reduced, items) for items in results)
        return found[0] if len(found) == 1 else found

    def scan_axis(self, node: UOp) -> TensorValue:
        value = self._tensor(node.src[0])
        axis = node.arg.axes[0]
        order = (*[a for a in range(len(value.shape)) if a != axis], axis)
        last = move(Ops.PERMUTE, value, order, 0)
        group = value.shape[axis]
        count = len(last.items) // group if group else 0
        states = [last.items]
        scanned = fold_groups(node.arg.combine, [node.dtype], states, group, True, count)
        back = tuple(order.index(a) for a in range(len(order)))
        return move(Ops.PERMUTE, TensorValue(last.shape, scanned[0]), back, 0)

    def gather(self, node: UOp) -> TensorValue:
        source, *indices = self._tensors(node.src)
        return gather(source, indices, node.arg, zero_of(node.dtype))

    def get_tuple(self, node: UOp) -> TensorValue:
        results = self._values[node.src[0]]
        return results[node.arg] if isinstance(results, tuple) else results

    def function(self, node: UOp) -> _Result:
        arguments = tuple(self._tensors(node.src[1:]))
        body = node.src[0]
        roots = body.src if body.op is Ops.TUPLE else (body,)
        results = _Evaluator(self._inputs, arguments).run(roots)
        return tuple(_single(r, root) for r, root in zip(results, roots, strict=True))

    def custom(self, node: UOp) -> _Result:
        function = _custom_functions.get(node.arg.evaluate)
        if function is None:
            raise EvaluationError(
                f"no function evaluates '{node.arg.evaluate}'; "
                f"{did_you_mean(node.arg.evaluate, _custom_functions)}"
            )
        results = tuple(function(self._tensors(node.src)))
        expected = tuple(tuple(shape) for shape, _ in node.arg.results)
        if tuple(result.shape for result in results) != expected:
            raise EvaluationError(
                f"CUSTOM '{node.arg.name}' gave shapes {[r.shape for r in results]}, "
                f"expected {list(expected)}"
            )
        return results

    def tuple_of(self, node: UOp) -> _Result:
        return tuple(self._tensors(node.src))

    def same(self, node: UOp) -> _Result:
        return self._values[node.src[0]]

    def bound(self, node: UOp) -> _Result:
        return self._values[node.src[1]]

    # ---- writes

    def after(self, node: UOp) -> TensorValue:
        version = self._tensor(node.src[0])
        items = list(version.items)
        for effect in node.src[1:]:
            if effect.op is Ops.STORE:
                self._write(effect, node.src[0], items, version.shape)
        return TensorValue(version.shape, items)

    def store(self, node: UOp) -> TensorValue:
        """On its own: what its version is once the write is done."""
        base = _store_needs(node)[-1]
        version = self._tensor(base)
        items = list(version.items)
        self._write(node, base, items, version.shape)
        return TensorValue(version.shape, items)

    def _write(
        self, store: UOp, version: UOp, items: list[Any], shape: tuple[int, ...]
    ) -> None:
        places = self._target_positions(store.src[0], version, shape)
        value = self._tensor(store.src[1])
        if len(value.items) != len(places.items):
            raise EvaluationError(f"stores shape {value.shape} to a target of {places.shape}")
        accumulate = None
        if store.arg is not None:
            dtype = store.src[0].dtype
            accumulate = elementwise_function(store.arg, dtype, dtype, 2)
        for place, item in zip(places.items, value.items, strict=True):
            if place == _OUTSIDE:
                continue
            items[place] = item if accumulate is None else accumulate([items[place]], [item])[0]

    def _target_positions(
        self, target: UOp, version: UOp, shape: tuple[int, ...]
    ) -> TensorValue:
        """Which element of `version` each element of a STORE's target is."""
        chain = []
        while target is not version:
            if target.op not in GroupOp.Movement and target.op is not Ops.GATHER:
                raise EvaluationError(
                    f"the target of a STORE is movement over the version that AFTER names, "
                    f"{version!r}, but this one is over {target!r}"
                )
            chain.append(target)
            target = target.src[0]
        places = TensorValue(shape, list(range(math.prod(shape))))
        for node in reversed(chain):
            if node.op is Ops.GATHER:
                places = gather(places, self._tensors(node.src[1:]), node.arg, _OUTSIDE)
            else:
                places = move(node.op, places, self._argument(node), _OUTSIDE)
        return places


def _elements(given: Input, dtype: DType) -> list[Any]:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return list(from_bytes(given, dtype))
    if isinstance(given, (bool, int, float)):
        raise EvaluationError(f"the elements of a buffer are a list, got {given!r}")
    return list(given)


_COMPUTE: dict[Ops, Callable[[_Evaluator, UOp], _Result]] = {
    Ops.BUFFER: _Evaluator.input,
    Ops.DEFINE_VAR: _Evaluator.input,
    Ops.PARAM: _Evaluator.parameter,
    Ops.CONST: lambda _, node: TensorValue((), [node.arg]),
    Ops.BIND: _Evaluator.bound,
    Ops.IOTA: _Evaluator.iota,
    Ops.CONTIGUOUS: _Evaluator.same,
    Ops.DETACH: _Evaluator.same,
    Ops.COPY: _Evaluator.same,
    Ops.REALIZED: _Evaluator.same,
    Ops.REDUCE_AXIS: _Evaluator.reduce_axis,
    Ops.SCAN_AXIS: _Evaluator.scan_axis,
    Ops.GATHER: _Evaluator.gather,
    Ops.GETTUPLE: _Evaluator.get_tuple,
    Ops.FUNCTION: _Evaluator.function,
    Ops.CUSTOM: _Evaluator.custom,
    Ops.TUPLE: _Evaluator.tuple_of,
    Ops.AFTER: _Evaluator.after,
    Ops.STORE: _Evaluator.store,
}
