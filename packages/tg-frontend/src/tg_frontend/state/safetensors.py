"""`safe_save` and `safe_load`: tensors in a file in the public safetensors format.

A file is checked as a whole before the first tensor is made, and written through a temporary file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from tg_frontend.errors import ArgumentError
from tg_frontend.state.atomic_file import write_atomically
from tg_frontend.state.errors import SafetensorsError
from tg_frontend.state.safetensors_header import (
    LENGTH_BYTES,
    Entry,
    Header,
    header_bytes,
    header_length,
    parse_header,
    place_entries,
)
from tg_frontend.state.tensor_bytes import contents_of, tensor_from_contents
from tg_frontend.tensor import Tensor

PathLike = str | os.PathLike[str]


def safe_save(
    tensors: Mapping[str, Tensor], fn: PathLike, metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a file; readers see the old file or the whole new one.

    Args:
        tensors: by name; realised if they are not yet.
        fn: the file.
        metadata: texts to keep with them.

    Raises:
        SafetensorsError: a tensor or the metadata does not fit the format.
        OSError: the file cannot be written.
    """
    _check_names_and_tensors(tensors)
    for name, tensor in tensors.items():
        if any(not isinstance(extent, int) for extent in tensor.shape):
            raise SafetensorsError(f"tensor {name!r} has the symbolic shape {tensor.shape}")
    described = [(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()]
    entries = place_entries(described)
    first = header_bytes(Header(entries, metadata or {}))
    if tensors:
        Tensor.realize(*tensors.values())
    contents = (contents_of(tensors[entry.name]) for entry in entries)
    write_atomically(Path(fn), (part for parts in ([first], contents) for part in parts))


def safe_load(fn: PathLike, device: str | None = None) -> dict[str, Tensor]:
    """Read all tensors of a file.

    Args:
        fn: the file.
        device: where they go; None takes the default device.

    Returns:
        Tensors by name, in the order of the file.

    Raises:
        SafetensorsError: the file is damaged; nothing was loaded.
        OSError: the file cannot be read.
    """
    with _opened(fn) as stream:
        header, data_start = _read_header(stream, fn)
        contents = [(entry, _read_entry(stream, fn, data_start, entry)) for entry in header.entries]
    return {
        entry.name: tensor_from_contents(data, entry.dtype, entry.shape, device)
        for entry, data in contents
    }


def safe_load_metadata(fn: PathLike) -> dict[str, str]:
    """Read the texts that were saved with the tensors.

    Raises:
        SafetensorsError: the file is damaged.
        OSError: the file cannot be read.
    """
    with _opened(fn) as stream:
        header, _ = _read_header(stream, fn)
    return dict(header.metadata)


def _check_names_and_tensors(tensors: Mapping[str, Tensor]) -> None:
    if not isinstance(tensors, Mapping):
        raise ArgumentError(
            f"safe_save: expected tensors by name, as get_state_dict(model) gives, "
            f"got {type(tensors).__name__}"
        )
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise SafetensorsError(f"the name of a tensor is a text, got {name!r}")
        if not name.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise SafetensorsError(f"the name {name!r} has half a character and no UTF-8 form")
        if not isinstance(tensor, Tensor):
            raise SafetensorsError(
                f"{name!r} is {type(tensor).__name__}; only tensors can be saved: make one of it"
            )


def _opened(fn: PathLike) -> BinaryIO:
    """A file open for reading. A pipe or a device has no size, and might never end.

    Raises:
        ArgumentError: `fn` is no path.
        SafetensorsError: it is no file.
        OSError: it cannot be read.
    """
    if not isinstance(fn, (str, os.PathLike)):
        raise ArgumentError(f"safetensors: expected the path of a file, got {fn!r}")
    path = Path(fn)
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise SafetensorsError(f"{path} is {kind}; expected a safetensors file")
    return open(path, "rb")


def _read_header(stream: BinaryIO, fn: PathLike) -> tuple[Header, int]:
    """The checked header, and where the data starts in the file."""
    file_size = os.fstat(stream.fileno()).st_size
    try:
        length = header_length(stream.read(LENGTH_BYTES), file_size)
        data_start = LENGTH_BYTES + length
        return parse_header(stream.read(length), file_size - data_start), data_start
    except SafetensorsError as error:
        raise SafetensorsError(f"{os.fspath(fn)}: {error}") from None


def _read_entry(stream: BinaryIO, fn: PathLike, data_start: int, entry: Entry) -> bytes:
    stream.seek(data_start + entry.begin)
    data = stream.read(entry.nbytes)
    if len(data) != entry.nbytes:  # another process cut the file after its header was checked
        name = f"{os.fspath(fn)}: tensor {entry.name!r}"
        raise SafetensorsError(f"{name}: the file changed while it was read")
    return data
