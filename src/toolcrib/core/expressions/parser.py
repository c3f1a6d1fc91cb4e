"""The tokenizer and parser of the language: precedence climbing with bounded recursion, in linear time."""

import math
import re
from typing import Literal, NamedTuple, TypeAlias, cast

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.suggestions import shorten
from toolcrib.core.expressions.syntax import (
    BinaryOperation,
    Chain,
    Conditional,
    Constant,
    Each,
    FieldAccess,
    FunctionCall,
    Index,
    ListOf,
    Name,
    Negate,
    Node,
    Not,
    ObjectOf,
    Part,
    PathExpression,
    Step,
)
from toolcrib.core.expressions.values import MAX_DEPTH, MAX_INTEGER, MAX_NODES, MAX_SOURCE

TokenKind: TypeAlias = Literal["number", "string", "name", "operator", "end"]

_TOKEN = re.compile(
    r"""(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<name>[^\W\d][\w$]*|\$[\w$]*)
    |(?P<operator>===|!==|==|!=|<=|>=|&&|\|\||\?\?|\?\.|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LEXER_INSTEAD = {"=": "==", "&": "&&", "|": "||", "`": "a quoted string", ";": "one expression", "~": "!", "^": "!="}


class Token(NamedTuple):
    """One token and its place."""

    kind: TokenKind
    text: str
    column: int
    value: Json = None
    """The value of a number or string."""


def tokenize(source: str) -> list[Token]:
    """All tokens of the source, the last of kind `end`.

    Raises:
        InvalidExpression: A character, number or string that the language does not have, with its column.
    """
    tokens: list[Token] = []
    position = _skip_space(source, 0)
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise _character_error(source, position)
        kind, text, column = cast("TokenKind", match.lastgroup), match.group(), position + 1
        tokens.append(Token(kind, text, column, _value(kind, text, column)))
        position = _skip_space(source, match.end())
    tokens.append(Token("end", "end of expression", len(source) + 1))
    return tokens


def _skip_space(source: str, position: int) -> int:
    match = _SPACE.match(source, position)
    return match.end() if match else position


def _character_error(source: str, position: int) -> InvalidExpression:
    character, column = source[position], position + 1
    if character in "\"'":
        return InvalidExpression(f"string at column {column} is never closed")
    instead = f"; write {_LEXER_INSTEAD[character]}" if character in _LEXER_INSTEAD else ""
    return InvalidExpression(f"unexpected {character!r} at column {column}{instead}")


def _value(kind: TokenKind, text: str, column: int) -> Json:
    match kind:
        case "number":
            return _number(text, column)
        case "string":
            return _unescape(text[1:-1], column)
        case _:
            return None


def _number(text: str, column: int) -> int | float:
    value = int(text) if text.isdecimal() else float(text)
    if math.isinf(value) or (isinstance(value, int) and value > MAX_INTEGER):
        raise InvalidExpression(f"number at column {column} is too large; integers reach 2**63")
    return value


def _unescape(text: str, column: int) -> str:
    def character(match: re.Match[str]) -> str:
        code, letter = match.groups()
        if code is not None:
            return chr(int(code, 16))
        if letter not in _ESCAPED:
            raise InvalidExpression(
                f"unknown escape '\\{letter}' in the string at column {column}; escapes are those of JSON and \\'"
            )
        return _ESCAPED[letter]

    if "\\" not in text:
        return text
    # JSON writes characters beyond the basic plane as two escapes; UTF-16 is where such a pair is one character.
    units = _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass")
    try:
        return units.decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidExpression(f"half a surrogate pair in the string at column {column}") from None


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
        return PathExpression(self._root, tuple(groups[0]), tuple(each)) if groups[0] or each else self._root


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
            raise _token_error(self._current)

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
            raise _token_error(self._current, f"expected {text!r}")

    def _level(self) -> int:
        token = self._current
        return _PRECEDENCE.get(token.text, 0) if token.kind in ("operator", "name") else 0

    def _operations(self, level: int) -> list[BinaryOperation]:
        operations: list[BinaryOperation] = []
        while self._level() == level:
            token = self._next()
            operations.append(BinaryOperation(token.text, self.expression(level), token.column))
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
                return (
                    FunctionCall(text, self._arguments(), token.column) if self._at("(") else Name(text, token.column)
                )
            case "operator", "(":
                node = self.expression()
                self._expect(")")
                return node
            case "operator", "[":
                return ListOf(tuple(self._sequence("]")))
            case "operator", "{":
                return self._object()
            case _:
                raise _token_error(token)

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
            raise _token_error(name, f"expected a name after {accessor.text!r}")
        if self._at("("):
            path.restart(FunctionCall(name.text, (path.node(), *self._arguments()), name.column, optional))
        else:
            path.steps.append(FieldAccess(name.text, name.column, optional))

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
                raise _token_error(key, "expected the name of a member")
            self._expect(":")
            members.append((key.text if key.kind == "name" else key.value, self.expression()))
            if not self._at("}"):
                self._expect(",")
        return ObjectOf(tuple(members))


def _is_constant(node: Node) -> bool:
    return isinstance(node.operand if isinstance(node, Negate) else node, Constant)


def _token_error(token: Token, expected: str | None = None) -> InvalidExpression:
    found = token.text if token.kind == "end" else repr(shorten(token.text))
    what = f"{expected} but found {found}" if expected else f"unexpected {found}"
    instead = f"; write {_INSTEAD[token.text]}" if token.text in _INSTEAD and token.kind == "name" else ""
    return InvalidExpression(f"{what} at column {token.column}{instead}")
