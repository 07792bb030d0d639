"""`graph_rewrite`: rules applied until none applies; `map_nodes`: one traversal.

Both are iterative (any depth of graph works) and visit each distinct node once, so the cost is
linear in the nodes of the graph and those that the rules make.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tg_ir.graph.rewrite.errors import RewriteLoopError
from tg_ir.graph.rewrite.matcher import PatternMatcher, Rule
from tg_ir.graph.uop import UOp, toposort

RewriteObserver = Callable[[Rule, UOp, UOp], None]

# A chain of rewrites of one node longer than this, and than 20 times the graph, is taken for
# endless.
_CHAIN_LIMIT = 4000
_CHAIN_LIMIT_PER_NODE = 20
_RULES_SHOWN = 6


@contextmanager
def collection_paused() -> Iterator[None]:
    """Without the cyclic garbage collector.

    Graphs have no cycles, and scanning them over and over is a third to a half of a rewrite.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Rewriter:
    """The state of one `graph_rewrite`."""

    def __init__(
        self,
        sink: UOp,
        matcher: PatternMatcher,
        ctx: Any,
        name: str | None,
        fast_math: bool,
        observer: RewriteObserver | None,
    ) -> None:
        self.sink = sink
        self.matcher = matcher
        self.ctx = ctx
        self.name = name or "graph_rewrite"
        self.fast_math = fast_math
        self.observer = observer
        # original or intermediate node -> final node
        self.done: dict[UOp, UOp] = {}
        # node that was rewritten and whose result is not final yet -> the rule
        self.pending: dict[UOp, Rule] = {}
        self.chain_limit = _CHAIN_LIMIT

    def apply(self, node: UOp) -> UOp | None:
        """The result of the first rule that changes `node`, noted as pending.

        Raises:
            RewriteLoopError: this node is being rewritten already, or the chain has no end.
        """
        for function, rule in self.matcher.rules_for(node.op, self.fast_math):
            result = function(node, self.ctx)
            if result is None or result is node:
                continue
            if node in self.pending:
                raise self.loop_error(node, rule, "came back to a node it had rewritten")
            if len(self.pending) >= self.chain_limit:
                self.raise_limit(node, rule)
            self.pending[node] = rule
            if self.observer is not None:
                self.observer(rule, node, result)
            return result
        return None

    def raise_limit(self, node: UOp, rule: Rule) -> None:
        size = len(toposort((self.sink,)))
        limit = max(_CHAIN_LIMIT, _CHAIN_LIMIT_PER_NODE * size)
        if self.chain_limit >= limit:
            raise self.loop_error(node, rule, f"rewrote {limit} times without an end")
        self.chain_limit = limit

    def loop_error(self, node: UOp, rule: Rule, what: str) -> RewriteLoopError:
        recent = list(self.pending.values())[-self.chain_limit // 2 :]
        if node in self.pending:
            nodes = list(self.pending)
            recent = [self.pending[n] for n in nodes[nodes.index(node) :]]
        names = Counter(each.name for each in [*recent, rule])
        listed = ", ".join(f"'{each}'" for each, _ in names.most_common(_RULES_SHOWN))
        return RewriteLoopError(
            f"{self.name}: a rewrite loop: it {what}, {node!r}; rules involved: {listed}. "
            "Give one of them a guard that holds only where it makes progress"
        )

    def rebuilt(self, node: UOp) -> UOp:
        """`node` over the final versions of its sources."""
        done = self.done
        src = tuple([done[s] for s in node.src])
        return node if src == node.src else UOp(node.op, node.dtype, src, node.arg)

    def sources_first(self) -> UOp:
        """A node is matched when its sources are final."""
        done = self.done
        # (original, node now, stage): 0 open sources, 1 match, 2 the result of a rewrite is final
        stack: list[tuple[UOp, UOp, int]] = [(self.sink, self.sink, 0)]
        while stack:
            original, node, stage = stack.pop()
            if stage == 0:
                if original in done:
                    continue
                stack.append((original, node, 1))
                stack.extend([(s, s, 0) for s in reversed(node.src) if s not in done])
            elif stage == 1:
                new = self.rebuilt(node)
                known = done.get(new) if new is not original else None
                result = known if known is not None else self.apply(new)
                if result is None or result is known:
                    done[original] = done[new] = new if known is None else known
                    continue
                if new is not original:
                    stack.append((original, new, 2))
                stack.append((new, result, 2))
                stack.append((result, result, 0))
            else:
                self.pending.pop(original, None)
                done[original] = done[node]
        return done[self.sink]

    def node_first(self) -> UOp:
        """A node is matched before its sources are looked at, and again if they change."""
        done = self.done
        stack: list[tuple[UOp, UOp, int]] = [(self.sink, self.sink, 0)]
        while stack:
            original, node, stage = stack.pop()
            if stage == 0:
                if original in done:
                    continue
                result = self.apply(original)
                if result is not None:
                    stack.append((original, result, 2))
                    stack.append((result, result, 0))
                    continue
                stack.append((original, original, 1))
                stack.extend([(s, s, 0) for s in reversed(original.src) if s not in done])
            elif stage == 1:
                new = self.rebuilt(original)
                if new is original or new in done:
                    done[original] = done.get(new, new)
                    continue
                stack.append((original, new, 2))
                stack.append((new, new, 0))
            else:
                self.pending.pop(original, None)
                done[original] = done[node]
        return done[self.sink]


def graph_rewrite(
    sink: UOp,
    matcher: PatternMatcher,
    ctx: Any = None,
    name: str | None = None,
    bottom_up: bool = False,
    *,
    fast_math: bool = False,
    observer: RewriteObserver | None = None,
) -> UOp:
    """`sink` with the rules of `matcher` applied until none applies.

    A node is matched when its sources are final; with `bottom_up` it is matched before its sources
    are visited, and again if they changed. A result is rewritten like any other node. A rule that
    gives a node containing the node it replaced must not apply to it a second time.

    Args:
        sink: the graph.
        matcher: the rules.
        ctx: passed to rule functions that have a parameter `ctx`.
        name: of the pass, for messages.
        bottom_up: match a node before its sources.
        fast_math: apply rules that are not exact, too.
        observer: called with (rule, before, after) for every rewrite.

    Raises:
        RewriteLoopError: rules undo each other or never stop; names them.
    """
    rewriter = _Rewriter(sink, matcher, ctx, name, fast_math, observer)
    with collection_paused():
        return rewriter.node_first() if bottom_up else rewriter.sources_first()


def map_nodes(sink: UOp, function: Callable[[UOp], UOp | None]) -> UOp:
    """`sink` with `function` applied once to every node, sources first; None keeps the node.

    `function` sees a node over its new sources, and its result is not visited again.
    """
    new: dict[UOp, UOp] = {}
    with collection_paused():
        for node in toposort((sink,)):
            src = tuple([new[s] for s in node.src])
            rebuilt = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
            result = function(rebuilt)
            new[node] = rebuilt if result is None else result
    return new[sink]
