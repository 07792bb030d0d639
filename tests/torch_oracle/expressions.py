"""Random expressions, built in both libraries at once.

A program keeps a pool of values, each as a pair (ours, torch's). Every step draws an operation and
operands; torch computes at once, which tells shapes and magnitudes, ours stays an expression. What
would leave the range where results can be compared is not applied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import strategies as st
from tg_frontend import Tensor

LARGEST = 50.0
MOST_ELEMENTS = 600
MOST_AXES = 4

Pair = tuple[Tensor, torch.Tensor]
Draw = Callable[[st.SearchStrategy[Any]], Any]


Step = tuple[Callable[..., Any], Callable[..., Any], list[int]]


def redone(steps: Sequence[Step], which: int, inputs: Sequence[Any]) -> list[Any]:
    """All values of a program for other inputs; 0 is our library, 1 torch."""
    values = list(inputs)
    for step in steps:
        values.append(step[which](*[values[k] for k in step[2]]))
    return values


@dataclass
class Program:
    """The values made so far, what was done (for the message of a failure), and how to redo it."""

    draw: Draw
    pool: list[Pair]
    log: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def any_value(self) -> Pair:
        """An operand, more often a recent one."""
        newest = len(self.pool) - 1
        if self.draw(st.booleans()):
            return self.pool[newest]
        return self.pool[self.draw(st.integers(0, newest))]

    def axis(self, pair: Pair) -> int:
        """An axis, from the front or the back; there has to be one."""
        return int(self.draw(st.integers(-pair[1].ndim, pair[1].ndim - 1)))

    def apply(self, name: str, function: Callable[..., Any], *operands: Pair) -> bool:
        """Add the result of one function for both libraries."""
        return self.add(name, function, function, *operands)

    def add(
        self, name: str, ours: Callable[..., Any], theirs: Callable[..., Any], *operands: Pair
    ) -> bool:
        """Add a result, unless it is too large, too far out or not finite."""
        reference = theirs(*[pair[1] for pair in operands])
        if reference.numel() > MOST_ELEMENTS or reference.ndim > MOST_AXES:
            return False
        if reference.is_floating_point() and reference.numel():
            top = float(reference.detach().abs().max())
            if not math.isfinite(top) or top > LARGEST:
                return False
        places = [next(k for k, p in enumerate(self.pool) if p is pair) for pair in operands]
        self.log.append(f"v{len(self.pool)} = {name}({', '.join(f'v{k}' for k in places)})")
        self.steps.append((ours, theirs, places))
        self.pool.append((ours(*[pair[0] for pair in operands]), reference))
        return True


UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "exp": lambda x: (x * 0.2).exp(),
    "abs": lambda x: x.abs(),
    "neg": lambda x: -x,
    "square": lambda x: x.square(),
    "relu": lambda x: x.relu(),
    "sqrt": lambda x: (x * x + 0.1).sqrt(),
    "log": lambda x: (x * x + 0.5).log(),
    "reciprocal": lambda x: (x * x + 0.5).reciprocal(),
    "rsqrt": lambda x: (x * x + 0.3).rsqrt(),
    "shifted": lambda x: x + 0.37,
    "scaled": lambda x: x * -1.3,
    "from_number": lambda x: 1.7 - x,
    "clamp": lambda x: x.clamp(-1.2345, 2.3456),
    "cube": lambda x: (x * 0.3) ** 3,
    "erf": lambda x: x.erf(),
    "floor_part": lambda x: x - x.floor(),
    "where_positive": lambda x: x * (x > 0.123),
    "detached": lambda x: x * x.detach(),
}

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y * y + 0.7),
    "maximum": lambda x, y: x.maximum(y * 1.0001),
    "minimum": lambda x, y: x.minimum(y * 1.0001),
    "lerp": lambda x, y: x.lerp(y, 0.3),
}


def unary(program: Program) -> bool:
    """A function of one value."""
    name = program.draw(st.sampled_from(sorted(UNARY)))
    return program.apply(name, UNARY[name], program.any_value())


def broadcasts(left: torch.Size, right: torch.Size) -> bool:
    """Whether two shapes go together."""
    try:
        torch.broadcast_shapes(left, right)
    except RuntimeError:
        return False
    return True


def binary(program: Program) -> bool:
    """A function of two values whose shapes go together."""
    left = program.any_value()
    partners = [p for p in program.pool if broadcasts(left[1].shape, p[1].shape)]
    right = program.draw(st.sampled_from(range(len(partners))))
    name = program.draw(st.sampled_from([*sorted(BINARY), "where"]))
    if name == "where":
        return program.add(
            "where",
            lambda x, y: (x > y * 1.0001).where(x, y * 2),
            lambda x, y: torch.where(x > y * 1.0001, x, y * 2), left, partners[right],
        )
    return program.apply(name, BINARY[name], left, partners[right])


def reduction(program: Program) -> bool:
    """A reduction, a softmax or a scan along one axis."""
    value = program.any_value()
    if not value[1].ndim or not value[1].numel():
        return False
    axis, keep = program.axis(value), program.draw(st.booleans())
    kind = program.draw(st.sampled_from(
        ["sum", "mean", "max", "min", "var", "logsumexp", "softmax", "log_softmax", "cumsum",
         "prod", "cumprod", "cummax", "norm", "all_mean"]
    ))
    text = f"{kind}[{axis}, keepdim={keep}]"
    if kind in ("max", "min"):
        return program.add(text, lambda x: getattr(x, kind)(axis, keep),
                           lambda x: getattr(x, "a" + kind)(axis, keep), value)
    if kind == "cummax":
        return program.add(text, lambda x: x.cummax(axis), lambda x: x.cummax(axis).values, value)
    if kind in ("softmax", "log_softmax", "cumsum", "cumprod"):
        return program.apply(text, lambda x: getattr(x, kind)(axis), value)
    if kind == "var":
        return program.add(text, lambda x: x.var(axis, keep, 0),
                           lambda x: x.var(axis, correction=0, keepdim=keep), value)
    if kind == "norm":
        return program.add(text, lambda x: (x * x + 0.1).norm(2.0, axis, keep),
                           lambda x: (x * x + 0.1).norm(2.0, axis, keep), value)
    if kind == "all_mean":
        return program.apply("mean", lambda x: x.mean(), value)
    return program.apply(text, lambda x: getattr(x, kind)(axis, keep), value)


def movement(program: Program) -> bool:
    """A view, padding or joining."""
    value = program.any_value()
    shape = tuple(value[1].shape)
    if not shape:
        return program.apply("unsqueeze[0]", lambda x: x.unsqueeze(0), value)
    axis = program.axis(value)
    kind = program.draw(st.sampled_from(sorted(MOVEMENTS)))
    text, function = MOVEMENTS[kind](program, shape, axis)
    return program.add(text, *function, value)


Both = tuple[str, tuple[Callable[..., Any], Callable[..., Any]]]


def same(text: str, function: Callable[..., Any]) -> Both:
    """One function for both libraries."""
    return text, (function, function)


def permuted(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """The axes in a random order."""
    order = program.draw(st.permutations(range(len(shape))))
    return same(f"permute{tuple(order)}", lambda x: x.permute(*order))


def reshaped(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """Two axes made one, or one made two."""
    size = shape[axis]
    divisors = [k for k in range(1, size + 1) if size and size % k == 0]
    if program.draw(st.booleans()) and len(shape) > 1:
        first = axis % len(shape)
        second = min(first + 1, len(shape) - 1)
        first = min(first, second - 1)
        return same(f"flatten[{first}:{second}]", lambda x: x.flatten(first, second))
    part = program.draw(st.sampled_from(divisors)) if divisors else 1
    if size and divisors:
        sizes = (part, size // part)
        return same(f"unflatten[{axis}]{sizes}", lambda x: x.unflatten(axis, sizes))
    return same("unsqueeze", lambda x: x.unsqueeze(0))


def sliced(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """A slice with a step."""
    size = shape[axis]
    begin = program.draw(st.integers(0, max(0, size - 1)))
    end = program.draw(st.integers(min(begin + 1, size), size))
    step = program.draw(st.integers(1, 3))
    key = (slice(None),) * (axis % len(shape)) + (slice(begin, end, step),)
    return same(f"slice[{axis}]{begin}:{end}:{step}", lambda x: x[key])


def picked(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """Rows by a list of numbers, doubles and negative ones among them."""
    size = shape[axis]
    if not size:
        return same("same", lambda x: x)
    rows = program.draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=4))
    key = (slice(None),) * (axis % len(shape)) + (rows,)
    return same(f"rows[{axis}]{rows}", lambda x: x[key])


def padded(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """Zeros around the last axis."""
    sides = program.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    return (f"pad{sides}",
            (lambda x: x.pad(sides), lambda x: torch.nn.functional.pad(x, sides)))


def written(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """A copy of which a part is overwritten by another part of it."""
    size = shape[axis]
    lead = (slice(None),) * (axis % len(shape))
    count = size // 2

    def function(x: Any) -> Any:
        y = x.clone() if isinstance(x, torch.Tensor) else x * 1
        y[(*lead, slice(0, count))] = x[(*lead, slice(size - count, size))] * 0.5
        return y

    return same(f"write[{axis}]", function)


def windowed(program: Program, shape: tuple[int, ...], axis: int) -> Both:
    """Windows along an axis."""
    size = program.draw(st.integers(1, max(1, min(3, shape[axis]))))
    step = program.draw(st.integers(1, 2))
    if shape[axis] < size:
        return same("same", lambda x: x)
    return same(f"unfold[{axis}]{size}/{step}", lambda x: x.unfold(axis, size, step))


MOVEMENTS: dict[str, Callable[[Program, tuple[int, ...], int], Both]] = {
    "permute": permuted,
    "reshape": reshaped,
    "slice": sliced,
    "rows": picked,
    "pad": padded,
    "write": written,
    "windows": windowed,
    "flip": lambda p, s, axis: same(f"flip[{axis}]", lambda x: x.flip(axis)),
    "roll": lambda p, s, axis: same(f"roll[{axis}]", lambda x: x.roll(1, axis)),
    "unsqueeze": lambda p, s, axis: same(f"unsqueeze[{axis}]", lambda x: x.unsqueeze(axis)),
    "mean_back": lambda p, s, axis: same(
        f"centre[{axis}]", lambda x: x - x.mean(axis, True) if x.shape[axis] else x
    ),
    "cat": lambda p, s, axis: (
        f"cat[{axis}]",
        (lambda x: x.cat(x * 2, dim=axis), lambda x: torch.cat([x, x * 2], axis)),
    ),
    "expand": lambda p, s, axis: same(
        "expand", lambda x: x.unsqueeze(0).expand(2, *(-1 for _ in s))
    ),
    "realize": lambda p, s, axis: (
        "realize", (lambda x: (x + 0.25).realize(), lambda x: x + 0.25),
    ),
    "contiguous": lambda p, s, axis: same("contiguous", lambda x: x.contiguous()),
}


def product(program: Program) -> bool:
    """A matrix product with its own transpose."""
    value = program.any_value()
    if value[1].ndim < 2:
        return False
    return program.apply("x @ x.T", lambda x: (x @ x.transpose(-1, -2)) * 0.1, value)


STEPS = [unary, unary, binary, binary, reduction, movement, movement, product]
