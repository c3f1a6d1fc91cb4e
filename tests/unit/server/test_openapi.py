"""The OpenAPI document: valid, listed operation by operation, with every response, event and example."""

import difflib
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.unit.server.client import Server, documented_statuses
from toolcrib.contracts import JsonObject, ToolcribError
from toolcrib.interfaces.server.http.document import EXAMPLES, TAGS, operations
from tools.docs.operations import LISTING, document, listing

ROOT = Path(__file__).parents[3]
REST = [(method, path, each) for method, path, each in operations(document()) if path.startswith("/api/v1/")]


@pytest.mark.requirement("server.document")
def test_the_document_is_valid_openapi_3_1() -> None:
    assert document()["openapi"].startswith("3.1")
    assert [str(error) for error in OpenAPIV31SpecValidator(document()).iter_errors()] == []


@pytest.mark.requirement("server.operations")
def test_a_change_of_an_operation_is_seen_in_the_committed_list() -> None:
    committed = (ROOT / LISTING).read_text(encoding="utf-8").splitlines()
    changed = list(difflib.unified_diff(committed, listing().splitlines(), lineterm="", n=0))
    assert changed == [], "if this is meant, run `python -m tools.docs.operations`"


@pytest.mark.requirement("server.operations")
def test_operations_have_readable_ids_known_tags_and_a_description() -> None:
    found = [each for _, _, each in operations(document())]
    ids = [each["operationId"] for each in found]
    assert len(set(ids)) == len(ids)
    assert all(each.isidentifier() and each.islower() for each in ids)
    assert {tag for each in found for tag in each["tags"]} == set(TAGS)
    assert [each["operationId"] for each in found if not each.get("description")] == []


@pytest.mark.requirement("server.document")
def test_every_operation_needs_the_key_and_describes_its_errors_as_problems() -> None:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    shared = document()["components"]["responses"]
    assert all(each["content"] == problem for each in shared.values())
    for _, path, operation in REST:
        assert operation["security"] == [{"HTTPBearer": []}], path
        errors = {status: each for status, each in operation["responses"].items() if status >= "400"}
        assert {"401", "403", "422", "500", "503"} <= set(errors), path
        assert all(set(each) == {"$ref"} for status, each in errors.items() if status != "416"), path


@pytest.mark.requirement("server.document")
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_fits_the_schema_of_its_body(name: str) -> None:
    [operation] = [each for _, _, each in REST if each["operationId"] == name]
    content = operation["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": document()["components"]}
    assert content["example"] == EXAMPLES[name]
    assert [str(error) for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(EXAMPLES[name])] == []


def _union(name: str) -> set[str]:
    schemas: JsonObject = document()["components"]["schemas"]
    mapping = schemas[name]["discriminator"]["mapping"]
    members = {each["$ref"] for each in schemas[name].get("oneOf", ())}
    assert set(mapping.values()) == members
    return set(mapping)


@pytest.mark.requirement("server.stream_types")
async def test_streams_send_events_of_the_documented_union_and_no_other(server: Server) -> None:
    schemas = {"components": document()["components"]}
    for path, name in (("stream", "StreamEvent"), ("events/stream", "JournalMessage")):
        fits = jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **schemas})
        for tool, params in (("search", {"company": "Acme"}), ("deals", {"task": "Find Acme's deals"}), ("search", {})):
            run = await server.post(f"/ai/tools/{tool}/invoke", {"params": params})
            text = (await server.client.get(f"/api/v1/executions/{run['meta']['run_id']}/{path}")).text
            messages = [dict(line.split(": ", 1) for line in each.split("\n")) for each in text.strip().split("\n\n")]
            assert messages[-1]["event"] in {"done", "error"}
            for message in messages:
                data: Any = _json(message["data"])
                assert fits.is_valid(data), (message["event"], [str(each) for each in fits.iter_errors(data)][:3])
                assert message["event"] == data.get("type", data.get("event", {}).get("type"))


@pytest.mark.requirement("server.stream_types")
def test_the_streams_of_the_document_name_their_union() -> None:
    named = {
        operation["operationId"]: content["schema"]["$ref"].rpartition("/")[2]
        for _, _, operation in REST
        if (content := operation["responses"].get("200", {}).get("content", {}).get("text/event-stream"))
    }
    assert named == {
        "execute_agent_streaming": "StreamEvent",
        "stream_execution": "StreamEvent",
        "stream_instance": "StreamEvent",
        "stream_events": "JournalMessage",
    }
    assert {"text_delta", "tool_call_start", "tool_call_end", "done", "error"} <= _union("StreamEvent")


@pytest.mark.requirement("server.errors")
def test_the_type_of_each_problem_leads_to_a_line_of_the_documentation() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    of_the_server = {"method_not_allowed", "unsupported_media_type", "content_too_large", "internal_error"}
    codes = {kind.code for kind in _leaves(ToolcribError) if kind.__module__ == ToolcribError.__module__}
    missing = {code for code in codes | of_the_server if f'<a id="{code}"></a>' not in page}
    assert missing == set()


@pytest.mark.requirement("server.operations")
def test_the_list_of_statuses_has_every_operation() -> None:
    assert len(documented_statuses()) == len(list(operations(document())))


def _leaves(kind: type[ToolcribError]) -> set[type[ToolcribError]]:
    return {kind}.union(*map(_leaves, kind.__subclasses__()))


def _json(text: str) -> Any:
    return json.loads(text)
