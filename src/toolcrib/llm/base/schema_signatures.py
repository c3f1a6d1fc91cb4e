"""Short signatures of JSON Schemas for prompts, in TypeScript notation.

`{company: string (part of its name), stage?: "new" | "won", limit?: integer = 20}` needs a third of the schema's
tokens. Patterns, lengths and bounds are left out; the schema itself decides what is valid.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from toolcrib.llm.base.json_values import arr, follow_references, obj, text

_ANY = "any"
_DEEPEST = 4


def signature(schema: Mapping[str, Any]) -> str:
    """The signature of a schema. References inside the schema are followed; one that comes back to itself is `any`."""
    return _Signatures(dict(schema)).of(schema, 0)


class _Signatures:
    """The signatures of one schema and its parts."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root

    def of(self, value: Any, depth: int) -> str:
        schema = follow_references(self._root, value)
        if depth > _DEEPEST:
            return _ANY
        if "const" in schema:
            return _literal(schema["const"])
        if "enum" in schema:
            return " | ".join(_literal(item) for item in arr(schema["enum"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return " | ".join(dict.fromkeys(self.of(branch, depth + 1) for branch in arr(schema[keyword])))
        if "allOf" in schema:
            return " & ".join(dict.fromkeys(self.of(branch, depth + 1) for branch in arr(schema["allOf"])))
        kinds = arr(schema.get("type")) or [text(schema.get("type")) or ("object" if "properties" in schema else "")]
        return " | ".join(self._kind(kind, schema, depth) for kind in kinds)

    def _kind(self, kind: Any, schema: dict[str, Any], depth: int) -> str:
        match kind:
            case "object" if obj(schema.get("properties")):
                return self._object(schema, depth)
            case "object":
                return "object"
            case "array":
                items = self.of(schema.get("items"), depth + 1)
                return f"({items})[]" if " | " in items else f"{items}[]"
            case "string":
                return text(schema.get("format")) or "string"
            case _:
                return text(kind) or _ANY

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        required = arr(schema.get("required"))
        fields = [
            self._field(name, obj(part), optional=name not in required, depth=depth)
            for name, part in obj(schema["properties"]).items()
        ]
        return f"{{{', '.join(fields)}}}"

    def _field(self, name: str, schema: dict[str, Any], *, optional: bool, depth: int) -> str:
        default = schema.get("default")
        standard = "" if default is None else f" = {_literal(default)}"
        about = " ".join(text(schema.get("description")).split())
        note = f" ({about})" if about else ""
        return f"{name}{'?' if optional else ''}: {self.of(schema, depth + 1)}{standard}{note}"


def _literal(value: Any) -> str:
    return orjson.dumps(value).decode()
