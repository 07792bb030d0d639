"""The package offers nothing yet, and says what it will offer."""

from importlib import metadata

import tg_runtime_gpu
from tg_ir.device import DEFAULT_ORDER


def test_no_planned_device_is_offered_before_it_exists() -> None:
    offered = {point.name for point in metadata.entry_points(group="tg.runtimes")}
    planned = {device.name for device in tg_runtime_gpu.PLANNED_DEVICES}
    assert not offered & planned


def test_every_accelerator_of_the_default_order_is_planned() -> None:
    planned = {device.name for device in tg_runtime_gpu.PLANNED_DEVICES}
    assert set(DEFAULT_ORDER) - {"CPU"} <= planned


def test_planned_names_are_distinct() -> None:
    names = [device.name for device in tg_runtime_gpu.PLANNED_DEVICES]
    assert len(names) == len(set(names))
