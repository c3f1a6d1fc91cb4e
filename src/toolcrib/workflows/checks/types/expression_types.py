"""The type of an expression, and reads of members that cannot exist.

The expression's tree is walked once, and nothing is evaluated. A path into a value of unknown type can be anything; a
path to a member that the schema does not have is reported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, assert_never

from toolcrib.core.expressions.expression import reference_of
from toolcrib.core.expressions.syntax import (
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
    PathExpression,
    Step,
)
from toolcrib.core.registry.schema.value_facts import NUMBERS
from toolcrib.workflows.checks.types.value_types import (
    ANYTHING,
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Form,
    Made,
    Shape,
    constant,
    is_only,
    items_in,
    kinds_in,
    list_shape,
    object_shape,
    of_kinds,
    or_null,
    spoken,
    union_of,
)

_GIVES: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("contains", "includes", "startsWith", "endsWith"), BOOLEAN),
    **dict.fromkeys(("indexOf", "len", "length", "size", "int", "ceil", "floor"), INTEGER),
    **dict.fromkeys(("abs", "number", "round", "sum"), NUMBER),
    **dict.fromkeys(
        ("join", "json", "lower", "replace", "string", "toLowerCase", "toUpperCase", "trim", "type", "upper"), STRING
    ),
    "keys": list_shape(STRING),
    "split": list_shape(STRING),
    **dict.fromkeys(("unique", "values"), list_shape(ANYTHING)),
    "slice": of_kinds("array", "string"),
    **dict.fromkeys(("max", "min"), of_kinds("string", *NUMBERS)),
}
"""What functions give; of those that are not here, anything."""
_EITHER: Final = frozenset({"&&", "||", "??"})
_ARITHMETIC: Final = frozenset({"-", "*", "/", "%"})
_SIZED: Final = frozenset({"array", "string", "object"})


class ExpressionProblem(NamedTuple):
    """One thing that is wrong with an expression."""

    message: str
    suggestion: str | None = None
    is_error: bool = True
    reference: str | None = None
    """What is read, if that is what is wrong."""


@dataclass(slots=True)
class Reader:
    """Walks the tree of one expression.

    Args:
        names: What a name stands for; null if it is not known.
        near: What may have been meant by a name, of those that there are.
        text: The expression, for messages.
    """

    names: Callable[[str], Shape | None]
    near: Callable[[str, Iterable[str]], str | None]
    text: str
    may_lack_input: bool = True
    """Whether a member of `input` that need not be given may be missing here."""
    found: list[ExpressionProblem] = field(default_factory=list[ExpressionProblem])
    _reference: str | None = None
    """What is read at the moment."""
    _guards: int = 0
    """How many conditions stand around: what is read there may have been looked at before."""

    def shape(self, node: Node) -> Shape:
        """What a part of the expression gives."""
        match node:
            case Constant(value=value):
                return constant(value)
            case Name(name=name):
                return self.names(name) or ANYTHING
            case PathExpression():
                return self._path(node)
            case FunctionCall():
                return self._call(node)
            case ListOf(items=items):
                return list_shape(union_of([self.shape(item) for item in items]))
            case ObjectOf(members=members):
                return object_shape({name: self.shape(value) for name, value in members})
            case Not(operand=operand) | Negate(operand=operand):
                self.shape(operand)
                return BOOLEAN if isinstance(node, Not) else NUMBER
            case Chain():
                return self._chain(node)
            case Conditional(test=test, then=then, otherwise=otherwise):
                self.shape(test)
                return union_of([self._shape_under_guard(then), self._shape_under_guard(otherwise)])
            case _:
                assert_never(node)

    def _shape_under_guard(self, node: Node) -> Shape:
        self._guards += 1
        try:
            return self.shape(node)
        finally:
            self._guards -= 1

    def _call(self, node: FunctionCall) -> Shape:
        given = [self.shape(argument) for argument in node.arguments]
        if node.function == "default":
            shape = union_of([_without_null(given[0]), given[1]])
        elif node.function in {"first", "last"}:
            shape = items_in(given[0]) if is_only(kinds_in(given[0]), "array") else ANYTHING
        else:
            shape = _GIVES.get(node.function, ANYTHING)
        return or_null(shape) if node.optional else shape

    def _chain(self, node: Chain) -> Shape:
        operators = {operation.operator for operation in node.rest}
        first = self.shape(node.first)
        if operators & _EITHER:
            rest = [self._shape_under_guard(operation.operand) for operation in node.rest]
            return union_of([_without_null(first) if operators == {"??"} else first, *rest])
        rest = [self.shape(operation.operand) for operation in node.rest]
        if operators <= _ARITHMETIC:
            return NUMBER
        if "+" in operators:
            kinds = [kinds_in(operand) for operand in (first, *rest)]
            if any(is_only(kind, "string") for kind in kinds):
                return STRING
            return NUMBER if all(kind <= NUMBERS for kind in kinds) else ANYTHING
        return ANYTHING if operators & _ARITHMETIC else BOOLEAN

    # Paths ------------------------------------------------------------------------------------------------------------

    def _path(self, node: PathExpression) -> Shape:
        around, self._reference = self._reference, reference_of(node)
        shape = self.shape(node.root)
        if isinstance(node.root, Name) and node.root.name == "input":
            self._look_for_absent(shape, node.steps)
        read = self._each(self._steps(shape, node.steps), node.projections)
        self._reference = around
        return read

    def _look_for_absent(self, shape: Shape, steps: Sequence[Step]) -> None:
        """Whoever starts a workflow need not give what its schema neither requires nor has a default for."""
        step = next(iter(steps), None)
        if not isinstance(step, FieldAccess) or step.optional or self._guards or not self.may_lack_input:
            return
        forms = [form for form in shape if "object" in form.kinds and step.name in form.names]
        if any(step.name not in form.required for form in forms):
            self._tell(
                f"{self.text} has no value if {step.name!r} is not given",
                f"write input?.{step.name}, or give it a default",
                is_error=False,
            )

    def _each(self, shape: Shape, projections: Sequence[Each]) -> Shape:
        """A projection reads from every element, and puts the lists of the next one into one."""
        if not projections:
            return shape
        if shape and "array" not in kinds_in(shape):
            self._tell(f"{self.text} reads every element of {spoken(shape)}, which has no elements")
            return list_shape(ANYTHING)
        elements = self._steps(items_in(shape), projections[0].steps)
        if len(projections) == 1:
            return list_shape(elements)
        return self._each(elements, projections[1:])

    def _steps(self, shape: Shape, steps: Sequence[Step]) -> Shape:
        optional = False
        for step in steps:
            optional = optional or step.optional
            shape = self._field(shape, step) if isinstance(step, FieldAccess) else self._index(shape, step)
        return or_null(shape) if optional and "null" not in kinds_in(shape) else shape

    def _index(self, shape: Shape, step: Index) -> Shape:
        self.shape(step.index)
        if isinstance(step.index, Constant) and isinstance(step.index.value, str):
            return self._field(shape, FieldAccess(step.index.value, step.column, step.optional))
        self._look_for_null(shape, step)
        kinds = kinds_in(shape)
        place = step.index.value if isinstance(step.index, Constant) else None
        if kinds and not kinds & _SIZED and not step.optional:
            self._tell(f"{self.text} reads an element of {spoken(shape)}, which has no elements")
        if not is_only(kinds - {"null"}, "array"):
            return ANYTHING
        return union_of(form.item(place if isinstance(place, int) else None) for form in shape if "array" in form.kinds)

    def _field(self, shape: Shape, step: FieldAccess) -> Shape:
        self._look_for_null(shape, step)
        found = [member for form in shape if (member := _member(form, step.name)) is not None]
        if found or not shape:
            return union_of(found) if found else ANYTHING
        objects = [form for form in shape if "object" in form.kinds]
        if objects:
            known = dict.fromkeys(name for form in objects for name in form.names)
            message = f"{self.text} reads {step.name!r}, which its source does not have"
            self._tell(message, self.near(step.name, known), is_error=not step.optional)
        elif not step.optional or not is_only(kinds_in(shape), "null"):
            lists = "array" in kinds_in(shape)
            hint = f"read it from each element: [*].{step.name}" if lists else None
            message = f"{self.text} reads {step.name!r} of {spoken(shape)}, which has no fields"
            self._tell(message, hint, is_error=not step.optional)
        return ANYTHING

    def _look_for_null(self, shape: Shape, step: Step) -> None:
        why = next((form.why_null for form in shape if form.why_null is not None), None)
        if why is None or step.optional or self._guards:
            return
        self._tell(f"{self.text} has no value if {why}", "write ?. to get null then", is_error=False)

    def _tell(self, message: str, suggestion: str | None = None, *, is_error: bool = True) -> None:
        finding = ExpressionProblem(message, suggestion, is_error, self._reference)
        if finding not in self.found:
            self.found.append(finding)


def _member(form: Form, name: str) -> Shape | None:
    """What a form gives for a field; null if it certainly gives nothing."""
    found = form.member(name) if "object" in form.kinds else None
    if name != "length" or not form.kinds & _SIZED or name in form.names:
        return found
    return INTEGER if found is None else union_of([found, INTEGER])


def _without_null(shape: Shape) -> Shape:
    kept = (form for form in shape if not is_only(form.kinds, "null"))
    return tuple(form if form.kinds & {"object", "array"} else _bare(form) for form in kept) or ANYTHING


def _bare(form: Form) -> Form:
    """A scalar that is not null."""
    return Made(form.kinds - {"null"}, form.values)
