"""Passes and pipelines: what lowers a graph step by step, open to third parties by name.

A pass is a pure function of (graph, context). The pipeline runs, verifies and names the pass that
failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tg_ir.config import SPEC
from tg_ir.errors import TgError, did_you_mean
from tg_ir.graph.errors import PassError, PipelineError
from tg_ir.graph.uop import UOp

ContextT = TypeVar("ContextT")

_VERIFY_BORDERS = 1
_VERIFY_EVERY_PASS = 2


@dataclass(frozen=True, slots=True)
class Pass(Generic[ContextT]):
    """One step of a pipeline.

    name: what it does, as a verb; unique in its pipeline.
    run: `(graph, context) -> graph`, pure.
    requires: what must hold before, in words.
    ensures: what holds after, in words.
    check: raises if what it ensures does not hold; run where SPEC asks for it.
    """

    name: str
    run: Callable[[UOp, ContextT], UOp]
    requires: str = ""
    ensures: str = ""
    check: Callable[[UOp], None] | None = None


@dataclass(frozen=True, slots=True)
class Pipeline(Generic[ContextT]):
    """Passes in order.

    passes: the passes; no two of one name.
    verify: raises where a graph breaks the spec of this pipeline's stage. Run on what goes in and
        comes out with `SPEC=1`, after every pass too with `SPEC=2`.
    """

    passes: tuple[Pass[ContextT], ...]
    verify: Callable[[UOp], None] | None = None

    def __post_init__(self) -> None:
        """Refuse two passes of one name.

        Raises:
            PipelineError: names both places.
        """
        places: dict[str, int] = {}
        for place, step in enumerate(self.passes):
            if step.name in places:
                raise PipelineError(
                    f"two passes are called '{step.name}', number {places[step.name]} and "
                    f"number {place}; give the second another name"
                )
            places[step.name] = place

    def __iter__(self) -> Iterator[Pass[ContextT]]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the passes, in order."""
        return tuple(step.name for step in self.passes)

    def insert(
        self, step: Pass[ContextT], *, before: str | None = None, after: str | None = None
    ) -> Pipeline[ContextT]:
        """This pipeline with one more pass, next to the pass named `before` or `after`.

        Raises:
            PipelineError: not exactly one of the two is given, or no pass is called that.
        """
        name = before if before is not None else after
        if name is None or (before is not None and after is not None):
            raise PipelineError(
                f"insert '{step.name}': say where, by either before= or after= the name of a pass"
            )
        place = self._place(name) + (1 if after is not None else 0)
        return replace(self, passes=(*self.passes[:place], step, *self.passes[place:]))

    def without(self, name: str) -> Pipeline[ContextT]:
        """This pipeline without the pass called `name`.

        Raises:
            PipelineError: no pass is called that.
        """
        place = self._place(name)
        return replace(self, passes=(*self.passes[:place], *self.passes[place + 1 :]))

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise PipelineError(f"no pass is called '{name}'; {did_you_mean(name, self.names)}")
        return self.names.index(name)

    def run(
        self,
        graph: UOp,
        context: ContextT,
        observe: Callable[[Pass[ContextT], UOp], None] | None = None,
    ) -> UOp:
        """Run every pass on `graph`.

        Args:
            graph: satisfies the spec of this stage.
            context: what passes may know.
            observe: called with each pass and the graph it made, for DEBUG output and replay.

        Raises:
            PassError: a pass failed, or what it made breaks the spec; names the pass. An error that
                a pass raises on purpose (a TgError) keeps its type, and a note names the pass.
        """
        level = int(SPEC)
        if level >= _VERIFY_BORDERS and self.verify is not None:
            self.verify(graph)
        last = len(self.passes) - 1
        for place, step in enumerate(self.passes):
            is_checked = level >= _VERIFY_EVERY_PASS or (level >= _VERIFY_BORDERS and place == last)
            graph = self._run_one(step, graph, context, is_checked)
            if observe is not None:
                observe(step, graph)
        return graph

    def _run_one(
        self, step: Pass[ContextT], graph: UOp, context: ContextT, is_checked: bool
    ) -> UOp:
        try:
            result = step.run(graph, context)
        except TgError as error:
            # raised on purpose: callers wait for its type
            error.add_note(f"in pass '{step.name}'")
            raise
        except Exception as error:
            raise PassError(f"pass '{step.name}' failed: {error}") from error
        if not isinstance(result, UOp):
            raise PassError(f"pass '{step.name}' gave {type(result).__name__}, expected a UOp")
        if is_checked:
            self._check(step, result)
        return result

    def _check(self, step: Pass[ContextT], graph: UOp) -> None:
        try:
            if step.check is not None:
                step.check(graph)
            if self.verify is not None:
                self.verify(graph)
        except Exception as error:
            raise PassError(
                f"what pass '{step.name}' made breaks a rule (it ensures: "
                f"{step.ensures or 'nothing more'}): {error}"
            ) from error
