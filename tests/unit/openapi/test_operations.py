"""Operations as tools: arguments, names, behaviour, paging, output."""

from typing import Any

import pytest

from tests.unit.openapi.documents import NEXT, PAGE, answering, http, imported, json, taking, tool, whys
from toolcrib.contracts import ApiKeyAuth, RetryPolicy
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.openapi.arguments import argument_names
from toolcrib.kinds.http.shape import CursorPaging

NO_PLAIN_OBJECTS: list[Any] = [
    {"type": "array", "items": {"type": "string"}},
    {"type": "object"},
    {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
    {"oneOf": [{"type": "object", "properties": {"a": {}}}]},
    {"allOf": [{"properties": {"a": {}}}, {"properties": {"a": {}}}]},
    {"allOf": [{"$ref": "#/missing"}], "properties": {"a": {}}},
]
IDEMPOTENCY = {"name": "idempotency-KEY", "in": "header", "schema": {"type": "string"}}


def parameter(name: str, place: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {"type": "string"}, **more}


@pytest.mark.requirement("providers.flat_arguments")
def test_parameters_and_body_properties_become_one_flat_object() -> None:
    body = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "note": {}}}
    parameters = [parameter("limit"), parameter("id", "path"), parameter("X-Trace", "header", required=True)]
    found = tool(taking(body, parameters=parameters), path="/deals/{id}")
    assert found.input_schema == {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "limit": {"type": "string"},
            "X-Trace": {"type": "string"},
            "name": {"type": "string"},
            "note": {},
        },
        "required": ["id", "X-Trace", "name"],
        "additionalProperties": False,
    }
    assert http(found).url == "https://api.test/v1/deals/{id}"
    assert http(found).body is not None
    assert http(found).body.model_dump(exclude_defaults=True) == {  # pyright: ignore[reportOptionalMemberAccess]
        "fields": {"name": "name", "note": "note"},
        "required": True,
    }


@pytest.mark.requirement("providers.flat_arguments")
@pytest.mark.parametrize("schema", NO_PLAIN_OBJECTS)
def test_a_body_that_is_no_plain_object_is_one_argument(schema: Any) -> None:
    found = tool(taking(schema))
    assert list(found.input_schema["properties"]) == ["body"]
    assert found.input_schema["required"] == ["body"]
    assert http(found).body is not None
    assert http(found).body.argument == "body"  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.requirement("providers.flat_arguments")
def test_a_body_composed_of_plain_objects_is_flat_and_hides_what_is_read_only() -> None:
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Named"},
            {"properties": {"id": {"readOnly": True}, "age": {"type": "integer"}}},
        ]
    }
    named = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    found = tool(taking(schema), components={"schemas": {"Named": named}})
    assert set(found.input_schema["properties"]) == {"name", "age"}
    assert found.input_schema["required"] == ["name"]


@pytest.mark.requirement("providers.flat_arguments")
@pytest.mark.parametrize("required", [True, None])
def test_properties_are_required_unless_the_body_is_expressly_optional(required: bool | None) -> None:
    schema: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": {}}}
    api = imported({"/a": {"post": taking(schema, required=required)}})
    assert api.tools[0].input_schema["required"] == ["a"]
    told = "required: it has required properties, and the document does not say that the body is optional"
    assert whys(api) == ({} if required else {"POST /a request body": told})


@pytest.mark.requirement("providers.flat_arguments")
def test_an_optional_body_with_required_properties_is_one_argument_with_all_of_them_or_none() -> None:
    schema: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": {}, "b": {"default": 1}}}
    api = imported({"/a": {"post": taking(schema, required=False)}})
    taken = api.tools[0].input_schema
    assert "required" not in taken
    assert taken["properties"]["body"]["required"] == ["a"]
    assert whys(api) == {}


@pytest.mark.requirement("providers.flat_arguments", "providers.losses")
def test_no_field_of_an_optional_form_is_required() -> None:
    schema: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": {}}}
    body = {"content": {"application/x-www-form-urlencoded": {"schema": schema}}, "required": False}
    api = imported({"/a": {"post": {"requestBody": body}}})
    assert "required" not in api.tools[0].input_schema
    assert "POST /a request body" in whys(api)


@pytest.mark.requirement("providers.flat_arguments", "providers.losses")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("content-type:application/json", "no header can have this name"),
        ("x y", "no header can have this name"),
        ("Host", "follows from the URL and the body"),
    ],
)
def test_headers_that_cannot_be_sent_are_no_arguments(name: str, why: str) -> None:
    api = imported({"/a": {"get": {"parameters": [parameter(name, "header")]}}})
    assert api.tools[0].input_schema["properties"] == {}
    assert any(loss.why == why for loss in api.losses)


@pytest.mark.requirement("providers.any_document")
def test_an_operation_that_could_not_be_saved_is_left_out_and_the_others_stay() -> None:
    api = imported({"/a\nb": {"get": {}}, "/item/{Item ID}": {"get": {}}})
    assert [http(tool).url for tool in api.tools] == ["https://api.test/v1/item/{Item ID}"]
    (lost,) = [found for found in api.report.operations if found.tool is None]
    assert "is neither absolute" in lost.losses[-1].why


@pytest.mark.requirement("providers.flat_arguments")
def test_parameters_of_the_operation_win_over_those_of_the_path() -> None:
    path = {
        "parameters": [parameter("a", description="path"), {"$ref": "#/components/parameters/B"}],
        "get": {"parameters": [parameter("a", description="operation", required=True)]},
    }
    api = imported({"/x": path}, components={"parameters": {"B": parameter("b", deprecated=True)}})
    assert api.tools[0].input_schema["properties"] == {
        "a": {"type": "string", "description": "operation"},
        "b": {"type": "string", "deprecated": True},
    }


@pytest.mark.requirement("providers.losses")
def test_parameters_that_cannot_be_sent_as_declared_are_reported() -> None:
    parameters = [
        {"in": "query"},
        parameter("elsewhere", "body"),
        {"$ref": "#/missing"},
        parameter("gone", "path"),
        parameter("odd", "query", style="simple"),
        {"name": "packed", "in": "query", "content": json({"type": "object"})},
        parameter("wordy", description="word " * 200),
    ]
    api = imported({"/x/{id}": {"get": {"parameters": parameters}}})
    assert list(api.tools[0].input_schema["properties"]) == ["id", "odd", "packed", "wordy"]
    assert whys(api, all_of_them=True) == {
        "GET /x/{id} parameter": "has no name, or a place other than path, query, header and cookie",
        "GET /x/{id} parameter elsewhere": "has no name, or a place other than path, query, header and cookie",
        "GET /x/{id} reference '#/missing'": "leads to nothing known",
        "GET /x/{id} parameter gone": "the path has no place for it",
        "GET /x/{id} parameter odd": "written in style form: a query parameter has no 'simple'",
        "GET /x/{id} parameter id": "taken as text: the path names it and nothing declares it",
        "GET /x/{id} description": "cut to 500 characters",
    }


@pytest.mark.requirement("providers.flat_arguments")
def test_styles_have_the_defaults_of_their_place() -> None:
    parameters = [
        parameter("p", "path", style="matrix"),
        parameter("q"),
        parameter("d", style="deepObject", explode=True, allowReserved=True),
        parameter("h", "header"),
        parameter("c", "cookie"),
    ]
    found = http(tool({"parameters": parameters}, path="/x/{p}"))
    assert [(found.argument, found.style, found.explode, found.allow_reserved) for found in found.parameters] == [
        ("p", "matrix", False, False),
        ("q", "form", True, False),
        ("d", "deepObject", True, True),
        ("h", "simple", False, False),
        ("c", "form", True, False),
    ]


@pytest.mark.requirement("providers.flat_arguments")
def test_headers_that_are_not_the_callers_are_no_arguments() -> None:
    names = ("Accept", "Content-Type", "Authorization", "X-Account")
    operation = {"parameters": [*(parameter(name, "header") for name in names), parameter("x-account")]}
    auth = ApiKeyAuth(key="${env:K}", name="x-account")
    (found,) = import_openapi(
        {"openapi": "3.1.0", "paths": {"/a": {"get": operation}}}, name="crm", base_url="https://a.test", auth=auth
    ).tools
    assert list(found.input_schema["properties"]) == ["x-account"]


@pytest.mark.requirement("providers.flat_arguments")
def test_a_key_in_the_query_is_no_argument_either() -> None:
    schemes = {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "hapikey"}}}
    found = tool({"parameters": [parameter("hapikey"), parameter("HapiKey")]}, components=schemes)
    assert list(found.input_schema["properties"]) == ["HapiKey"]


@pytest.mark.requirement("providers.argument_names")
def test_a_name_in_two_places_gets_its_place_as_a_suffix() -> None:
    body = {"type": "object", "properties": {"id": {"type": "integer"}, "id_body": {}, "filter[a]": {}, "ä": {}}}
    found = tool(taking(body, parameters=[parameter("id"), parameter("id", "path")]), path="/x/{id}")
    assert list(found.input_schema["properties"]) == ["id", "id_query", "id_body_2", "id_body", "filter_a", "body"]
    sent = http(found)
    assert [(sent.argument, sent.place) for sent in sent.parameters] == [("id", "path"), ("id_query", "query")]
    assert sent.body is not None
    assert sent.body.fields == {
        "id_body_2": "id",
        "id_body": "id_body",
        "filter_a": "filter[a]",
        "body": "ä",
    }


@pytest.mark.requirement("providers.argument_names")
def test_argument_names_fit_in_64_characters() -> None:
    names = argument_names([("path", "a" * 90), ("query", "a" * 90), ("body", "a" * 90)])
    assert len(set(names)) == 3
    assert all(len(name) <= 64 for name in names)


@pytest.mark.requirement("providers.tool_names")
@pytest.mark.parametrize(
    ("operation", "method", "path", "name"),
    [
        ({"operationId": "searchDeals"}, "get", "/a", "searchDeals"),
        ({"operationId": "get-/crm/v3/deals_getPage"}, "get", "/a", "get_crm_v3_deals_getPage"),
        ({"operationId": "3d.view"}, "get", "/a", "get_3d_view"),
        ({"operationId": "äöü"}, "get", "/a", "get"),
        ({}, "get", "/deals/{dealId}/notes", "get_deals_by_dealId_notes"),
        ({}, "delete", "/", "delete"),
    ],
)
def test_a_tool_is_named_by_its_operation(operation: Any, method: str, path: str, name: str) -> None:
    assert tool(operation, method, path).name == name


@pytest.mark.requirement("providers.tool_names")
def test_names_stay_when_the_document_grows_and_are_never_equal() -> None:
    paths: dict[str, Any] = {"/a": {"get": {"operationId": "list.deals"}}, "/b": {"get": {"operationId": "x" * 80}}}
    before = [found.name for found in imported(paths).tools]
    grown = {**paths, "/c": {"get": {"operationId": "list:deals"}}, "/d": {"get": {"operationId": "list.deals"}}}
    after = imported(grown).tools
    assert [found.name for found in after[:2]] == before
    assert len({found.name for found in after}) == 4
    assert all(len(found.name) <= 64 for found in after)


@pytest.mark.requirement("providers.tool_names")
def test_an_operation_whose_id_is_legal_keeps_it_over_one_that_only_comes_to_it() -> None:
    api = imported({"/a": {"get": {"operationId": "list.deals"}}, "/b": {"get": {"operationId": "list_deals"}}})
    first, second = (found.name for found in api.tools)
    assert (first.startswith("list_deals_"), second) == (True, "list_deals")


@pytest.mark.requirement("providers.side_effects", "providers.retries")
@pytest.mark.parametrize(
    ("method", "parameters", "expected"),
    [
        ("get", [], ("reads", True, None, 3)),
        ("head", [], ("reads", True, None, 3)),
        ("options", [], ("reads", True, None, 3)),
        ("put", [], ("writes", True, None, 3)),
        ("delete", [], ("writes", True, None, 3)),
        ("patch", [], ("writes", False, None, 0)),
        ("post", [], ("writes", False, None, 0)),
        ("post", [IDEMPOTENCY], ("writes", False, "header:Idempotency-Key", 3)),
    ],
)
def test_the_method_decides_about_effects_and_retries(method: str, parameters: Any, expected: Any) -> None:
    found = tool({"parameters": parameters}, method)
    assert (found.side_effects, found.idempotent, found.idempotency_key, found.retry.count) == expected
    assert [(rule.when, rule.action) for rule in found.error_handling] == (
        [("429", "retry"), ("5xx", "retry")] if found.retry != RetryPolicy() else []
    )


@pytest.mark.requirement("providers.idempotency_header")
def test_the_idempotency_header_is_no_argument() -> None:
    found = tool({"parameters": [IDEMPOTENCY]})
    assert found.input_schema["properties"] == {}
    assert http(found).parameters == ()


@pytest.mark.requirement("providers.cursor_paging")
def test_cursor_paging_is_found_and_frees_the_caller_from_it() -> None:
    body = {
        "type": "object",
        "required": ["after", "limit", "query"],
        "properties": {
            "query": {},
            "after": {"$ref": "#/components/schemas/After"},
            "limit": {"$ref": "#/components/schemas/Limit"},
        },
    }
    schemas = {"Next": NEXT, "After": {"type": "string"}, "Limit": {"type": "integer", "maximum": 100, "default": 20}}
    found = tool(taking(body, **answering(PAGE)), components={"schemas": schemas})
    assert http(found).paging == CursorPaging(
        cursor_in="after",
        cursor_out="$.paging.next.after",
        first="0",
        items="results",
        limit_argument="limit",
        page_size=100,
    )
    assert found.input_schema["required"] == ["query"]
    assert found.input_schema["properties"]["limit"] == {
        "type": "integer",
        "maximum": 100,
        "description": "Stops after so many items. Leave out to get all of them.",
    }
    assert found.usage is not None
    assert "all pages" in found.usage


@pytest.mark.requirement("providers.cursor_paging")
def test_paging_without_a_page_size_still_follows_the_cursor() -> None:
    schema = {"properties": {**PAGE["properties"], "items": {"type": "array"}}}
    found = tool(answering(schema, parameters=[parameter("after")]), "get", components={"schemas": {"Next": NEXT}})
    paging = http(found).paging
    assert paging is not None
    assert (paging.items, paging.limit_argument, paging.page_size) == ("results", None, None)
    assert found.usage == "Returns all pages as one list; give after only to read a single page from there."


@pytest.mark.requirement("providers.cursor_paging")
@pytest.mark.parametrize(
    ("schema", "parameters"),
    [
        (PAGE, []),
        ({"properties": {"results": {"type": "array"}}}, [parameter("after")]),
        ({"properties": {"paging": PAGE["properties"]["paging"]}}, [parameter("after")]),
        ({"properties": {**PAGE["properties"], "results": {}}}, [parameter("after")]),
    ],
)
def test_paging_is_not_assumed(schema: Any, parameters: Any) -> None:
    found = tool(answering(schema, parameters=parameters), "get", components={"schemas": {"Next": NEXT}})
    assert http(found).paging is None


@pytest.mark.requirement("providers.output_schema")
@pytest.mark.parametrize(
    ("responses", "schema"),
    [
        ({"200": {"content": json({"type": "string"})}, "400": {"content": json({})}}, {"type": "string"}),
        ({"2XX": {"content": json({"type": "string"})}}, {"type": "string"}),
        (
            {"200": {"content": json({"type": "string"})}, "201": {"content": json({"type": "string"})}},
            {"type": "string"},
        ),
        (
            {"200": {"content": json({"type": "string"})}, "204": {}},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"200": {"content": {**json({"type": "string"}), "text/csv": {}}}}, {"type": "string"}),
        ({"200": {"content": {"text/csv": {}}}}, {"type": "string", "contentMediaType": "text/csv"}),
        ({"200": {"content": {"application/json": {}}}}, None),
        ({"204": {}}, None),
        ({"default": {"content": json({"type": "string"})}}, {"type": "string"}),
        ({"204": {}, "default": {"content": json({"type": "string"})}}, None),
        (None, None),
    ],
)
def test_the_output_schema_promises_no_more_than_the_document(responses: Any, schema: Any) -> None:
    assert tool({"responses": responses}).output_schema == schema


@pytest.mark.requirement("providers.lean_descriptions")
@pytest.mark.parametrize(
    ("operation", "description", "whole"),
    [
        ({"summary": "Get a deal.", "description": "<b>Reads</b> one."}, "Get a deal. Reads one.", None),
        ({"summary": "Get", "description": "Get a deal"}, "Get a deal", None),
        ({"summary": "Get a deal"}, "Get a deal.", None),
        ({"description": "Reads"}, "Reads", None),
        ({"summary": "Get", "description": "Get one", "deprecated": True}, "Deprecated. Get one", None),
        ({"description": "word " * 200}, ("word " * 100).strip()[:499].rpartition(" ")[0] + "…", "word " * 200),
        ({}, "POST /deals", None),
    ],
)
def test_a_description_is_summary_and_description_without_markup(operation: Any, description: str, whole: Any) -> None:
    found = tool(operation)
    assert found.description == description
    assert found.long_description == (whole.strip() if whole else None)


@pytest.mark.requirement("providers.any_document")
def test_a_composition_that_would_expand_without_end_takes_no_longer_than_its_size() -> None:
    parts: dict[str, Any] = {f"A{n}": {"allOf": [{"$ref": f"#/components/schemas/A{n + 1}"}] * 8} for n in range(30)}
    found = tool(taking({"$ref": "#/components/schemas/A0"}), components={"schemas": parts})
    assert list(found.input_schema["properties"]) == ["body"]
