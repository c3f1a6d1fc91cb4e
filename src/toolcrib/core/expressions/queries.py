"""Evaluates the syntax trees of `jsonpath-rfc9535` with every step counted; use it through `jsonpath`.

The library's own evaluation has no limit of work, recurses with the document, and treats `[1]` and `[true]` as equal.
Only its parser is used, which also checks the types of filters.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError
from jsonpath_rfc9535.filter_expressions import (
    ComparisonExpression,
    Expression,
    FilterExpressionLiteral,
    FilterQuery,
    FunctionExtension,
    LogicalExpression,
    PrefixExpression,
    RelativeFilterQuery,
)
from jsonpath_rfc9535.parse import Parser
from jsonpath_rfc9535.segments import JSONPathRecursiveDescentSegment, JSONPathSegment
from jsonpath_rfc9535.selectors import (
    FilterSelector,
    IndexSelector,
    JSONPathSelector,
    NameSelector,
    SliceSelector,
    WildcardSelector,
)
from jsonpath_rfc9535.tokens import Token, TokenStream

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.suggestions import shorten
from toolcrib.core.expressions.values import WorkCounter, equal, is_list, is_number, is_object, length

_NOTHING = object()
"""The result of a filter's query that selects no value (RFC 9535, section 2.4.1)."""

_REFUSED = frozenset({"match", "search"})

_TESTS = (LogicalExpression, ComparisonExpression, PrefixExpression, FilterQuery)
"""What is true or false: a function is not, since those that were are refused."""

_OPERANDS = (FilterExpressionLiteral, FilterQuery, FunctionExtension)
"""What can be compared."""

_Part = TypeVar("_Part")


class _Parser(Parser):
    """Refuses what the library lets pass: `@.a == !@.b`, `length(@.a) && @.b`."""

    def parse_filter_selector(self, stream: TokenStream) -> FilterSelector:
        selector = super().parse_filter_selector(stream)
        return _check_parts(selector, _TESTS, selector.expression.expression)

    def parse_prefix_expression(self, stream: TokenStream) -> Expression:
        negation = cast("PrefixExpression", super().parse_prefix_expression(stream))
        return _check_parts(negation, _TESTS, negation.right)

    def parse_infix_expression(self, stream: TokenStream, left: Expression) -> Expression:
        pair = cast("ComparisonExpression | LogicalExpression", super().parse_infix_expression(stream, left))
        return _check_parts(
            pair, _OPERANDS if isinstance(pair, ComparisonExpression) else _TESTS, pair.left, pair.right
        )


def _check_parts(whole: _Part, allowed: tuple[type, ...], *parts: Expression) -> _Part:
    for part in parts:
        if not isinstance(part, allowed):
            raise InvalidExpression(f"JSONPath filter has {shorten(str(part))!r} where it may not stand")
    return whole


class _Environment(JSONPathEnvironment):
    parser_class = _Parser

    def validate_function_extension_signature(self, token: Token, args: list[Any]) -> list[Any]:
        if token.value in _REFUSED:
            raise InvalidExpression(
                f"JSONPath function {token.value}() is not available; compare with == or select more"
            )
        return super().validate_function_extension_signature(token, args)


_ENVIRONMENT = _Environment()


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed path."""

    segments: Sequence[JSONPathSegment]

    @classmethod
    def parse(cls, path: str) -> "Query":
        """Parse a path whose size the caller has limited.

        Raises:
            InvalidExpression: It is not a well-formed, well-typed query of RFC 9535, or uses `match()` or `search()`.
        """
        try:
            return cls(_ENVIRONMENT.compile(path).segments)
        except (JSONPathError, OverflowError, ValueError) as error:  # the latter two: numbers too large for the library
            raise InvalidExpression(f"JSONPath {shorten(path)!r} is not well formed: {error}") from None

    def select(self, document: Json) -> list[Json]:
        """The values that are selected.

        Raises:
            InvalidExpression: It would take more than `MAX_WORK` steps.
        """
        return _Selection(document).values(self.segments, document)


class _Selection:
    """One evaluation: the document, which filters may refer to, and the work it may still do."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._work = WorkCounter()

    def values(self, segments: Sequence[JSONPathSegment], start: Json) -> list[Json]:
        values = [start]
        for segment in segments:
            nodes = self._descendants(values) if isinstance(segment, JSONPathRecursiveDescentSegment) else values
            values = [found for node in nodes for each in segment.selectors for found in self._children(each, node)]
        return values

    def _descendants(self, values: Iterable[Json]) -> Iterator[Json]:
        """Every value and all below it, parents first. Not recursive, so that no document is too deep."""
        for value in values:
            waiting = [value]
            while waiting:
                node = waiting.pop()
                yield node
                waiting.extend(reversed(self._members(node)))

    def _members(self, node: Json) -> list[Json]:
        members = node if is_list(node) else list(node.values()) if is_object(node) else []
        self._work.charge(1 + len(members))
        return members

    def _children(self, selector: JSONPathSelector, node: Json) -> Sequence[Json]:
        self._work.charge(1)
        match selector:
            case NameSelector(name=name):
                return [node[name]] if is_object(node) and name in node else []
            case IndexSelector(index=index):
                return [node[index]] if is_list(node) and -len(node) <= index < len(node) else []
            case SliceSelector(slice=bounds):
                chosen = node[bounds] if is_list(node) and bounds.step != 0 else []
                self._work.charge(len(chosen))
                return chosen
            case WildcardSelector():
                return self._members(node)
            case _:  # the fifth and last selector of RFC 9535
                test = cast("FilterSelector", selector).expression.expression
                return [member for member in self._members(node) if self._holds(test, member)]

    def _holds(self, test: Expression, current: Json) -> bool:
        match test:
            case LogicalExpression(operator="&&"):
                return self._holds(test.left, current) and self._holds(test.right, current)
            case LogicalExpression():
                return self._holds(test.left, current) or self._holds(test.right, current)
            case PrefixExpression():
                return not self._holds(test.right, current)
            case ComparisonExpression():
                return self._compare(self._value(test.left, current), test.operator, self._value(test.right, current))
            case _:  # the parser lets nothing else of `_TESTS` through
                return bool(self._query(cast("FilterQuery", test), current))

    def _query(self, query: FilterQuery, current: Json) -> list[Json]:
        start = current if isinstance(query, RelativeFilterQuery) else self._root
        return self.values(query.query.segments, start)

    def _value(self, operand: Expression, current: Json) -> Json:
        match operand:
            case FilterExpressionLiteral():
                return cast("FilterExpressionLiteral[Json]", operand).value
            case FilterQuery():
                return next(iter(self._query(operand, current)), _NOTHING)
            case FunctionExtension(name="length"):
                size = length(self._value(operand.args[0], current))
                return _NOTHING if size is None else size
            case _:  # `count()` or `value()`, whose one argument is a query
                function = cast("FunctionExtension", operand)
                nodes = self._query(cast("FilterQuery", function.args[0]), current)
                if function.name == "count":
                    return len(nodes)
                return nodes[0] if len(nodes) == 1 else _NOTHING

    def _compare(self, left: Json, operator: str, right: Json) -> bool:
        match operator:
            case "==":
                return equal(left, right, self._work)
            case "!=":
                return not equal(left, right, self._work)
            case "<":
                return _is_less(left, right)
            case ">":
                return _is_less(right, left)
            case "<=":
                return _is_less(left, right) or equal(left, right, self._work)
            case _:
                return _is_less(right, left) or equal(left, right, self._work)


def _is_less(left: Json, right: Json) -> bool:
    if is_number(left) and is_number(right):
        return left < right
    return isinstance(left, str) and isinstance(right, str) and left < right
