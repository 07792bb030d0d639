"""Devices that drive an accelerator.

This version holds the list of devices that will live here. None is implemented, so none is
advertised under the entry point group `tg.runtimes`.
"""

from __future__ import annotations

from typing import Final

__all__ = ["RESERVED_DEVICES"]

RESERVED_DEVICES: Final = ("CL", "WEBGPU", "CUDA", "METAL", "HIP", "NV", "AMD", "QCOM", "DSP")
"""Device names that this package will advertise, in the order in which they are planned."""
