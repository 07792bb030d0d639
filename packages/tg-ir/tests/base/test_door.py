"""The lazy door: what `import tg_ir` loads, what it offers, and the base error texts."""

import os
import subprocess
import sys

import pytest
import tg_ir
from tg_ir import errors

GRAPH_NAMES = {"Ops", "PatternMatcher", "UOp", "UPat", "graph_rewrite"}


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_tg_ir_loads_nothing_else_of_it() -> None:
    loaded = loaded_after("import tg_ir")
    assert {name for name in loaded if name.startswith("tg_ir.")} == set()


def test_the_base_loads_neither_graph_nor_device_nor_third_parties() -> None:
    base = "tg_ir.config, tg_ir.target, tg_ir.events, tg_ir.host, tg_ir.dtype, tg_ir.counters"
    loaded = loaded_after(f"import {base}")
    parts = {name.split(".")[1] for name in loaded if name.startswith("tg_ir.")}
    assert parts == {"config", "counters", "dtype", "errors", "events", "host", "target"}
    assert loaded.isdisjoint({"numpy", "llvmlite", "sqlite3"})


def test_base_names_are_offered() -> None:
    for name in set(tg_ir.__all__) - GRAPH_NAMES:
        assert getattr(tg_ir, name) is not None
    assert tg_ir.dtypes.float32 is tg_ir.DType.vec(tg_ir.dtypes.float32, 1)


@pytest.mark.parametrize("name", sorted(GRAPH_NAMES))
def test_graph_names_come_from_the_graph_door(name: str) -> None:
    graph = pytest.importorskip("tg_ir.graph")
    assert getattr(tg_ir, name) is getattr(graph, name)


def test_dir_lists_every_public_name() -> None:
    assert set(tg_ir.__all__) <= set(dir(tg_ir))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tg_ir' has no attribute 'tensor'"):
        _ = tg_ir.tensor


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.DTypeError, TypeError),
        (errors.LiteralError, ValueError),
        (errors.SettingError, ValueError),
        (errors.DuplicateSettingError, errors.SettingError),
        (errors.TargetError, ValueError),
        (errors.EventFormatError, ValueError),
    ],
)
def test_errors_are_caught_by_the_builtin_and_by_our_base(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, errors.TgError)
    assert issubclass(error, builtin)


def test_a_caret_marks_the_place() -> None:
    assert errors.show_caret("abc", 1) == "    abc\n     ^"
    assert errors.show_caret("abc", 0, 3) == "    abc\n    ^^^"
    assert errors.show_caret("abc", 3, 0) == "    abc\n       ^"


def test_close_names_are_suggested_whatever_their_case() -> None:
    assert errors.did_you_mean("debgu", ["DEBUG", "BEAM"]) == "did you mean 'DEBUG'?"


def test_without_a_close_name_everything_known_is_listed() -> None:
    assert errors.did_you_mean("zzz", ["DEBUG", "BEAM"]) == "known: BEAM, DEBUG"
    assert errors.did_you_mean("zzz", []) == "none are known"
