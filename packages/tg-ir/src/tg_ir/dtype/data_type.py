"""`DType`, the type of a value, and `dtypes`, the namespace that holds every one of them.

A `DType` is interned: equal types are one object, so `is`, `==` and hashing cost nothing.
How Python numbers behave in a dtype stands in `scalars.py`, promotion in `promotion.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from tg_ir.errors import DTypeError, did_you_mean

Kind = Literal["void", "bool", "int", "uint", "float", "index"]
Scalar = bool | int | float

# Types made so far, by (name, lanes). Entries are only ever added.
_INTERNED: dict[tuple[str, int], "DType"] = {}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DType:
    """The type of a value: a scalar, or `count` lanes of one.

    Use `dtypes.float32` and `.vec(n)`; calling the class makes a type that is not interned.

    Attributes:
        priority: a stable order over scalar types: void, bool, ints, floats, index.
        name: name of the scalar type, such as "float32".
        kind: what sort of number it is.
        bits: width of one lane in bits; 1 for bool, 0 for void, 64 for index.
        itemsize: size of all lanes in memory, in bytes; 0 for void.
        count: number of lanes, 1 for a scalar.
    """

    priority: int
    name: str
    kind: Kind
    bits: int
    itemsize: int
    count: int = 1

    def vec(self, count: int) -> "DType":
        """This scalar type in `count` lanes; `vec(1)` is the scalar itself.

        Raises:
            DTypeError: `count` is below 1, or this is void or already a vector.
        """
        found = _INTERNED.get((self.name, count))
        if found is not None and self.count == 1:
            return found
        if self.count != 1 or count < 1 or self.kind == "void":
            raise DTypeError(
                f"{self!r}.vec({count}): vec makes a scalar type into 1 or more lanes; "
                "use .scalar() first on a vector"
            )
        made = DType(self.priority, self.name, self.kind, self.bits, self.itemsize * count, count)
        return _INTERNED.setdefault((self.name, count), made)

    def scalar(self) -> "DType":
        """The type of one lane."""
        return self if self.count == 1 else _INTERNED[self.name, 1]

    def __repr__(self) -> str:
        lanes = "" if self.count == 1 else f".vec({self.count})"
        return f"dtypes.{self.name}{lanes}"

    def __lt__(self, other: "DType") -> bool:
        return (self.priority, self.count) < (other.priority, other.count)

    def __le__(self, other: "DType") -> bool:
        return (self.priority, self.count) <= (other.priority, other.count)

    def __gt__(self, other: "DType") -> bool:
        return (self.priority, self.count) > (other.priority, other.count)

    def __ge__(self, other: "DType") -> bool:
        return (self.priority, self.count) >= (other.priority, other.count)

    def __copy__(self) -> "DType":
        return self

    def __deepcopy__(self, memo: object) -> "DType":
        return self

    def __reduce__(self) -> tuple[Callable[[str, int], "DType"], tuple[str, int]]:
        return _from_name_and_count, (self.name, self.count)


_PIXEL_LANES = 4


@dataclass(frozen=True, slots=True)
class ImageDType:
    """How the elements of a buffer lie in an image, as texture units read them: pixels in rows.

    It is the layout of a buffer, never the type or shape of a value: a tensor over an image has the
    dtype and the shape that it has over plain memory. `dtypes.imagef((h, w, 4))` makes one.

    Attributes:
        base: the dtype of an element, float32 or float16.
        shape: rows, pixels a row, elements a pixel: `(height, width, 4)`.

    Raises:
        DTypeError: another base or shape.
    """

    base: DType
    shape: tuple[int, int, int]

    def __post_init__(self) -> None:
        """Refuse what no device has."""
        if self.base.name not in ("float32", "float16") or self.base.count != 1:
            raise DTypeError(f"an image holds float32 or float16, not {self.base!r}")
        is_image = isinstance(self.shape, tuple) and len(self.shape) == 3
        if not is_image or min(self.shape) < 1 or self.shape[2] != _PIXEL_LANES:
            raise DTypeError(
                f"an image has the shape (height, width, {_PIXEL_LANES}), each above 0; "
                f"got {self.shape!r}"
            )

    @property
    def size(self) -> int:
        """The number of elements."""
        height, width, lanes = self.shape
        return height * width * lanes


class FloatFormat(NamedTuple):
    """How an IEEE-like binary float is laid out; a plain pair `(exponent, mantissa)`.

    Attributes:
        exponent_bits: width of the exponent field.
        mantissa_bits: stored bits of the significand, the leading one not counted.
    """

    exponent_bits: int
    mantissa_bits: int

    @property
    def max_exponent(self) -> int:
        """The exponent of the largest finite power of two."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.max_exponent

    @property
    def eps(self) -> float:
        """The distance from 1 to the next larger number."""
        return 2.0**-self.mantissa_bits

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - self.eps) * 2.0**self.max_exponent

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with a full significand."""
        return 2.0**self.min_exponent

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive number."""
        return 2.0 ** (self.min_exponent - self.mantissa_bits)


_FLOAT_FORMATS = {
    "float16": FloatFormat(5, 10),
    "bfloat16": FloatFormat(8, 7),
    "float32": FloatFormat(8, 23),
    "float64": FloatFormat(11, 52),
}


def _declare(priority: int, name: str, kind: Kind, bits: int) -> DType:
    """Make and intern one scalar type; only the `dtypes` body calls this."""
    dtype = DType(priority, name, kind, bits, (bits + 7) // 8)
    return _INTERNED.setdefault((name, 1), dtype)


def _from_name_and_count(name: str, count: int) -> DType:
    """What pickle calls: the interned type."""
    return _from_name(name).vec(count) if count != 1 else _from_name(name)


def _from_name(name: str) -> DType:
    """The scalar type called `name`, case and aliases ("half", "int") included.

    Raises:
        DTypeError: no type has this name.
    """
    if not isinstance(name, str):
        raise DTypeError(f"expected a dtype such as dtypes.float32, or its name, got {name!r}")
    found = _INTERNED.get((name, 1))
    if found is not None:
        return found
    lowered = name.lower().removeprefix("dtypes.")
    found = _INTERNED.get((lowered, 1)) or _ALIASES.get(lowered)
    if found is None:
        known = [*(scalar for scalar, count in _INTERNED if count == 1), *_ALIASES]
        raise DTypeError(f"no dtype is called {name!r}; {did_you_mean(name, known)}")
    return found


def _is_float(dtype: DType) -> bool:
    """Whether `dtype` is float16, bfloat16, float32 or float64, of any number of lanes."""
    return dtype.kind == "float"


def _is_int(dtype: DType) -> bool:
    """Whether `dtype` holds integers: signed, unsigned or index. Bool is not one."""
    return dtype.kind in ("int", "uint", "index")


def _is_unsigned(dtype: DType) -> bool:
    """Whether `dtype` is an unsigned integer; bool is not one."""
    return dtype.kind == "uint"


def _is_bool(dtype: DType) -> bool:
    """Whether `dtype` is bool, of any number of lanes."""
    return dtype.kind == "bool"


def _min(dtype: DType) -> Scalar:
    """The least value: -inf for floats, the int64 bound for index.

    Raises:
        DTypeError: void has no values.
    """
    match dtype.kind:
        case "bool":
            return False
        case "uint":
            return 0
        case "int" | "index":
            return -(1 << (dtype.bits - 1))
        case "float":
            return float("-inf")
        case "void":
            raise DTypeError("void has no values, so no minimum; pass the dtype of a value")


def _max(dtype: DType) -> Scalar:
    """The greatest value: inf for floats, the int64 bound for index.

    Raises:
        DTypeError: void has no values.
    """
    match dtype.kind:
        case "bool":
            return True
        case "uint":
            return (1 << dtype.bits) - 1
        case "int" | "index":
            return (1 << (dtype.bits - 1)) - 1
        case "float":
            return float("inf")
        case "void":
            raise DTypeError("void has no values, so no maximum; pass the dtype of a value")


def _finfo(dtype: DType) -> FloatFormat:
    """The float format, also usable as the pair `(exponent bits, mantissa bits)`.

    Raises:
        DTypeError: `dtype` is not a float.
    """
    found = _FLOAT_FORMATS.get(dtype.name)
    if found is None:
        raise DTypeError(f"finfo takes a float dtype such as float32, not {dtype.name}")
    return found


def _imagef(shape: tuple[int, int, int]) -> ImageDType:
    """The layout of an image of float32, `(height, width, 4)`; see `ImageDType`."""
    return ImageDType(dtypes.float32, shape)


def _imageh(shape: tuple[int, int, int]) -> ImageDType:
    """The layout of an image of float16, `(height, width, 4)`; see `ImageDType`."""
    return ImageDType(dtypes.float16, shape)


def _from_py(value: Scalar) -> DType:
    """The dtype a Python number has on its own: bool, `default_int` or `default_float`.

    Raises:
        DTypeError: `value` is no bool, int or float.
    """
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        return dtypes.default_int
    if isinstance(value, float):
        return dtypes.default_float
    raise DTypeError(f"a bool, int or float has a dtype; {type(value).__name__} has none")


class dtypes:
    """Every dtype by name, and what can be asked about one.

    `index` is the mathematical integer of shapes and addresses: it gets a machine width when a
    kernel is lowered. `default_float` and `default_int` are what bare Python numbers become.
    """

    void: ClassVar[DType] = _declare(-1, "void", "void", 0)
    bool: ClassVar[DType] = _declare(0, "bool", "bool", 1)
    int8: ClassVar[DType] = _declare(1, "int8", "int", 8)
    uint8: ClassVar[DType] = _declare(2, "uint8", "uint", 8)
    int16: ClassVar[DType] = _declare(3, "int16", "int", 16)
    uint16: ClassVar[DType] = _declare(4, "uint16", "uint", 16)
    int32: ClassVar[DType] = _declare(5, "int32", "int", 32)
    uint32: ClassVar[DType] = _declare(6, "uint32", "uint", 32)
    int64: ClassVar[DType] = _declare(7, "int64", "int", 64)
    uint64: ClassVar[DType] = _declare(8, "uint64", "uint", 64)
    float16: ClassVar[DType] = _declare(9, "float16", "float", 16)
    bfloat16: ClassVar[DType] = _declare(10, "bfloat16", "float", 16)
    float32: ClassVar[DType] = _declare(11, "float32", "float", 32)
    float64: ClassVar[DType] = _declare(12, "float64", "float", 64)
    index: ClassVar[DType] = _declare(13, "index", "index", 64)

    half: ClassVar[DType] = float16
    float: ClassVar[DType] = float32
    double: ClassVar[DType] = float64
    char: ClassVar[DType] = int8
    uchar: ClassVar[DType] = uint8
    short: ClassVar[DType] = int16
    ushort: ClassVar[DType] = uint16
    int: ClassVar[DType] = int32
    uint: ClassVar[DType] = uint32
    long: ClassVar[DType] = int64
    ulong: ClassVar[DType] = uint64

    default_float: ClassVar[DType] = float32
    default_int: ClassVar[DType] = int32

    floats: ClassVar[tuple[DType, ...]] = (float16, bfloat16, float32, float64)
    sints: ClassVar[tuple[DType, ...]] = (int8, int16, int32, int64)
    uints: ClassVar[tuple[DType, ...]] = (uint8, uint16, uint32, uint64)
    ints: ClassVar[tuple[DType, ...]] = uints + sints
    all: ClassVar[tuple[DType, ...]] = (bool, *ints, *floats)

    is_float = staticmethod(_is_float)
    is_int = staticmethod(_is_int)
    is_unsigned = staticmethod(_is_unsigned)
    is_bool = staticmethod(_is_bool)
    min = staticmethod(_min)
    max = staticmethod(_max)
    finfo = staticmethod(_finfo)
    from_name = staticmethod(_from_name)
    from_py = staticmethod(_from_py)
    imagef = staticmethod(_imagef)
    imageh = staticmethod(_imageh)


_ALIASES: dict[str, DType] = {
    alias: getattr(dtypes, alias)
    for alias in (
        *("half", "float", "double"),
        *("char", "short", "int", "long"),
        *("uchar", "ushort", "uint", "ulong"),
    )
}


def _name_of_numpy_type(dtype: object) -> str | None:
    """The name of what numpy calls a dtype: an object of its own, or a class of scalars."""
    owner = dtype if isinstance(dtype, type) else type(dtype)
    if owner.__module__.partition(".")[0] != "numpy":
        return None
    name = dtype.__name__ if isinstance(dtype, type) else getattr(dtype, "name", None)
    return name.rstrip("_") if isinstance(name, str) else None


def to_dtype(dtype: DType | str) -> DType:
    """`dtype` itself, or the type a name or a dtype of numpy stands for.

    Raises:
        DTypeError: no type has this name.
    """
    if isinstance(dtype, ImageDType):
        raise DTypeError(
            f"{dtype!r} is the layout of a buffer, not the type of an element; "
            f"cast to dtypes.{dtype.base.name}"
        )
    if isinstance(dtype, DType):
        return dtype
    return _from_name(dtype if isinstance(dtype, str) else _name_of_numpy_type(dtype) or dtype)
