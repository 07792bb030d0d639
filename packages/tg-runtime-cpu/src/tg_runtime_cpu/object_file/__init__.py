"""Loading relocatable ELF objects without a linker."""

from tg_runtime_cpu.object_file.load import LoadedObject, load_object

__all__ = ["LoadedObject", "load_object"]
