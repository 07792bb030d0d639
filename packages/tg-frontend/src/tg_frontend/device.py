"""`Device`: the devices by name, the default one, and for each its renderer and compiler."""

from __future__ import annotations

from tg_ir.config import DEV
from tg_ir.device import (
    AnyCompiled,
    canonical_device_name,
    default_device_name,
    list_devices,
    open_device,
    require_device,
)
from tg_ir.errors import TargetError
from tg_ir.target import Target, parse_targets


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
        """The one name of a device; None is the default.

        Raises:
            UnknownDeviceError: no installed runtime offers it.
        """
        return self.DEFAULT if name is None else _offered(name)

    def canonicalize_all(self, names: str | tuple[str, ...] | None) -> str | tuple[str, ...]:
        """The one name of each device of a tuple, as of one device; a tuple of one is that one."""
        if not isinstance(names, tuple):
            return self.canonicalize(names)
        found = tuple([_offered(name) for name in names])
        return found[0] if len(found) == 1 else found

    def get_available_devices(self) -> list[str]:
        """The names of all devices that an installed runtime offers."""
        return sorted(list_devices())


def _first_device(setting: str) -> str:
    found = _FOUND.get(setting)
    if found is None:
        targets = parse_targets(setting)
        for target in targets:
            _check_target(setting, target)
        found = targets[0].device if targets else default_device_name()
        _FOUND[setting] = found
    return found


def _check_target(setting: str, target: Target) -> None:
    require_device(target.device)
    if target.interface:
        raise TargetError(
            f"no installed runtime reaches {target.device} through an interface; leave out "
            f"'{target.interface}+'",
            setting,
            setting.upper().index(target.interface),
            len(target.interface),
        )


def _offered(name: str) -> str:
    """The canonical name of a device that some runtime offers."""
    canonical = canonical_device_name(name)
    kind = canonical.partition(":")[0]
    if kind not in _OFFERED:
        require_device(kind)
        _OFFERED.add(kind)
    return canonical


_OFFERED: set[str] = set()  # kinds that were looked up: reading metadata takes milliseconds
_FOUND: dict[str, str] = {}  # by the text of DEV: parsing it for each tensor would show

Device = _Devices()
