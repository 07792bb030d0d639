"""`parse`: the nodes that a text made by `dump` stands for. Errors show the line and a caret.

Arguments are parsed with an explicit grammar, never evaluated as Python.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from enum import IntEnum
from typing import Any

from tg_ir.dtype import DType, dtypes
from tg_ir.errors import DTypeError, did_you_mean
from tg_ir.graph import ops
from tg_ir.graph.errors import TextError
from tg_ir.graph.ops import AddrSpace, AxisType, Ops
from tg_ir.graph.text.writing import FORMAT_VERSION, HEADER
from tg_ir.graph.uop import Symbol, UOp

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<bytes>b(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<float>-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf\b|nan\b))
    | (?P<int>-?\d+)
    | (?P<name>[A-Za-z_]\w*)
    | (?P<sign>[()\[\],=.:%])
    )""",
    re.VERBOSE,
)
_DTYPE = re.compile(r"([a-z][a-z0-9]*?)(?:x([0-9]+))?$")

_ENUMS: dict[str, type[IntEnum]] = {"Ops": Ops, "AxisType": AxisType, "AddrSpace": AddrSpace}
_WORDS = {"None": None, "True": True, "False": False}
_ARGUMENTS = {
    name: item
    for name, item in vars(ops).items()
    if isinstance(item, type) and dataclasses.is_dataclass(item)
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    position: int


class _Line:
    """One line of the text and a place in it."""

    def __init__(self, text: str, number: int, nodes: list[UOp]) -> None:
        self.text = text
        self.number = number
        self.nodes = nodes
        self.tokens = self._split(text)
        self.next = 0

    def error(self, message: str, position: int | None = None) -> TextError:
        at = self.peek().position if position is None else position
        return TextError(message, self.text, self.number, at)

    def _split(self, text: str) -> list[_Token]:
        tokens = []
        position = 0
        end = len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                start = position + len(text[position:]) - len(text[position:].lstrip())
                raise TextError(f"unexpected character {text[start]!r}", text, self.number, start)
            kind = match.lastgroup
            tokens.append(_Token(kind, match[kind], match.start(kind)))
            position = match.end()
        tokens.append(_Token("end", "", end))
        return tokens

    def peek(self) -> _Token:
        return self.tokens[self.next]

    def take(self) -> _Token:
        token = self.tokens[self.next]
        if token.kind != "end":
            self.next += 1
        return token

    def at(self, text: str) -> bool:
        token = self.peek()
        return token.kind in ("sign", "name") and token.text == text

    def expect(self, kind: str, text: str = "", what: str = "") -> _Token:
        token = self.peek()
        if token.kind != kind or (text and token.text != text):
            came = repr(token.text) if token.text else "the end of the line"
            raise self.error(f"expected {what or repr(text) or kind}, got {came}")
        return self.take()

    # ---- parts of a node

    def node_reference(self) -> UOp:
        token = self.expect("int", what="the number of a node")
        number = int(token.text)
        if not 0 <= number < len(self.nodes):
            raise self.error(f"node {number} is not defined above this line", token.position)
        return self.nodes[number]

    def node_list(self) -> tuple[UOp, ...]:
        self.expect("sign", "(")
        found = []
        while not self.at(")"):
            found.append(self.node_reference())
            if not self.at(")"):
                self.expect("sign", ",", "',' or ')'")
        self.take()
        return tuple(found)

    def dtype(self) -> DType:
        token = self.expect("name", what="a dtype")
        match = _DTYPE.match(token.text)
        if match is None:
            raise self.error(f"{token.text!r} is not a dtype", token.position)
        try:
            scalar = dtypes.from_name(match[1])
            return scalar if match[2] is None else scalar.vec(int(match[2]))
        except DTypeError as error:
            raise self.error(str(error), token.position) from error

    def member(self, kind: str) -> IntEnum:
        self.expect("sign", ".")
        token = self.expect("name", what=f"a member of {kind}")
        return self.enum_member(kind, token)

    def enum_member(self, kind: str, token: _Token) -> IntEnum:
        members = _ENUMS[kind].__members__
        if token.text not in members:
            hint = did_you_mean(token.text, members)
            raise self.error(f"{kind} has no {token.text!r}; {hint}", token.position)
        return members[token.text]

    # ---- arguments. Their nesting is that of the dataclasses, so recursion is bounded.

    def argument(self) -> Any:
        token = self.peek()
        match token.kind:
            case "int":
                return int(self.take().text)
            case "float":
                return float(self.take().text)
            case "string" | "bytes":
                return ast.literal_eval(self.take().text)
            case "name":
                return self._named_argument()
            case "sign" if token.text == "(":
                return self._tuple()
            case "sign" if token.text == "%":
                self.take()
                return self.node_reference()
            case _:
                came = repr(token.text) if token.text else "the end of the line"
                raise self.error(f"expected an argument, got {came}")

    def _tuple(self) -> tuple[Any, ...]:
        self.expect("sign", "(")
        found = []
        while not self.at(")"):
            found.append(self.argument())
            if not self.at(")"):
                self.expect("sign", ",", "',' or ')'")
        self.take()
        return tuple(found)

    def _named_argument(self) -> Any:
        token = self.take()
        if token.text in _WORDS:
            return _WORDS[token.text]
        if token.text in _ENUMS:
            return self.member(token.text)
        if token.text == "src":
            return self._symbol()
        if token.text == "dtype":
            self.expect("sign", ".")
            return self.dtype()
        if token.text in _ARGUMENTS:
            return self._dataclass(token)
        known = [*_ARGUMENTS, *_ENUMS, *_WORDS]
        raise self.error(
            f"no argument is called {token.text!r}; {did_you_mean(token.text, known)}",
            token.position,
        )

    def _symbol(self) -> Symbol:
        self.expect("sign", "[")
        number = int(self.expect("int", what="the number of a source").text)
        self.expect("sign", "]")
        return Symbol(number)

    def _dataclass(self, name: _Token) -> Any:
        kind = _ARGUMENTS[name.text]
        fields = {field.name for field in dataclasses.fields(kind)}
        values: dict[str, Any] = {}
        self.expect("sign", "(")
        while not self.at(")"):
            token = self.expect("name", what="the name of a field")
            if token.text not in fields:
                hint = did_you_mean(token.text, fields)
                raise self.error(f"{name.text} has no field {token.text!r}; {hint}", token.position)
            self.expect("sign", "=")
            values[token.text] = self.argument()
            if not self.at(")"):
                self.expect("sign", ",", "',' or ')'")
        self.take()
        try:
            return kind(**values)
        except TypeError as error:
            raise self.error(str(error), name.position) from error


def parse(text: str) -> list[UOp]:
    """The roots of a graph, or the nodes of a linear kernel, from the text that `dump` made.

    Raises:
        TextError: the text is no graph, or of a later version; shows the line with a caret.
    """
    lines = text.splitlines()
    _check_header(lines)
    nodes: list[UOp] = []
    for number, line_text in enumerate(lines[1:], start=2):
        if not line_text.strip() or line_text.lstrip().startswith("#"):
            continue
        line = _Line(line_text, number, nodes)
        if line.at("roots"):
            _check_nothing_follows(lines, number)
            return _roots(line, nodes)
        nodes.append(_node(line))
    last = lines[-1]
    raise TextError(
        "the text ends without a line 'roots (...)'; it is cut off", last, len(lines), len(last)
    )


def _check_header(lines: list[str]) -> None:
    first = lines[0] if lines else ""
    expected = f"{HEADER} {FORMAT_VERSION}"
    match = re.fullmatch(rf"{HEADER} (\d+)", first.strip())
    if match is None:
        raise TextError(f"expected {expected!r} on the first line", first, 1, 0)
    if int(match[1]) != FORMAT_VERSION:
        raise TextError(
            f"this is version {match[1]} of the format, this tg_ir reads version {FORMAT_VERSION}",
            first,
            1,
            match.start(1),
        )


def _check_nothing_follows(lines: list[str], number: int) -> None:
    for later, text in enumerate(lines[number:], start=number + 1):
        if text.strip() and not text.lstrip().startswith("#"):
            raise TextError("expected nothing after the line 'roots'", text, later, 0)


def _roots(line: _Line, nodes: list[UOp]) -> list[UOp]:
    line.take()
    if line.at("all"):
        line.take()
        roots = list(nodes)
    else:
        roots = list(line.node_list())
    line.expect("end", what="the end of the line")
    return roots


def _node(line: _Line) -> UOp:
    token = line.expect("int", what=f"node number {len(line.nodes)} or 'roots'")
    if int(token.text) != len(line.nodes):
        raise line.error(f"expected node number {len(line.nodes)}, got {token.text}", 0)
    line.expect("sign", ":")
    name = line.expect("name", what="an op")
    op = Ops(line.enum_member("Ops", name))
    dtype = line.dtype()
    sources = line.node_list()
    argument = None if line.peek().kind == "end" else line.argument()
    line.expect("end", what="the end of the line")
    return UOp(op, dtype, sources, argument)
