"""JSON Schema as TypeScript types, for the declarations of a prompt.

Descriptions of members become comments. Patterns, lengths and bounds have no types; the schema decides what is valid.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from toolcrib.contracts import Json
from toolcrib.llm.base.json_values import arr, follow_references, obj, text

_RESERVED = re.compile(
    r"await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false|finally|for"
    r"|function|if|import|in|instanceof|let|new|null|return|static|super|switch|this|throw|true|try|typeof|undefined"
    r"|var|void|while|with|yield|None|True|False"
)
"""Words that cannot name a function or a parameter."""
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_DEEPEST = 4
_MOST_PARTS = 300
_LONGEST_NOTE = 160
_SIMPLE: Mapping[str, str] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
}


def is_identifier(name: str) -> bool:
    """Whether a name can stand in a declaration as it is."""
    return _IDENTIFIER.fullmatch(name) is not None and _RESERVED.fullmatch(name) is None


def literal(value: Json) -> str:
    """A JSON value as a literal."""
    return json.dumps(value, ensure_ascii=False)


def to_comment(words: str) -> str:
    """A text that can stand in a comment, on one line."""
    return " ".join(words.replace("*/", "* /").split())


class Types:
    """The types of one schema and its parts.

    Args:
        root: The schema in which references are followed.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = dict(root)
        self._left = _MOST_PARTS

    def follow_references(self, schema: Any) -> dict[str, Any]:
        """The schema that a part means, which may be a reference."""
        return follow_references(self._root, schema)

    def type_of(self, value: Any, depth: int = 0) -> str:
        """The type of a part; `any` beyond four levels, which is also where one that holds itself ends.

        Of a part with hundreds of parts the last are `any` too.
        """
        schema = self.follow_references(value)
        self._left = _MOST_PARTS if depth == 0 else self._left - 1
        if depth > _DEEPEST or self._left < 0:
            return "any"
        if "const" in schema:
            return literal(schema["const"])
        if "enum" in schema:
            return " | ".join(literal(item) for item in arr(schema["enum"])) or "never"
        for keyword, sign in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
            if keyword in schema:
                return sign.join(dict.fromkeys(self.type_of(part, depth + 1) for part in arr(schema[keyword])))
        kinds = arr(schema.get("type")) or [text(schema.get("type")) or ("object" if "properties" in schema else "")]
        return " | ".join(dict.fromkeys(self._kind(text(kind), schema, depth) for kind in kinds))

    def note(self, value: Any) -> str:
        """What is said about a part: its description and its default."""
        schema = self.follow_references(value)
        description = text(obj(value).get("description")) or text(schema.get("description"))
        default = obj(value).get("default", schema.get("default"))
        standard = "" if default is None else f"Default: {literal(default)}."
        return to_comment(f"{description} {standard}")

    def takes_object(self, value: Any) -> bool:
        """Whether a part admits an object."""
        pending, seen = [value], set[str]()
        while pending:
            part = pending.pop()
            reference = text(obj(part).get("$ref"))
            if reference in seen:
                continue
            seen.update(filter(None, (reference,)))
            schema = self.follow_references(part)
            values = [*arr(schema.get("enum")), *([schema["const"]] if "const" in schema else [])]
            branches = [one for keyword in ("anyOf", "oneOf", "allOf") for one in arr(schema.get(keyword))]
            kinds = arr(schema.get("type")) or [schema.get("type")]
            if values:
                found = any(isinstance(item, dict) for item in values)
            else:
                found = not branches and (None in kinds or "object" in kinds)
                pending += branches
            if found:
                return True
        return False

    def _kind(self, kind: str, schema: dict[str, Any], depth: int) -> str:
        match kind:
            case "object" if obj(schema.get("properties")):
                return self._object(schema, depth)
            case "object":
                return "object"
            case "array":
                items = self.type_of(schema.get("items"), depth + 1)
                return f"({items})[]" if " " in items and not items.startswith("{") else f"{items}[]"
            case _:
                return _SIMPLE.get(kind, "any")

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        required = arr(schema.get("required"))
        return f"{{{', '.join(self._member(*item, required, depth) for item in obj(schema['properties']).items())}}}"

    def _member(self, name: str, schema: Any, required: list[Any], depth: int) -> str:
        note = self.note(schema)
        about = f" /* {note[:_LONGEST_NOTE]} */" if note else ""
        shown = name if is_identifier(name) else literal(name)
        return f"{shown}{'' if name in required else '?'}: {self.type_of(schema, depth + 1)}{about}"
