"""Which names the code of a function mentions, that of functions inside it included."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType


def mentioned_names(code: CodeType) -> set[str]:
    """The names of attributes and globals that the code mentions."""
    return {name for part in _parts(code) for name in part.co_names}


def global_names(code: CodeType) -> set[str]:
    """The names of globals that the code reads."""
    return {
        instruction.argval
        for part in _parts(code)
        for instruction in dis.get_instructions(part)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }


def _parts(code: CodeType) -> Iterator[CodeType]:
    pending = [code]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(item for item in part.co_consts if isinstance(item, CodeType))
