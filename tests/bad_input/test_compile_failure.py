"""A kernel that its compiler refuses: source and log stand in a file that the message names."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tg_frontend import Context, Tensor, TinyJit
from tg_ir.errors import CompileError
from tg_renderers.llvm import LLVMRenderer

from .refusals import assert_stands_alone


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[bool], None]]:
    """`spoil(True)`: from here on the renderer writes what no compiler takes."""
    right = LLVMRenderer.render
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def wrong(self: LLVMRenderer, *given: object) -> str:
        return right(self, *given).replace("ret void", "rot void")  # type: ignore[arg-type]  # passed on

    def set_spoiled(spoiled: bool) -> None:
        monkeypatch.setattr(LLVMRenderer, "render", wrong if spoiled else right)

    with Context(CCACHE=0):
        yield set_spoiled


def refused(program: Callable[[], object]) -> Path:
    """The file that the error names."""
    with pytest.raises(CompileError) as caught:
        program()
    assert_stands_alone(caught.value)
    message = str(caught.value)
    assert message.startswith("compiler LLVM refused a kernel: ")
    assert "expected instruction opcode" in message
    assert isinstance(caught.value, RuntimeError)
    return Path(message.partition("source and log are in ")[2])


def test_file_has_the_log_and_the_source(spoil: Callable[[bool], None], tmp_path: Path) -> None:
    spoil(True)
    path = refused(lambda: (Tensor([1.0, 2.0]) * 31.25).tolist())
    assert path.parent == tmp_path
    text = path.read_text()
    assert "error: expected instruction opcode" in text
    assert "define void @" in text
    assert "rot void" in text


def test_the_next_compile_works_and_nothing_wrong_was_kept(spoil: Callable[[bool], None]) -> None:
    x = Tensor([1.0, 2.0]) * 31.5
    spoil(True)
    refused(x.tolist)
    refused(x.tolist)
    spoil(False)
    assert x.tolist() == [31.5, 63.0]


def test_a_write_that_does_not_compile_changes_nothing(spoil: Callable[[bool], None]) -> None:
    x = Tensor([1.0, 2.0]).realize()
    x += 31.75
    spoil(True)
    refused(x.realize)
    spoil(False)
    assert x.tolist() == [32.75, 33.75]


def test_a_function_that_did_not_compile_can_be_captured(spoil: Callable[[bool], None]) -> None:
    jit = TinyJit(lambda x: (x * 32.25).realize())
    spoil(True)
    for _ in range(3):
        refused(lambda: jit(Tensor([1.0, 2.0])))
    spoil(False)
    for k in range(4):
        assert jit(Tensor([1.0, 2.0]) * k).tolist() == [32.25 * k, 64.5 * k]
