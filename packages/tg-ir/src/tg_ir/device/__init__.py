"""The contracts of devices and compiled programs, and the executor that runs a program on them."""

from importlib import import_module
from typing import TYPE_CHECKING

from tg_ir.device.allocator import Allocator, BufferSpec, HostVisible, LRUAllocator
from tg_ir.device.artifact import (
    FORMAT_VERSION,
    BufferDecl,
    BufferParameter,
    BufferRole,
    Copy,
    KernelSignature,
    Launch,
    LinearProgram,
    Step,
    TinyELF,
    VariableBounds,
    View,
)
from tg_ir.device.buffer import Buffer
from tg_ir.device.capabilities import DeviceCapabilities, FloatModel
from tg_ir.device.errors import (
    ArtifactFormatError,
    BufferSizeError,
    BufferStateError,
    DeviceConflictError,
    DeviceOpenError,
    OutOfDeviceMemory,
    ProgramInputError,
    UnboundVariableError,
    UnknownDeviceError,
    UnsupportedByDevice,
)
from tg_ir.device.execute import Executor
from tg_ir.device.int_expr import (
    Add,
    BinaryExpr,
    Const,
    FloorDiv,
    FloorMod,
    IntExpr,
    Max,
    Min,
    Mul,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    as_int_expr,
    int_expr_from_json,
)
from tg_ir.device.registry import (
    DEFAULT_ORDER,
    DeviceEntry,
    canonical_device_name,
    default_device_name,
    list_devices,
    load_device,
    open_device,
    opened_devices,
    register_device,
    require_device,
    unregister_device,
)
from tg_ir.device.runtime_api import (
    RUNTIME_API,
    AnyCompiled,
    Compiled,
    DeviceGraph,
    GraphFactory,
    GraphLaunch,
    LaunchSize,
    Program,
)

if TYPE_CHECKING:
    from tg_ir.device.artifact_file import (
        load_program,
        program_from_bytes,
        program_to_bytes,
        save_program,
    )

__all__ = [
    "DEFAULT_ORDER",
    "FORMAT_VERSION",
    "RUNTIME_API",
    "Add",
    "Allocator",
    "AnyCompiled",
    "ArtifactFormatError",
    "BinaryExpr",
    "Buffer",
    "BufferDecl",
    "BufferParameter",
    "BufferRole",
    "BufferSizeError",
    "BufferSpec",
    "BufferStateError",
    "Compiled",
    "Const",
    "Copy",
    "DeviceCapabilities",
    "DeviceConflictError",
    "DeviceEntry",
    "DeviceGraph",
    "DeviceOpenError",
    "FloatModel",
    "Executor",
    "FloorDiv",
    "FloorMod",
    "GraphFactory",
    "GraphLaunch",
    "HostVisible",
    "IntExpr",
    "KernelSignature",
    "LRUAllocator",
    "Launch",
    "LaunchSize",
    "LinearProgram",
    "Max",
    "Min",
    "Mul",
    "OutOfDeviceMemory",
    "Program",
    "ProgramInputError",
    "Step",
    "Sub",
    "TinyELF",
    "TruncDiv",
    "TruncMod",
    "UnboundVariableError",
    "UnknownDeviceError",
    "UnsupportedByDevice",
    "Var",
    "VariableBounds",
    "View",
    "as_int_expr",
    "canonical_device_name",
    "default_device_name",
    "int_expr_from_json",
    "list_devices",
    "load_device",
    "load_program",
    "open_device",
    "opened_devices",
    "program_from_bytes",
    "program_to_bytes",
    "register_device",
    "require_device",
    "save_program",
    "unregister_device",
]

# Files of programs need zipfile and json, which cost a tenth of the whole import.
_OF_ARTIFACT_FILE = {"load_program", "program_from_bytes", "program_to_bytes", "save_program"}


def __getattr__(name: str) -> object:
    """Import the module that reads and writes files when one of its names is wanted."""
    if name not in _OF_ARTIFACT_FILE:
        raise AttributeError(f"module 'tg_ir.device' has no attribute {name!r}")
    value: object = getattr(import_module("tg_ir.device.artifact_file"), name)
    globals()[name] = value
    return value
