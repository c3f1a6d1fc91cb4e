"""The checks of an entity tool when it is saved. They do not access the database."""

from collections.abc import Iterator

from toolcrib.contracts import InvalidDefinition, ToolDefinition
from toolcrib.kinds.entity.shape import ROW_VERSION, EntityImplementation


def check_entity(definition: ToolDefinition, entity: EntityImplementation) -> None:
    """Refuse an operation that could not be called.

    Raises:
        InvalidDefinition: Names the tool, the field, what is wrong and what to do.
    """
    problem = next(_problems(definition, entity), None)
    if problem is not None:
        raise InvalidDefinition(f"tool {definition.name!r}: {problem}")


def _problems(definition: ToolDefinition, entity: EntityImplementation) -> Iterator[str]:
    version = entity.version_field
    known = {*entity.columns, ROW_VERSION}
    unknown = next((name for name in (*entity.key, version or ROW_VERSION) if name not in known), None)
    if unknown is not None:
        yield f"{unknown!r} is not among its columns; add it to them, or correct the key or version_field"
    arrays = [name for name, column in entity.columns.items() if (column.type == "array") != (column.items is not None)]
    if arrays:
        yield f"column {arrays[0]!r} needs items if it is an array, and has none otherwise"
    if not entity.key and entity.operation not in {"search", "count"}:
        yield f"the operation {entity.operation!r} needs a key, by which a row is named; add the fields of the key"
    writes = entity.operation in {"create", "update", "delete"}
    if writes != (definition.side_effects == "writes"):
        yield f"the operation {entity.operation!r} {'writes' if writes else 'reads'}; set side_effects to that"
    if entity.operation in {"get", "update", "delete"}:
        version_names = () if version is None or entity.operation == "get" else (version,)
        required: list[str] = definition.input_schema.get("required", [])
        missing = next((name for name in (*entity.key, *version_names) if name not in required), None)
        if missing is not None:
            yield f"the operation {entity.operation!r} needs the argument {missing!r}; require it in input_schema"
