"""Which devices exist, found by entry point: list (metadata only), load (imports), open (may fail).

An entry of the group `tg.runtimes` names one device class (`CPU = "package.ops_cpu:CPUDevice"`),
or a package whose `ops_<name>.py` files each hold a `<NAME>Device`; those are listed without being
imported.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tg_ir.config import DEBUG
from tg_ir.device.errors import (
    DeviceConflictError,
    DeviceOpenError,
    UnknownDeviceError,
    listed,
)
from tg_ir.device.runtime_api import RUNTIME_API, AnyCompiled
from tg_ir.errors import TgError, did_you_mean
from tg_ir.events import DeviceOpened, emit, listening

ENTRY_POINT_GROUP = "tg.runtimes"

DEFAULT_ORDER = ("METAL", "AMD", "NV", "CUDA", "QCOM", "CL", "CPU", "DSP", "WEBGPU")
"""Without DEV the first of these that opens is taken."""

_PACKAGE_OF = dict.fromkeys(
    ("CPU", "PYTHON", "NULL", "DISK", "NPY"), "tg-runtime-cpu"
) | dict.fromkeys(
    ("CL", "WEBGPU", "CUDA", "METAL", "HIP", "NV", "AMD", "QCOM", "DSP"), "tg-runtime-gpu"
)


@dataclass(frozen=True)
class DeviceEntry:
    """Where a device comes from, known without importing it."""

    name: str  # device name, upper case
    distribution: str  # the installed package that offers it
    module: str
    class_name: str


def list_devices() -> dict[str, DeviceEntry]:
    """Return every offered device by name, reading metadata only.

    Raises:
        DeviceConflictError: two packages offer one name.
    """
    entries: dict[str, DeviceEntry] = {}
    for entry in _installed_entries():
        known = entries.setdefault(entry.name, entry)
        if known != entry:
            raise DeviceConflictError(
                f"device '{entry.name}' is offered by two packages: {known.distribution} "
                f"({known.module}) and {entry.distribution} ({entry.module}); uninstall one of them"
            )
    return entries | _REGISTERED


def require_device(name: str) -> None:
    """Check that some installed runtime offers a device; imports nothing.

    Raises:
        UnknownDeviceError: none does.
    """
    kind = canonical_device_name(name).partition(":")[0]
    entries = list_devices()
    if kind not in entries:
        raise UnknownDeviceError(_unknown_device(kind, entries))


def load_device(name: str) -> type[AnyCompiled]:
    """Import and return the class of a device.

    Args:
        name: a device name; an index or a path after the colon is ignored.

    Raises:
        UnknownDeviceError: no installed runtime offers it.
        DeviceOpenError: its module does not import, or was written for another contract.
    """
    kind = canonical_device_name(name).partition(":")[0]
    require_device(kind)
    entry = list_devices()[kind]
    cls = _REGISTERED_CLASSES.get(kind) or _import_class(kind, entry)
    _check_contract(kind, entry, cls)
    return cls


def open_device(name: str) -> AnyCompiled:
    """Return the opened device, opening it on first use.

    Args:
        name: `CPU`, `cpu`, `CPU:0` (all the same device), `CPU:1`, `DISK:/path/to/file`.

    Raises:
        UnknownDeviceError: no installed runtime offers it.
        DeviceOpenError: this machine cannot open it; the message has the reason.
    """
    if (device := _OPENED.get(name)) is not None:
        return device
    canonical = canonical_device_name(name)
    with _state.lock:
        if (device := _OPENED.get(canonical)) is None:
            device = _open(canonical)
            _OPENED[canonical] = device
            _announce(device)
    return device


def opened_devices() -> tuple[AnyCompiled, ...]:
    """Return the devices that were opened so far."""
    return tuple(_OPENED.values())


def default_device_name() -> str:
    """Return the first of `DEFAULT_ORDER` that opens, software adapters last.

    Raises:
        DeviceOpenError: none opens; the message has the reason of each.
    """
    software: list[str] = []
    reasons: list[str] = []
    offered = list_devices()
    for name in DEFAULT_ORDER:
        if name not in offered:
            continue
        try:
            device = open_device(name)
        except DeviceOpenError as error:
            reasons.append(str(error))
            continue
        if not device.capabilities.software_adapter:
            return name
        software.append(name)
    if software:
        return software[0]
    detail = "; ".join(reasons) or f"installed: {listed(offered)}"
    raise DeviceOpenError(f"no device opens: {detail}; install tg-runtime-cpu for the CPU")


def canonical_device_name(name: str) -> str:
    """Return the one name of a device: upper case, without `:0`, a path unchanged.

    Raises:
        UnknownDeviceError: `name` is no device name.
    """
    kind, colon, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not kind.isidentifier():
        raise UnknownDeviceError(
            f"{name!r} is no device name; expected a name and perhaps an index, "
            "such as CPU or CPU:1"
        )
    kind = kind.upper()
    if not colon or rest == "0":
        return kind
    if rest.isdecimal():
        return f"{kind}:{int(rest)}" if int(rest) else kind
    return f"{kind}:{rest}"


def register_device(name: str, cls: type[AnyCompiled]) -> None:
    """Offer a device of this process only, for tests and experiments; packages use an entry point.

    Raises:
        DeviceConflictError: the name is taken.
    """
    canonical = canonical_device_name(name)
    entry = DeviceEntry(canonical, f"{cls.__module__} (this process)", cls.__module__, cls.__name__)
    if (known := list_devices().get(canonical)) is not None:
        raise DeviceConflictError(
            f"device '{canonical}' is offered by two packages: {known.distribution} "
            f"and {entry.distribution}"
        )
    _REGISTERED[canonical] = entry
    _REGISTERED_CLASSES[canonical] = cls


def unregister_device(name: str) -> None:
    """Undo `register_device` and close what was opened by it."""
    canonical = canonical_device_name(name)
    _REGISTERED.pop(canonical, None)
    _REGISTERED_CLASSES.pop(canonical, None)
    for opened in [key for key in _OPENED if key.partition(":")[0] == canonical]:
        _OPENED.pop(opened).finalize()


def _installed_entries() -> Iterable[DeviceEntry]:
    metadata = import_module("importlib.metadata")  # late: it takes 15 ms, as long as all the rest
    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        distribution = point.dist.name if point.dist is not None else "an unnamed package"
        if point.attr:
            yield DeviceEntry(point.name.upper(), distribution, point.module, point.attr)
        else:
            yield from _entries_of_package(point.module, distribution)


def _entries_of_package(package: str, distribution: str) -> Iterable[DeviceEntry]:
    """List the `ops_<name>.py` files of a package; `find_spec` imports parents only."""
    spec = find_spec(package)
    locations = spec.submodule_search_locations if spec is not None else None
    for location in locations or ():
        for path in sorted(Path(location).glob("ops_*.py")):
            name = path.stem.removeprefix("ops_").upper()
            yield DeviceEntry(name, distribution, f"{package}.{path.stem}", f"{name}Device")


def _import_class(kind: str, entry: DeviceEntry) -> type[AnyCompiled]:
    try:
        cls: type[AnyCompiled] = getattr(import_module(entry.module), entry.class_name)
    except (ImportError, AttributeError, OSError) as error:
        raise DeviceOpenError(
            f"device '{kind}' of {entry.distribution} cannot be loaded: {error}"
        ) from error
    return cls


def _check_contract(kind: str, entry: DeviceEntry, cls: type[AnyCompiled]) -> None:
    version = getattr(cls, "runtime_api", None)
    if version != RUNTIME_API:
        raise DeviceOpenError(
            f"device '{kind}' of {entry.distribution} was written for runtime contract {version}, "
            f"this tg-ir has {RUNTIME_API}; install versions that fit each other"
        )


def _unknown_device(kind: str, entries: Iterable[str]) -> str:
    message = f"no runtime offers device '{kind}'; installed: {listed(entries)}"
    package = _PACKAGE_OF.get(kind)
    if package is None:
        close = did_you_mean(kind, entries)
        return f"{message}; {close}" if close.startswith("did") else message
    version = installed_version(package)
    if version is None:
        return f"{message}; install {package} for it"
    return f"{message}; {package} {version} is installed, but does not have it yet"


def installed_version(distribution: str) -> str | None:
    """The version of an installed package, None where it is not installed."""
    metadata = import_module("importlib.metadata")  # late, as in `_installed_entries`
    try:
        version: str = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
    return version


def _open(canonical: str) -> AnyCompiled:
    kind, _, rest = canonical.partition(":")
    cls = load_device(kind)
    if rest and not rest.isdecimal() and not cls.is_named_by_path:
        raise UnknownDeviceError(
            f"'{canonical}' is no device; after '{kind}:' comes an index, such as {kind}:1 "
            "(renderer and arch are chosen by the setting DEV)"
        )
    try:
        return _construct(cls, canonical)
    except (OSError, RuntimeError, NotImplementedError, ImportError, ValueError) as error:
        # what a device says on purpose needs no traceback beside it
        is_plain = isinstance(error, (TgError, OSError, ValueError))
        raise DeviceOpenError(f"device '{canonical}' does not open: {error}") from (
            None if is_plain else error
        )


def _announce(device: AnyCompiled) -> None:
    if DEBUG >= 1:
        print(f"opened device {device.device}")
    if listening():
        emit(DeviceOpened(device.device))


def _construct(cls: type[AnyCompiled], canonical: str) -> AnyCompiled:
    # A device class takes its own name and nothing else; `Compiled` itself takes its parts.
    return cls(canonical)  # type: ignore[call-arg]  # the contract of a concrete device class


class _State:
    """The lock of the registry, kept in an object so that a forked child can replace it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_state = _State()
_OPENED: dict[str, AnyCompiled] = {}
_REGISTERED: dict[str, DeviceEntry] = {}
_REGISTERED_CLASSES: dict[str, type[AnyCompiled]] = {}


def _finalize_all() -> None:
    while _OPENED:
        device = _OPENED.popitem()[1]
        device.synchronize()
        device.finalize()


def _remake_lock_after_fork() -> None:
    _state.lock = threading.RLock()


atexit.register(_finalize_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_remake_lock_after_fork)
