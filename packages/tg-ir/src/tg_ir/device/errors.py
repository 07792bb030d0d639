"""Errors of the device part. Each says what was expected, what came, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tg_ir.errors import TgError


class OutOfDeviceMemory(TgError, MemoryError):
    """A device could not give the memory asked for; the next, smaller request may work.

    Attributes:
        device: canonical name of the device.
        bytes_asked: size of the request.
        bytes_in_use: what was allocated on the device when the request failed.
    """

    def __init__(self, device: str, bytes_asked: int, bytes_in_use: int) -> None:
        """Make the message from the three facts a user needs."""
        super().__init__(
            f"{device}: out of memory: asked for {bytes_asked} bytes ({_readable(bytes_asked)}), "
            f"{bytes_in_use} bytes in use ({_readable(bytes_in_use)}); "
            "drop tensors that are no longer needed or work on smaller pieces"
        )
        self.device = device
        self.bytes_asked = bytes_asked
        self.bytes_in_use = bytes_in_use


class BufferSizeError(TgError, ValueError):
    """A buffer, view or copy has a size that does not fit what it is used with."""


class BufferStateError(TgError, RuntimeError):
    """A buffer is used before it was allocated, after it was freed, or allocated twice."""


class UnsupportedByDevice(TgError, NotImplementedError):
    """A device was asked for something that its capabilities do not offer."""


class UnboundVariableError(TgError, KeyError):
    """A program has a variable that the run gives no value."""

    def __init__(self, name: str, values: Mapping[str, int]) -> None:
        """Name the variable and what was given."""
        given = ", ".join(sorted(values)) or "none"
        super().__init__(f"no value for the variable '{name}'; given: {given}")

    def __str__(self) -> str:
        """Return the message as written, where KeyError would quote it."""
        return str(self.args[0])


class ProgramInputError(TgError, ValueError):
    """A compiled program is inconsistent, or gets buffers or values it was not made for."""


class ArtifactFormatError(TgError, ValueError):
    """A file is not a compiled program, is damaged, or has a version this package cannot read."""


class UnknownDeviceError(TgError, RuntimeError):
    """No installed runtime offers a device, or a device name is malformed."""


class DeviceConflictError(TgError, RuntimeError):
    """Two installed packages offer a device of the same name."""


class DeviceOpenError(TgError, RuntimeError):
    """A runtime offers the device, but it cannot be loaded or opened on this machine."""


def listed(names: Iterable[str]) -> str:
    """Return the names sorted and joined for a message, or `none`."""
    return ", ".join(sorted(names)) or "none"


def _readable(nbytes: int) -> str:
    size = float(nbytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
