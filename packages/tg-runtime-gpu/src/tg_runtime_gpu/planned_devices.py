"""The devices that this package will offer. A device is offered when its entry point exists, not before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedDevice:
    """A device that does not exist yet.

    Attributes:
        name: its name in DEV.
        interface: what it will drive the hardware through.
    """

    name: str
    interface: str


PLANNED_DEVICES = (
    PlannedDevice("CL", "OpenCL"),
    PlannedDevice("WEBGPU", "WebGPU, natively or in a browser"),
    PlannedDevice("CUDA", "the CUDA driver library"),
    PlannedDevice("METAL", "Metal"),
    PlannedDevice("HIP", "the HIP runtime library"),
    PlannedDevice("NV", "the kernel driver of NVIDIA hardware"),
    PlannedDevice("AMD", "the kernel driver of AMD hardware"),
    PlannedDevice("QCOM", "the kernel driver of Adreno hardware"),
    PlannedDevice("DSP", "the kernel driver of Hexagon hardware"),
)
