"""safetensors: round trips, agreement with the reference implementation, and files that lie."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tg_frontend import Tensor, dtypes
from tg_frontend.nn.state import SafetensorsError, safe_load, safe_load_metadata, safe_save
from tg_frontend.state.safetensors_header import Header, header_bytes, parse_header, place_entries

DTYPES = (
    *(dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    *(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
)


def write_file(path: Path, header: object, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str = "F32", shape: object = (1,), begin: int = 0, end: int = 4) -> dict:
    offsets = [begin, end]
    return {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_every_dtype_survives(tmp_path: Path, dtype: dtypes) -> None:
    values = [0, 1, 1, 0, 1, 1]
    tensor = Tensor(values, dtype=dtypes.int32).cast(dtype).reshape(2, 3)
    safe_save({"x": tensor}, tmp_path / "f")
    loaded = safe_load(tmp_path / "f")["x"]
    assert loaded.dtype is dtype
    assert loaded.cast(dtypes.int32).tolist() == [[0, 1, 1], [0, 1, 1]]


def test_views_scalars_and_empty_tensors_survive(tmp_path: Path) -> None:
    base = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4))
    tensors = {
        "view": base.permute(1, 0)[1:3],
        "lazy": base + 1,
        "scalar": Tensor(3.5),
        "empty": Tensor.zeros(0, 3),
    }
    safe_save(tensors, tmp_path / "f")
    loaded = safe_load(tmp_path / "f")
    assert loaded.keys() == tensors.keys()
    np.testing.assert_array_equal(loaded["view"].numpy(), base.numpy().T[1:3])
    np.testing.assert_array_equal(loaded["lazy"].numpy(), base.numpy() + 1)
    assert loaded["scalar"].shape == () and loaded["scalar"].item() == 3.5
    assert loaded["empty"].shape == (0, 3)


def test_metadata_survives(tmp_path: Path) -> None:
    safe_save({"x": Tensor([1.0])}, tmp_path / "f", {"step": "12", "note": "ä\n"})
    assert safe_load_metadata(tmp_path / "f") == {"step": "12", "note": "ä\n"}


def test_metadata_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SafetensorsError, match=r"metadata to save\['step'\] is 12.*str\(\)"):
        metadata = {"step": 12}
        safe_save({"x": Tensor([1.0])}, tmp_path / "f", metadata)  # type: ignore[arg-type]  # the fault


def test_reference_implementation_reads_what_we_write(tmp_path: Path) -> None:
    reference = pytest.importorskip("safetensors.numpy")
    array = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    tensors = {"a.weight": Tensor(array), "b": Tensor([1, 2], dtype=dtypes.int64)}
    safe_save(tensors, tmp_path / "f", {"k": "v"})
    loaded = reference.load_file(tmp_path / "f")
    np.testing.assert_array_equal(loaded["a.weight"], array)
    np.testing.assert_array_equal(loaded["b"], [1, 2])


def test_we_read_what_the_reference_implementation_writes(tmp_path: Path) -> None:
    reference = pytest.importorskip("safetensors.numpy")
    arrays = {
        "a": np.random.default_rng(0).normal(size=(4, 3)),
        "b": np.arange(5, dtype=np.uint8),
        "c": np.zeros((0, 2), np.float16),
    }
    reference.save_file(arrays, tmp_path / "f", {"k": "v"})
    loaded = safe_load(tmp_path / "f")
    assert safe_load_metadata(tmp_path / "f") == {"k": "v"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name].numpy(), array)


def test_equal_states_give_equal_files(tmp_path: Path) -> None:
    tensors = {"b": Tensor([1.0]), "a": Tensor([2], dtype=dtypes.int8)}
    safe_save(tensors, tmp_path / "f")
    safe_save(dict(reversed(tensors.items())), tmp_path / "g")
    assert (tmp_path / "f").read_bytes() == (tmp_path / "g").read_bytes()


# ---- atomic writing


def test_failed_save_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    safe_save({"x": Tensor([1.0])}, path)
    old = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        safe_save({"x": Tensor([2.0])}, path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_save_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    safe_save({"x": Tensor([1.0])}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert safe_load(tmp_path / "target")["x"].tolist() == [1.0]


# ---- files that lie

LIES = {
    "overlap": (
        {"a": entry(end=4), "b": entry(begin=2, end=6)},
        6,
        "'b': its data begins at byte 2 and overlaps 'a', which ends at 4",
    ),
    "gap": ({"a": entry(), "b": entry(begin=6, end=10)}, 10, "'b'.*byte 6 and leaves a gap after"),
    "gap at the start": ({"a": entry(begin=4, end=8)}, 8, "leaves a gap after the start"),
    "rest": ({"a": entry()}, 9, "holds 9 bytes of data, but its tensors end at byte 4"),
    "end out of range": ({"a": entry(shape=(9,), end=36)}, 4, "ends at byte 36, .* holds 4 bytes"),
    "huge": ({"a": entry(shape=(2**62,), end=2**64)}, 4, "ends at byte 18446744073709551616"),
    "size": ({"a": entry(shape=(3,))}, 4, r"F32 of shape \(3,\) needs 12 bytes, .* hold 4"),
    "reversed": ({"a": entry(begin=4, end=0)}, 4, r"data_offsets \[4, 0\]"),
    "negative shape": ({"a": entry(shape=(-1,))}, 4, r"shape \[-1\]; expected .* >= 0"),
    "float shape": ({"a": entry(shape=(1.0,))}, 4, "expected a list of whole numbers"),
    "bool shape": ({"a": entry(shape=(True,))}, 4, "expected a list of whole numbers"),
    "text shape": ({"a": {**entry(), "shape": "1"}}, 4, "expected a list of whole numbers"),
    "dtype": ({"a": entry("F31")}, 4, "unknown dtype 'F31'; known: BF16, BOOL"),
    "dtype kind": ({"a": {**entry(), "dtype": [1]}}, 4, "unknown dtype"),
    "missing field": ({"a": {"dtype": "F32"}}, 4, "expected dtype, shape and data_offsets"),
    "no entry": ({"a": 3}, 4, "expected dtype, shape and data_offsets, got 3"),
    "list": ([], 0, "JSON list; expected an object"),
    "not JSON": (b"{nothing", 0, "no JSON text"),
    "not UTF-8": (b'{"\xff": 1}', 0, "no JSON text"),
    "deep": (b"[" * 100_000, 0, "no JSON text"),
    "endless number": (b"1" * 5000, 0, "no JSON text"),
    "double key": (b'{"a": 1, "a": 2}', 0, "the key 'a' twice"),
    "metadata": ({"__metadata__": {"a": 1}}, 0, "keeps texts only"),
    "metadata kind": ({"__metadata__": []}, 0, "__metadata__ is a list"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lying_header_is_refused(tmp_path: Path, lie: str) -> None:
    header, size, message = LIES[lie]
    path = write_file(tmp_path / "f", header, bytes(size))
    with pytest.raises(SafetensorsError, match=message) as caught:
        safe_load(path)
    assert str(path) in str(caught.value)


def test_absurd_header_length_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes((2**63).to_bytes(8, "little") + b"{}")
    with pytest.raises(SafetensorsError, match="claims 9223372036854775808 bytes, more than"):
        safe_load(path)


@pytest.mark.parametrize("contents", [b"", b"\x01\x00"])
def test_file_without_length_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "f").write_bytes(contents)
    with pytest.raises(SafetensorsError, match="has at least 8"):
        safe_load(tmp_path / "f")


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([3], dtype=dtypes.int8)}, tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "f").write_bytes(whole[:length])
        with pytest.raises(SafetensorsError):
            safe_load(tmp_path / "f")


def test_reserved_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SafetensorsError, match="no tensor can be called '__metadata__'"):
        safe_save({"__metadata__": Tensor([1.0])}, tmp_path / "f")


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
        st.tuples(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=3).map(tuple)),
        max_size=6,
    )
)
def test_header_survives(tensors: dict) -> None:
    entries = place_entries([(name, *rest) for name, rest in tensors.items()])
    data = header_bytes(Header(entries, {}))
    size = entries[-1].end if entries else 0
    assert len(data) % 8 == 0
    assert set(parse_header(data[8:], size).entries) == set(entries)
    for placed in entries:
        assert placed.begin % placed.dtype.itemsize == 0
