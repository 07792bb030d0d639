"""Images: the layout of a buffer, which neither the dtype nor the shape of a value shows."""

from __future__ import annotations

import numpy as np
import pytest
from tg_codegen.schedule import create_schedule
from tg_ir.dtype import DType, ImageDType, dtypes, to_dtype
from tg_ir.errors import DTypeError
from tg_ir.graph import UOp
from tg_ir.graph.errors import VerificationError
from tg_ir.graph.evaluate import evaluate, run_kernel_graph
from tg_ir.graph.ops import AxisType, Ops, ParamArg
from tg_ir.graph.spec import kernel_graph, tensor_graph, verify
from tg_ir.graph.text import dump, parse

from .kernels import floats

IMAGE = dtypes.imagef((3, 2, 4))


def test_an_image_is_named_as_it_always_was() -> None:
    assert IMAGE == ImageDType(dtypes.float32, (3, 2, 4))
    assert dtypes.imageh((3, 2, 4)).base is dtypes.float16
    assert IMAGE.size == 24
    assert hash(IMAGE) == hash(dtypes.imagef((3, 2, 4)))
    with pytest.raises(AttributeError):
        IMAGE.shape = (1, 1, 4)  # type: ignore[misc]  # frozen, which is what is tested


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 3), (0, 2, 4), (3, 2, 4, 1)], ids=str)
def test_an_image_has_pixels_of_four(shape: tuple[int, ...]) -> None:
    with pytest.raises(DTypeError, match=r"shape \(height, width, 4\), each above 0; got"):
        dtypes.imagef(shape)  # type: ignore[arg-type]  # a wrong shape is what is tested


def test_an_image_is_no_type_of_an_element() -> None:
    with pytest.raises(DTypeError, match="is the layout of a buffer.*cast to dtypes.float32"):
        to_dtype(IMAGE)  # type: ignore[arg-type]  # what people may try
    with pytest.raises(DTypeError, match="holds float32 or float16, not dtypes.int32"):
        ImageDType(dtypes.int32, (3, 2, 4))


def test_a_tensor_over_an_image_has_its_own_shape_and_dtype() -> None:
    buffer = UOp.new_buffer("CL", 24, dtypes.float32, IMAGE)
    value = buffer.reshape((4, 6)).permute((1, 0))
    total = value + value
    verify(UOp.sink(total), tensor_graph)
    assert (total.shape, total.dtype) == ((6, 4), dtypes.float32)
    x = floats(4, 6)
    (result,) = evaluate([total], {buffer: x.tobytes()})
    np.testing.assert_array_equal(np.reshape(result.items, (6, 4)), 2 * x.T)


def test_a_kernel_reads_an_image_by_the_position_of_the_element() -> None:
    """Pixels are in rows: element `(row * width + pixel) * 4 + lane`."""
    row, pixel, lane = (UOp.range(n, k, AxisType.GLOBAL) for k, n in enumerate(IMAGE.shape))
    image = UOp(Ops.PARAM, dtypes.float32, (), ParamArg(1, 24, image=IMAGE))
    out = UOp(Ops.PARAM, dtypes.float32, (), ParamArg(0, 24, writable=True))
    value = image.index((row * 2 + pixel) * 4 + lane).load()
    sink = UOp.sink(out.index((lane * 3 + row) * 2 + pixel).store(value).end(row, pixel, lane))
    verify(sink, kernel_graph)
    x, result = floats(3, 2, 4), np.zeros((4, 3, 2), np.float32)
    run_kernel_graph(sink, [memoryview(a.reshape(-1)).cast("B") for a in (result, x)])
    np.testing.assert_array_equal(result, x.transpose(2, 0, 1))


def test_the_scheduler_hands_the_layout_to_the_kernel() -> None:
    image = UOp.new_buffer("CPU", 24, dtypes.float32, IMAGE)
    written = image.after(image.store(image + image))
    made = create_schedule(UOp.sink(written))
    (call,) = made.linear.src
    params = [node for node in call.src[0].toposort() if node.op is Ops.PARAM]
    assert [param.arg.image for param in params] == [IMAGE]
    assert made.becomes[written].arg.image == IMAGE
    # a buffer of plain memory is another program
    plain = UOp.new_buffer("CPU", 24, dtypes.float32)
    other = create_schedule(UOp.sink(plain.after(plain.store(plain + plain)))).linear.src[0]
    assert other.src[0] is not call.src[0]


@pytest.mark.parametrize(
    ("size", "dtype"), [(23, dtypes.float32), (24, dtypes.float16)], ids=["size", "dtype"]
)
def test_an_image_that_does_not_fit_its_buffer_is_refused(size: int, dtype: DType) -> None:
    buffer = UOp.new_buffer("CL", size, dtype, IMAGE)
    with pytest.raises(VerificationError, match=r"BUFFER: has .* its image \(3, 2, 4\) has 24 of"):
        verify(UOp.sink(buffer), tensor_graph)
    param = UOp(Ops.PARAM, dtype, (), ParamArg(0, size, True, image=IMAGE))
    with pytest.raises(VerificationError, match="PARAM: has"):
        verify(UOp.sink(param.index(0).store(UOp.const(dtype, 1))), kernel_graph)


def test_the_text_of_a_graph_keeps_the_layout() -> None:
    graph = UOp.sink(UOp.new_buffer("CL", 24, dtypes.float32, IMAGE))
    assert parse(dump(graph))[-1] is graph
