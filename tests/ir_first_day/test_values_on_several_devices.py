"""A device is a name or a tuple of names: described, verified and evaluated; not scheduled yet."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.schedule import create_schedule
from tg_codegen.schedule.errors import ScheduleError
from tg_frontend import Device, Tensor
from tg_frontend.errors import ArgumentError
from tg_ir.dtype import dtypes
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.evaluate import evaluate
from tg_ir.graph.ops import Ops
from tg_ir.graph.spec import tensor_graph, verify
from tg_ir.graph.text import dump, parse

from .kernels import floats
from .tensors import holding, inputs_of

BOTH = ("CPU", "CPU:1")


def test_a_copy_to_a_tuple_of_devices_is_the_same_value_there() -> None:
    x = floats(4)
    spread = holding(x).copy_to_device(BOTH)
    doubled = spread + spread
    verify(UOp.sink(doubled), tensor_graph)
    assert doubled.device == BOTH
    (value,) = evaluate([doubled], inputs_of(doubled))
    np.testing.assert_array_equal(value.items, x + x)


def test_a_buffer_may_lie_on_several_devices() -> None:
    buffer = UOp.new_buffer(BOTH, 4, dtypes.float32)
    sink = UOp.sink(buffer + buffer)
    verify(sink, tensor_graph)
    assert sink.src[0].device == BOTH
    (value,) = evaluate(sink, {buffer: [1.0, 2.0, 3.0, 4.0]})
    assert value.items == [2.0, 4.0, 6.0, 8.0]


def test_the_text_of_a_graph_keeps_the_tuple() -> None:
    graph = UOp.sink(UOp.new_buffer(BOTH, 4, dtypes.float32).copy_to_device(("CPU:2", "CPU:3")))
    assert parse(dump(graph))[-1] is graph


@pytest.mark.parametrize("names", [(), ("CPU", ""), ("CPU", 1)], ids=str)
def test_a_device_has_a_name(names: tuple[object, ...]) -> None:
    copy = UOp(Ops.COPY, dtypes.float32, (holding(floats(4)),), names)
    with pytest.raises(VerificationError, match="COPY: its argument is the name of a device or"):
        verify(UOp.sink(copy), tensor_graph)


def test_the_scheduler_says_that_kernels_run_on_one_device() -> None:
    spread = holding(floats(4)).copy_to_device(BOTH)
    with pytest.raises(ScheduleError, match=r"several devices \('CPU', 'CPU:1'\); kernels run on"):
        create_schedule(UOp.sink(spread + spread))


def test_a_tensor_on_several_devices_can_be_described() -> None:
    tensor = Tensor([1.0, 2.0]).to(("cpu:0", "cpu:1"))
    assert tensor.device == BOTH
    assert (tensor * 2).device == BOTH
    with pytest.raises(ScheduleError, match="copy it to each of them by itself"):
        (tensor * 2).realize()


def test_a_tuple_of_one_device_is_that_device() -> None:
    tensor = Tensor([1.0, 2.0]).to((Device.DEFAULT,))
    assert tensor.device == Device.DEFAULT
    assert tensor.tolist() == [1.0, 2.0]


def test_a_filled_tensor_is_made_once_and_copied() -> None:
    assert Tensor.full((3,), 2.0, device=BOTH).device == BOTH
    assert Tensor.ones(3, dtype=dtypes.int32, device=BOTH).device == BOTH


def test_data_is_put_on_one_device() -> None:
    with pytest.raises(ArgumentError, match="make the tensor on one, then copy it"):
        Tensor([1.0, 2.0], device=BOTH)
