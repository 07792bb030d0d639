"""The spec of the tensor graph: what the frontend hands to the scheduler.

Any version may be read, overwritten or not, and may even be overwritten twice: the scheduler orders
and copies, and `schedule_rules` checks that it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tg_ir.dtype import dtypes
from tg_ir.graph.ops import (
    BufferArg,
    CustomArg,
    FunctionArg,
    GroupOp,
    Ops,
    ParamArg,
    ReduceArg,
    SkewArg,
    VarArg,
)
from tg_ir.graph.shape import same_shape
from tg_ir.graph.spec.model import OpRule, Spec
from tg_ir.graph.spec.value_rules import (
    CONST_RULE,
    NO_ARG,
    VARIABLE_RULE,
    combine_fault,
    elementwise_rules,
    image_fits,
    is_void,
    same_dtype_as_first,
)
from tg_ir.graph.uop import Symbol, UOp


def has_shape(node: UOp) -> str | None:
    """The shape can be inferred; ShapeError says why not."""
    found = node.shape
    if any(not isinstance(extent, UOp) and extent < 0 for extent in found):
        return f"its shape {found} has a negative extent"
    return None


def is_scalar_typed(node: UOp) -> str | None:
    """Vectors only exist in kernels."""
    return None if node.dtype.count == 1 else f"is a scalar per element, got {node.dtype!r}"


def _buffer_is_sized(node: UOp) -> str | None:
    arg: BufferArg = node.arg
    if arg.size < 0 or arg.version < 0:
        return f"size and version are at least 0, got {arg!r}"
    return None


def _bind_in_bounds(node: UOp) -> str | None:
    variable, value = node.src
    if variable.op is not Ops.DEFINE_VAR or value.op is not Ops.CONST:
        return f"joins DEFINE_VAR and CONST, got {variable.op.name} and {value.op.name}"
    arg: VarArg = variable.arg
    if not arg.vmin <= value.arg <= arg.vmax:
        return f"variable '{arg.name}' takes {arg.vmin}..{arg.vmax}, got {value.arg}"
    return same_dtype_as_first(node)


def _iota_is_counted(node: UOp) -> str | None:
    if not dtypes.is_int(node.dtype):
        return f"counts in an int dtype, got {node.dtype!r}"
    if node.src and node.arg is not None:
        return "takes its length as a source or as its argument, not both"
    if not node.src and (node.arg is None or node.arg < 0):
        return f"its length is at least 0, got {node.arg!r}"
    return None


# ---- movement


def _sizes_are_indices(node: UOp) -> str | None:
    """Symbolic sizes are `index` scalars, and each Symbol names one."""
    for size in node.src[1:]:
        if size.dtype is not dtypes.index or size.shape != ():
            return f"symbolic sizes are scalars of dtype index, got {size!r}"
    for symbol in _symbols(node.arg):
        if not 1 <= int(symbol) < len(node.src):
            return f"{symbol!r} names none of its {len(node.src)} sources"
    return None


def _symbols(arg: object) -> list[Symbol]:
    if isinstance(arg, Symbol):
        return [arg]
    if isinstance(arg, tuple):
        return [symbol for item in arg for symbol in _symbols(item)]
    return []


def _fits_rank(node: UOp) -> str | None:
    rank = len(node.src[0].shape)
    if len(node.arg) == rank:
        return None
    return f"its argument {node.arg!r} is for {len(node.arg)} axes, the source has {rank}"


def _bounds_in_shape(node: UOp) -> str | None:
    """SHRINK stays inside of the source; PAD adds, never removes."""
    for pair in node.arg:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return f"its argument is a pair an axis, got {node.arg!r}"
    for extent, (low, high) in zip(node.src[0].shape, node.marg, strict=True):
        plain = all(not isinstance(v, UOp) for v in (extent, low, high))
        if not plain:
            continue
        if node.op is Ops.PAD and (low < 0 or high < 0):
            return f"pads by at least 0, got {node.arg!r}"
        if node.op is Ops.SHRINK and not 0 <= low <= high <= extent:
            return f"{node.arg!r} reaches outside of shape {node.src[0].shape}"
    return None


def _skew_fits(node: UOp) -> str | None:
    arg: SkewArg = node.arg
    shape = node.src[0].shape
    if arg.axis == arg.window_axis or not all(
        0 <= axis < len(shape) for axis in (arg.axis, arg.window_axis)
    ):
        return f"names two axes of shape {shape}, got {arg!r}"
    if arg.stride < 1 or arg.dilation < 1 or arg.size < 0:
        return f"stride and dilation are at least 1, size at least 0, got {arg!r}"
    extent, window = shape[arg.axis], shape[arg.window_axis]
    if node.op is Ops.UNSKEW or isinstance(extent, UOp) or isinstance(window, UOp):
        return None
    last = (arg.size - 1) * arg.stride + (window - 1) * arg.dilation
    if arg.size and last >= extent:
        return f"reads row {last} of axis {arg.axis}, which has {extent}"
    return None


# ---- reductions and data-dependent access


def _reduces_axes(node: UOp) -> str | None:
    arg: ReduceArg = node.arg
    first = node.src[0].shape
    for state in node.src[1:]:
        if not same_shape(first, state.shape):
            return f"its states share a shape, got {first} and {state.shape}"
    if list(arg.axes) != sorted(set(arg.axes)) or not arg.axes:
        return f"its axes are in order, each once, got {arg.axes}"
    if not all(0 <= axis < len(first) for axis in arg.axes):
        return f"reduces axes {arg.axes} of shape {first}"
    if node.op is Ops.SCAN_AXIS and len(arg.axes) != 1:
        return f"scans along one axis, got {arg.axes}"
    return combine_fault(arg.combine, [state.dtype for state in node.src])


def _gathers_by_ints(node: UOp) -> str | None:
    if len(set(node.arg)) != len(node.arg):
        return f"its axes are distinct, got {node.arg}"
    for index in node.src[1:]:
        if not dtypes.is_int(index.dtype):
            return f"its indices are ints, got {index.dtype!r}"
    return None


def results_of(node: UOp) -> tuple[object, ...]:
    """The dtype of each result of a node that has several; empty where it has one."""
    match node.op:
        case Ops.REDUCE_AXIS | Ops.REDUCE | Ops.SCAN if len(node.arg.combine.init) > 1:
            return tuple(state.dtype for state in node.src[: len(node.arg.combine.init)])
        case Ops.FUNCTION if node.src[0].op is Ops.TUPLE:
            return tuple(value.dtype for value in node.src[0].src)
        case Ops.CUSTOM:
            return tuple(dtype for _, dtype in node.arg.results)
        case _:
            return ()


def takes_one_result(node: UOp) -> str | None:
    """GETTUPLE: one that its source has, in its dtype."""
    results = results_of(node.src[0])
    if not results:
        return f"takes one of several results, and {node.src[0].op.name} has a single one"
    if not 0 <= node.arg < len(results):
        return f"takes result {node.arg} of {len(results)}"
    expected = results[node.arg]
    return None if node.dtype is expected else f"result {node.arg} is {expected!r}"


# ---- versions and writes


def stored_version(target: UOp) -> UOp:
    """What the movement ops and GATHERs of a STORE's target end in."""
    while target.op in GroupOp.Movement or target.op is Ops.GATHER:
        target = target.src[0]
    return target


def _writes_a_version(node: UOp) -> str | None:
    target, value = node.src
    version = stored_version(target)
    if version.op not in GroupOp.Version:
        return f"its target is movement over a version of storage, got {version.op.name}"
    if target.dtype is not value.dtype:
        return f"stores {value.dtype!r} to elements of {target.dtype!r}"
    if not same_shape(target.shape, value.shape):
        return f"stores shape {value.shape} to a target of shape {target.shape}"
    if node.arg not in (None, Ops.ADD):
        return f"writes, or accumulates by ADD, got {node.arg!r}"
    return _writes_no_element_twice(target)


def _writes_no_element_twice(target: UOp) -> str | None:
    while target.op in GroupOp.Movement or target.op is Ops.GATHER:
        if target.op is Ops.EXPAND and not same_shape(target.shape, target.src[0].shape):
            return "writes through an expanded view, where one element stands in many places"
        target = target.src[0]
    return None


def _next_version(node: UOp) -> str | None:
    version = node.src[0]
    if version.op not in GroupOp.Version:
        return f"is the next version of a version, got {version.op.name}"
    for effect in node.src[1:]:
        if effect.op is not Ops.STORE:
            return f"comes after STOREs, got {effect.op.name}"
        if stored_version(effect.src[0]) is not version:
            return "its STOREs write the version that it follows; one writes another"
    return same_dtype_as_first(node)


def _realised_buffer(node: UOp) -> str | None:
    storage = stored_version(node.src[0])
    if storage.op is not Ops.BUFFER:
        return f"holds what is in a BUFFER, got {storage.op.name}"
    return same_dtype_as_first(node)


def _names_devices(node: UOp) -> str | None:
    names = node.arg if isinstance(node.arg, tuple) else (node.arg,)
    if not names or any(not isinstance(name, str) or not name for name in names):
        return f"its argument is the name of a device or a tuple of names, got {node.arg!r}"
    return same_dtype_as_first(node)


# ---- calls


def _binds_its_parameters(node: UOp) -> str | None:
    body, arguments = node.src[0], node.src[1:]
    if body.op is not Ops.TUPLE:
        return f"its body is a TUPLE, got {body.op.name}"
    for part in _outside_of_inner_bodies(body):
        if part.op is not Ops.PARAM:
            continue
        slot = part.arg.slot
        if not 0 <= slot < len(arguments):
            return f"its body reads argument {slot} of {len(arguments)}"
        given = arguments[slot]
        if part.dtype is not given.dtype or not same_shape(part.shape, given.shape):
            return (
                f"argument {slot} is {given.dtype!r} of shape {given.shape}, "
                f"the body wants {part.dtype!r} of {part.shape}"
            )
    return None


def _outside_of_inner_bodies(body: UOp) -> Iterator[UOp]:
    """The nodes of a body, but for the bodies of calls in it, whose PARAMs are their own."""
    seen: set[UOp] = set()
    stack = [body]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        stack.extend(node.src[1:] if node.op is Ops.FUNCTION else node.src)


def _custom_has_results(node: UOp) -> str | None:
    return None if node.arg.results else "has at least one result"


_SHAPED: tuple[Callable[[UOp], str | None], ...] = (has_shape, is_scalar_typed)
_MOVED = (same_dtype_as_first, _sizes_are_indices)

tensor_graph = Spec(
    "tensor graph",
    {
        Ops.BUFFER: OpRule(0, 0, BufferArg, (_buffer_is_sized, is_scalar_typed, image_fits)),
        Ops.CONST: CONST_RULE,
        Ops.DEFINE_VAR: VARIABLE_RULE,
        Ops.BIND: OpRule(2, 2, NO_ARG, (_bind_in_bounds,)),
        Ops.IOTA: OpRule(0, 1, (int, NO_ARG), (_iota_is_counted,)),
        Ops.PARAM: OpRule(0, 0, ParamArg, _SHAPED),
        Ops.RESHAPE: OpRule(1, None, tuple, (*_MOVED, has_shape)),
        Ops.EXPAND: OpRule(1, None, tuple, (*_MOVED, has_shape)),
        Ops.PERMUTE: OpRule(1, 1, tuple, (same_dtype_as_first, has_shape)),
        Ops.PAD: OpRule(1, None, tuple, (*_MOVED, _fits_rank, _bounds_in_shape, has_shape)),
        Ops.SHRINK: OpRule(1, None, tuple, (*_MOVED, _fits_rank, _bounds_in_shape, has_shape)),
        Ops.FLIP: OpRule(1, 1, tuple, (same_dtype_as_first, _fits_rank, has_shape)),
        Ops.SKEW: OpRule(1, 1, SkewArg, (same_dtype_as_first, _skew_fits, has_shape)),
        Ops.UNSKEW: OpRule(1, 1, SkewArg, (same_dtype_as_first, _skew_fits, has_shape)),
        **elementwise_rules(*_SHAPED),
        Ops.REDUCE_AXIS: OpRule(1, None, ReduceArg, (*_SHAPED, _reduces_axes)),
        Ops.SCAN_AXIS: OpRule(1, 1, ReduceArg, (*_SHAPED, same_dtype_as_first, _reduces_axes)),
        Ops.GATHER: OpRule(2, None, tuple, (*_SHAPED, same_dtype_as_first, _gathers_by_ints)),
        Ops.GETTUPLE: OpRule(1, 1, int, (takes_one_result, *_SHAPED)),
        Ops.CONTIGUOUS: OpRule(1, 1, NO_ARG, (same_dtype_as_first, *_SHAPED)),
        Ops.DETACH: OpRule(1, 1, NO_ARG, (same_dtype_as_first, *_SHAPED)),
        Ops.COPY: OpRule(1, 1, (str, tuple), (_names_devices, *_SHAPED)),
        Ops.STORE: OpRule(2, 2, (NO_ARG, Ops), (is_void, _writes_a_version)),
        Ops.AFTER: OpRule(1, None, NO_ARG, (_next_version, *_SHAPED)),
        Ops.REALIZED: OpRule(1, 2, NO_ARG, (_realised_buffer, *_SHAPED)),
        Ops.TUPLE: OpRule(1, None, NO_ARG, (is_void,)),
        Ops.FUNCTION: OpRule(1, None, FunctionArg, (_binds_its_parameters,)),
        Ops.CUSTOM: OpRule(0, None, CustomArg, (_custom_has_results,)),
        Ops.SINK: OpRule(0, None, object, (is_void,)),
    },
)
