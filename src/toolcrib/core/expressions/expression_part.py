"""One compiled expression: what it says, what it reads, and its value in a scope."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from toolcrib.contracts import Json
from toolcrib.core.expressions.evaluation import Evaluate, Evaluation
from toolcrib.core.expressions.expression import lower
from toolcrib.core.expressions.parser import parse
from toolcrib.core.expressions.syntax import Constant, Field, Name, Node, Part, Path, Step

_CACHED = 1_024


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; immutable, safe to share between threads and tasks. Made by `compile_expression`."""

    source: str
    tree: Node = field(repr=False)
    references: frozenset[str]
    """What it reads, as far as that is known without data: dotted paths such as `search_deals.results`. A path ends
    before a place in a list, a computed index, `[*]`, `.length` and a name that could not stand behind a dot."""
    _evaluate: Evaluate = field(repr=False, compare=False)

    def evaluate(self, scope: Mapping[str, Json]) -> Json:
        """The value in a scope of JSON values. It may be a part of the scope: do not modify it.

        Raises:
            InvalidExpression: A name, field or element is missing, a value has the wrong kind, or a limit is exceeded.
        """
        return self._evaluate(Evaluation(scope))


@lru_cache(_CACHED)
def compile_expression(source: str) -> Expression:
    """Compile one expression, without the marks around it. The last 1,024 are kept.

    Raises:
        InvalidExpression: It is not well formed, calls an unknown function or is too large.
    """
    tree = parse(source)
    return Expression(source, tree, frozenset(_references(tree)), lower(tree))


def reference_of(path: Path) -> str | None:
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
        elif isinstance(part, Path) and (reference := reference_of(part)) is not None:
            yield reference
            parts.extend(child for child in part.children if child is not part.root)
        else:
            parts.extend(part.children)


def _static_names(steps: tuple[Step, ...]) -> Iterator[str]:
    for step in steps:
        name = step.name if isinstance(step, Field) else _literal_name(step.index)
        if name is None or name == "length":
            return
        yield name


def _literal_name(index: Node) -> str | None:
    value = index.value if isinstance(index, Constant) else None
    return value if isinstance(value, str) and value.isidentifier() else None
