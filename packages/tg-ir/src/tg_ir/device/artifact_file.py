"""Save and load a `LinearProgram` as a versioned zip: `manifest.json`, `kernels/`, `constants/`.

No pickle: loading a file runs no code of the file, though running the program of course does.
The same program gives the same bytes, so files can be compared and cached by content.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TypeAlias, TypeVar

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
from tg_ir.device.errors import ArtifactFormatError, ProgramInputError
from tg_ir.device.int_expr import IntExpr, int_expr_from_json

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

FORMAT_NAME = "tg-linear-program"
_MANIFEST = "manifest.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold: no clock in the file

_ROLES: dict[str, BufferRole] = {
    "input": "input",
    "temporary": "temporary",
    "constant": "constant",
}

T = TypeVar("T")


def save_program(program: LinearProgram, path: str | PathLike[str]) -> None:
    """Write `program` to `path`, replacing a file that is there."""
    Path(path).write_bytes(program_to_bytes(program))


def load_program(path: str | PathLike[str]) -> LinearProgram:
    """Read a program that `save_program` wrote.

    Raises:
        ArtifactFormatError: the file is no compiled program, is damaged, or is of a newer version.
        FileNotFoundError: there is no such file.
    """
    return program_from_bytes(Path(path).read_bytes(), str(path))


def program_to_bytes(program: LinearProgram) -> bytes:
    """Return the written form of `program`."""
    program.verify()
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        manifest = json.dumps(_manifest_of(program), indent=1, sort_keys=True)
        _add(archive, _MANIFEST, manifest.encode())
        for index, kernel in enumerate(program.kernels):
            _add(archive, _kernel_path(index), kernel.code)
        for index, contents in enumerate(program.constants):
            _add(archive, _constant_path(index), contents)
    return stream.getvalue()


def program_from_bytes(data: bytes, source: str = "bytes") -> LinearProgram:
    """Read the written form; `source` names it in messages.

    Raises:
        ArtifactFormatError: as `load_program`.
    """
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            manifest = json.loads(archive.read(_MANIFEST))
            _check_version(manifest, source)
            program = _read_program(manifest, archive)
        program.verify()
    except ArtifactFormatError:
        raise
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, ProgramInputError) as error:
        raise ArtifactFormatError(
            f"{source}: not a compiled program or damaged: {error}"
        ) from error
    return program


def _check_version(manifest: dict[str, object], source: str) -> None:
    if manifest.get("format") != FORMAT_NAME:
        raise ArtifactFormatError(
            f"{source}: format {manifest.get('format')!r}, expected {FORMAT_NAME!r}"
        )
    version = manifest.get("version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        raise ArtifactFormatError(
            f"{source}: format version {version!r}; this tg-ir reads 1 to {FORMAT_VERSION}; "
            "install a newer tg-ir or export the program again"
        )


def _add(archive: zipfile.ZipFile, name: str, contents: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, contents)


def _kernel_path(index: int) -> str:
    return f"kernels/{index}.bin"


def _constant_path(index: int) -> str:
    return f"constants/{index}.bin"


# Writing.


def _manifest_of(program: LinearProgram) -> dict[str, Json]:
    return {
        "format": FORMAT_NAME,
        "version": FORMAT_VERSION,
        "name": program.name,
        "buffers": [_write_buffer(decl) for decl in program.buffers],
        "kernels": [_write_kernel(kernel) for kernel in program.kernels],
        "steps": [_write_step(step) for step in program.steps],
        "variables": [[v.name, v.minimum, v.maximum] for v in program.variables],
        "constants": len(program.constants),
    }


def _write_buffer(decl: BufferDecl) -> Json:
    fields: dict[str, Json] = {
        "nbytes": decl.nbytes,
        "device": decl.device,
        "role": decl.role,
        "arena": decl.arena,
        "offset": decl.offset,
    }
    if decl.name:
        fields["name"] = decl.name
    return fields


def _write_kernel(kernel: TinyELF) -> Json:
    return {
        "name": kernel.name,
        "code_format": kernel.code_format,
        "target": kernel.target,
        "buffers": [
            [parameter.dtype, parameter.writable] for parameter in kernel.signature.buffers
        ],
        "vals": list(kernel.signature.vals),
    }


def _write_step(step: Step) -> Json:
    match step:
        case Launch():
            return {
                "step": "launch",
                "kernel": step.kernel,
                "buffers": list(step.buffers),
                "vals": _write_exprs(step.vals),
                "global_size": _write_exprs(step.global_size),
                "local_size": None if step.local_size is None else _write_exprs(step.local_size),
                "flops": _write_expr(step.flops),
                "bytes": _write_expr(step.bytes),
            }
        case Copy():
            return {"step": "copy", "dest": step.dest, "source": step.source}
        case View():
            return {
                "step": "view",
                "dest": step.dest,
                "source": step.source,
                "byte_offset": _write_expr(step.byte_offset),
            }


def _write_exprs(exprs: Iterable[IntExpr]) -> list[Json]:
    return [_write_expr(expr) for expr in exprs]


def _write_expr(expr: IntExpr) -> Json:
    items: list[Json] = []
    for item in expr.to_json():
        items.append(dict(item) if isinstance(item, dict) else item)
    return items


# Reading. A wrong type raises TypeError, KeyError or ValueError, which the caller turns into one
# message.


def _read_program(manifest: dict[str, Json], archive: zipfile.ZipFile) -> LinearProgram:
    kernels = [
        _read_kernel(_as_dict(entry), archive.read(_kernel_path(index)))
        for index, entry in enumerate(_as_list(manifest["kernels"]))
    ]
    return LinearProgram(
        buffers=_read_all(manifest["buffers"], _read_buffer),
        kernels=tuple(kernels),
        steps=_read_all(manifest["steps"], _read_step),
        variables=_read_all(manifest["variables"], _read_variable),
        constants=tuple(
            archive.read(_constant_path(i)) for i in range(_as_int(manifest["constants"]))
        ),
        name=_as_str(manifest["name"]),
    )


def _read_all(entries: Json, read: Callable[[Json], T]) -> tuple[T, ...]:
    return tuple(read(entry) for entry in _as_list(entries))


def _read_buffer(entry: Json) -> BufferDecl:
    fields = _as_dict(entry)
    role = _ROLES.get(_as_str(fields["role"]))
    if role is None:
        raise ValueError(f"buffer role {fields['role']!r}")
    arena = fields["arena"]
    return BufferDecl(
        nbytes=_as_int(fields["nbytes"]),
        device=_as_str(fields["device"]),
        role=role,
        arena=None if arena is None else _as_int(arena),
        offset=_as_int(fields["offset"]),
        name=_as_str(fields.get("name", "")),
    )


def _read_kernel(fields: dict[str, Json], code: bytes) -> TinyELF:
    parameters = []
    for entry in _as_list(fields["buffers"]):
        dtype, writable = _as_list(entry)
        parameters.append(BufferParameter(_as_str(dtype), bool(writable)))
    return TinyELF(
        name=_as_str(fields["name"]),
        code=code,
        code_format=_as_str(fields["code_format"]),
        target=_as_str(fields["target"]),
        signature=KernelSignature(tuple(parameters), _read_all(fields["vals"], _as_str)),
    )


def _read_step(entry: Json) -> Step:
    fields = _as_dict(entry)
    kind = fields["step"]
    if kind == "launch":
        return _read_launch(fields)
    dest = _as_int(fields["dest"])
    source = _as_int(fields["source"])
    if kind == "copy":
        return Copy(dest, source)
    if kind == "view":
        return View(dest, source, _read_expr(fields["byte_offset"]))
    raise ValueError(f"step {kind!r}")


def _read_launch(fields: dict[str, Json]) -> Launch:
    local_size = fields["local_size"]
    return Launch(
        kernel=_as_int(fields["kernel"]),
        buffers=_read_all(fields["buffers"], _as_int),
        vals=_read_all(fields["vals"], _read_expr),
        global_size=_read_all(fields["global_size"], _read_expr),
        local_size=None if local_size is None else _read_all(local_size, _read_expr),
        flops=_read_expr(fields["flops"]),
        bytes=_read_expr(fields["bytes"]),
    )


def _read_variable(entry: Json) -> VariableBounds:
    name, minimum, maximum = _as_list(entry)
    return VariableBounds(_as_str(name), _as_int(minimum), _as_int(maximum))


def _read_expr(entry: Json) -> IntExpr:
    return int_expr_from_json(_as_list(entry))


def _as_list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    return value


def _as_dict(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {value!r}")
    return value


def _as_int(value: Json) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected an integer, got {value!r}")
    return value


def _as_str(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {value!r}")
    return value
