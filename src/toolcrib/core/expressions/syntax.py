"""The syntax tree of an expression: immutable data, no behaviour.

Chains of operators of one precedence and chains of accessors are flat, so that the tree is only as deep as the source
is nested. Columns count from 1 within the expression.
"""

from dataclasses import dataclass
from typing import TypeAlias

from toolcrib.contracts import Json


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, string, `true`, `false` or `null`."""

    value: Json

    @property
    def children(self) -> tuple["Part", ...]:
        """Nothing below."""
        return ()


@dataclass(frozen=True, slots=True)
class Name:
    """A name to be found in the scope."""

    name: str
    column: int

    @property
    def children(self) -> tuple["Part", ...]:
        """Nothing below."""
        return ()


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """The accessor `.name` or `?.name`."""

    name: str
    column: int
    optional: bool = False

    @property
    def children(self) -> tuple["Part", ...]:
        """Nothing below."""
        return ()


@dataclass(frozen=True, slots=True)
class Index:
    """The accessor `[index]` or `?.[index]`."""

    index: "Node"
    column: int
    optional: bool = False

    @property
    def children(self) -> tuple["Part", ...]:
        """The index."""
        return (self.index,)


@dataclass(frozen=True, slots=True)
class Each:
    """The projection `[*]` and the accessors that are read from every element."""

    steps: tuple["Step", ...]
    column: int

    @property
    def children(self) -> tuple["Part", ...]:
        """The steps."""
        return self.steps


@dataclass(frozen=True, slots=True)
class PathExpression:
    """A value and the accessors that lead from it, left to right; every `[*]` begins a projection."""

    root: "Node"
    steps: tuple["Step", ...]
    projections: tuple[Each, ...] = ()

    @property
    def children(self) -> tuple["Part", ...]:
        """The root, the steps and the projections."""
        return (self.root, *self.steps, *self.projections)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function: `f(x, y)`, which is the same as `x.f(y)`; `x?.f(y)` is null if `x` is."""

    function: str
    arguments: tuple["Node", ...]
    column: int
    optional: bool = False

    @property
    def children(self) -> tuple["Part", ...]:
        """The arguments."""
        return self.arguments


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal."""

    items: tuple["Node", ...]

    @property
    def children(self) -> tuple["Part", ...]:
        """The items."""
        return self.items


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """An object literal."""

    members: tuple[tuple[str, "Node"], ...]

    @property
    def children(self) -> tuple["Part", ...]:
        """The members' values."""
        return tuple(value for _, value in self.members)


@dataclass(frozen=True, slots=True)
class Not:
    """`!operand`."""

    operand: "Node"

    @property
    def children(self) -> tuple["Part", ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Negate:
    """`-operand`."""

    operand: "Node"
    column: int

    @property
    def children(self) -> tuple["Part", ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class BinaryOperation:
    """The right side of a binary operator within a chain."""

    operator: str
    operand: "Node"
    column: int

    @property
    def children(self) -> tuple["Part", ...]:
        """The operand."""
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one precedence, applied left to right: `a + b - c`, `a && b && c`."""

    first: "Node"
    rest: tuple[BinaryOperation, ...]

    @property
    def children(self) -> tuple["Part", ...]:
        """The first operand and the operations."""
        return (self.first, *self.rest)


@dataclass(frozen=True, slots=True)
class Conditional:
    """`test ? then : otherwise`."""

    test: "Node"
    then: "Node"
    otherwise: "Node"

    @property
    def children(self) -> tuple["Part", ...]:
        """The test and both branches."""
        return (self.test, self.then, self.otherwise)


Step: TypeAlias = FieldAccess | Index
"""One accessor of a path."""

Node: TypeAlias = (
    Constant | Name | PathExpression | FunctionCall | ListOf | ObjectOf | Not | Negate | Chain | Conditional
)
"""What has a value."""

Part: TypeAlias = Node | Step | Each | BinaryOperation
"""Anything that counts towards the size of an expression."""
