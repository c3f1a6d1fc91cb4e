"""Reading documents under bounds."""

from typing import Any

import orjson
import pytest
import yaml

from tests.unit.providers.documents import document
from toolcrib.contracts import InvalidDefinition
from toolcrib.providers.openapi.document import MAX_BYTES, MAX_DEPTH, Document, read_document

PLAIN = document({})


@pytest.mark.requirement("providers.document_formats")
@pytest.mark.parametrize(
    "source",
    [orjson.dumps(PLAIN), orjson.dumps(PLAIN).decode(), yaml.safe_dump(PLAIN), yaml.safe_dump(PLAIN).encode(), PLAIN],
    ids=["json_bytes", "json_text", "yaml_text", "yaml_bytes", "mapping"],
)
def test_json_yaml_and_mappings_say_the_same(source: Any) -> None:
    assert read_document(source) == Document(PLAIN, "3.1")


@pytest.mark.requirement("providers.document_formats")
def test_yaml_keys_become_text_and_dates_stay_text() -> None:
    text = "openapi: 3.0.3\npaths: {}\nx: {200: ok, true: yes, day: 2026-01-31}\n"
    root = read_document(text).root
    assert root["x"] == {"200": "ok", "true": True, "day": "2026-01-31"}


@pytest.mark.requirement("providers.document_formats")
def test_a_yaml_flow_mapping_is_not_mistaken_for_json() -> None:
    assert read_document("{openapi: 3.1.0, paths: {}}").version == "3.1"


@pytest.mark.requirement("providers.document_formats")
def test_integers_that_no_double_holds_become_the_nearest_that_does() -> None:
    root = read_document({"openapi": "3.1.0", "big": 9223372036854775807, "small": 7}).root
    assert (root["big"], root["small"]) == (9.223372036854775807e18, 7)
    assert isinstance(root["big"], float)


@pytest.mark.requirement("providers.document_bounds")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"swagger": "2.0"}, "found swagger '2.0'"),
        ({"openapi": "3.9.0"}, "found openapi '3.9.0'"),
        ("[]", "a document is an object|is an object, found list"),
        ("a: [1", "neither JSON nor YAML"),
        ("a: !!python/object:os.system {}", "neither JSON nor YAML"),
        ("a: .nan", "which JSON cannot say"),
        (b" " * (MAX_BYTES + 1), f"the limit is {MAX_BYTES}"),
        ("[" * (MAX_DEPTH + 1), "nests deeper"),
        ("a: " + "{a: " * 10_000, "nests deeper"),
        ("a: &a [*a]", "nests deeper"),
    ],
)
def test_what_is_no_readable_document_is_refused_with_the_reason(source: Any, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        read_document(source)


@pytest.mark.requirement("providers.document_bounds")
def test_a_bomb_of_yaml_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(InvalidDefinition, match="expands to more than"):
        read_document("\n".join(lines))


@pytest.mark.requirement("providers.schemas_self_contained")
def test_pointers_are_unescaped_and_lead_through_lists() -> None:
    found = Document({"paths": {"/a b": {"get": {"parameters": [{"name": "x"}]}}}}, "3.1")
    assert found.at("#/paths/~1a%20b/get/parameters/0/name") == "x"


@pytest.mark.requirement("providers.schemas_self_contained")
@pytest.mark.parametrize("pointer", ["other.yaml#/a", "#anchor", "#/missing", "#/list/9", "#/list/x", "#/text/x"])
def test_pointers_that_lead_nowhere_find_nothing(pointer: str) -> None:
    assert Document({"list": [1], "text": "x"}, "3.1").at(pointer) is None


@pytest.mark.requirement("providers.schemas_self_contained")
def test_references_that_only_refer_to_each_other_resolve_to_nothing() -> None:
    found = Document({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}}, "3.1")
    assert found.resolve({"$ref": "#/a"}) is None
    assert found.resolve("text") is None
