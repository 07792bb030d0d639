"""From a schedule to a `LinearProgram`: each kernel is found in a cache, or made."""

from tg_codegen.compile.disk_cache import DiskCache, cache_folder, open_disk_cache
from tg_codegen.compile.driver import (
    LoweredKernel,
    bound_values,
    clear_kernel_cache,
    compile_call,
    compile_schedule,
    compile_support,
    schedule_buffers,
)
from tg_codegen.compile.kernel_record import CompiledKernel
from tg_codegen.compile.memory_plan import plan_memory
from tg_codegen.compile.variable_names import variable_of
from tg_codegen.kernel.workspace import Workspace

__all__ = [
    "CompiledKernel",
    "DiskCache",
    "LoweredKernel",
    "Workspace",
    "bound_values",
    "cache_folder",
    "clear_kernel_cache",
    "compile_call",
    "compile_schedule",
    "compile_support",
    "open_disk_cache",
    "plan_memory",
    "schedule_buffers",
    "variable_of",
]
