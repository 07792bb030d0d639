"""Programs as data and as files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_ir.device import (
    FORMAT_VERSION,
    ArtifactFormatError,
    BufferDecl,
    BufferParameter,
    Const,
    Copy,
    KernelSignature,
    Launch,
    LinearProgram,
    ProgramInputError,
    Step,
    TinyELF,
    Var,
    VariableBounds,
    View,
    load_program,
    program_from_bytes,
    program_to_bytes,
    save_program,
)

KERNEL = TinyELF(
    "scale",
    b"\x7fELF not really",
    "elf",
    "CPU:LLVM:x86_64,native",
    KernelSignature((BufferParameter("float32", True), BufferParameter("float32", False)), ("n",)),
)

PROGRAM = LinearProgram(
    buffers=(
        BufferDecl(64, "CPU", "input"),
        BufferDecl(64, "CPU", "temporary", arena=0, offset=128),
        BufferDecl(32, "CPU", "temporary"),
        BufferDecl(64, "CPU", "constant"),
    ),
    kernels=(KERNEL,),
    steps=(
        Copy(1, 3),
        View(2, 1, Var("n") * 4),
        Launch(
            0,
            (0, 1),
            (Var("n"),),
            (Var("n") // 8 + 1, Const(1), Const(1)),
            local_size=(Const(8), Const(1), Const(1)),
            flops=Var("n") * 2,
            bytes=Const(128),
        ),
    ),
    variables=(VariableBounds("n", 1, 8),),
    constants=(bytes(range(64)),),
    name="example",
)


def rewritten(change: Callable[[dict[str, object]], object]) -> bytes:
    """The example's file with its manifest changed."""
    with zipfile.ZipFile(io.BytesIO(program_to_bytes(PROGRAM))) as old:
        contents = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(contents["manifest.json"])
    change(manifest)
    contents["manifest.json"] = json.dumps(manifest).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as new:
        for name, data in contents.items():
            new.writestr(name, data)
    return stream.getvalue()


def test_program_is_the_same_after_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "program.zip"
    save_program(PROGRAM, path)
    assert load_program(path) == PROGRAM


def test_names_of_inputs_are_saved(tmp_path: Path) -> None:
    buffers = (BufferDecl(4, "CPU", "input", name="x"), BufferDecl(4, "CPU", "input"))
    program = program_from_bytes(program_to_bytes(LinearProgram(buffers, (), ())))
    assert program.input_names() == ("x", "")


names = st.text(min_size=1, max_size=8)
kernels = st.builds(
    TinyELF,
    name=names,
    code=st.binary(max_size=64),
    code_format=st.sampled_from(["elf", "text", "ptx"]),
    target=names,
    signature=st.builds(
        KernelSignature, st.just((BufferParameter("int8", True),)), st.just(("a", "b"))
    ),
)
steps = st.one_of(
    st.just(Copy(0, 1)),
    st.builds(View, st.just(1), st.just(0), st.integers(0, 9).map(Const)),
    st.just(Launch(0, (1,), (Var("k"), Const(3)))),
)


@given(kernels, st.lists(steps, max_size=5))
def test_any_program_is_the_same_after_save_and_load(kernel: TinyELF, chosen: list[Step]) -> None:
    buffers = (BufferDecl(4, "CPU", "input"), BufferDecl(4, "DISK:/tmp/ä", "temporary"))
    program = LinearProgram(buffers, (kernel,), tuple(chosen), (VariableBounds("k", -1, 2),))
    assert program_from_bytes(program_to_bytes(program)) == program


def test_equal_programs_give_equal_bytes() -> None:
    assert program_to_bytes(PROGRAM) == program_to_bytes(replace(PROGRAM))


def test_file_holds_no_pickle() -> None:
    with zipfile.ZipFile(io.BytesIO(program_to_bytes(PROGRAM))) as archive:
        assert archive.namelist() == ["manifest.json", "kernels/0.bin", "constants/0.bin"]
        assert json.loads(archive.read("manifest.json"))["version"] == FORMAT_VERSION


def test_file_of_version_1_keeps_loading() -> None:
    # Written by hand from the format's description, not by this version's writer.
    manifest = {
        "format": "tg-linear-program",
        "version": 1,
        "name": "old",
        "buffers": [
            {"nbytes": 8, "device": "CPU", "role": "input", "arena": None, "offset": 0},
        ],
        "kernels": [
            {
                "name": "k",
                "code_format": "elf",
                "target": "CPU",
                "buffers": [["int8", True]],
                "vals": [],
            }
        ],
        "steps": [
            {
                "step": "launch",
                "kernel": 0,
                "buffers": [0],
                "vals": [],
                "global_size": [[{"var": "n"}, 2, "*"], [1], [1]],
                "local_size": None,
                "flops": [0],
                "bytes": [0],
            }
        ],
        "variables": [["n", 1, 4]],
        "constants": 0,
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("kernels/0.bin", b"code")
    program = program_from_bytes(stream.getvalue())
    launch = program.steps[0]
    assert isinstance(launch, Launch)
    assert launch.global_size[0].evaluate({"n": 3}) == 6
    assert program.kernels[0].code == b"code"


def test_newer_version_says_what_to_do() -> None:
    data = rewritten(lambda manifest: manifest.update(version=FORMAT_VERSION + 1))
    with pytest.raises(
        ArtifactFormatError, match="format version 2; this tg-ir reads 1 to 1; install"
    ):
        program_from_bytes(data, "model.zip")


def test_another_format_is_refused() -> None:
    data = rewritten(lambda manifest: manifest.update(format="onnx"))
    with pytest.raises(ArtifactFormatError, match="format 'onnx', expected 'tg-linear-program'"):
        program_from_bytes(data)


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip at all"])
def test_what_is_no_zip_is_refused(data: bytes) -> None:
    with pytest.raises(ArtifactFormatError, match="model.zip: not a compiled program or damaged"):
        program_from_bytes(data, "model.zip")


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.pop("steps"),
        lambda manifest: manifest["buffers"][0].update(nbytes="many"),
        lambda manifest: manifest["buffers"][0].update(role="spare"),
        lambda manifest: manifest["steps"][0].update(step="jump"),
        lambda manifest: manifest["steps"][0].update(dest=99),
        lambda manifest: manifest.update(constants=2),
        lambda manifest: manifest.update(kernels={}),
    ],
)
def test_damaged_manifest_is_refused(change: Callable[[dict[str, object]], object]) -> None:
    with pytest.raises(ArtifactFormatError):
        program_from_bytes(rewritten(change))


def test_truncated_file_is_refused() -> None:
    data = program_to_bytes(PROGRAM)
    for length in range(0, len(data) - 1, 37):
        with pytest.raises(ArtifactFormatError):
            program_from_bytes(data[:length])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": (Copy(0, 9),)}, r"step 0 \(Copy\): buffer 9 of 4 does not exist"),
        ({"steps": (Copy(0, 2),)}, "source has 32 bytes, destination 64"),
        ({"steps": (Launch(3, (0, 1)),)}, "kernel 3 of 1 does not exist"),
        (
            {"steps": (Launch(0, (0,)),)},
            "kernel scale takes 2 buffers and 1 integers, the launch gives 1 and 0",
        ),
        ({"constants": ()}, "1 constant buffers but contents of 0"),
        ({"constants": (b"abc",)}, "constant buffer 3 has 64 bytes but contents of 3"),
    ],
)
def test_inconsistent_program_says_where(change: dict[str, object], message: str) -> None:
    with pytest.raises(ProgramInputError, match=message):
        replace(PROGRAM, **change).verify()  # type: ignore[arg-type]  # one field, by name
