"""Files and state dicts that are not what they claim; what was there stays as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tg_frontend import Tensor, nn
from tg_frontend.nn.state import load_state_dict, safe_load, safe_save

from .refusals import Case, assert_stands_alone, case, each, message_of

ones = Tensor.ones


def entry(**changes: object) -> dict[str, object]:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


def file_with(header: object, data: bytes = bytes(8)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


LIES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the file has 0 bytes"),
    "too_short": (b"\x01\x02", "the file has 2 bytes"),
    "header_beyond_the_end": ((999).to_bytes(8, "little") + b"{}", "claims 999 bytes"),
    "enormous_header": (b"\xff" * 8, "claims 18446744073709551615 bytes"),
    "no_json": (file_with(b"{nonsense"), "no JSON"),
    "no_utf8": (file_with(b"\xff\xfe{}"), "header"),
    "a_list": (file_with([]), "JSON list; expected an object"),
    "entry_is_no_object": (file_with({"a": 5}), "'a': expected dtype, shape"),
    "no_dtype": (file_with({"a": {"shape": [2], "data_offsets": [0, 8]}}), "'a'"),
    "unknown_dtype": (file_with({"a": entry(dtype="F99")}), "F99"),
    "negative_extent": (file_with({"a": entry(shape=[-2])}), "'a'"),
    "float_extent": (file_with({"a": entry(shape=[2.5])}), "'a'"),
    "true_as_extent": (file_with({"a": entry(shape=[True, 2])}), "'a'"),
    "shape_too_large": (file_with({"a": entry(shape=[3])}), "(3,) needs 12 bytes"),
    "overflowing_shape": (file_with({"a": entry(shape=[2**32, 2**32])}), "'a'"),
    "offsets_backwards": (file_with({"a": entry(data_offsets=[8, 0])}), "'a'"),
    "offsets_beyond_the_end": (file_with({"a": entry(shape=[4], data_offsets=[0, 16])}), "byte 16"),
    "offsets_negative": (file_with({"a": entry(data_offsets=[-8, 0])}), "'a'"),
    "offsets_of_three": (file_with({"a": entry(data_offsets=[0, 4, 8])}), "'a'"),
    "overlap": (file_with({"a": entry(), "b": entry()}), "overlaps 'a'"),
    "hole": (file_with({"a": entry(data_offsets=[8, 16])}, bytes(16)), "leaves a gap"),
    "bytes_left_over": (file_with({"a": entry()}, bytes(16)), "end at byte 8"),
    "doubled_name": (
        file_with(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
                  b'"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'),
        "the key 'a' twice",
    ),
    "metadata_of_numbers": (file_with({"__metadata__": {"k": 1}, "a": entry()}), "metadata"),
    "deeply_nested": (file_with(b"[" * 100_000), "JSON"),
}


@pytest.mark.parametrize("name", LIES)
def test_lying_header_is_refused_with_the_name_of_the_file(name: str, tmp_path: Path) -> None:
    contents, text = LIES[name]
    path = tmp_path / "lying.safetensors"
    path.write_bytes(contents)
    with pytest.raises(ValueError) as caught:
        safe_load(path)
    assert_stands_alone(caught.value)
    assert str(path) in str(caught.value)
    assert text in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        safe_load(tmp_path / "missing")
    with pytest.raises(ValueError, match="is a folder; expected a safetensors file"):
        safe_load(tmp_path)
    with pytest.raises(TypeError, match="expected the path of a file, got 5"):
        safe_load(5)  # type: ignore[arg-type]  # what the test is about


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_reading_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is no ordinary file"):
        safe_load(tmp_path / "pipe")


Save = Callable[[Path], None]

SAVES: dict[str, tuple[Save, type[Exception], str]] = {
    "number": (lambda path: save({"a": 5}, path), ValueError, "'a' is int; only tensors"),
    "name": (lambda path: save({5: ones(1)}, path), ValueError, "is a text, got 5"),
    "tensor": (lambda path: save(ones(1), path), TypeError, "tensors by name"),
    "half_character": (lambda path: save({"\ud800": ones(1)}, path), ValueError, "no UTF-8"),
    "reserved": (lambda path: save({"__metadata__": ones(1)}, path), ValueError, "format uses it"),
    "metadata": (lambda path: save({"a": ones(1)}, path, {"k": 5}), ValueError, "metadata"),
}


def save(tensors: Any, path: Path, metadata: Any = None) -> None:
    safe_save(tensors, path, metadata)


@pytest.mark.parametrize("name", SAVES)
def test_a_refused_save_keeps_the_file_that_was_there(name: str, tmp_path: Path) -> None:
    program, error, text = SAVES[name]
    path = tmp_path / "model.safetensors"
    safe_save({"a": Tensor([1.0, 2.0])}, path)
    with pytest.raises(error) as caught:
        program(path)
    assert_stands_alone(caught.value)
    assert text in str(caught.value)
    assert safe_load(path)["a"].tolist() == [1.0, 2.0]
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_save_that_cannot_be_written_says_where_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        safe_save({"a": ones(1)}, tmp_path / "none" / "x.safetensors")
    with pytest.raises(IsADirectoryError, match="it is a folder; give the path of a file"):
        safe_save({"a": ones(1)}, tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_value_that_cannot_be_computed_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(MemoryError):
        safe_save({"a": ones(2), "b": Tensor.zeros(1 << 50)}, path)
    assert os.listdir(tmp_path) == []


STATE = [
    case("missing", lambda: loaded({}), ValueError, "lacks 'weight', 'bias'", "strict=False"),
    case("unknown", lambda: loaded({**fitting(), "x": ones(1)}), ValueError, "has 'x'"),
    case(
        "shape",
        lambda: loaded({**fitting(), "weight": ones(5, 3)}),
        ValueError,
        "weight: the model has shape (4, 3), the state dict (5, 3)",
    ),
    case("dtype", lambda: loaded({**fitting(), "bias": ones(4).half()}), ValueError, "float16"),
    case("number", lambda: loaded({**fitting(), "bias": 5}), ValueError, "bias: the state dict"),
    case("no_mapping", lambda: loaded(5), TypeError, "tensors by name, got int"),
]


def fitting() -> dict[str, Tensor]:
    return {"weight": ones(4, 3), "bias": ones(4)}


def loaded(state: Any) -> None:
    load_state_dict(nn.Linear(3, 4), state, verbose=False)


@each(STATE)
def test_state_that_does_not_fit(wrong: Case) -> None:
    message_of(wrong)


def test_a_refused_state_changes_no_parameter() -> None:
    model = nn.Linear(3, 4)
    before = model.weight.tolist(), model.bias.tolist()
    with pytest.raises(ValueError, match="bias"):
        load_state_dict(model, {"weight": ones(4, 3), "bias": ones(5)}, verbose=False)
    assert (model.weight.tolist(), model.bias.tolist()) == before
