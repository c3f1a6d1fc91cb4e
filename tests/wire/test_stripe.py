"""Requests of Stripe's tools against Stripe's own document: forms, deepObject, lists in brackets.

Stripe's document does not start in the mock server. So what would be sent is read back by an independent decoder of
bracketed names and held against the arguments, and the arguments against the document's own schemas, not against what
our importer has made of them.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import jsonschema_rs
import orjson
import pytest

from tests.wire.arguments import arguments
from toolcrib.contracts import Json, JsonObject, ToolDefinition
from toolcrib.core.providers import Credentials
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.runtime.requests import Target, build_request
from toolcrib.kinds.http.shape import HttpImplementation

FILE = Path(__file__).parents[3] / "shared" / "data" / "openapi" / "stripe_2022-11-15.json"
SAMPLED = 80
FORM = "application/x-www-form-urlencoded"

pytestmark = [
    pytest.mark.requirement("providers.requests_are_valid"),
    pytest.mark.skipif(not FILE.is_file(), reason=f"Stripe's document is not at {FILE}"),
]


def decoded(text: str) -> JsonObject:
    """A form or a query as nested objects: `a[b][0]=c` is `{"a": {"b": {"0": "c"}}}`."""
    found: JsonObject = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        keys = [name.partition("[")[0], *re.findall(r"\[([^\]]*)\]", name)]
        inner = found
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        assert keys[-1] not in inner, f"{name} is there twice"
        inner[keys[-1]] = value
    return found


def flat(value: Json) -> Any:
    """A value as a form can say it: text, lists by position, and nothing that is empty."""
    if isinstance(value, list):
        return flat({str(index): member for index, member in enumerate(cast("list[Json]", value))})
    if isinstance(value, dict):
        pairs = ((name, flat(member)) for name, member in cast("JsonObject", value).items())
        return {name: member for name, member in pairs if member not in ({}, None)}
    return value if isinstance(value, str | None) else orjson.dumps(value).decode()


def check(tools: Iterable[tuple[ToolDefinition, Any]], document: Any, seeds: Sequence[int]) -> int:
    """Hold what tools would send against arguments and document; returns the number of requests."""
    count = 0
    for tool, operation in tools:
        made = cast("HttpImplementation", tool.implementation)
        target = Target(tool, made, made.url, {}, "key")
        forms = operation.get("requestBody", {}).get("content", {}).get(FORM, {}).get("schema")
        own = None if forms is None else {**forms, "components": document["components"]}
        validator = None if own is None else jsonschema_rs.Draft202012Validator(own)
        for seed in seeds:
            given = arguments(tool.input_schema, seed)
            request = build_request(target, given, Credentials())
            query = {p.name: given[p.argument] for p in made.parameters if p.place == "query" and p.argument in given}
            assert decoded(urlsplit(request.url).query) == flat(query), (tool.name, given)
            if made.body is not None and made.body.encoding == "form" and validator is not None:
                body = {name: given[argument] for argument, name in made.body.fields.items() if argument in given}
                assert [str(error) for error in validator.iter_errors(body)] == [], (tool.name, body)
                assert decoded((request.body or b"").decode("ascii")) == flat(body), (tool.name, body)
            count += 1
    return count


def tools_of(document: Any) -> list[tuple[ToolDefinition, Any]]:
    """Every tool with the operation that it was made of."""
    imported = import_openapi(document, name="stripe")
    by_name = {tool.name: tool for tool in imported.tools}
    found: list[tuple[ToolDefinition, Any]] = []
    for entry in imported.report.operations:
        method, path = entry.operation.split(" ", 1)
        found.append((by_name[str(entry.tool)], document["paths"][path][method.lower()]))
    return found


@pytest.mark.slow
def test_sampled_requests_say_what_stripes_document_wants() -> None:
    document = orjson.loads(FILE.read_bytes())
    tools = tools_of(document)
    assert check(tools[:: len(tools) // SAMPLED], document, (0, 1)) >= 2 * SAMPLED


@pytest.mark.soak
def test_all_requests_say_what_stripes_document_wants() -> None:
    document = orjson.loads(FILE.read_bytes())
    assert check(tools_of(document), document, range(4)) > 1_000
