"""What is imported on first use, so that `import tg_frontend` loads neither numpy nor a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy


def array_from_bytes(data: Any, dtype_name: str, shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
    """A numpy array over `data`, which it keeps alive."""
    import numpy

    return numpy.frombuffer(data, dtype=dtype_name).reshape(shape)


def array_of(data: Any) -> numpy.ndarray[Any, Any]:
    """What numpy makes of `data`."""
    import numpy

    return numpy.asarray(data)
