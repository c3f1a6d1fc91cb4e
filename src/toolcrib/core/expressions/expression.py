"""A compiled expression: its source, the names it reads, and its evaluation as nested closures.

Each node is evaluated at most once per evaluation. Only the accessor chain after `[*]` repeats; its elements count as
work.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import TypeAlias, assert_never

from toolcrib.contracts import Json
from toolcrib.contracts.base.errors import InvalidExpression
from toolcrib.core.expressions.functions import FUNCTIONS, Function
from toolcrib.core.expressions.parser import parse
from toolcrib.core.expressions.suggestions import listing, shorten, suggestion
from toolcrib.core.expressions.syntax import (
    Chain,
    Conditional,
    Constant,
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
from toolcrib.core.expressions.values import (
    MAX_LIST,
    Evaluate,
    EvaluationScope,
    WorkCounter,
    check_list,
    check_number,
    check_text,
    contains,
    equal,
    is_false,
    is_list,
    is_not_null,
    is_number,
    is_object,
    is_true,
    kind,
    length,
    text,
)

Operator: TypeAlias = Callable[[Json, Json, WorkCounter], Json]
"""Left, right and the work so far to the result; raises `InvalidExpression` without a column."""

Arithmetic: TypeAlias = Callable[[int | float, int | float], int | float]


def _add(left: Json, right: Json, work: WorkCounter) -> Json:
    if is_number(left) and is_number(right):
        return check_number(left + right)
    if is_list(left) and is_list(right):
        work.charge(len(left) + len(right))
        return check_list(left + right)
    if isinstance(left, str) and _is_plain(right):
        return check_text(left + text(right, work))
    if isinstance(right, str) and _is_plain(left):
        return check_text(text(left, work) + right)
    raise _operand_error("+", left, right)


def _is_plain(value: Json) -> bool:
    return isinstance(value, str | int | float)


def _arithmetic(sign: str, calculate: Arithmetic) -> Operator:
    def apply(left: Json, right: Json, _: WorkCounter) -> Json:
        if not (is_number(left) and is_number(right)):
            raise _operand_error(sign, left, right)
        try:
            return check_number(calculate(left, right))
        except ZeroDivisionError:
            raise InvalidExpression("division by zero") from None
        except OverflowError:
            raise InvalidExpression("number would be beyond the range of JSON") from None

    return apply


def _divide(left: float, right: float) -> int | float:
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def _remainder(left: float, right: float) -> int | float:
    """As in JavaScript, the result has the sign of the left side."""
    if isinstance(left, int) and isinstance(right, int):
        magnitude = abs(left) % abs(right)
        return -magnitude if left < 0 else magnitude
    return math.copysign(abs(left) % abs(right), left)


def _ordering(sign: str, holds: Callable[[Json, Json], bool]) -> Operator:
    def apply(left: Json, right: Json, _: WorkCounter) -> bool:
        if (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str)):
            return holds(left, right)
        raise _operand_error(sign, left, right)

    return apply


def _differ(left: Json, right: Json, work: WorkCounter) -> bool:
    return not equal(left, right, work)


def _is_in(left: Json, right: Json, work: WorkCounter) -> bool:
    return contains(right, left, work)


def _operand_error(sign: str, left: Json, right: Json) -> InvalidExpression:
    return InvalidExpression(f"cannot apply {sign!r} to {kind(left)} and {kind(right)}")


OPERATORS: dict[str, Operator] = {
    "==": equal,
    "===": equal,
    "!=": _differ,
    "!==": _differ,
    "<": _ordering("<", lambda left, right: left < right),
    "<=": _ordering("<=", lambda left, right: left <= right),
    ">": _ordering(">", lambda left, right: left > right),
    ">=": _ordering(">=", lambda left, right: left >= right),
    "in": _is_in,
    "+": _add,
    "-": _arithmetic("-", lambda left, right: left - right),
    "*": _arithmetic("*", lambda left, right: left * right),
    "/": _arithmetic("/", _divide),
    "%": _arithmetic("%", _remainder),
}
"""By sign. `&&`, `||` and `??` are not here: they may leave their right side unevaluated."""


ABSENT = object()
"""What an optional accessor gives when there is nothing; it ends the path with null and never leaves this module."""

Access: TypeAlias = Callable[[Json, EvaluationScope], Json]
"""A compiled accessor: from a value to what it has, or to `ABSENT`."""

Projection: TypeAlias = tuple[int, Sequence[Access]]
"""The column of a `[*]` and the accessors up to the next one."""


def field(step: FieldAccess) -> Access:
    """Read a member of an object, or the `length` of a list, string or object."""
    name, optional = step.name, step.optional

    def access(value: Json, _: EvaluationScope) -> Json:
        if is_object(value) and name in value:
            return value[name]
        if name == "length" and (number := length(value)) is not None:
            return number
        if optional and (value is None or is_object(value)):
            return ABSENT
        raise _no_field(step, value)

    return access


def _no_field(step: FieldAccess, value: Json) -> InvalidExpression:
    name, column = shorten(step.name), step.column
    if is_object(value):
        return InvalidExpression(f"no field {name!r} at column {column}; fields: {listing(name, value)}")
    hint = "; read it from each element with [*]" if is_list(value) else ""
    return InvalidExpression(f"cannot read field {name!r} of {kind(value)} at column {column}{hint}")


def index(step: Index, index_of: Evaluate) -> Access:
    """Read an element of a list or a character by its place (negative from the end), or a member by its name."""
    column, optional = step.column, step.optional

    def access(value: Json, evaluation: EvaluationScope) -> Json:
        key = index_of(evaluation)
        if is_object(value) and isinstance(key, str):
            if key in value:
                return value[key]
        elif (is_list(value) or isinstance(value, str)) and isinstance(key, int) and not isinstance(key, bool):
            if -len(value) <= key < len(value):
                return value[key]
        elif not (optional and value is None):
            raise InvalidExpression(f"cannot read an element by {kind(key)} of {kind(value)} at column {column}")
        if optional:
            return ABSENT
        raise _no_element(key, value, column)

    return access


def _no_element(key: Json, value: Json, column: int) -> InvalidExpression:
    if is_object(value):
        name = shorten(key)
        return InvalidExpression(f"no field {name!r} at column {column}; fields: {listing(name, value)}")
    return InvalidExpression(f"no element {key} at column {column}; the {kind(value)} has {len(value)}")


def path(root: Evaluate, steps: Sequence[Access]) -> Evaluate:
    """A path without projection."""

    def run(evaluation: EvaluationScope) -> Json:
        value = _follow(root(evaluation), steps, evaluation)
        return None if value is ABSENT else value

    return run


def projection(root: Evaluate, steps: Sequence[Access], projections: Sequence[Projection]) -> Evaluate:
    """A path with `[*]`: one flat list, whose cost is the elements times the accessors."""

    def run(evaluation: EvaluationScope) -> Json:
        start = _follow(root(evaluation), steps, evaluation)
        if start is ABSENT:
            return None
        values, produced = [start], 0
        for column, following in projections:
            elements = _elements(values, column, produced)
            produced += len(elements)
            evaluation.charge(len(elements) * (1 + len(following)))
            values = _map(elements, following, evaluation)
        return values

    return run


def _follow(value: Json, steps: Sequence[Access], evaluation: EvaluationScope) -> Json:
    for step in steps:
        value = step(value, evaluation)
        if value is ABSENT:
            break
    return value


def _elements(values: Sequence[Json], column: int, produced: int) -> list[Json]:
    elements: list[Json] = []
    for value in values:
        if not is_list(value):
            raise InvalidExpression(f"[*] at column {column} needs a list, got {kind(value)}")
        if produced + len(elements) + len(value) > MAX_LIST:
            raise InvalidExpression(f"[*] at column {column} gives more than {MAX_LIST:,} elements")
        elements.extend(value)
    return elements


def _map(elements: Sequence[Json], steps: Sequence[Access], evaluation: EvaluationScope) -> list[Json]:
    results: list[Json] = []
    for position, element in enumerate(elements):
        try:
            value = _follow(element, steps, evaluation)
        except InvalidExpression as error:
            raise InvalidExpression(f"{error} (in element {position} of [*])") from None
        results.append(None if value is ABSENT else value)
    return results


_LOOPS = frozenset({"every", "filter", "find", "flatMap", "forEach", "map", "reduce", "some", "sort"})
"""What an author may expect from JavaScript, and what takes a function there."""


def lower(node: Node) -> Evaluate:
    """Compile a node and everything below it.

    Raises:
        InvalidExpression: It calls an unknown function, or one with the wrong number of arguments.
    """
    match node:
        case Constant(value=value):
            return lambda _: value
        case Name():
            return _name(node)
        case PathExpression():
            return _path(node)
        case FunctionCall():
            return _call(node)
        case ListOf() | ObjectOf():
            return _collection(node)
        case Not() | Negate():
            return _unary(node)
        case Chain():
            return _chain(node)
        case Conditional():
            return _conditional(node)
        case _:
            assert_never(node)


def _name(node: Name) -> Evaluate:
    name, column = node.name, node.column

    def run(evaluation: EvaluationScope) -> Json:
        scope = evaluation.scope
        if name in scope:
            return scope[name]
        raise InvalidExpression(
            f"unknown name {shorten(name)!r} at column {column}; {suggestion(name, scope)}known: {listing(name, scope)}"
        )

    return run


def _path(node: PathExpression) -> Evaluate:
    root, steps = lower(node.root), _accesses(node.steps)
    if not node.projections:
        return path(root, steps)
    return projection(root, steps, [(each.column, _accesses(each.steps)) for each in node.projections])


def _accesses(steps: tuple[Step, ...]) -> list[Access]:
    return [field(step) if isinstance(step, FieldAccess) else index(step, lower(step.index)) for step in steps]


def _call(node: FunctionCall) -> Evaluate:
    function = _find_function(node)
    arguments = [lower(argument) for argument in node.arguments]
    metered, called, optional = function.metered, function.run, node.optional

    def run(evaluation: EvaluationScope) -> Json:
        values = [argument(evaluation) for argument in arguments]
        if optional and values[0] is None:
            return None
        evaluation.charge(sum(len(value) for value in values if is_list(value) or is_object(value)))
        try:
            return called(evaluation, *values) if metered else called(*values)
        except InvalidExpression as error:
            raise InvalidExpression(f"{node.function}() {error} at column {node.column}") from None

    return run


def _find_function(node: FunctionCall) -> Function:
    name, column, given = node.function, node.column, len(node.arguments)
    function = FUNCTIONS.get(name)
    if name in _LOOPS:
        raise InvalidExpression(
            f"no function {name!r} at column {column}: the language has no loops; items[*].id reads from every element"
        )
    if function is None:
        raise InvalidExpression(
            f"unknown function {shorten(name)!r} at column {column}; "
            f"{suggestion(name, FUNCTIONS)}known: {listing(name, FUNCTIONS)}"
        )
    if not function.least <= given <= function.most:
        raise InvalidExpression(f"{name}() takes {function.arity} at column {column}, {given} given")
    return function


def _collection(node: ListOf | ObjectOf) -> Evaluate:
    values = [lower(child) for child in (node.items if isinstance(node, ListOf) else dict(node.members).values())]
    if isinstance(node, ListOf):
        return lambda evaluation: [value(evaluation) for value in values]
    names = list(dict(node.members))
    return lambda evaluation: {name: value(evaluation) for name, value in zip(names, values, strict=True)}


def _unary(node: Not | Negate) -> Evaluate:
    operand = lower(node.operand)
    if isinstance(node, Not):
        return lambda evaluation: not is_true(operand(evaluation))

    def run(evaluation: EvaluationScope) -> Json:
        value = operand(evaluation)
        if not is_number(value):
            raise InvalidExpression(f"cannot negate {kind(value)} at column {node.column}")
        return check_number(-value)

    return run


def _chain(node: Chain) -> Evaluate:
    first = lower(node.first)
    match node.rest[0].operator:
        case "&&":
            return _until(is_false, first, node)
        case "||":
            return _until(is_true, first, node)
        case "??":
            return _until(is_not_null, first, node)
        case _:
            return _fold(first, node)


def _until(settled: Callable[[Json], bool], first: Evaluate, node: Chain) -> Evaluate:
    """The first value that settles the matter, or the last one; what comes after it is not evaluated."""
    rest = [lower(operation.operand) for operation in node.rest]

    def run(evaluation: EvaluationScope) -> Json:
        value = first(evaluation)
        for operand in rest:
            if settled(value):
                break
            value = operand(evaluation)
        return value

    return run


def _fold(first: Evaluate, node: Chain) -> Evaluate:
    rest = [(OPERATORS[each.operator], lower(each.operand), each.column) for each in node.rest]

    def run(evaluation: EvaluationScope) -> Json:
        value = first(evaluation)
        for operator, operand, column in rest:
            right = operand(evaluation)
            try:
                value = operator(value, right, evaluation)
            except InvalidExpression as error:
                raise InvalidExpression(f"{error} at column {column}") from None
        return value

    return run


def _conditional(node: Conditional) -> Evaluate:
    test, then, otherwise = lower(node.test), lower(node.then), lower(node.otherwise)
    return lambda evaluation: then(evaluation) if is_true(test(evaluation)) else otherwise(evaluation)


_CACHED = 1_024


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; immutable, safe to share between threads and tasks. Made by `compile_expression`."""

    source: str
    tree: Node = dataclass_field(repr=False)
    references: frozenset[str]
    """What it reads, as far as that is known without data: dotted paths such as `search_deals.results`. A path ends
    before a place in a list, a computed index, `[*]`, `.length` and a name that could not stand behind a dot."""
    _evaluate: Evaluate = dataclass_field(repr=False, compare=False)

    def evaluate(self, scope: Mapping[str, Json]) -> Json:
        """The value in a scope of JSON values. It may be a part of the scope: do not modify it.

        Raises:
            InvalidExpression: A name, field or element is missing, a value has the wrong kind, or a limit is exceeded.
        """
        return self._evaluate(EvaluationScope(scope))


@lru_cache(_CACHED)
def compile_expression(source: str) -> Expression:
    """Compile one expression, without the marks around it. The last 1,024 are kept.

    Raises:
        InvalidExpression: It is not well formed, calls an unknown function or is too large.
    """
    tree = parse(source)
    return Expression(source, tree, frozenset(_references(tree)), lower(tree))


def reference_of(path: PathExpression) -> str | None:
    """What a path reads, as `Expression.references` has it; null for one that does not begin with a name."""
    if not isinstance(path.root, Name):
        return None
    return ".".join((path.root.name, *_static_names(path.steps)))


def _references(tree: Node) -> Iterator[str]:
    parts: list[Part] = [tree]
    while parts:
        part = parts.pop()
        if isinstance(part, Name):
            yield part.name
        elif isinstance(part, PathExpression) and (reference := reference_of(part)) is not None:
            yield reference
            parts.extend(child for child in part.children if child is not part.root)
        else:
            parts.extend(part.children)


def _static_names(steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        name = step.name if isinstance(step, FieldAccess) else _literal_name(step.index)
        if name is None or name == "length":
            return
        yield name


def _literal_name(index: Node) -> str | None:
    value = index.value if isinstance(index, Constant) else None
    return value if isinstance(value, str) and value.isidentifier() else None
