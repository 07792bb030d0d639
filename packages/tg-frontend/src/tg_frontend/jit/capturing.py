"""`capture_call`: runs a function once, eagerly, and makes of it a program that can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tg_frontend import storage
from tg_frontend.capture import capturing
from tg_frontend.jit.arguments import Arguments
from tg_frontend.jit.call_analysis import CallAnalysis
from tg_frontend.jit.captured_call import CapturedCall
from tg_frontend.jit.errors import JitError
from tg_frontend.jit.live_before import LiveBefore, live_tensors
from tg_frontend.jit.private_inputs import PrivateInputs
from tg_frontend.jit.reachable import ReachedTensors
from tg_frontend.jit.recording import Recorder, is_unrealized
from tg_frontend.jit.results import leaves
from tg_frontend.jit.variables import VariablePlan
from tg_frontend.tensor import Tensor
from tg_frontend.tensor.random import GeneratorPosition, generator_position


def capture_call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    arguments: Arguments,
    use_graph: bool,
) -> tuple[Any, CapturedCall | None]:
    """Call `function` and capture what it runs.

    Args:
        function: what to call.
        args: its arguments.
        kwargs: its named arguments.
        arguments: what is in them.
        use_graph: let devices record launches.

    Returns:
        The result, and the captured program; None where this call does not show what each does:
        it also computed values from before it, or one of its arguments is state as well.

    Raises:
        JitError: the function does what cannot be captured.
    """
    inputs = PrivateInputs(arguments)
    before = LiveBefore()
    reached = ReachedTensors(function)
    generator = generator_position()
    memory = before.memory()
    private = [storage.buffer_of(node) for node in inputs.nodes]
    state_memory = {key: held for key, held in memory.items() if held not in private}
    recorder = Recorder(private, list(state_memory.values()), before.unrealized)
    result = None
    try:
        with capturing(recorder):
            result = function(*args, **kwargs)
            _realize_lingering(result, before)
    finally:
        inputs.restore()
    variables = _variable_plan(inputs.variables, generator)
    analysis = CallAnalysis(inputs, before, recorder, state_memory, variables)
    if reached.includes(arguments.tensors.values()):
        # the recording cannot tell the argument from the state that it also is
        analysis.refuse()
    analysis.check_replaced(reached.replaced())
    result = analysis.take_result(result)
    captured = analysis.finish(_name_of(function), use_graph)
    recorder.finish()
    if captured is not None:
        captured.watched = reached.watched(captured.state_tensors())
    return result, captured


def _realize_lingering(result: Any, before: LiveBefore) -> None:
    """Compute the result, and every tensor of the call that outlives it."""
    wanted = [leaf for leaf in leaves(result) if isinstance(leaf, Tensor) and leaf.numel() != 0]
    for tensor in live_tensors():
        known = before.of(tensor)
        if (known is None or known.was_changed(tensor)) and is_unrealized(tensor.uop):
            wanted.append(tensor)
    if wanted:
        wanted[0].realize(*wanted[1:])


def _variable_plan(arguments: Mapping[str, int], before: GeneratorPosition) -> VariablePlan:
    now = generator_position()
    if now.times_seeded != before.times_seeded:
        raise JitError(
            "manual_seed() inside a function that TinyJit captures: each replay continues the "
            "sequence of random numbers; seed before the call"
        )
    drawn = now.next_counter - before.next_counter
    return VariablePlan(arguments, before.key, before.next_counter, drawn)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
