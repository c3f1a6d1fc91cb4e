"""Bodies of every type, in every version."""

from typing import Any

import orjson
import pytest

from tests.unit.openapi.documents import http, imported, json, tool, whys
from toolcrib.contracts import ToolDefinition
from toolcrib.kinds.http.openapi import import_openapi
from toolcrib.kinds.http.runtime.bodies import write_body
from toolcrib.kinds.http.shape import FieldEncoding, HttpBody

pytestmark = pytest.mark.requirement("providers.bodies")

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
OBJECT: dict[str, Any] = {
    "type": "object",
    "required": ["a"],
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}},
}
FILES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "format": "binary", "description": "Bytes.", "maxLength": 5},
        "several": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "png": {"contentMediaType": "image/png"},
        "note": {"type": "string"},
        "json": {"type": "string", "contentMediaType": "application/json"},
    },
}


def body_of(definition: ToolDefinition) -> HttpBody:
    found = http(definition).body
    assert found is not None
    return found


def sending(content: dict[str, Any], **more: Any) -> ToolDefinition:
    return tool({"requestBody": {"content": content, "required": True, **more}})


@pytest.mark.parametrize(
    ("types", "chosen", "encoding"),
    [
        ([FORM, "application/json"], "application/json", "json"),
        (["*/*"], "application/json", "json"),
        (["application/xml", "application/vnd.api+json"], "application/vnd.api+json", "json"),
        ([MULTIPART, FORM], FORM, "form"),
        (["application/xml", MULTIPART], MULTIPART, "multipart"),
        (["application/octet-stream", "text/csv"], "text/csv", "text"),
        (["application/x-ndjson"], "application/x-ndjson", "text"),
        (["image/png"], "image/png", "binary"),
    ],
)
def test_of_several_types_the_one_that_says_most_is_sent(types: list[str], chosen: str, encoding: str) -> None:
    found = sending({name: {"schema": OBJECT} for name in types})
    assert (body_of(found).content_type, body_of(found).encoding) == (chosen, encoding)


def test_a_form_has_its_fields_as_arguments_and_the_styles_that_the_document_says() -> None:
    encoding: dict[str, Any] = {
        "b": {"style": "deepObject", "explode": True},
        "a": {"contentType": "application/json", "headers": {"X-A": {}}},
        "zzz": {},
    }
    api = imported({"/a": {"post": {"requestBody": {"content": {FORM: {"schema": OBJECT, "encoding": encoding}}}}}})
    body = body_of(api.tools[0])
    assert list(api.tools[0].input_schema["properties"]) == ["a", "b"]
    assert body.encodings == {
        "a": FieldEncoding(content_type="application/json"),
        "b": FieldEncoding(style="deepObject"),
    }
    assert whys(api).keys() == {"POST /a part header X-A", "POST /a encoding zzz", "POST /a request body"}


def test_files_of_a_multipart_form_are_base64_or_objects_with_a_name() -> None:
    found = sending({FORM: {"schema": FILES}, MULTIPART: {"schema": FILES, "encoding": {"file": {"style": "form"}}}})
    body, properties = body_of(found), found.input_schema["properties"]
    assert (body.content_type, body.encoding) == (MULTIPART, "multipart")
    assert {name for name, encoding in body.encodings.items() if encoding.file} == {"file", "several", "png"}
    base64, named = properties["file"]["anyOf"]
    assert base64 == {"type": "string", "contentEncoding": "base64"}
    assert named["required"] == ["base64"]
    assert properties["file"]["description"] == "Bytes."
    assert properties["several"]["items"]["anyOf"][0] == base64
    assert properties["note"] == {"type": "string"}


def test_what_an_encoding_cannot_be_is_said() -> None:
    encoding: dict[str, Any] = {
        "file": {"contentType": "image/png, image/jpeg", "style": "deepObject"},
        "note": {"contentType": "text/*"},
    }
    content = {MULTIPART: {"schema": FILES, "encoding": encoding}}
    api = imported({"/a": {"post": {"requestBody": {"content": content}}}})
    assert [loss.why for loss in api.losses if loss.what.startswith("encoding")] == [
        "written as form, not 'deepObject'",
        "one of several types: the file says its own type",
        "one of several types: left to the value",
    ]
    told = imported({"/a": {"post": {"requestBody": {"content": {**json(OBJECT)}, "required": True}}}})
    assert whys(told) == {}
    aside: dict[str, Any] = {"application/json": {"schema": OBJECT, "encoding": {"a": {}}}}
    told = imported({"/a": {"post": {"requestBody": {"content": aside, "required": True}}}})
    assert whys(told) == {"POST /a encoding a": "counts for nothing in application/json"}


def test_bytes_are_base64_and_xml_is_text() -> None:
    picture = sending({"image/png": {"schema": {"type": "string", "format": "binary"}}}, description="The picture.")
    assert picture.input_schema["properties"]["body"] == {
        "type": "string",
        "contentEncoding": "base64",
        "contentMediaType": "image/png",
        "description": "The picture.",
    }
    xml = sending({"application/xml": {"schema": OBJECT}})
    assert xml.input_schema["properties"]["body"] == {"type": "string", "contentMediaType": "application/xml"}
    assert (body_of(xml).argument, body_of(xml).required) == ("body", True)


def test_a_body_without_members_is_no_argument_and_one_without_a_schema_is_anything() -> None:
    empty = sending(json({"type": "object", "properties": {}}))
    assert empty.input_schema["properties"] == {}
    api = imported({"/a": {"post": {"requestBody": {"content": {"application/json": {}}, "description": "Any."}}}})
    assert api.tools[0].input_schema["properties"] == {"body": {"description": "Any."}}
    assert whys(api) == {"POST /a request body": "any value: it has no schema"}
    api = imported({"/a": {"post": {"requestBody": {"content": {}}}, "put": {"requestBody": {"$ref": "#/none"}}}})
    assert [http(found).body for found in api.tools] == [None, None]
    assert whys(api).keys() == {"POST /a request body", "PUT /a reference '#/none'"}


def swagger(parameters: list[Any], **more: Any) -> Any:
    operation: dict[str, Any] = {"parameters": parameters, "responses": {}, **more}
    return import_openapi({"swagger": "2.0", "host": "a.test", "paths": {"/x/{p}": {"post": operation}}}, name="api")


def test_forms_of_openapi_2_become_form_and_multipart_bodies() -> None:
    fields = [
        {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "ssv"},
        {"name": "name", "in": "formData", "type": "string", "required": True, "description": "The name."},
    ]
    form = swagger(fields, consumes=["application/json", FORM])
    body = body_of(form.tools[0])
    assert (body.content_type, body.encoding, body.required) == (FORM, "form", True)
    assert body.encodings == {"tags": FieldEncoding(style="spaceDelimited", explode=False)}
    assert form.tools[0].input_schema["required"] == ["p", "name"]
    file = swagger([*fields, {"name": "file", "in": "formData", "type": "file"}], consumes=[7])
    assert body_of(file.tools[0]).encodings == {"file": FieldEncoding(file=True)}
    assert body_of(file.tools[0]).content_type == MULTIPART
    binary = swagger([{"name": "file", "in": "formData", "type": "string", "format": "binary"}], consumes=[MULTIPART])
    assert body_of(binary.tools[0]).encodings == {"file": FieldEncoding(file=True)}
    both = swagger([*fields, {"in": "body", "schema": OBJECT}])
    assert body_of(both.tools[0]).encoding == "json"
    assert {"POST /x/{p} parameter tags", "POST /x/{p} parameter name"} <= whys(both).keys()


@pytest.mark.parametrize(
    ("place", "written", "style", "explode"),
    [
        ("query", None, "form", False),
        ("query", "csv", "form", False),
        ("query", "ssv", "spaceDelimited", False),
        ("query", "tsv", "tabDelimited", False),
        ("query", "pipes", "pipeDelimited", False),
        ("query", "multi", "form", True),
        ("query", "other", "form", False),
        ("header", "csv", "simple", False),
        ("header", "pipes", "simple", False),
    ],
)
def test_collection_formats_of_openapi_2_are_styles(place: str, written: Any, style: str, explode: bool) -> None:
    parameter = {"name": "q", "in": place, "type": "array", "items": {"type": "string"}, "collectionFormat": written}
    if written is None:
        del parameter["collectionFormat"]
    api = swagger([parameter, {"name": "q", "in": "nowhere"}, {"$ref": "#/parameters/gone"}])
    found = http(api.tools[0]).parameters[1]
    assert (found.name, found.style, found.explode) == ("q", style, explode)
    assert ("POST /x/{p} collectionFormat" in whys(api)) is (
        written == "other" or (place, written) == ("header", "pipes")
    )
    assert {"POST /x/{p} parameter q", "POST /x/{p} reference '#/parameters/gone'"} <= whys(api).keys()


@pytest.mark.requirement("providers.bodies", "providers.schemas_repaired")
def test_a_part_called_file_is_one_unless_its_schema_says_that_it_is_text() -> None:
    def taken(file: Any) -> Any:
        schema = {"type": "object", "properties": {"file": file, "purpose": {"type": "string"}}}
        return imported({"/a": {"post": {"requestBody": {"content": {MULTIPART: {"schema": schema}}}}}})

    plain = taken({"type": "string", "description": "A file to upload."})
    assert body_of(plain.tools[0]).encodings == {"file": FieldEncoding(file=True)}
    assert whys(plain) == {"POST /a property file": "taken as a file, as its name says"}
    assert body_of(taken({"type": "string", "maxLength": 9}).tools[0]).encodings == {}


@pytest.mark.requirement("providers.byte_bodies")
@pytest.mark.parametrize(
    ("media_type", "schema", "sent"),
    [
        ("image/jpeg", {"type": "string", "format": "byte"}, b"aGVsbG8="),
        ("image/jpeg", {"$ref": "#/components/schemas/Picture"}, b"aGVsbG8="),
        ("image/png", {"type": "string", "contentEncoding": "base64"}, b"aGVsbG8="),
        ("image/jpeg", {"type": "string", "format": "binary"}, b"hello"),
        ("application/octet-stream", {}, b"hello"),
        ("text/plain", {"type": "string", "format": "byte"}, b"aGVsbG8="),
    ],
)
def test_a_body_of_format_byte_is_sent_as_the_base64_text_that_it_is(
    media_type: str, schema: dict[str, Any], sent: bytes
) -> None:
    """Spotify's `PUT /playlists/{id}/images`: base64 text under image/jpeg."""
    body = {"content": {media_type: {"schema": schema}}, "required": True}
    components = {"schemas": {"Picture": {"type": "string", "format": "byte"}}}
    found = tool({"requestBody": body}, "put", components=components)
    written = http(found).body
    assert written is not None
    content = write_body(written, {"body": "aGVsbG8="})
    assert content is not None
    assert (content.content_type, content.data) == (media_type, sent)


@pytest.mark.requirement("providers.byte_bodies")
def test_parts_and_parameters_of_format_byte_stay_base64_text() -> None:
    text = {"type": "string", "format": "byte"}
    schema = {"type": "object", "properties": {"picture": text, "file": {"type": "string", "format": "binary"}}}
    operation: dict[str, Any] = {
        "parameters": [{"name": "mark", "in": "query", "schema": text}],
        "requestBody": {
            "content": {
                MULTIPART: {"schema": schema, "encoding": {"picture": {"contentType": "image/png"}}},
            },
            "required": True,
        },
    }
    found = tool(operation)
    written = http(found).body
    assert written is not None
    assert found.input_schema["properties"]["mark"] == text
    content = write_body(written, {"picture": "aGVsbG8=", "file": "aGVsbG8="})
    assert content is not None
    assert b"Content-Type: image/png\r\n\r\naGVsbG8=\r\n" in content.data
    assert b"Content-Type: application/octet-stream\r\n\r\nhello\r\n" in content.data


@pytest.mark.requirement("providers.large_inputs")
def test_an_input_schema_over_16_kb_is_told_with_tool_and_size() -> None:
    properties = {f"field_{number}": {"type": "string", "description": "x" * 200} for number in range(100)}
    content = json({"type": "object", "properties": properties})
    api = imported({"/a": {"post": {"requestBody": {"content": content}}}, "/b": {"get": {}}})
    size = len(orjson.dumps(api.tools[0].input_schema))
    assert size > 16 * 1024
    told = whys(api)
    assert f"the input schema of tool 'post_a' has {size} bytes" in told["POST /a input schema"]
    assert "GET /b input schema" not in told
