"""Reading documents under bounds, and following their references."""

from datetime import date
from decimal import Decimal
from typing import Any

import orjson
import pytest
import yaml

from tests.unit.openapi.documents import document
from toolcrib.contracts import InvalidDefinition
from toolcrib.core.providers.imports import Losses
from toolcrib.kinds.http.openapi.read.documents import Document, Library, read_document
from toolcrib.kinds.http.openapi.read.nodes import Node
from toolcrib.kinds.http.shape import Bounds

PLAIN = document({})


def read(source: Any, losses: Losses | None = None, **options: Any) -> Document:
    return read_document(source, Losses() if losses is None else losses, **options)


def root(source: Any, losses: Losses | None = None) -> Any:
    return read(source, losses).root.value


def found(losses: Losses) -> dict[str, tuple[str, ...]]:
    return {f"{loss.effect} {loss.what}": loss.places for loss in losses.report()}


@pytest.mark.requirement("providers.document_formats")
@pytest.mark.parametrize(
    "source",
    [
        orjson.dumps(PLAIN),
        orjson.dumps(PLAIN).decode(),
        b"\xef\xbb\xbf" + orjson.dumps(PLAIN),
        "\ufeff" + orjson.dumps(PLAIN).decode(),
        orjson.dumps(PLAIN).decode().encode("utf-16"),
        yaml.safe_dump(PLAIN),
        yaml.safe_dump(PLAIN).encode(),
        b"\xef\xbb\xbf" + yaml.safe_dump(PLAIN).encode(),
        PLAIN,
    ],
)
def test_json_yaml_and_mappings_say_the_same_in_any_encoding(source: Any) -> None:
    losses = Losses()
    read_in = read(source, losses)
    assert (read_in.root.value, read_in.dialect, read_in.version) == (PLAIN, "3.1", "3.1.0")
    assert not losses


@pytest.mark.requirement("providers.document_formats")
def test_yaml_is_read_by_the_core_schema_and_keys_stay_as_written() -> None:
    text = """
    openapi: 3.0.3
    paths: {}
    x: {200: ok, true: yes, day: 2026-01-31, null: ~, 1.0: 0x1F, a: 0o17, b: 017, c: 1_000, d: 1e3, e: .nan, f: +1.5}
    g: !!str 12
    h: "12"
    i: !!int 12
    j: 1e999
    """
    assert root(text)["x"] == {
        "200": "ok",
        "true": "yes",
        "day": "2026-01-31",
        "null": None,
        "1.0": 31,
        "a": 15,
        "b": 17,
        "c": "1_000",
        "d": 1000.0,
        "e": ".nan",
        "f": 1.5,
    }
    assert [root(text)[name] for name in "ghij"] == ["12", "12", 12, "1e999"]


@pytest.mark.requirement("providers.document_formats")
def test_yaml_aliases_and_merge_keys_are_followed() -> None:
    text = """
    openapi: 3.0.3
    base: &base {a: 1, b: 2}
    key: &name title
    one: {<<: *base, b: 3}
    two: {<<: [*base, {c: 4}], *name : 5}
    list: [*base]
    """
    assert root(text)["one"] == {"a": 1, "b": 3}
    assert root(text)["two"] == {"a": 1, "b": 2, "c": 4, "title": 5}
    assert root(text)["list"] == [{"a": 1, "b": 2}]


@pytest.mark.requirement("providers.document_formats")
def test_a_yaml_flow_mapping_is_not_mistaken_for_json() -> None:
    assert read("{openapi: 3.1.0, paths: {}}").dialect == "3.1"


@pytest.mark.requirement("providers.document_formats")
@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ({"swagger": "2.0"}, "2.0"),
        ({"swagger": 2.0}, "2.0"),
        ({"swagger": 2}, "2.0"),
        ({"openapi": "3.0.0-rc1"}, "3.0"),
        ({"openapi": 3.1}, "3.1"),
        ({"openapi": "3.2.0"}, "3.1"),
        ({"swagger": "3.0.1"}, "3.0"),
    ],
)
def test_every_version_of_openapi_is_recognised(version: Any, dialect: str) -> None:
    assert read({**version, "paths": {}}).dialect == dialect


@pytest.mark.requirement("providers.document_formats")
def test_integers_that_no_double_holds_become_the_nearest_that_does() -> None:
    numbers = root(
        {
            "openapi": "3.1.0",
            "big": 9223372036854775807,
            "small": 7,
            "even": 2**60,
            "huge": 10**400,
            "endless": float("inf"),
            "day": date(2026, 1, 31),
        }
    )
    assert (numbers["big"], numbers["small"], numbers["even"]) == (9.223372036854775807e18, 7, 2**60)
    assert isinstance(numbers["big"], float)
    assert (numbers["huge"], numbers["endless"], numbers["day"]) == (str(10**400), "inf", "2026-01-31")
    assert root('{"openapi": "3.1.0", "n": ' + "9" * 5000 + "}")["n"] == "9" * 5000


@pytest.mark.requirement("providers.document_formats", "providers.losses")
def test_what_had_to_be_put_right_in_the_text_is_reported() -> None:
    losses = Losses()
    text = '{"openapi": "3.1.0", "info": {"a/b": 1, "title": "x", "a/b": 2}, "s": "\\ud800"}'
    assert root(text, losses) == {"openapi": "3.1.0", "info": {"a/b": 2, "title": "x"}, "s": "\ufffd"}
    assert found(losses) == {"dropped key": ("/info/a~1b",)}
    assert root("openapi: 3.1.0\ninfo:\n  a: 1\n  a: 2\n", losses)["info"] == {"a": 2}
    assert found(losses) == {"dropped key": ("/info/a~1b", "/info/a")}
    assert root("openapi: 3.1.0\ninfo:\n\ttitle: x\n", losses)["info"] == {"title": "x"}
    assert root(b'{"openapi": "3.1.0", "t": "\xe4"}', losses)["t"] == "\ufffd"
    assert root("openapi: 3.1.0\nt: a\x01b\n", losses)["t"] == "a\ufffdb"
    assert found(losses).keys() == {"dropped key", "changed indentation", "changed encoding"}


@pytest.mark.requirement("providers.document_bounds")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"swagger": "1.2"}, "found version '1.2'"),
        ({"openapi": "4.0.0"}, "found version '4.0.0'"),
        ({}, "neither 'openapi' nor 'swagger'"),
        ("[]", "is an object, found a list"),
        ("<html><body>No</body></html>", "is an object, found text that begins with '<html><body>No</body></html>'"),
        ("", "is an object, found nothing"),
        ("a: [1", "neither JSON nor YAML"),
        ("\ta: [1", "neither JSON nor YAML"),
        ("a: *b", "neither JSON nor YAML: alias"),
        ("[a]: 1", "neither JSON nor YAML: expected|neither JSON nor YAML: a key"),
        ("a: &x [1]\n*x : 2", "neither JSON nor YAML: a key"),
        ("a: !!python/object:os.system {}", "neither JSON nor YAML: tag"),
        ("a: !secret b", "neither JSON nor YAML: tag"),
        ({"a": Decimal(1)}, "a Decimal at /a, which JSON cannot say"),
        (b" " * 40_000_001, "has 40000001 bytes, the limit is 40000000"),
        ("[" * 101, "nests deeper"),
        ("[" * 101 + "]" * 101, "nests deeper"),
        ("[" * 100_000 + "]" * 100_000, "nests deeper"),
        ("a: " + "{a: " * 10_000, "nests deeper"),
        ("a: &a [*a]", "nests without end"),
    ],
)
def test_what_is_no_readable_document_is_refused_with_the_reason(source: Any, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        read(source)


@pytest.mark.requirement("providers.document_bounds")
def test_a_mapping_that_contains_itself_is_refused() -> None:
    cycle: dict[str, Any] = {"openapi": "3.1.0"}
    cycle["again"] = [cycle]
    with pytest.raises(InvalidDefinition, match="nests deeper"):
        read(cycle)


@pytest.mark.requirement("providers.document_bounds")
def test_a_bomb_of_yaml_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(InvalidDefinition, match="expands to more than"):
        read("\n".join(lines))


@pytest.mark.requirement("providers.document_bounds")
def test_bounds_are_the_callers() -> None:
    with pytest.raises(InvalidDefinition, match="has 4 bytes, the limit is 3"):
        read("a: b", bounds=Bounds(max_bytes=3))
    with pytest.raises(InvalidDefinition, match="more than 2 values"):
        read(PLAIN, bounds=Bounds(max_values=2))


def library(value: Any, **documents: Any) -> Library:
    return Library(value, uri="https://a.test/api/main.yaml", documents=documents)


def at(place: Library, reference: str, base: str | None = None) -> Any:
    node = place.find(reference, place.root.base if base is None else base)
    return None if node is None else (node.value, node.place)


@pytest.mark.requirement("providers.references_followed")
def test_pointers_are_unescaped_and_lead_through_lists() -> None:
    source = {"paths": {"/a b": {"get": {"parameters": [{"name": "x"}, None]}}}}
    found_in = library(source)
    assert at(found_in, "#/paths/~1a%20b/get/parameters/0/name") == ("x", "/paths/~1a b/get/parameters/0/name")
    assert at(found_in, "#/paths/~1a%20b/get/parameters/1") == (None, "/paths/~1a b/get/parameters/1")
    assert at(found_in, "#") == (source, "")


@pytest.mark.requirement("providers.references_followed")
@pytest.mark.parametrize(
    "reference",
    ["other.yaml#/a", "#anchor", "#/missing", "#/list/9", "#/list/x", "#/text/x", "https://[x", "urn:x:y", "#/list/²"],
)
def test_references_that_lead_nowhere_find_nothing(reference: str) -> None:
    assert at(library({"list": [1], "text": "x"}), reference) is None


@pytest.mark.requirement("providers.references_followed")
def test_references_lead_into_other_documents_and_from_there_on() -> None:
    documents = {
        "models/deal.yaml": "Deal: {$ref: '../shared.json#/Named'}",
        "https://a.test/api/shared.json": {"Named": {"$ref": "models/deal.yaml#/Deal"}, "Other": 1},
        "broken.yaml": "a: [",
    }
    losses, broken = Losses(), Losses()
    found_in = Library({}, uri="https://a.test/api/main.yaml", documents=documents, losses=broken)
    deal = found_in.find("./models/deal.yaml#/Deal", found_in.root.base)
    assert deal is not None
    assert (deal.place, deal.base) == (
        "https://a.test/api/models/deal.yaml#/Deal",
        "https://a.test/api/models/deal.yaml",
    )
    assert found_in.resolve(deal, losses).value is None
    assert [loss.why for loss in losses.report()] == ["leads in a cycle"]
    assert at(found_in, "shared.json#/Other") == (1, "https://a.test/api/shared.json#/Other")
    assert at(found_in, "broken.yaml") is None
    assert "neither JSON nor YAML" in broken.report()[0].why


@pytest.mark.requirement("providers.references_followed")
def test_identified_schemas_and_anchors_are_found() -> None:
    schemas: dict[str, Any] = {
        "A": {"$id": "schemas/a", "$defs": {"x": {"$anchor": "inner", "type": "string"}}},
        "B": {"$dynamicAnchor": "node", "$id": "#bad"},
        "C": [{"$id": "https://[bad"}],
    }
    found_in = library({"components": {"schemas": schemas}})
    place = "/components/schemas/A"
    assert at(found_in, "schemas/a") == (schemas["A"], place)
    assert at(found_in, "schemas/a#/$defs/x") == (schemas["A"]["$defs"]["x"], f"{place}/$defs/x")
    assert at(found_in, "#inner", "https://a.test/api/schemas/a") == (schemas["A"]["$defs"]["x"], f"{place}/$defs/x")
    assert at(found_in, "#node") == (schemas["B"], "/components/schemas/B")


@pytest.mark.requirement("providers.references_followed", "providers.losses")
@pytest.mark.parametrize("reference", ["#/definitions/Deal", "Deal", "#/components/schema/Deal", "other.yaml#/Deal"])
def test_a_reference_that_plainly_means_a_component_is_taken_for_it_and_reported(reference: str) -> None:
    found_in = library({"components": {"schemas": {"Deal": {"type": "object"}}}})
    losses = Losses()
    resolved = found_in.resolve(Node({"$ref": reference, "description": "d"}, "/here", found_in.root.base), losses)
    assert resolved.place == "/components/schemas/Deal"
    assert found(losses) == {
        "dropped description": ("/here/description",),
        f"changed reference {reference!r}": ("/here",),
    }


@pytest.mark.requirement("providers.references_followed")
def test_a_pointer_that_an_id_leads_astray_is_taken_from_the_main_document() -> None:
    found_in = library({"components": {"schemas": {"A": {"$id": "https://b.test/a"}, "B": {"type": "null"}}}})
    assert at(found_in, "#/components/schemas/B", "https://b.test/a") == ({"type": "null"}, "/components/schemas/B")
