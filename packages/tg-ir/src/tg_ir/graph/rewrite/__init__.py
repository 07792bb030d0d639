"""Pattern rewriting: `UPat`, `PatternMatcher`, `graph_rewrite`, and what rules declare.

How to write a rule and a pass: docs/explanation/rewrite.md.
"""

from tg_ir.graph.rewrite.engine import (
    RewriteObserver,
    collection_paused,
    graph_rewrite,
    map_nodes,
)
from tg_ir.graph.rewrite.errors import PatternError, RewriteLoopError
from tg_ir.graph.rewrite.matcher import (
    Assumption,
    PatternMatcher,
    Rule,
    RuleFunction,
    assumes_no_nan,
    assumes_no_overflow,
    exact,
    reassociates,
    rule,
)
from tg_ir.graph.rewrite.pattern import UPat

__all__ = [
    "Assumption",
    "PatternError",
    "PatternMatcher",
    "RewriteLoopError",
    "RewriteObserver",
    "Rule",
    "RuleFunction",
    "UPat",
    "assumes_no_nan",
    "assumes_no_overflow",
    "collection_paused",
    "exact",
    "graph_rewrite",
    "map_nodes",
    "reassociates",
    "rule",
]
