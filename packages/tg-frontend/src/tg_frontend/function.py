"""`function`: a differentiable call with several results, as one node of the graph.

The body is traced with each call. Without a gradient of its own it is differentiated like any
expression; with one, the body is what is computed and the given function what its gradient is.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, overload

from tg_ir.dtype import dtypes
from tg_ir.graph import FunctionArg, Ops, ParamArg, UOp, toposort, unique_number

from tg_frontend.autograd import has_gradient, register_gradient
from tg_frontend.errors import ArgumentError, GradientError, WriteError
from tg_frontend.tensor import Tensor

TensorFunction = Callable[..., Any]
GradientFunction = Callable[[Sequence[Tensor], Sequence[Tensor | None]], Sequence[Tensor | None]]
"""`(tensor arguments, gradient by each result) -> gradient by each argument`; None for none."""


@overload
def function(body: TensorFunction) -> TensorFunction: ...


@overload
def function(
    *, gradient: GradientFunction | None = None
) -> Callable[[TensorFunction], TensorFunction]: ...


def function(
    body: TensorFunction | None = None, *, gradient: GradientFunction | None = None
) -> TensorFunction | Callable[[TensorFunction], TensorFunction]:
    """Make a function of tensors one call in the graph; a decorator, of methods too.

    Tensors among the arguments are values in the body: it must not write to them. Other arguments
    are handed on. It returns a tensor, or a tuple or list of tensors.

    Args:
        body: computes the results.
        gradient: gives the gradients by the tensor arguments, instead of those of the body. The
            body may then depend on floats only by its arguments.

    Raises:
        ArgumentError: a result is no tensor, or an argument has a symbolic shape.
        WriteError: the body wrote to an argument.
        GradientError: with `gradient`, the body reads other float tensors.
    """
    if body is None:
        return functools.partial(_decorated, gradient=gradient)
    return _decorated(body, gradient)


def _decorated(body: TensorFunction, gradient: GradientFunction | None) -> TensorFunction:
    name = getattr(body, "__qualname__", type(body).__name__)
    registered = "" if gradient is None else _registered(name, gradient)
    arg = FunctionArg(name, registered)

    @functools.wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _called(body, arg, args, kwargs)

    return call


def _registered(name: str, gradient: GradientFunction) -> str:
    """A name under which gradients find `gradient`."""

    def on_nodes(arguments: Sequence[UOp], by_result: Sequence[UOp | None]) -> list[UOp | None]:
        tensors = [Tensor(node) for node in arguments]
        given = [None if node is None else Tensor(node) for node in by_result]
        answers = list(gradient(tensors, given))
        if len(answers) != len(arguments):
            raise GradientError(
                f"the gradient of '{name}' gave {len(answers)} gradients for "
                f"{len(arguments)} tensor arguments"
            )
        for argument, answer in zip(tensors, answers, strict=True):
            if answer is not None and answer.shape != argument.shape:
                raise GradientError(
                    f"the gradient of '{name}' gave shape {answer.shape} for an argument of "
                    f"shape {argument.shape}"
                )
        return [None if answer is None else answer.uop for answer in answers]

    names = (name if number == 0 else f"{name}.{number}" for number in itertools.count())
    free = next(candidate for candidate in names if not has_gradient(candidate))
    register_gradient(free, on_nodes)
    return free


def _called(
    body: TensorFunction, arg: FunctionArg, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    params = [Tensor(_parameter(arg.name, slot, tensor)) for slot, tensor in enumerate(given)]
    before = [param.uop for param in params]
    made_from = unique_number()
    waiting = iter(params)
    traced_args = [next(waiting) if isinstance(v, Tensor) else v for v in args]
    traced_kwargs = {k: next(waiting) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
    returned = body(*traced_args, **traced_kwargs)
    for param, uop in zip(params, before, strict=True):
        if param.uop is not uop:
            raise WriteError(
                f"'{arg.name}' writes to its argument of shape {param.shape}; "
                "return the new value instead"
            )
    results = returned if isinstance(returned, (tuple, list)) else [returned]
    for result in results:
        if not isinstance(result, Tensor):
            raise ArgumentError(
                f"'{arg.name}' returned {type(result).__name__}; expected a tensor, or a tuple or "
                "list of tensors"
            )
    if arg.gradient:
        _check_reads_only_arguments(arg.name, results, made_from)
    bodies = UOp(Ops.TUPLE, dtypes.void, tuple([result.uop for result in results]))
    call = UOp(Ops.FUNCTION, dtypes.void, (bodies, *[tensor.uop for tensor in given]), arg)
    values = [Tensor(call.get_tuple(k, r.dtype)) for k, r in enumerate(results)]
    if isinstance(returned, Tensor):
        return values[0]
    return tuple(values) if isinstance(returned, tuple) else values


def _parameter(name: str, slot: int, tensor: Tensor) -> UOp:
    shape = tensor.shape
    if not all(isinstance(extent, int) for extent in shape):
        raise ArgumentError(
            f"'{name}': argument {slot} has the symbolic shape {shape}; expected one of ints"
        )
    arg = ParamArg(slot, shape=tuple(shape), device=tensor.uop.device)
    return UOp(Ops.PARAM, tensor.dtype, (), arg)


def _check_reads_only_arguments(name: str, results: Sequence[Tensor], made_from: int) -> None:
    """Where a gradient is given, whatever has one has to be an argument."""
    for node in toposort([result.uop for result in results]):
        is_older = node.op is Ops.BUFFER and node.arg.id < made_from
        if is_older and dtypes.is_float(node.dtype):
            raise GradientError(
                f"'{name}' has a gradient of its own and reads a {node.dtype.name} tensor of "
                f"{node.arg.size} elements that is no argument; pass it"
            )
