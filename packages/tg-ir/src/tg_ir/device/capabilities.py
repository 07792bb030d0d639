"""What a device declares about itself, so that nobody asks `hasattr` or looks at its name."""

from __future__ import annotations

from dataclasses import dataclass

from tg_ir.float_model import FloatModel

__all__ = ["PLAIN_DEVICE", "DeviceCapabilities", "FloatModel"]


@dataclass(frozen=True)
class DeviceCapabilities:
    """What the executor and the tools may rely on; the default is a plain synchronous device."""

    asynchronous: bool = False  # a launch may return before the kernel has run
    stores_values: bool = True  # what is written can be read back (NULL: no)
    runs_programs: bool = True  # has programs at all (DISK: no)
    host_memory: bool = False  # its memory is addressable by the host processor
    software_adapter: bool = False  # a GPU interface run by the CPU; never chosen by default
    timelines: bool = False  # offers queues with signals
    collectives: bool = False  # offers operations over several devices
    max_alignment: int = 64  # alignment in bytes that every allocation has
    float_model: FloatModel = FloatModel()


PLAIN_DEVICE = DeviceCapabilities()
"""What a device has that declares nothing."""
