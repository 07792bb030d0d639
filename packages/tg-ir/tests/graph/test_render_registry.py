"""Renderers and compilers are found by name, and each way to fail has its message."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tg_ir.errors import (
    CompileError,
    ToolchainConflictError,
    ToolchainLoadError,
    UnknownToolchainError,
)
from tg_ir.graph.render_api import (
    RENDER_API,
    Compiler,
    Renderer,
    TargetCapabilities,
    list_compilers,
    list_renderers,
    load_renderer,
    missing_package_error,
    open_compiler,
    open_renderer,
    registry,
)
from tg_ir.target import Target

TARGET = Target("CPU", "TOY")


class ToyRenderer(Renderer):
    render_api = RENDER_API
    name = "TOY"
    compiler = "TOY"
    code_format = "toy"

    @property
    def capabilities(self) -> TargetCapabilities:
        return TargetCapabilities(frozenset(), frozenset())

    def render(self, kernel: Any, name: str) -> str:
        return name


class ToyCompiler(Compiler):
    render_api = RENDER_API
    name = "TOY"
    code_format = "toy"
    runs = 0

    def compile(self, source: str) -> bytes:
        self.runs += 1
        if not source:
            raise self.refused(source, "line 1: nothing here\nsecond line")
        return source.encode()


class OldRenderer(ToyRenderer):
    render_api = RENDER_API - 1


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Offer (distribution, group, name, value) as entry points, and nothing else."""
    module = ModuleType("toy_toolchain")
    for cls in (ToyRenderer, ToyCompiler, OldRenderer):
        setattr(module, cls.__name__, cls)
    monkeypatch.setitem(sys.modules, "toy_toolchain", module)

    def offer(*points: tuple[str, str, str, str]) -> None:
        def entry_points(group: str) -> list[EntryPoint]:
            found = []
            for distribution, of_group, name, value in points:
                point = EntryPoint(name, value, of_group)
                vars(point)["dist"] = SimpleNamespace(name=distribution)
                found += [point] if of_group == group else []
            return found

        monkeypatch.setattr(registry.metadata, "entry_points", entry_points)

    return offer


TOY = ("toy", "tg.renderers", "TOY", "toy_toolchain:ToyRenderer")


def test_listing_imports_nothing(offer: Any) -> None:
    offer(("ghost", "tg.renderers", "GHOST", "no_such_module:Ghost"))
    (entry,) = list_renderers().values()
    assert (entry.name, entry.distribution, entry.module) == ("GHOST", "ghost", "no_such_module")
    assert list_compilers() == {}


def test_opening_makes_one_for_the_target(offer: Any) -> None:
    offer(TOY, ("toy", "tg.compilers", "TOY", "toy_toolchain:ToyCompiler"))
    assert open_renderer("toy", TARGET).target is TARGET
    assert isinstance(open_compiler("TOY", TARGET), ToyCompiler)


def test_two_packages_offering_one_name_are_both_named(offer: Any) -> None:
    offer(TOY, ("toy-two", "tg.renderers", "TOY", "other:ToyRenderer"))
    with pytest.raises(ToolchainConflictError, match="toy .toy_toolchain. and toy-two .other."):
        list_renderers()


def test_an_unknown_name_lists_what_is_installed(offer: Any) -> None:
    offer(TOY)
    with pytest.raises(UnknownToolchainError, match="renderer 'TOI'; installed: TOY.*'TOY'"):
        load_renderer("toi")


def test_a_known_renderer_that_is_missing_says_what_to_install(offer: Any) -> None:
    offer(TOY)
    with pytest.raises(UnknownToolchainError, match=r"pip install 'tg-renderers\[llvm\]'"):
        load_renderer("LLVM")


def test_a_module_that_does_not_import_says_whose_it_is(offer: Any) -> None:
    offer(("ghost", "tg.renderers", "GHOST", "no_such_module:Ghost"))
    with pytest.raises(ToolchainLoadError, match="'GHOST' of ghost cannot be loaded.*no_such"):
        load_renderer("GHOST")


def test_a_class_of_another_kind_is_refused(offer: Any) -> None:
    offer(("toy", "tg.renderers", "TOY", "toy_toolchain:ToyCompiler"))
    with pytest.raises(ToolchainLoadError, match="ToyCompiler is no subclass of Renderer"):
        load_renderer("TOY")


def test_another_version_of_the_contract_is_refused(offer: Any) -> None:
    offer(("toy", "tg.renderers", "OLD", "toy_toolchain:OldRenderer"))
    with pytest.raises(ToolchainLoadError, match=f"contract {RENDER_API - 1}.*has {RENDER_API}"):
        load_renderer("OLD")


def test_a_missing_third_party_package_says_which_extra_brings_it() -> None:
    message = str(missing_package_error("compiler", "LLVM", "llvmlite"))
    assert "needs the package llvmlite" in message
    assert "pip install 'tg-renderers[llvm]'" in message


def test_a_text_is_compiled_once_by_compile_cached() -> None:
    compiler = ToyCompiler(TARGET)
    assert compiler.compile_cached("a") is compiler.compile_cached("a")
    assert compiler.runs == 1


def test_a_refused_source_is_kept_with_its_log() -> None:
    with pytest.raises(CompileError, match="TOY refused a kernel: line 1: nothing here") as caught:
        ToyCompiler(TARGET).compile("")
    path = str(caught.value).rpartition(" ")[2]
    with open(path, encoding="utf-8") as file:
        assert "second line" in file.read()


def test_a_compiler_without_readable_forms_says_so() -> None:
    compiler = ToyCompiler(TARGET)
    with pytest.raises(NotImplementedError, match="TOY has no assembly text"):
        compiler.assembly("a")
    with pytest.raises(NotImplementedError, match="TOY cannot disassemble toy"):
        compiler.disassemble(b"a")
