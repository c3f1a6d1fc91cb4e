"""The compiled schemas of tools, at hand by content hash, which names a definition's content for ever."""

from typing import NamedTuple

from toolcrib.contracts import ToolRevision
from toolcrib.core.registry import SchemaValidator, compile_schema

_MOST = 4096


class Schemas(NamedTuple):
    """What one definition promises."""

    input: SchemaValidator
    output: SchemaValidator | None


class CompiledSchemas:
    """Compiles once per definition; making a key of the schema itself would cost more than the validation."""

    def __init__(self) -> None:
        self._known: dict[str, Schemas] = {}

    def of(self, tool: ToolRevision) -> Schemas:
        """The schemas of a revision.

        Raises:
            InvalidDefinition: One of them is not a schema.
        """
        known = self._known.get(tool.content_hash)
        if known is None:
            promised = tool.definition.output_schema
            output = None if promised is None else compile_schema(promised)
            known = Schemas(compile_schema(tool.definition.input_schema), output)
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[tool.content_hash] = known
        return known
