"""The OpenAPI document describes the CRM, all of it and nothing else."""

import re
from collections.abc import Generator
from typing import Any, cast

import jsonschema_rs
import pytest

from examples.crm.app import MAX_BODY
from examples.crm.deals import MAX_BATCH
from examples.crm.properties import COMPANIES, CONTACTS, DEALS
from examples.crm.routes import ROUTES
from examples.crm.search import DEFAULT_LIMIT, MAX_FILTERS, MAX_GROUPS, MAX_LIMIT, MAX_VALUES, Operator
from tests.unit.examples_crm.crm_client import DOCUMENT, Crm, resolve

pytestmark = pytest.mark.requirement("crm.document_matches")

METHODS = ("get", "post", "put", "patch", "delete")
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def operations() -> Generator[tuple[str, str, dict[str, Any], list[dict[str, Any]]]]:
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS:
            if method in item:
                parameters = [*item.get("parameters", []), *item[method].get("parameters", [])]
                yield method, path, item[method], [resolve(parameter) for parameter in parameters]


def nodes(node: Any) -> Generator[dict[str, Any]]:
    if isinstance(node, dict):
        found = cast("dict[str, Any]", node)
        yield found
        for child in found.values():
            yield from nodes(child)
    elif isinstance(node, list):
        for child in cast("list[Any]", node):
            yield from nodes(child)


def test_it_is_openapi_3_1_without_vendor_extensions() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    assert not [name for node in nodes(DOCUMENT) for name in node if name.startswith("x-")]


def test_every_reference_leads_somewhere_and_every_component_is_used() -> None:
    references = {node["$ref"] for node in nodes(DOCUMENT) if "$ref" in node}
    for reference in references:
        resolve({"$ref": reference})
    kinds = ("parameters", "headers", "responses", "schemas")
    named = {f"#/components/{kind}/{name}" for kind in kinds for name in DOCUMENT["components"][kind]}
    assert references == named


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_schema_is_valid_json_schema_2020_12(name: str) -> None:
    jsonschema_rs.Draft202012Validator({**SCHEMAS[name], "components": DOCUMENT["components"]})


def test_the_routes_and_the_document_name_the_same_operations() -> None:
    documented = {
        (entry["operationId"], method.upper(), re.sub(r"\{\w+\}", "{object_id}", path))
        for method, path, entry, _ in operations()
    }
    assert documented == {(route.operation_id, route.method, route.path) for route in ROUTES}
    assert len(documented) == len(ROUTES)


def test_every_operation_is_described_and_promises_the_common_errors() -> None:
    for _, path, entry, parameters in operations():
        assert entry["summary"], path
        assert entry["description"], path
        assert {"401", "413", "429", "500"} <= entry["responses"].keys(), path
        in_path = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))


def test_exactly_the_writes_declare_an_idempotency_key() -> None:
    declared = {
        entry["operationId"]
        for _, _, entry, parameters in operations()
        if any(parameter["name"] == "Idempotency-Key" for parameter in parameters)
    }
    assert declared == {route.operation_id for route in ROUTES if route.writes}


def test_its_names_and_limits_are_those_of_the_code() -> None:
    for prefix, target in (("Deal", DEALS), ("Company", COMPANIES), ("Contact", CONTACTS)):
        assert SCHEMAS[f"{prefix}PropertyName"]["enum"] == list(target.properties)
        search = SCHEMAS[f"{prefix}Search"]["properties"]
        assert search["filter_groups"]["maxItems"] == MAX_GROUPS
        assert search["filter_groups"]["items"]["properties"]["filters"]["maxItems"] == MAX_FILTERS
        assert search["properties"]["maxItems"] == len(target.properties)
    assert list(SCHEMAS["DealProperties"]["properties"]) == list(DEALS.properties)
    writable = [name for name, entry in DEALS.properties.items() if entry.writable]
    assert list(SCHEMAS["DealInput"]["properties"]) == writable
    assert SCHEMAS["Operator"]["enum"] == [operator.value for operator in Operator]
    assert SCHEMAS["FilterValues"]["maxItems"] == MAX_VALUES
    assert (SCHEMAS["Limit"]["maximum"], SCHEMAS["Limit"]["default"]) == (MAX_LIMIT, DEFAULT_LIMIT)
    assert SCHEMAS["DealBatch"]["properties"]["inputs"]["maxItems"] == MAX_BATCH
    assert MAX_BODY == 1024 * 1024


@pytest.mark.requirement("crm.document_served")
async def test_it_is_served_to_everybody_with_the_real_address(crm: Crm) -> None:
    async with crm.client.get("/openapi.json") as response:
        served = await response.json()
    assert served == {**DOCUMENT, "servers": [{"url": str(crm.client.make_url("")).rstrip("/")}]}
