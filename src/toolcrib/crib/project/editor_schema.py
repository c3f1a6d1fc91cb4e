"""The JSON Schema of a project's documents, for completion and checks in editors."""

from typing import Any, Final

from pydantic import TypeAdapter

from toolcrib.contracts import JsonSchema, VersionLife
from toolcrib.contracts.schemas import DIALECT, describe_fields
from toolcrib.crib.project.documents import SHAPE_OF, TOOL_KINDS

SCHEMA_FILE: Final = ".toolcrib/project.schema.json"
"""Where a project has it, relative to its root."""


def project_schema() -> JsonSchema:
    """One schema for documents of all kinds: `kind` says which of them applies.

    Example:
        from toolcrib.crib.project import project_schema

        print(len(project_schema()["oneOf"]))
    """
    definitions: dict[str, Any] = {}
    choices: list[JsonSchema] = []
    for kind, shape in SHAPE_OF.items():
        schema = TypeAdapter(shape).json_schema(mode="validation", ref_template="#/$defs/{model}")
        describe_fields(shape.__name__, schema)
        definitions |= schema.pop("$defs", {})
        properties: dict[str, Any] = {"kind": {"const": kind}, **schema.get("properties", {})}
        if kind == "agent":  # a tool without a priority is written as its reference alone
            tools = properties["tools"]
            tools["items"] = {"anyOf": [{"type": "string"}, tools["items"]]}
        if kind in TOOL_KINDS:
            life = TypeAdapter(VersionLife).json_schema(ref_template="#/$defs/{model}")
            definitions |= life.pop("$defs", {})
            properties["life_cycle"] = {**life, "required": ["status"]}
        others = [name for name in schema.get("required", []) if name != "name"]
        choices.append({**schema, "properties": properties, "title": kind, "required": ["kind", "name", *others]})
    return {
        "$schema": DIALECT,
        "title": "Toolcrib project document",
        "oneOf": choices,
        "discriminator": {"propertyName": "kind"},
        "$defs": definitions,
    }
