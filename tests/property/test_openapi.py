"""Whatever is done to a document, an import refuses it as a whole or makes valid tools and a report of it."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.openapi.documents import document
from tests.unit.openapi.fidelity import members
from tests.unit.openapi.samples import SAMPLES
from toolcrib.contracts import InvalidDefinition, JsonObject
from toolcrib.core.providers import ImportedApi
from toolcrib.kinds.dispatch import check_tool
from toolcrib.kinds.http.openapi import import_openapi

_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        -1,
        0.5,
        "",
        "x",
        "#",
        "(",
        "{a}",
        [],
        [None],
        ["x", "x"],
        {},
        {"$ref": "#"},
        {"$ref": "#/components/schemas/Deal"},
        {"$ref": "elsewhere.yaml"},
        {"type": "array", "items": {"$ref": "#/paths"}},
        {"a": {"b": []}},
    ]
)


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to all values of a document but the whole."""
    found: list[tuple[Any, ...]] = [way] if way else []
    for key, member in members(value):
        found += places(member, (*way, key))
    return found


WAYS = {name: places(sample) for name, sample in SAMPLES.items()}


@st.composite
def broken(draw: st.DrawFn) -> JsonObject:
    """A sample with some values deleted, replaced, copied to other places or written as keys."""
    name = draw(st.sampled_from(sorted(SAMPLES)))
    found = deepcopy(SAMPLES[name])
    for way in draw(st.lists(st.sampled_from(WAYS[name]), min_size=1, max_size=4)):
        change(found, way, draw(st.sampled_from(["delete", "replace", "copy", "rename"])), draw, WAYS[name])
    return found


def change(whole: JsonObject, way: tuple[Any, ...], how: str, draw: st.DrawFn, ways: list[tuple[Any, ...]]) -> None:
    try:
        parent = at(whole, way[:-1])
        value = parent[way[-1]]
        if how == "delete":
            del parent[way[-1]]
        elif how == "replace":
            parent[way[-1]] = draw(_ODD)
        elif how == "copy":
            parent[way[-1]] = deepcopy(at(whole, draw(st.sampled_from(ways))))
        elif isinstance(parent, dict):
            parent[draw(st.sampled_from(["", "/", "x-a", "type", "200", "a/b", "get", "$ref"]))] = value
    except (KeyError, IndexError, TypeError):
        pass  # an earlier change has taken it away


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        value = value[key]
    return value


def checked(api: ImportedApi) -> None:
    names = [tool.name for tool in api.tools]
    assert len(set(names)) == len(names)
    for tool in api.tools:
        check_tool(tool)
    assert [found.tool for found in api.report.operations if found.tool] == names
    for operation in api.report.operations:
        if operation.tool is None:
            assert any(loss.kind == "operation" for loss in operation.losses)
        assert operation.components == tuple(place for place in operation.components if place in api.report.components)
    assert all(loss.places and loss.why for loss in api.losses)


@pytest.mark.requirement("providers.any_document")
@settings(deadline=None, max_examples=150)
@given(broken())
def test_a_broken_document_is_refused_or_becomes_valid_tools(source: JsonObject) -> None:
    versions = [source.get("openapi"), source.get("swagger")]
    if any(version in ("2.0", "3.0.3", "3.1.0") for version in versions if isinstance(version, str)):
        checked(import_openapi(source, name="api"))
        return
    with pytest.raises(InvalidDefinition, match="OpenAPI"):
        import_openapi(source, name="api")


@pytest.mark.requirement("providers.any_document")
@settings(deadline=None)
@given(st.recursive(_ODD, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=20))
def test_anything_may_stand_in_the_place_of_any_part(value: Any) -> None:
    for name in ("paths", "components", "servers", "security", "tags", "info"):
        checked(import_openapi({**document({"/a": {"get": {}}}), name: value}, name="api"))
    for name in ("parameters", "requestBody", "responses", "security", "servers", "tags", "operationId", "summary"):
        checked(import_openapi(document({"/a": {"post": {name: value}}}), name="api"))
    checked(
        import_openapi({"swagger": "2.0", "host": "a.test", "paths": {"/a": {"post": {"parameters": value}}}}, name="a")
    )


_IDS = st.sampled_from(["list", "list.deals", "list_deals", "list/deals", "a", "é", "x" * 70, None])
_OPERATIONS = st.dictionaries(
    st.tuples(st.sampled_from(["/a", "/b/{id}", "/b_id", "/list/deals"]), st.sampled_from(["get", "post"])),
    _IDS,
    min_size=1,
    max_size=6,
)


def named(operations: dict[tuple[str, str], str | None], **options: Any) -> dict[str, str]:
    """Names of tools by operation, for a document with the operations in this order."""
    paths: JsonObject = {}
    for (path, method), operation_id in operations.items():
        paths.setdefault(path, {})[method] = {} if operation_id is None else {"operationId": operation_id}
    api = import_openapi(document(paths), name="api", **options)
    return {found.operation: found.tool or "" for found in api.report.operations}


@pytest.mark.requirement("providers.tool_names")
@given(_OPERATIONS, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_of_a_document(operations: Any, random: Any) -> None:
    shuffled = list(operations.items())
    random.shuffle(shuffled)
    assert named(dict(shuffled)) == named(operations)


@pytest.mark.requirement("providers.tool_names")
@given(_OPERATIONS, _OPERATIONS)
def test_a_document_that_grows_renames_nothing_that_was_imported_before(operations: Any, more: Any) -> None:
    before = named(operations)
    after = named({**more, **operations}, names=before)
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == len(after)


@pytest.mark.requirement("providers.tool_names")
@given(st.sets(st.text("abc_", min_size=1, max_size=4).filter(lambda name: name[0] != "_" and name[-1] != "_")))
def test_an_operation_whose_id_is_legal_has_it_for_a_name_whatever_else_there_is(ids: set[str]) -> None:
    operations: Any = {(f"/{number}", "get"): operation_id for number, operation_id in enumerate(sorted(ids))}
    assert set(named(operations).values()) == ids
