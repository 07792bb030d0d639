"""Tensors of Python data and numpy arrays, constants and ranges, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tg_frontend import Device, Tensor, dtypes

ALL = [np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
ALL += [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("kind", ALL)
@given(data=st.data())
@settings(max_examples=10)
def test_numpy_arrays_come_back_as_they_were(kind, data):
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    array = data.draw(hnp.arrays(kind, shapes))
    result = Tensor(array).numpy()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


def test_arrays_that_are_not_contiguous_or_not_native():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(Tensor(array.T).numpy(), array.T)
    np.testing.assert_array_equal(Tensor(array[:, ::-2]).numpy(), array[:, ::-2])
    np.testing.assert_array_equal(Tensor(array.astype(">f4")).numpy(), array)


def test_changing_the_array_afterwards_changes_no_tensor():
    array = np.zeros(3, np.float32)
    x = Tensor(array)
    array[0] = 1
    assert x.tolist() == [0, 0, 0]
    out = x.numpy()
    out[1] = 5
    assert x.tolist() == [0, 0, 0]


def test_python_data_has_the_dtype_of_its_numbers():
    assert Tensor(1).dtype is dtypes.int32
    assert Tensor(1.5).dtype is dtypes.float32
    assert Tensor(True).dtype is dtypes.bool
    assert Tensor([1, 2.5]).dtype is dtypes.float32
    assert Tensor([[True], [False]]).dtype is dtypes.bool
    assert Tensor([]).shape == (0,)
    assert Tensor([1, 2], dtype=dtypes.float16).tolist() == [1.0, 2.0]
    assert Tensor((1, (2)), dtype="int64").dtype is dtypes.int64
    assert Tensor(range(3)).tolist() == [0, 1, 2]
    assert Tensor(b"\x01\x02").tolist() == [1, 2]
    assert Tensor(np.float32(2.5)).shape == ()


def test_tolist_item_and_data():
    nested = [[[1, 2, 3], [4, 5, 6]]]
    assert Tensor(nested).tolist() == nested
    assert Tensor(3.5).tolist() == 3.5
    assert Tensor([[7]]).item() == 7
    assert Tensor.zeros(2, 0).tolist() == [[], []]
    view = Tensor([[1.0, 2.0]]).data()
    assert (view.shape, view.tolist()) == ((1, 2), [[1.0, 2.0]])
    assert f"{Tensor(2.25):.1f}" == "2.2"


def test_bfloat16_rounds_and_comes_back_as_float32():
    x = Tensor([1.0, 1.00390625, 3.140625], dtype=dtypes.bfloat16)
    np.testing.assert_array_equal(x.numpy(), np.float32([1.0, 1.0, 3.140625]))


def test_constants_match_numpy():
    np.testing.assert_array_equal(Tensor.zeros(2, 3).numpy(), np.zeros((2, 3), np.float32))
    ones = Tensor.ones((2, 3), dtype="int8").numpy()
    np.testing.assert_array_equal(ones, np.ones((2, 3), np.int8))
    np.testing.assert_array_equal(Tensor.full((2,), 7).numpy(), np.int32([7, 7]))
    np.testing.assert_array_equal(Tensor.eye(2, 3).numpy(), np.eye(2, 3, dtype=np.float32))
    assert Tensor.full((2,), 7).dtype is dtypes.int32
    assert Tensor.zeros(()).item() == 0.0
    x = Tensor([[1, 2]], dtype=dtypes.int16)
    assert x.zeros_like().dtype is dtypes.int16
    assert x.ones_like().tolist() == [[1, 1]]
    assert x.full_like(3).tolist() == [[3, 3]]
    assert Tensor.empty(2, 3).shape == (2, 3)


@pytest.mark.parametrize(
    "arguments", [(5,), (2, 9), (0, 10, 3), (5, 0, -2), (0.0, 1.0, 0.25), (3, 3), (5, 2)]
)
def test_arange_matches_numpy(arguments):
    expected = np.arange(*arguments)
    result = Tensor.arange(*arguments)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_linspace_matches_numpy():
    for arguments in ((0, 1, 5), (-3, 7, 11), (2, 2, 3), (1, 0, 1), (0, 1, 0)):
        np.testing.assert_allclose(
            Tensor.linspace(*arguments).numpy(), np.linspace(*arguments), rtol=1e-6, atol=1e-6
        )
    assert Tensor.linspace(0, 0.7, 8).numpy()[-1] == np.float32(0.7)


def test_device_moves_and_back():
    x = Tensor([1.0, 2.0], device="PYTHON")
    assert x.device == "PYTHON"
    y = (x.to("CPU") * 2).to("PYTHON") + x
    assert y.device == "PYTHON"
    assert y.tolist() == [3.0, 6.0]
    assert Tensor([1]).to(None).device == Device.DEFAULT
    assert Tensor([1.0]).to("CPU:0").device == Tensor([1.0], device="CPU").device


def test_repr_computes_nothing_and_says_what_it_is():
    x = Tensor([1.0, 2.0])
    y = x + 1
    assert repr(y).startswith("<Tensor (2,) float32 on ")
    assert not y.is_realized
    assert "realized" in repr(y.realize())


def test_a_clone_is_independent():
    x = Tensor([1.0, 2.0])
    y = x.clone()
    y[0] = 9
    assert (x.tolist(), y.tolist()) == ([1, 2], [9, 2])
    z = x.detach()
    z += 1
    assert (x.tolist(), z.tolist()) == ([1, 2], [2, 3])


def test_iterating_gives_the_rows():
    assert [row.tolist() for row in Tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    first, second = Tensor([5, 6])
    assert (first.item(), second.item()) == (5, 6)
    with pytest.raises(TypeError, match="iteration over a tensor without axes"):
        list(Tensor(1.0))


def test_memoryview_of_halves_is_refused():
    with pytest.raises(TypeError, match="float16 has no Python format; cast to float32 first"):
        Tensor([1.0]).half().data()
