"""`TinyJit`: the first call of a function is eager, the second captured, later ones replayed."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from os import PathLike
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from tg_ir.config import JIT
from tg_ir.device import save_program

from tg_frontend.capture import observers
from tg_frontend.errors import ArgumentError
from tg_frontend.jit.arguments import Arguments, collect_arguments
from tg_frontend.jit.call_signature import CallSignature
from tg_frontend.jit.captured_call import CapturedCall
from tg_frontend.jit.capturing import capture_call
from tg_frontend.jit.errors import JitError
from tg_frontend.jit.saving import parameter_names, program_to_save
from tg_frontend.jit.state_lookup import StateMovedError

P = ParamSpec("P")
ResultT = TypeVar("ResultT")

_REPLAY_AS_GRAPH = 1  # the value of the setting JIT


class TinyJit(Generic[P, ResultT]):
    """A function of tensors whose kernels are captured and replayed without running its Python.

    The first call runs eagerly, the second as well and is captured; from the third on the program
    is replayed with the arguments of the call. Use it as a decorator, of methods too.

    - Arguments: tensors, alone or in lists, tuples and dicts, keep shape, dtype and device; the
      values of bound variables may change; other values have to stay equal.
    - State: tensors that the function sees by other ways are looked up again at each call, and may
      be written to by anyone, also by the function.
    - Results: tensors in lists, tuples and dicts are new with each call.
    - Random draws continue the sequence, as in eager mode.

    Attributes:
        fxn: the function.
        captured: what is replayed, or None as long as nothing is captured.
        cnt: how many calls there were since the last `reset`.
    """

    def __init__(self, fxn: Callable[P, ResultT]) -> None:
        """Wrap a function; nothing runs.

        Raises:
            ArgumentError: it cannot be called.
        """
        if not callable(fxn):
            raise ArgumentError(f"TinyJit: expected a function of tensors, got {fxn!r}")
        self.fxn = fxn
        self._own_parameters = 0  # how many of the first the caller does not give
        self._lock = threading.RLock()
        self._of_instance: weakref.WeakKeyDictionary[Any, TinyJit[..., ResultT]] = (
            weakref.WeakKeyDictionary()
        )
        self.reset()
        functools.update_wrapper(self, fxn)

    def reset(self) -> None:
        """Forget the captured program; the next call is the first."""
        with self._lock:
            self.cnt = 0
            self.captured: CapturedCall | None = None
            self._signature: CallSignature | None = None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the captured program to a file that `tg_ir.device.load_program` reads.

        State, such as weights, is stored with the contents it has now. What a caller of the program
        brings, `LinearProgram.input_names` lists: arguments by the names of their parameters, and
        "result", "result[0]", ..., to be filled.

        Raises:
            JitError: nothing is captured yet, or what was cannot be saved; says why.
        """
        with self._lock:
            if self.captured is None:
                raise JitError(
                    "save(): nothing is captured yet; call the function twice with arguments of "
                    "the shapes to save it for"
                )
            names = parameter_names(self.fxn)[self._own_parameters :]
            save_program(program_to_save(self.captured, names), path)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ResultT:
        """Call the function, or what was captured of it.

        Raises:
            JitError: the arguments are not what they were at the capture, or the function cannot be
                captured.
        """
        # what runs inside another capture belongs to that one
        if JIT == 0 or observers():
            return self.fxn(*args, **kwargs)
        with self._lock:
            if self.cnt == 0:
                result: Any = self.fxn(*args, **kwargs)
            else:
                result = self._capture_or_replay(args, kwargs)
            self.cnt += 1
        return cast("ResultT", result)

    @overload
    def __get__(self, instance: None, owner: type) -> TinyJit[P, ResultT]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> TinyJit[..., ResultT]: ...

    def __get__(self, instance: object | None, owner: type) -> TinyJit[..., ResultT]:
        """The JIT of a method: each instance has its own, which does not keep it alive."""
        if instance is None:
            return self
        found = self._of_instance.get(instance)
        if found is None:
            found = TinyJit(_bound_weakly(self.fxn, instance))
            found._own_parameters = 1
            self._of_instance[instance] = found
        return found

    def _capture_or_replay(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arguments = collect_arguments(args, kwargs)
        signature = self._signature
        if self.captured is not None and signature is not None and signature.has_present_settings():
            signature.check(arguments)
            try:
                return self.captured.replay(arguments)
            except StateMovedError:
                pass  # what the function would do now is another program
        return self._capture(args, kwargs, arguments)

    def _capture(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: Arguments
    ) -> Any:
        self.captured = None
        self._signature = CallSignature.of(arguments)
        use_graph = JIT == _REPLAY_AS_GRAPH
        result, self.captured = capture_call(self.fxn, args, kwargs, arguments, use_graph)
        return result


def _bound_weakly(function: Callable[..., ResultT], instance: object) -> Callable[..., ResultT]:
    reference = weakref.ref(instance)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> ResultT:
        alive = reference()
        if alive is None:
            raise JitError("the object whose method was captured is gone")
        return function(alive, *args, **kwargs)

    return call
