"""The shape of a GraphQL tool: a query or mutation of a GraphQL server."""

from typing import Literal, TypeAlias

from pydantic import Field

from toolcrib.contracts.base.implementations import Implementation

GraphqlOperation: TypeAlias = Literal["query", "mutation"]


class GraphqlImplementation(Implementation):
    """One named operation. Address and credentials come from its provider; the tool's arguments are its variables."""

    kind: Literal["graphql"] = "graphql"
    has_outside_text = True

    provider: str
    document: str = Field(min_length=1, max_length=1_000_000)
    """The GraphQL text that is sent: one operation, and the fragments that it uses."""
    operation_name: str = Field(pattern=r"^[_A-Za-z][_0-9A-Za-z]*$")
    """Name of the operation in the document."""
    operation: GraphqlOperation = "query"
    root_field: str
    """Name of the field of the schema's query or mutation type that the operation asks for."""
    output_key: str | None = None
    """Key in `data` under which the output is; null if all of `data` is the output."""

    @property
    def provider_name(self) -> str:
        """Name of the provider, the GraphQL API."""
        return self.provider
