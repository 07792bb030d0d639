"""Programs that TinyJit saves, run by the executor alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tg_frontend import Tensor, TinyJit, Variable, nn
from tg_frontend.jit import JitError
from tg_ir.device import Buffer, Executor, LinearProgram, load_program
from tg_ir.dtype import dtypes


def captured(function: Callable[..., Any], *args: Any, **kwargs: Any) -> TinyJit[..., Any]:
    """The function, captured with these arguments."""
    jitted: TinyJit[..., Any] = TinyJit(function)
    for _ in range(3):
        jitted(*args, **kwargs)
    assert jitted.captured is not None
    return jitted


def saved(jitted: TinyJit[..., Any], folder: Path) -> LinearProgram:
    """The program in the file that `save` writes."""
    jitted.save(folder / "program.zip")
    return load_program(folder / "program.zip")


def run(
    executor: Executor, given: Mapping[str, Any], **variables: int
) -> dict[str, np.ndarray[Any, Any]]:
    """Run on arrays of float32 by name; all inputs afterwards."""
    program = executor.program
    buffers = {}
    for index, name in zip(program.input_indices(), program.input_names(), strict=True):
        decl = program.buffers[index]
        buffers[name] = Buffer(decl.device, decl.nbytes // 4, dtypes.float32)
        if name in given:
            buffers[name].copyin(np.asarray(given[name], np.float32).tobytes())
    executor.run(list(buffers.values()), variables)
    contents = {name: buffer.copyout(bytearray(buffer.nbytes)) for name, buffer in buffers.items()}
    return {name: np.frombuffer(data, np.float32) for name, data in contents.items()}


def test_weights_are_in_the_program_with_their_present_contents(tmp_path: Path) -> None:
    layer = nn.Linear(4, 2)
    jitted = captured(lambda x: layer(x).relu(), Tensor.ones(1, 4))
    layer.weight.assign(Tensor.full((2, 4), 2.0))
    assert layer.bias is not None
    layer.bias.assign(Tensor([-1.0, 0.5]))
    program = saved(jitted, tmp_path)
    assert set(program.input_names()) == {"x", "result"}
    result = run(Executor(program), {"x": [1.0, 2.0, 3.0, 4.0]})["result"]
    assert result.tolist() == [19.0, 20.5]


def test_inputs_and_results_are_named_by_where_they_stand(tmp_path: Path) -> None:
    def step(x: Tensor, pair: list[Tensor], *, scale: Tensor) -> dict[str, Any]:
        return {"sum": x + pair[0], "rest": (pair[1] * scale, 3)}

    one = Tensor([1.0, 1.0])
    jitted = captured(step, one, [one + 1, one + 2], scale=one + 3)
    program = saved(jitted, tmp_path)
    results = {"result['sum']", "result['rest'][0]"}
    assert set(program.input_names()) == {"x", "pair[0]", "pair[1]", "scale"} | results
    found = run(
        Executor(program), {"x": [1, 2], "pair[0]": [3, 4], "pair[1]": [5, 6], "scale": [7, 8]}
    )
    assert found["result['sum']"].tolist() == [4, 6]
    assert found["result['rest'][0]"].tolist() == [35, 48]


def test_jit_of_a_method_names_its_parameters(tmp_path: Path) -> None:
    class Model:
        @TinyJit
        def predict(self, image: Tensor) -> Tensor:
            return image * 2

    model = Model()
    for _ in range(3):
        model.predict(Tensor([1.0]))
    assert set(saved(model.predict, tmp_path).input_names()) == {"image", "result"}


def test_state_that_is_written_goes_on_from_run_to_run(tmp_path: Path) -> None:
    total = Tensor([0.0]).realize()

    def step(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total * 2

    executor = Executor(saved(captured(step, Tensor([1.0])), tmp_path))
    assert [run(executor, {"x": [1.0]})["result"].item() for _ in range(3)] == [8.0, 10.0, 12.0]
    assert total.item() == 3.0


def test_argument_that_is_written_shows_it(tmp_path: Path) -> None:
    def step(x: Tensor) -> None:
        x.assign(x + 1)

    program = saved(captured(step, Tensor([1.0])), tmp_path)
    assert program.input_names() == ("x",)
    assert run(Executor(program), {"x": [4.0]})["x"].item() == 5.0


def test_variables_stay_variables(tmp_path: Path) -> None:
    size = Variable("size", 1, 4)
    data = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    jitted = captured(lambda n, x: (data[:n] * x).sum(), size.bind(2), Tensor([2.0]))
    executor = Executor(saved(jitted, tmp_path))
    assert run(executor, {"x": [10.0]}, size=3)["result"].item() == 60.0


def test_gradients_that_nobody_returns_need_no_buffer_of_the_caller(tmp_path: Path) -> None:
    weight = Tensor([2.0], requires_grad=True).realize()

    def step(x: Tensor) -> Tensor:
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        return loss.detach()

    program = saved(captured(step, Tensor([1.0])), tmp_path)
    assert set(program.input_names()) == {"x", "result"}
    assert run(Executor(program), {"x": [3.0]})["result"].item() == 6.0


# ---- what is refused


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, "result is not computed by the function"),
        (lambda x: [x * 2, Tensor([1.0])], r"result\[1\] is the same for every call"),
        (lambda x: (x * 2).contiguous().flip(0), "result is a view of something else"),
        (lambda x: x + Tensor.rand(2), "draws random numbers"),
    ],
    ids=["argument", "constant", "view", "random"],
)
def test_what_a_file_cannot_say_is_refused(
    function: Callable[[Tensor], Any], message: str, tmp_path: Path
) -> None:
    jitted = captured(function, Tensor([1.0, 2.0]))
    with pytest.raises(JitError, match=message):
        jitted.save(tmp_path / "program.zip")
    assert not (tmp_path / "program.zip").exists()


def test_nothing_captured_is_refused(tmp_path: Path) -> None:
    jitted = TinyJit(lambda x: x + 1)
    jitted(Tensor([1.0]))
    with pytest.raises(JitError, match="nothing is captured yet; call the function twice"):
        jitted.save(tmp_path / "program.zip")


def test_state_replaced_since_the_capture_is_refused(tmp_path: Path) -> None:
    held = [Tensor([1.0]).realize()]
    jitted = captured(lambda x: held[0] + x, Tensor([1.0]))
    held[0] = Tensor([5.0]).realize()
    with pytest.raises(JitError, match="another tensor or number than at the capture"):
        jitted.save(tmp_path / "program.zip")
