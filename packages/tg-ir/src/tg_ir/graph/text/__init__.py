"""Graphs as text: `dump` and `parse` round-trip exactly, `show` is for people (DEBUG=5 and 6)."""

from tg_ir.graph.text.neighbourhood import neighbourhood
from tg_ir.graph.text.parsing import parse
from tg_ir.graph.text.showing import print_graph, show
from tg_ir.graph.text.writing import FORMAT_VERSION, dump, graph_nodes

__all__ = [
    "FORMAT_VERSION",
    "dump",
    "graph_nodes",
    "neighbourhood",
    "parse",
    "print_graph",
    "show",
]
