"""Graph nodes of Python data: numbers, nested lists, bytes, numpy arrays.

Floats get storage even where one number fills it: a tensor that can have a gradient needs an
identity, and two constants of one value would be one node. Ints and bools stay constants.
"""

from __future__ import annotations

from typing import Any

from tg_ir.dtype import DType, check_literal, dtypes, to_bytes
from tg_ir.errors import DTypeError, LiteralError
from tg_ir.graph import UOp

from tg_frontend.device import Device
from tg_frontend.errors import ArgumentError, DataError
from tg_frontend.lazy import array_of
from tg_frontend.live.registry import ValueHolder
from tg_frontend.nodes.broadcasting import Shape, filled
from tg_frontend.storage import buffer_with_contents, new_buffer

_DEEPEST = 64  # as many axes as an array of numpy may have


def uop_from_data(data: Any, device: str | tuple[str, ...] | None, dtype: DType | None) -> UOp:
    """The node of `data`, on `device` where it has one.

    Raises:
        DataError: no tensor can be made of it.
        LiteralError: a number does not fit `dtype`.
    """
    if isinstance(data, UOp):
        return _from_uop(data, device, dtype)
    if isinstance(data, (bool, int, float)):
        return _from_number(data, device, dtype)
    if isinstance(data, (list, tuple, range)):
        return _from_sequence(data, device, dtype)
    if isinstance(data, (bytes, bytearray, memoryview)):
        raw = memoryview(memoryview(data).tobytes())  # in order, whatever its strides
        element = dtype or dtypes.uint8
        if len(raw) % element.itemsize:
            raise DataError(f"{len(raw)} bytes hold no whole number of {element.name}")
        return _stored(raw, (len(raw) // element.itemsize,), element, device)
    if data is None:
        return filled(dtype or dtypes.default_float, 0, (0,))
    return _from_array(data, device, dtype)


def own_storage(value: UOp, device: str | None = None) -> UOp:
    """`value` written to a new buffer: a node with an identity of its own.

    Args:
        value: of a shape without symbols, at least one element.
        device: where; None takes the value's own, else the default device.
    """
    shape = value.shape
    target = value.device if device is None else Device.canonicalize(device)
    if target is None:
        target = Device.DEFAULT
    buffer = new_buffer(str(target), int(value.size), value.dtype)
    return buffer.after(buffer.store(value.reshape((value.size,)))).reshape(shape)


def one_device(device: str | tuple[str, ...] | None) -> str:
    """The canonical name of the device that new values are put on; the default one for None.

    Raises:
        ArgumentError: not the name of one device.
        UnknownDeviceError: no installed runtime offers it.
    """
    if device is not None and not isinstance(device, str):
        raise ArgumentError(
            f"device: expected the name of one device, such as 'CPU', got {device!r}; "
            "make the tensor on one, then copy it by to()"
        )
    return Device.canonicalize(device)


def to_device(uop: UOp, device: str | tuple[str, ...] | None) -> UOp:
    """`uop` on `device`; itself where it is there, or nowhere in particular."""
    if device is None or (uop.device is None and isinstance(device, str)):
        return uop
    name = Device.canonicalize_all(device)
    return uop if uop.device == name else uop.copy_to_device(name)


def _from_uop(uop: UOp, device: str | tuple[str, ...] | None, dtype: DType | None) -> UOp:
    if uop.dtype is dtypes.index:
        return uop.cast(dtype or dtypes.default_int)
    return to_device(uop if dtype is None else uop.cast(dtype), device)


def _from_number(
    value: bool | int | float, device: str | tuple[str, ...] | None, dtype: DType | None
) -> UOp:
    # a subclass such as numpy.float64 counts as the Python number it is
    number = value
    if not isinstance(value, bool):
        number = int(value) if isinstance(value, int) else float(value)
    element = dtype or dtypes.from_py(number)
    if not isinstance(number, bool):
        _check_data(number, element, dtype is None)
    if not dtypes.is_float(element):
        constant = UOp.const(element, number)
        elsewhere = device is not None and one_device(device) != Device.DEFAULT
        return constant.copy_to_device(one_device(device)) if elsewhere else constant
    return _stored(to_bytes([float(number)], element), (), element, device)


def _check_data(number: int | float, dtype: DType, is_chosen_here: bool) -> None:
    """Refuse a number that its dtype cannot hold; where we chose that, say how to choose.

    Raises:
        LiteralError: it does not fit.
    """
    try:
        check_literal(number, dtype)
    except LiteralError as error:
        if not is_chosen_here:
            raise
        fact = str(error).partition(";")[0]
        wider = "int64" if isinstance(number, int) else "float64"
        raise LiteralError(
            f"{fact}; that is the default for such data: give a wider one, as in dtype='{wider}'"
        ) from None


def _stored(
    contents: memoryview | bytes,
    shape: Shape,
    dtype: DType,
    device: str | tuple[str, ...] | None,
) -> UOp:
    name = one_device(device)
    if not len(contents):
        return filled(dtype, 0, shape)
    return buffer_with_contents(name, dtype, contents).reshape(shape)


def _from_sequence(data: Any, device: str | tuple[str, ...] | None, dtype: DType | None) -> UOp:
    if isinstance(data, range) and len(data):
        # before a long one becomes a list
        for end in (data[0], data[-1]):
            _check_data(end, dtype or dtypes.default_int, dtype is None)
    numbers, shape = _flatten(data)
    if any(isinstance(number, ValueHolder) for number in numbers):
        raise DataError(
            f"no tensor can be made of a {type(data).__name__} of tensors; join them with "
            "Tensor.stack(...), which keeps gradients and computes nothing yet"
        )
    if any(not isinstance(number, (bool, int, float)) for number in numbers):
        return _from_array(data, device, dtype)
    element = dtype or _dtype_of_numbers(numbers)
    for number in numbers:
        if not isinstance(number, bool):
            _check_data(number, element, dtype is None)
    plain = [bool(n) if element is dtypes.bool else n for n in numbers]
    if dtypes.is_int(element):
        plain = [int(n) for n in plain]
    return _stored(to_bytes(plain, element), shape, element, device)


def _dtype_of_numbers(numbers: list[Any]) -> DType:
    if not numbers or any(isinstance(number, float) for number in numbers):
        return dtypes.default_float
    if all(isinstance(number, bool) for number in numbers):
        return dtypes.bool
    return dtypes.default_int


def _flatten(data: Any) -> tuple[list[Any], tuple[int, ...]]:
    """The leaves of nested sequences in order, and the shape."""
    level: list[Any] = [data]
    shape: tuple[int, ...] = ()
    while level and all(isinstance(item, (list, tuple, range)) for item in level):
        length = len(level[0])
        if any(len(item) != length for item in level):
            raise DataError(
                f"nested lists of different lengths at depth {len(shape)}: "
                f"expected {length} items in each"
            )
        shape += (length,)
        if len(shape) > _DEEPEST:
            raise DataError(f"lists are nested more than {_DEEPEST} deep; does one hold itself?")
        level = [leaf for item in level for leaf in item]
    if any(isinstance(item, (list, tuple, range)) for item in level):
        raise DataError(f"lists and numbers are mixed at depth {len(shape)}; nest them evenly")
    return level, shape


def _as_array(data: Any) -> Any:
    """What numpy makes of data that is neither number, list of numbers nor array.

    Raises:
        DataError: nothing.
    """
    try:
        return array_of(data)
    except (ValueError, TypeError) as error:
        raise DataError(
            f"no tensor can be made of {_named(data)}; expected numbers, lists of numbers, bytes "
            f"or a numeric numpy array (numpy says: {error})"
        ) from None


def _named(data: Any) -> str:
    """The type of data, and the data itself where it is short."""
    shown = repr(data)
    kind = type(data).__name__
    return f"{kind} {shown}" if len(shown) <= 40 else kind


def _from_array(data: Any, device: str | tuple[str, ...] | None, dtype: DType | None) -> UOp:
    array = data if hasattr(data, "tobytes") and hasattr(data, "dtype") else _as_array(data)
    name = array.dtype.name
    try:
        element = dtypes.from_name(name)
    except DTypeError:
        elements = "" if name.startswith("str") else f" with elements of type {name}"
        raise DataError(
            f"no tensor can be made of {_named(data)}{elements}; "
            "expected numbers, lists of numbers, bytes or a numeric numpy array"
        ) from None
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    shape = tuple(int(extent) for extent in array.shape)
    contents = array.tobytes()
    if dtype is None or dtype is element:
        return _stored(contents, shape, element, device)
    return _stored(contents, shape, element, device).cast(dtype)
