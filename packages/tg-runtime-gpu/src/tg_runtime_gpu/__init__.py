"""Devices that drive an accelerator. None is offered yet: this is the list of what is planned, in order."""

from tg_runtime_gpu.planned_devices import PLANNED_DEVICES, PlannedDevice

__all__ = ["PLANNED_DEVICES", "PlannedDevice"]
