"""The tensors of a model by name: collecting them, and loading others into them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tg_frontend.errors import ArgumentError
from tg_frontend.state.errors import StateError
from tg_frontend.tensor import Tensor

TensorT = TypeVar("TensorT", bound=Tensor)
_SHOWN_KEYS = 5


def get_state_dict(
    obj: Any,
    prefix: str = "",
    tensor_type: type[TensorT] = Tensor,  # type: ignore[assignment]  # the default is the bound
) -> dict[str, TensorT]:
    """Collect the tensors that an object holds, however deep.

    Lists, tuples and dicts are followed, named tuples by field, other objects by attribute. An
    object that is met again on its own path is not entered twice; a tensor that has two names is
    listed twice.

    Args:
        obj: a tensor, a model, or a container of such.
        prefix: put before each name, with a dot.
        tensor_type: only tensors of this class are collected.

    Returns:
        Tensors by name such as "layers.0.weight", in the order in which they are found.
    """
    found: dict[str, TensorT] = {}
    pending: list[tuple[str, Any, frozenset[int]]] = [(prefix.strip("."), obj, frozenset())]
    while pending:
        name, item, path = pending.pop()
        if isinstance(item, tensor_type):
            found[name] = item
            continue
        if id(item) in path:
            continue
        inner = path | {id(item)}
        prefix = f"{name}." if name else ""
        children = [(f"{prefix}{key}", child) for key, child in _children(item)]
        pending.extend((key, child, inner) for key, child in reversed(children))
    return found


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of `get_state_dict(obj)`."""
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Tensor],
    strict: bool = True,
    verbose: bool = False,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Write the tensors of a state dict into those of a model that have the same names.

    Everything is checked first: on an error no tensor of the model has changed.

    Args:
        model: anything `get_state_dict` takes.
        state_dict: what to load; copied to the devices of the model.
        strict: whether the names have to be the same on both sides.
        verbose: print a line for each tensor.
        consume: remove each tensor from `state_dict` (a dict then) once it is loaded.
        realize: copy now; otherwise when the tensors are first used.

    Returns:
        The tensors of the model that were loaded.

    Raises:
        StateError: a name is missing or not known, or a shape or dtype differs; names the key.
    """
    if not isinstance(state_dict, Mapping):
        raise ArgumentError(
            f"load_state_dict: expected tensors by name, got {type(state_dict).__name__}"
        )
    own: dict[str, Tensor] = get_state_dict(model)
    if strict:
        _check_names(own, state_dict)
    loaded = {name: tensor for name, tensor in own.items() if name in state_dict}
    for name, tensor in loaded.items():
        _check_fits(name, tensor, state_dict[name])
    for name, tensor in loaded.items():
        tensor.assign(state_dict[name].detach().to(str(tensor.device)))
        if verbose:
            print(f"loaded {name}: {tensor.dtype.name} {tensor.shape}")
    if realize and loaded:
        Tensor.realize(*loaded.values())
    if consume and isinstance(state_dict, dict):
        for name in loaded:
            state_dict.pop(name, None)
    return list(loaded.values())


def _children(item: Any) -> Iterable[tuple[Any, Any]]:
    if hasattr(item, "_asdict"):  # the documented method of named tuples
        return list(item._asdict().items())
    if isinstance(item, Mapping):
        return list(item.items())
    if isinstance(item, (list, tuple)):
        return list(enumerate(item))
    if isinstance(item, (type, Tensor)):
        return []
    return list(getattr(item, "__dict__", {}).items())


def _check_names(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    missing = [name for name in own if name not in given]
    unknown = [name for name in given if name not in own]
    if missing:
        raise StateError(
            f"the state dict lacks {_listed(missing)}, which the model has; "
            "pass strict=False to keep the model's own"
        )
    if unknown:
        raise StateError(
            f"the state dict has {_listed(unknown)}, which the model lacks; "
            "pass strict=False to leave them out"
        )


def _check_fits(name: str, own: Tensor, given: Tensor) -> None:
    if not isinstance(given, Tensor):
        raise StateError(f"{name}: the state dict has {type(given).__name__}; expected a tensor")
    if tuple(own.shape) != tuple(given.shape):
        raise StateError(
            f"{name}: the model has shape {tuple(own.shape)}, the state dict {tuple(given.shape)}; "
            "is it of a model with other sizes?"
        )
    if own.dtype is not given.dtype:
        raise StateError(
            f"{name}: the model has dtype {own.dtype.name}, the state dict {given.dtype.name}; "
            "cast one of them"
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN_KEYS])
    rest = len(names) - _SHOWN_KEYS
    return f"{shown} and {rest} more" if rest > 0 else shown
