"""`Device`: the devices by name, the default one, and for each its renderer and compiler."""

from __future__ import annotations

from tg_ir.config import DEV
from tg_ir.device import (
    AnyCompiled,
    canonical_device_name,
    default_device_name,
    list_devices,
    open_device,
)
from tg_ir.target import parse_targets


class _Devices:
    """The one object `Device`."""

    @property
    def DEFAULT(self) -> str:
        """The device of tensors that name none: the first in DEV, else the first that opens."""
        return _first_device(DEV.value)

    def __getitem__(self, name: str) -> AnyCompiled:
        """The opened device."""
        return open_device(self.canonicalize(name))

    def canonicalize(self, name: str | None) -> str:
        """The one name of a device; None is the default."""
        return self.DEFAULT if name is None else canonical_device_name(name)

    def canonicalize_all(self, names: str | tuple[str, ...] | None) -> str | tuple[str, ...]:
        """The one name of each device of a tuple, as of one device; a tuple of one is that one."""
        if not isinstance(names, tuple):
            return self.canonicalize(names)
        found = tuple([canonical_device_name(name) for name in names])
        return found[0] if len(found) == 1 else found

    def get_available_devices(self) -> list[str]:
        """The names of all devices that an installed runtime offers."""
        return sorted(list_devices())


def _first_device(setting: str) -> str:
    found = _FOUND.get(setting)
    if found is None:
        targets = parse_targets(setting)
        name = targets[0].device if targets else ""
        found = canonical_device_name(name) if name else default_device_name()
        _FOUND[setting] = found
    return found


_FOUND: dict[str, str] = {}  # by the text of DEV: parsing it for each tensor would show

Device = _Devices()
