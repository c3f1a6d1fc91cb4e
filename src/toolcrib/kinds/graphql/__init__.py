"""Tools of kind `graphql`: root fields of the queries and mutations of a GraphQL API.

Imported by `kinds.table`; other packages import the modules.
"""

from typing import TYPE_CHECKING

from toolcrib.core.kinds import KindSpec
from toolcrib.kinds.graphql.commands import IMPORTERS
from toolcrib.kinds.graphql.shape import GraphqlImplementation

if TYPE_CHECKING:
    from toolcrib.core.kinds import Runtime, RuntimeParts


def _open_runtime(parts: "RuntimeParts") -> "Runtime":
    from toolcrib.kinds.graphql.runtime import GraphqlRuntime

    return GraphqlRuntime(parts.session, parts.access, clock=parts.clock)


KIND = KindSpec(GraphqlImplementation, open_runtime=_open_runtime, importers=IMPORTERS)
