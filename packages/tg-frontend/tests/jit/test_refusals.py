"""What TinyJit refuses: calls that do not fit the capture, functions that cannot be captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tg_frontend import Context, Tensor, TinyJit, Variable, dtypes
from tg_frontend.jit import JitError


def captured(function: Callable[..., Any], *args: Any, **kwargs: Any) -> TinyJit:
    """The function, captured with these arguments."""
    jitted: TinyJit = TinyJit(function)
    for _ in range(3):
        jitted(*args, **kwargs)
    assert jitted.captured is not None
    return jitted


def test_other_shape_is_refused_with_both_shapes() -> None:
    step = captured(lambda x: x + 1, Tensor.ones(2, 3))
    message = r"argument 0: expected float32 of shape \(2, 3\) on .*got float32 of shape \(4, 3\)"
    with pytest.raises(JitError, match=message + ".*pad to one shape, or call reset"):
        step(Tensor.ones(4, 3))


def test_other_dtype_is_refused() -> None:
    step = captured(lambda x: x + 1, Tensor.ones(2))
    with pytest.raises(JitError, match="expected float32 of shape .*got int32"):
        step(Tensor([1, 2]))


def test_other_device_is_refused() -> None:
    step = captured(lambda x: x + 1, Tensor.ones(2))
    other = "PYTHON" if step(Tensor.ones(2)).device != "PYTHON" else "CPU"
    with pytest.raises(JitError, match=f"got float32 of shape \\(2,\\) on {other}"):
        step(Tensor([1.0, 2.0], device=other))


def test_refused_call_changes_nothing() -> None:
    state = Tensor([1.0, 1.0]).realize()

    def step(x: Tensor) -> None:
        state.assign(state + x)

    jitted = captured(step, Tensor([1.0, 1.0]))
    with pytest.raises(JitError):
        jitted(Tensor([1.0, 1.0, 1.0]))
    assert state.tolist() == [4.0, 4.0]
    jitted(Tensor([1.0, 2.0]))
    assert state.tolist() == [5.0, 6.0]


def test_other_python_value_is_refused() -> None:
    step = captured(lambda x, n: x + n, Tensor.ones(2), 3)
    step(Tensor.ones(2), 3)
    with pytest.raises(JitError, match=r"argument 1: expected 3, .*got 4; Python values are"):
        step(Tensor.ones(2), 4)


def test_other_number_of_items_is_refused() -> None:
    step = captured(lambda items: items[0] + items[-1], [Tensor.ones(2)])
    with pytest.raises(JitError, match=r"argument 0\[1\]: expected nothing, .*got a tensor"):
        step([Tensor.ones(2), Tensor.ones(2)])


def test_other_name_is_refused() -> None:
    step = captured(lambda x, **more: x, Tensor.ones(2), a=1)
    with pytest.raises(JitError, match="argument a: expected a int, .*got nothing"):
        step(Tensor.ones(2))


def test_number_in_place_of_a_tensor_is_refused() -> None:
    step = captured(lambda x: x * 1, Tensor.ones(2))
    with pytest.raises(JitError, match="argument 0: expected a tensor, .*got a float"):
        step(2.0)


def test_other_variable_is_refused() -> None:
    step = captured(lambda x, n: x * n, Tensor.ones(2), Variable("n", 1, 9).bind(2))
    with pytest.raises(JitError, match="expected the variable .*'n'.*got .*'m'"):
        step(Tensor.ones(2), Variable("m", 1, 9).bind(2))


def test_variable_with_two_values_is_refused() -> None:
    n = Variable("n", 1, 9)
    step = TinyJit(lambda x, a, b: x * a + b)
    step(Tensor.ones(2), n.bind(2), n.bind(2))
    with pytest.raises(JitError, match="bind variable 'n' to 2 and to 3"):
        step(Tensor.ones(2), n.bind(2), n.bind(3))


def test_other_training_mode_is_refused() -> None:
    step = captured(lambda x: x * 1, Tensor.ones(2))
    with Tensor.train(), pytest.raises(JitError, match="Tensor.training was False .* is True now"):
        step(Tensor.ones(2))


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda x: x.sum().item(), "item"),
        (lambda x: x.numpy(), "numpy"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.data(), "data"),
    ],
    ids=["item", "numpy", "tolist", "data"],
)
def test_reading_inside_is_refused_at_the_capture(read: Callable[[Tensor], Any], name: str) -> None:
    step = TinyJit(lambda x: read(x * 2))
    step(Tensor.ones(2))
    with pytest.raises(JitError, match=f"{name}\\(\\) inside a function .*return the tensor"):
        step(Tensor.ones(2))


def test_failed_capture_leaves_arguments_as_they_were() -> None:
    step = TinyJit(lambda x: (x * 2).item())
    step(Tensor([1.0]))
    x = Tensor([2.0])
    with pytest.raises(JitError):
        step(x)
    assert x.item() == 2.0


def test_numpy_array_is_refused() -> None:
    step = TinyJit(lambda x: x)
    step(np.ones(2))
    with pytest.raises(JitError, match=r"argument 0 is an array of numpy.*pass Tensor\(array\)"):
        step(np.ones(2))


def test_empty_tensor_is_refused() -> None:
    step = TinyJit(lambda x: x + 1)
    step(Tensor.zeros(0))
    with pytest.raises(JitError, match=r"argument 0 has no elements \(shape \(0,\)\)"):
        step(Tensor.zeros(0))


def test_seeding_inside_is_refused() -> None:
    def step(x: Tensor) -> Tensor:
        Tensor.manual_seed(2)
        return x + Tensor.rand(2)

    jitted = TinyJit(step)
    Tensor.manual_seed(1)
    jitted(Tensor.ones(2))
    Tensor.manual_seed(1)
    with pytest.raises(JitError, match="manual_seed.*seed before the call"):
        jitted(Tensor.ones(2))


def test_state_that_the_function_replaces_is_refused() -> None:
    class Counter:
        def __init__(self) -> None:
            self.total = Tensor([0.0]).realize()

        @TinyJit
        def step(self, x: Tensor) -> Tensor:
            self.total = (self.total + x).realize()
            return self.total

    counter = Counter()
    counter.step(Tensor([1.0]))
    held = counter.total
    with pytest.raises(JitError, match=r"reads .*puts a new tensor in its place.*assign\(\)"):
        counter.step(Tensor([1.0]))
    assert held.item() == 1.0


# ---- what starts anew instead


def test_reset_allows_another_shape() -> None:
    step = captured(lambda x: x + 1, Tensor.ones(2))
    step.reset()
    for _ in range(3):
        assert step(Tensor.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_other_settings_are_captured_anew() -> None:
    step = captured(lambda x: x + 1, Tensor.ones(2))
    first = step.captured
    with Context(NOOPT=1):
        assert step(Tensor.ones(2)).tolist() == [2.0, 2.0]
    assert step.captured is not first


def test_switched_off_it_runs_eagerly() -> None:
    with Context(JIT=0):
        step = TinyJit(lambda x: (x * 2).sum().item())
        assert [step(Tensor([n])) for n in range(4)] == [0, 2, 4, 6]
        assert step.captured is None


def test_replay_kernel_by_kernel() -> None:
    with Context(JIT=2):
        step = captured(lambda x: (x + 1).sum(), Tensor.ones(2))
        assert step(Tensor([1.0, 5.0])).item() == 8.0


def test_inside_another_capture_it_belongs_to_that_one() -> None:
    inner = TinyJit(lambda x: (x * 2).realize())
    outer = TinyJit(lambda x: inner(x) + inner(x + 1))
    for number in range(6):
        assert outer(Tensor([number])).item() == 4 * number + 2
    assert outer.captured is not None


def test_it_keeps_name_and_documentation() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        """What it does."""
        return x

    assert (step.__name__, step.__doc__) == ("step", "What it does.")
    assert dtypes.float32 is step(Tensor([1.0])).dtype
