"""Writing a file so that readers see the old contents or the new ones, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write `parts` one after another to `path`, replacing what is there.

    They go to a new file in the same folder, which is flushed to the disk and then renamed. A link
    is followed. On any failure the new file is removed and the old one stays.

    Raises:
        OSError: the folder does not exist or cannot be written, or the disk is full.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {target.parent}")
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give the path of a file")
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            for part in parts:
                stream.write(part)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C too must leave no half file behind
        temporary.unlink(missing_ok=True)
        raise
