"""The base class of implementations: the shapes of the kinds of tools."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, ClassVar, Final, Literal, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from toolcrib.contracts.base.base import Contract, JsonObject

KINDS_TABLE: Final = "toolcrib.kinds.table"
"""The module that names all kinds of tools. It is above this package: it is loaded when the union is first needed."""

DELEGATES: Final[frozenset[Literal["agent", "agentic", "code", "composite", "workflow"]]] = frozenset(
    {"agent", "agentic", "code", "composite", "workflow"}
)
"""Kinds whose call is a nested run, which calls other tools."""


class Implementation(Contract):
    """The implementation of a tool. Each kind of tool has one subclass, its shape, with its own `kind`.

    As the type of a field it is the union of all shapes, tagged by `kind`. The executor knows none of them: what it
    needs to know of a kind is said by the members of this class.
    """

    kind: Any  # a Literal in each shape

    has_outside_text: ClassVar[bool] = False
    """Whether outsiders can write what a tool of this kind returns, unless its definition says otherwise."""

    is_agent: ClassVar[bool] = False
    """Whether a tool of this kind is an agent, here or of another system, which an agent can have as a delegate."""

    @property
    def provider_name(self) -> str | None:
        """Name of the provider through which calls reach another system; null if there is none."""
        return None

    @property
    def callees(self) -> tuple[str, ...]:
        """References to the tools that a call may call, or may let a model call, in their order."""
        return ()

    def arguments_for(self, names_it: Callable[[str], bool]) -> Sequence[Mapping[str, Any] | None]:
        """The arguments that are always sent to a tool: one mapping per call, null where only the call shows them.

        Args:
            names_it: Whether a reference means the tool.
        """
        del names_it
        return ()

    @property
    def call_quota(self) -> int | None:
        """How many calls of other tools one run may make, if the shape itself says so."""
        return None

    def deletes(self, arguments: Mapping[str, Any]) -> bool | None:
        """Whether a call with these arguments deletes something; null if unknown."""
        del arguments
        return None

    def client_operation(self) -> JsonObject | None:
        """The operation as a client performs it, without credentials; null if only the runtime can prepare it."""
        return None

    def content(self) -> JsonObject:
        """What a content hash is made of: the fields that are not at their defaults, and the kind."""
        return {**self.model_dump(mode="json", exclude_defaults=True), "kind": self.kind}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        """The union of all shapes for this class itself, the usual schema for a shape."""
        if cls is not Implementation:
            return handler(source)
        shapes: tuple[type[Implementation], ...] = import_module(KINDS_TABLE).SHAPES
        return handler.generate_schema(Annotated[Union[shapes], Field(discriminator="kind")])  # noqa: UP007 - of a tuple, which has no `|`
