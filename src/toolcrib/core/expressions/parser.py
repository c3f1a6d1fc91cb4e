"""Tokens to a syntax tree: precedence climbing with bounded recursion. It evaluates nothing."""

from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.bounds import MAX_DEPTH, MAX_NODES, MAX_SOURCE
from toolcrib.core.expressions.lexer import Token, tokenize
from toolcrib.core.expressions.suggestions import shorten
from toolcrib.core.expressions.syntax import (
    Call,
    Chain,
    Conditional,
    Constant,
    Each,
    Field,
    Index,
    ListOf,
    Name,
    Negate,
    Node,
    Not,
    ObjectOf,
    Operation,
    Part,
    Path,
    Step,
)

_LEVELS = (
    ("??",),
    ("||",),
    ("&&",),
    ("==", "!=", "===", "!=="),
    ("<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS, start=1) for operator in operators}
_UNARY = len(_LEVELS) + 1
_CONSTANTS = {"true": True, "false": False, "null": None}
_INSTEAD = {"and": "&&", "or": "||", "not": "!", "is": "==", "True": "true", "False": "false", "None": "null"}


def parse(source: str) -> Node:
    """The syntax tree of one expression.

    Raises:
        InvalidExpression: It is too long, not well formed, has too many parts or is nested too deeply.
    """
    if len(source) > MAX_SOURCE:
        raise InvalidExpression(f"expression has {len(source):,} characters; at most {MAX_SOURCE:,} are allowed")
    parser = _Parser(tokenize(source))
    tree = parser.expression()
    parser.finish()
    _check_size(tree)
    return tree


def _check_size(tree: Node) -> None:
    parts: list[tuple[Part, int]] = [(tree, 1)]
    count = 0
    while parts:
        part, depth = parts.pop()
        count += 1
        if count > MAX_NODES:
            raise InvalidExpression(f"expression has more than {MAX_NODES} parts; split it")
        if depth > MAX_DEPTH:
            raise _too_deep()
        parts.extend((child, depth + 1) for child in part.children)


def _too_deep() -> InvalidExpression:
    return InvalidExpression(f"expression is nested deeper than {MAX_DEPTH} levels; split it")


class _PathSoFar:
    """The accessors read so far; `steps` are those of the last projection, or of the path if there is none yet."""

    def __init__(self, root: Node) -> None:
        self.restart(root)

    def restart(self, root: Node) -> None:
        self._root = root
        self.steps: list[Step] = []
        self._before: list[tuple[list[Step], int]] = []

    @property
    def is_projected(self) -> bool:
        return bool(self._before)

    def project(self, column: int) -> None:
        self._before.append((self.steps, column))
        self.steps = []

    def node(self) -> Node:
        groups = [*(steps for steps, _ in self._before), self.steps]
        each = [Each(tuple(steps), column) for steps, (_, column) in zip(groups[1:], self._before, strict=True)]
        return Path(self._root, tuple(groups[0]), tuple(each)) if groups[0] or each else self._root


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    def expression(self, above: int = 0) -> Node:
        """Operators that bind tighter than `above`; a conditional binds loosest."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _too_deep()
        node = self._prefix()
        while (level := self._level()) > above:
            node = Chain(node, tuple(self._operations(level)))
        if above == 0 and self._accept("?"):
            then = self.expression()
            self._expect(":")
            node = Conditional(node, then, self.expression())
        self._depth -= 1
        return node

    def finish(self) -> None:
        """Nothing may follow."""
        if self._current.kind != "end":
            raise _unexpected(self._current)

    @property
    def _current(self) -> Token:
        return self._tokens[self._position]

    def _next(self) -> Token:
        token = self._current
        if token.kind != "end":
            self._position += 1
        return token

    def _at(self, text: str) -> bool:
        token = self._current
        return token.kind in ("operator", "name") and token.text == text

    def _accept(self, text: str) -> bool:
        found = self._at(text)
        if found:
            self._position += 1
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise _unexpected(self._current, f"expected {text!r}")

    def _level(self) -> int:
        token = self._current
        return _PRECEDENCE.get(token.text, 0) if token.kind in ("operator", "name") else 0

    def _operations(self, level: int) -> list[Operation]:
        operations: list[Operation] = []
        while self._level() == level:
            token = self._next()
            operations.append(Operation(token.text, self.expression(level), token.column))
        return operations

    def _prefix(self) -> Node:
        token = self._current
        if self._accept("!"):
            return Not(self.expression(_UNARY))
        if self._accept("-"):
            return Negate(self.expression(_UNARY), token.column)
        return self._postfix(self._primary())

    def _primary(self) -> Node:
        token = self._next()
        match token.kind, token.text:
            case (("number" | "string"), _):
                return Constant(token.value)
            case "name", ("true" | "false" | "null") as text:
                return Constant(_CONSTANTS[text])
            case "name", text if text not in _PRECEDENCE:
                return Call(text, self._arguments(), token.column) if self._at("(") else Name(text, token.column)
            case "operator", "(":
                node = self.expression()
                self._expect(")")
                return node
            case "operator", "[":
                return ListOf(tuple(self._sequence("]")))
            case "operator", "{":
                return self._object()
            case _:
                raise _unexpected(token)

    def _postfix(self, node: Node) -> Node:
        path = _PathSoFar(node)
        while True:
            token = self._current
            if self._at("["):
                self._bracket(path, optional=False)
            elif self._accept("."):
                self._member(path, token, optional=False)
            elif not self._accept("?."):
                return path.node()
            elif self._at("["):
                self._bracket(path, optional=True)
            else:
                self._member(path, token, optional=True)

    def _member(self, path: "_PathSoFar", accessor: Token, *, optional: bool) -> None:
        name = self._next()
        if name.kind != "name":
            raise _unexpected(name, f"expected a name after {accessor.text!r}")
        if self._at("("):
            path.restart(Call(name.text, (path.node(), *self._arguments()), name.column, optional))
        else:
            path.steps.append(Field(name.text, name.column, optional))

    def _bracket(self, path: "_PathSoFar", *, optional: bool) -> None:
        token = self._next()
        if not optional and self._accept("*"):
            self._expect("]")
            path.project(token.column)
            return
        index = self.expression()
        self._expect("]")
        if path.is_projected and not _is_constant(index):
            raise InvalidExpression(
                f"computed index at column {token.column}: behind [*] an index must be a literal number or string"
            )
        path.steps.append(Index(index, token.column, optional))

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        return tuple(self._sequence(")"))

    def _sequence(self, close: str) -> list[Node]:
        nodes: list[Node] = []
        while not self._accept(close):
            nodes.append(self.expression())
            if not self._at(close):
                self._expect(",")
        return nodes

    def _object(self) -> ObjectOf:
        members: list[tuple[str, Node]] = []
        while not self._accept("}"):
            key = self._next()
            if key.kind not in ("name", "string"):
                raise _unexpected(key, "expected the name of a member")
            self._expect(":")
            members.append((key.text if key.kind == "name" else key.value, self.expression()))
            if not self._at("}"):
                self._expect(",")
        return ObjectOf(tuple(members))


def _is_constant(node: Node) -> bool:
    return isinstance(node.operand if isinstance(node, Negate) else node, Constant)


def _unexpected(token: Token, expected: str | None = None) -> InvalidExpression:
    found = token.text if token.kind == "end" else repr(shorten(token.text))
    what = f"{expected} but found {found}" if expected else f"unexpected {found}"
    instead = f"; write {_INSTEAD[token.text]}" if token.text in _INSTEAD and token.kind == "name" else ""
    return InvalidExpression(f"{what} at column {token.column}{instead}")
