"""The shape of a composite tool: one schema for several operations, and the rules that choose one of them.

Example:
    routes = [
        CompositeRoute(id="acme", when="${input.company == 'Acme'}", tool="search_deals"),
        CompositeRoute(id="others", tool="search_deals", input={"company": "${input.company}"}),
    ]
    schema = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
    find = crib.composite_tool("find", input_schema=schema, routes=routes)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from toolcrib.contracts.base.base import Contract, JsonObject
from toolcrib.contracts.base.implementations import Implementation


class CompositeRoute(Contract):
    """One operation and when it is the right one."""

    id: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Unique in the tool; the journal and the envelope name it."""
    when: str | None = None
    """Expression over `input`: `${input.kind == 'deal'}`. Null: whenever no route before it is taken."""
    tool: str
    """`name` or `name@range`."""
    input: JsonObject | None = None
    """The operation's arguments: JSON with `${…}` over `input`; arguments that come out as null and that the operation
    does not take as null are left out. Null: the composite's own arguments, as far as the operation has them."""
    defaults: JsonObject = Field(default_factory=dict)
    """Arguments of the operation where `input` gives none."""
    output: str | None = None
    """Expression over `input` and `output` that makes the composite's output; null for the operation's own."""


class CompositeImplementation(Implementation):
    """Routes in order: the first whose condition holds is taken. If none is, the call fails and names them."""

    kind: Literal["composite"] = "composite"
    routes: tuple[CompositeRoute, ...] = Field(min_length=1)

    @property
    def callees(self) -> tuple[str, ...]:
        """The operations, by route."""
        return tuple(route.tool for route in self.routes)

    def arguments_for(self, names_it: Callable[[str], bool]) -> Sequence[Mapping[str, Any] | None]:
        """The arguments of each route that leads to the tool, if the route lists them."""
        routes = [route for route in self.routes if names_it(route.tool)]
        return [None if route.input is None else {**route.defaults, **route.input} for route in routes]
