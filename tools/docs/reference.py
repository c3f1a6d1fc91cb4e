"""The references that are made from code: REST, contracts, errors and decision records."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from toolcrib import Crib
from toolcrib.contracts import MODEL_ERROR_KINDS, Principal, ToolcribError
from toolcrib.contracts.base.errors import RETRYABLE_MODEL_ERRORS, ErrorCode, Reason
from toolcrib.contracts.runs.runs import StopReason
from toolcrib.interfaces.server import create_app

Schema = dict[str, Any]
WHOLE: Final = ("cli.json", "project.json")
"""Schemas of whole formats: what commands print, and the documents of a project. They have pages of their own."""
MADE: Final = "This page is made from the code."


def rest_page() -> str:
    """Every route with its parameters, body and answers."""
    document = rest_document()
    by_tag: dict[str, list[tuple[str, str, Schema]]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            by_tag[(operation.get("tags") or ["other"])[0]].append((method.upper(), path, operation))
    lines = ["# REST", "", f"{MADE} The server shows the same at `/docs`, and as OpenAPI at `/openapi.json`.", ""]
    for tag, operations in by_tag.items():
        lines += [f"## {tag.capitalize()}", ""]
        for method, path, operation in operations:
            lines += [f"### `{method} {path}`", "", *_operation(document, operation)]
    return "\n".join(lines) + "\n"


def rest_document() -> Schema:
    """The OpenAPI document of the server."""

    async def authenticate(_: str) -> Principal:
        return Principal(id="reader")

    return create_app(Crib("memory://"), authenticate).openapi()


def _operation(document: Schema, operation: Schema) -> Iterator[str]:
    yield from [_escape(operation.get("description") or operation.get("summary") or ""), ""]
    parameters = [_resolve(document, each) for each in operation.get("parameters", [])]
    body = operation.get("requestBody")
    if parameters or body:
        yield from ["| parameter | in | type | is |", "|---|---|---|---|"]
    for each in parameters:
        needed = " Required." if each.get("required") and each["in"] != "path" else ""
        kind = type_of(each.get("schema", {}))
        yield f"| `{each['name']}` | {each['in']} | {_cell(kind)} | {_cell(each.get('description', ''))}{needed} |"
    if body:
        yield from _body_rows(document, body)
    answers = [f"{status} {_answer(each)}".strip() for status, each in operation["responses"].items() if status < "4"]
    yield from ["", f"Answers: {', '.join(answers)}.", ""]


def _body_rows(document: Schema, body: Schema) -> Iterator[str]:
    contents: list[Schema] = list(body["content"].values())
    schema: Schema = contents[0].get("schema", {}) if contents else {}
    resolved = _resolve(document, schema)
    for name, field in resolved.get("properties", {}).items():
        needed = " Required." if name in resolved.get("required", ()) else ""
        yield f"| `{name}` | body | {_cell(type_of(field))} | {_cell(field.get('description', ''))}{needed} |"
    if not resolved.get("properties"):
        yield f"| | body | {_cell(type_of(schema))} | |"


def _resolve(document: Schema, schema: Schema) -> Schema:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    kind, name = reference.split("/")[-2:]
    return document["components"][kind][name]


def _answer(answer: Schema) -> str:
    content = answer.get("content", {})
    kinds = [type_of(each.get("schema", {})) for each in content.values() if each.get("schema")]
    return f"(`{kinds[0]}`)" if kinds else ""


def type_of(schema: Schema) -> str:
    """A JSON Schema in a few words.

    >>> type_of({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'string or null'
    >>> type_of({"type": "array", "items": {"$ref": "#/$defs/Answer"}})
    'list of Answer'
    """
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(type_of(each) for each in schema[several]))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return ", ".join(json.dumps(each) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    return schema.get("type", "any")


def contract_page(schemas: Path) -> str:
    """Every contract with its fields.

    Args:
        schemas: The folder of the committed JSON Schemas.
    """
    lines = ["# Contracts", "", f"{MADE} `toolcrib schema NAME` prints the JSON Schema of a contract.", ""]
    inner: dict[str, Schema] = {}
    outer: dict[str, tuple[Schema, str]] = {}
    for file in sorted(set(schemas.glob("*.json")) - {schemas / name for name in WHOLE}):
        schema = json.loads(file.read_text(encoding="utf-8"))
        outer[schema.get("title", file.stem)] = schema, f"[JSON Schema](../schemas/{file.name})"
        inner |= schema.get("$defs", {})
    for title, (schema, link) in outer.items():
        lines += _contract(f"## {title}", schema, link)
    lines += ["## Types of fields", ""]
    for name, schema in sorted(inner.items()):
        if schema.get("properties") and name not in outer:
            lines += _contract(f"### {name}", schema, "")
    return "\n".join(lines) + "\n"


def _contract(heading: str, schema: Schema, link: str) -> Iterator[str]:
    yield from [heading, "", _escape(_paragraph(schema.get("description", ""))), "", link, ""]
    yield from _fields(schema)


def _fields(schema: Schema) -> Iterator[str]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if not properties:
        return
    yield from ["| field | type | default | is |", "|---|---|---|---|"]
    for name, field in properties.items():
        default = "required" if name in schema.get("required", ()) else f"`{json.dumps(field.get('default'))}`"
        described = _cell(_paragraph(field.get("description", "")))
        yield f"| `{name}` | {_cell(type_of(field))} | {_cell(default)} | {described} |"
    yield ""


def error_page() -> str:
    """Error codes, reasons, exceptions and stop reasons."""
    lines = ["# Errors", "", f"{MADE} [Troubleshooting](../troubleshooting.md) says what to do about each.", ""]
    lines += ["## Codes of failed calls", "", "`error.code` of an envelope or a run.", ""]
    lines += [f"- [`{code}`](../troubleshooting.md#{code.lower()})" for code in ErrorCode]
    lines += ["", "## Reasons", "", '`error.details["reason"]`: the finer cause.', ""]
    lines += [f"- `{reason}`" for reason in Reason]
    lines += ["", "## Exceptions", "", "What the library raises, and what the server answers.", ""]
    lines += ["| exception | code | HTTP status | a retry can help | means |", "|---|---|---|---|---|"]
    for error in exceptions():
        retry = "yes" if error.retryable else "no"
        means = _cell(_paragraph(error.__doc__ or ""))
        lines.append(f"| `{error.__name__}` | `{error.code}` | {error.http_status} | {retry} | {means} |")
    lines += [
        "",
        "## Failures of models",
        "",
        "`kind` of a `ModelError`.",
        "",
        "| kind | is tried again |",
        "|---|---|",
    ]
    lines += [f"| `{kind}` | {'yes' if kind in RETRYABLE_MODEL_ERRORS else 'no'} |" for kind in MODEL_ERROR_KINDS]
    lines += [
        "",
        "## Stop reasons",
        "",
        "Why a run ended or what it waits for: [how runs end](../executions.md#how-runs-end).",
        "",
    ]
    lines += [f"- `{reason}`" for reason in get_args(StopReason)]
    return "\n".join(lines) + "\n"


def exceptions() -> list[type[ToolcribError]]:
    """The exceptions of the contracts, each after its base."""

    def below(error: type[ToolcribError]) -> Iterator[type[ToolcribError]]:
        yield error
        for each in sorted(error.__subclasses__(), key=lambda one: one.__name__):
            if each.__module__.startswith("toolcrib.contracts"):
                yield from below(each)

    return list(below(ToolcribError))


def decision_page(folder: Path) -> str:
    """A list of the decision records with their titles."""
    lines = ["# Decision records", "", "Why things are as they are. Records keep the words of their time.", ""]
    for file in sorted(folder.glob("*.md")):
        title = file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- [{title}](../decisions/{file.name})")
    return "\n".join(lines) + "\n"


def _paragraph(text: str) -> str:
    return " ".join(text.replace("\f", "\n\n").strip().partition("\n\n")[0].split())


def _cell(text: str) -> str:
    return _escape(text).replace("|", "\\|")


def _escape(text: str) -> str:
    """Text with what Markdown and HTML would read in it escaped, outside of code."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()) if "\n\n" not in text else text)
    return "".join(
        p if p.startswith("`") else p.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*") for p in pieces
    )
