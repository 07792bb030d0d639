"""Random tensors: a counter-based generator whose draws are bound to the tensor when it is created.

Each draw takes the next run of counters. Key and first counter are bound variables in the graph,
so that two draws of one shape share a kernel, and what is realised first makes no difference
(SEMANTICS 6).
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any, NamedTuple, Self

from tg_ir.dtype import DType, check_literal, dtypes, to_dtype
from tg_ir.errors import DTypeError, ShapeError
from tg_ir.graph import Ops, UOp, prod

from tg_frontend.nodes.broadcasting import broadcast_to, iota
from tg_frontend.nodes.normal_numbers import standard_normal
from tg_frontend.nodes.sizes import Shape, as_new_shape, whole_number
from tg_frontend.tensor.creation import Creation, DeviceName, DTypeLike
from tg_frontend.tensor.data import one_device

KEY_NAME = "rng_key"
COUNTER_NAME = "rng_counter"
_LARGEST = (1 << 62) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # spreads small seeds over all bits


class _Generator:
    """Seed and next counter of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.times_seeded = 0
        self.seed(0)
        self._slots: dict[int, weakref.ref[UOp]] = {}

    def seed(self, seed: int) -> None:
        """Start the sequence that belongs to `seed`."""
        mixed = ((seed ^ (seed >> 31)) * _GOLDEN) & ((1 << 64) - 1)
        self.key = (mixed >> 2) & _LARGEST
        self.next_counter = 0
        self.times_seeded += 1

    def draw(self, count: Any) -> tuple[UOp, UOp]:
        """Key and first counter of a draw of `count` numbers, as bound variables."""
        with self.lock:
            first = self.next_counter
            self.next_counter += int(count.vmax) if isinstance(count, UOp) else int(count)
            slot = self._free_slot()
            counter = UOp.variable(f"{COUNTER_NAME}_{slot}", 0, _LARGEST).bind(first)
            key = UOp.variable(f"{KEY_NAME}_{slot}", 0, _LARGEST).bind(self.key)
            self._slots[slot] = weakref.ref(counter)
        return key, counter

    def _free_slot(self) -> int:
        """The least number that no draw which is alive has.

        Names come back, and so kernels and schedules do.
        """
        slot = 0
        while slot in self._slots and self._slots[slot]() is not None:
            slot += 1
        return slot


_generator = _Generator()


class GeneratorPosition(NamedTuple):
    """Where the sequence of random numbers is: key, next counter, how often it was seeded."""

    key: int
    next_counter: int
    times_seeded: int


def generator_position() -> GeneratorPosition:
    """Where the sequence of this process is."""
    with _generator.lock:
        held = _generator
        return GeneratorPosition(held.key, held.next_counter, held.times_seeded)


def skip_draws(count: int) -> tuple[int, int]:
    """Take `count` counters, as draws of that many numbers would.

    Return the key and the first of them.
    """
    with _generator.lock:
        first = _generator.next_counter
        _generator.next_counter += count
        return _generator.key, first


def random_bits(shape: tuple[Any, ...]) -> UOp:
    """64 random bits for each element, uint64."""
    count = prod(shape)
    key, first = _generator.draw(count)
    counter = iota(count, dtypes.uint64) + broadcast_to(first.cast(dtypes.uint64), (count,))
    return counter.alu(
        Ops.THREEFRY, broadcast_to(key.cast(dtypes.uint64), (count,))
    ).reshape(shape)


def uniform_floats(shape: tuple[Any, ...], dtype: DType) -> UOp:
    """Floats from 0 to below 1, every multiple of the format's spacing below 1 equally likely."""
    bits = dtypes.finfo(dtype).mantissa_bits + 1
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    whole = dtypes.uint64 if bits > 32 else dtypes.uint32
    top = _shifted_right(random_bits(shape), 64 - bits).cast(whole)
    return (top.cast(wide) * 2.0**-bits).cast(dtype)


def _shifted_right(uop: UOp, count: int) -> UOp:
    return uop.alu(Ops.SHR, uop.const_like(count))


class Random(Creation):
    """Random tensors."""

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Start the sequence of random numbers that belongs to `seed`."""
        _generator.seed(whole_number(seed, "manual_seed"))

    @classmethod
    def _drawn(cls, uop: UOp, device: DeviceName, requires_grad: bool | None) -> Self:
        name = one_device(device)
        placed = uop if uop.size == 0 else uop.copy_to_device(name)
        return cls._from_uop(placed).requires_grad_(requires_grad)

    @classmethod
    def rand(
        cls,
        *shape: Any,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
        contiguous: bool = True,
    ) -> Self:
        """Uniform from 0 to below 1. `contiguous` is accepted for compatibility."""
        element = _float_dtype("rand", dtype)
        drawn = uniform_floats(as_new_shape(shape, "rand"), element)
        return cls._drawn(drawn, device, requires_grad)

    @classmethod
    def randn(
        cls,
        *shape: Any,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """From the standard normal distribution (Box and Muller)."""
        element = _float_dtype("randn", dtype)
        return cls._drawn(_normal(as_new_shape(shape, "randn"), element), device, requires_grad)

    @classmethod
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Ints from `low` to below `high`.

        Raises:
            ValueError: `high` is not above `low`, or the dtype is a float.
            LiteralError: the dtype cannot hold the bounds.
        """
        element = dtypes.default_int if dtype is None else to_dtype(dtype)
        if not dtypes.is_int(element):
            raise ValueError(f"randint gives ints, not {element.name}; use uniform")
        if high <= low:
            raise ValueError(f"randint: high {high} is not above low {low}")
        check_literal(whole_number(low, "randint: low"), element)
        check_literal(whole_number(high, "randint: high") - 1, element)
        sizes = as_new_shape(shape, "randint")
        # the upper 32 bits as a fraction of the range: no remainder, so no value is favoured by
        # more than 2^-32
        span = high - low
        bits = random_bits(sizes)
        drawn = bits % span
        if span <= 1 << 32:
            drawn = _shifted_right(_shifted_right(bits, 32) * span, 32)
        return cls._drawn(drawn.cast(dtypes.int64).cast(element) + low, device, requires_grad)

    @classmethod
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Uniform from `low` to below `high`."""
        element = _float_dtype("uniform", dtype)
        drawn = uniform_floats(as_new_shape(shape, "uniform"), element) * (high - low) + low
        return cls._drawn(drawn, device, requires_grad)

    @classmethod
    def normal(
        cls,
        *shape: Any,
        mean: float = 0.0,
        std: float = 1.0,
        device: DeviceName = None,
        dtype: DTypeLike = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """From the normal distribution of this mean and standard deviation."""
        element = _float_dtype("normal", dtype)
        drawn = _normal(as_new_shape(shape, "normal"), element) * std + mean
        return cls._drawn(drawn, device, requires_grad)

    @classmethod
    def scaled_uniform(cls, *shape: Any, **options: Any) -> Self:
        """Uniform from -1 to 1, divided by the square root of the number of elements."""
        sizes = as_new_shape(shape, "scaled_uniform")
        bound = 1.0 / math.sqrt(max(1, int(prod(sizes))))
        return cls.uniform(*sizes, low=-bound, high=bound, **options)

    @classmethod
    def glorot_uniform(cls, *shape: Any, **options: Any) -> Self:
        """Uniform, bounded by sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010)."""
        sizes = as_new_shape(shape, "glorot_uniform")
        if not sizes:
            raise ShapeError("glorot_uniform: expected one axis or more, got none")
        bound = math.sqrt(6 / max(1, int(sizes[0]) + _fan_in(sizes)))
        return cls.uniform(*sizes, low=-bound, high=bound, **options)

    @classmethod
    def kaiming_uniform(cls, *shape: Any, a: float = 0.01, **options: Any) -> Self:
        """Uniform for rectifiers with slope `a` (He et al., 2015)."""
        sizes = as_new_shape(shape, "kaiming_uniform")
        bound = math.sqrt(3.0) * math.sqrt(2.0 / (1 + a**2)) / math.sqrt(_fan_in(sizes))
        return cls.uniform(*sizes, low=-bound, high=bound, **options)

    @classmethod
    def kaiming_normal(cls, *shape: Any, a: float = 0.01, **options: Any) -> Self:
        """Normal for rectifiers with slope `a` (He et al., 2015)."""
        sizes = as_new_shape(shape, "kaiming_normal")
        std = math.sqrt(2.0 / (1 + a**2)) / math.sqrt(_fan_in(sizes))
        return cls.normal(*sizes, mean=0.0, std=std, **options)

    # ---- like another

    def rand_like(self, **options: Any) -> Self:
        """Uniform from 0 to below 1, in this tensor's shape, dtype and device unless given."""
        options.setdefault("dtype", self.dtype)
        options.setdefault("device", self.device)
        return self.rand(*self.shape, **options)

    def randn_like(self, **options: Any) -> Self:
        """Normal, in this tensor's shape, dtype and device unless given."""
        options.setdefault("dtype", self.dtype)
        options.setdefault("device", self.device)
        return self.randn(*self.shape, **options)

    def bernoulli(self) -> Self:
        """One with the probability that each element is, else zero."""
        draws = self.rand_like(dtype=dtypes.float32)
        return draws.lt(self).cast(self.dtype)


def _fan_in(shape: Shape) -> int:
    """How many inputs one output has; 1 where there are none, so that it can divide."""
    return max(1, int(prod(shape[1:])))


def _float_dtype(what: str, dtype: DTypeLike) -> DType:
    """The dtype of drawn floats.

    Raises:
        DTypeError: it is no float.
    """
    element = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtypes.is_float(element):
        raise DTypeError(f"{what}: draws floats, not {element.name}; use randint for ints")
    return element


def _normal(shape: tuple[Any, ...], dtype: DType) -> UOp:
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    angle = uniform_floats(shape, wide)
    return standard_normal(uniform_floats(shape, wide), angle).cast(dtype)
