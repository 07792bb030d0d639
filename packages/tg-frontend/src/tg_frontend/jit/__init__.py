"""The JIT: functions of tensors that are captured once and then replayed as one program."""

from tg_frontend.jit.errors import JitError
from tg_frontend.jit.tiny_jit import TinyJit

__all__ = ["JitError", "TinyJit"]
