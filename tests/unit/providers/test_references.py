"""Reference lists."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import InvalidDefinition, Json, ReferenceSource
from toolcrib.core.providers import ReferenceItem, ReferenceList, closest, read_reference, resolve

NOW = datetime(2026, 1, 31, tzinfo=UTC)
PIPELINES = {
    "results": [
        {"id": "p1", "stages": [{"id": "s1", "label": "Negotiation", "order": 1}, {"id": "s2", "label": "Closed Won"}]},
        {
            "id": "p2",
            "stages": [{"id": "s3", "label": "Closed Won"}, {"id": "s4"}, {"id": "s1", "label": "Negotiation"}],
        },
    ]
}
STAGES = ReferenceSource(name="stages", tool="list_pipelines", items="$.results[*].stages[*]")


def stages() -> ReferenceList:
    return read_reference(STAGES, PIPELINES, fetched_at=NOW)


@pytest.mark.requirement("providers.references_read")
def test_a_list_is_read_from_the_output_of_its_tool_and_names_no_value_twice() -> None:
    assert stages() == ReferenceList(
        "stages",
        (
            ReferenceItem("s1", "Negotiation"),
            ReferenceItem("s2", "Closed Won"),
            ReferenceItem("s3", "Closed Won"),
            ReferenceItem("s4", "s4"),
        ),
        NOW,
        "list_pipelines",
    )


@pytest.mark.requirement("providers.references_read")
def test_what_else_an_item_says_is_kept() -> None:
    source = ReferenceSource(name="owners", tool="list_owners", value="key", label="name")
    found = read_reference(source, [{"key": 7, "name": "Ann", "email": "a@x"}], fetched_at=NOW)
    assert found.items == (ReferenceItem(7, "Ann", {"email": "a@x"}),)


@pytest.mark.requirement("providers.references_read")
def test_written_values_need_no_tool() -> None:
    source = ReferenceSource(name="sizes", values=("small", {"id": 2, "label": "Large"}))
    found = read_reference(source, None, fetched_at=NOW)
    assert found.items == (ReferenceItem("small", "small"), ReferenceItem(2, "Large"))
    assert found.source is None


@pytest.mark.requirement("providers.references_read")
@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([{"name": "x"}], "an item has no 'id'"),
        ([["x"]], "an item has no 'id'"),
        ([{"id": None}], "an item has no 'id'"),
        (list(range(10_001)), "has 10001 items, the limit is 10000"),
    ],
)
def test_an_output_that_does_not_fit_is_refused_with_what_to_correct(output: Json, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        read_reference(ReferenceSource(name="x", tool="t"), output, fetched_at=NOW)


@pytest.mark.requirement("providers.references_read")
def test_a_system_without_items_has_an_empty_list() -> None:
    found = read_reference(ReferenceSource(name="x", tool="t"), [], fetched_at=NOW)
    assert (found.items, closest(found, "a"), resolve(found, "a")) == ((), [], None)


@pytest.mark.requirement("providers.references_resolved")
@pytest.mark.parametrize(
    ("text", "value"),
    [("s3", "s3"), ("S3", "s3"), (" negotiation ", "s1"), ("Closed Won", None), ("Negotiate", None), ("", None)],
)
def test_only_an_exact_value_or_an_unambiguous_label_is_resolved(text: str, value: Any) -> None:
    found = resolve(stages(), text)
    assert (found.value if found else None) == value


@pytest.mark.requirement("providers.references_resolved")
def test_true_is_not_one() -> None:
    source = ReferenceSource(name="x", values=({"id": 1, "label": "yes"}, {"id": True, "label": "on"}))
    found = resolve(read_reference(source, None, fetched_at=NOW), True)
    assert found is not None
    assert found.label == "on"


@pytest.mark.requirement("providers.references_closest")
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("negotiaton", ["s1"]),
        ("CLOSED", ["s2", "s3"]),
        ("the closed won stage", ["s2", "s3"]),
        ("s4", ["s4", "s1", "s2"]),
        ("qqq", []),
        ("", []),
    ],
)
def test_the_closest_items_come_best_first(text: str, values: list[str]) -> None:
    assert [item.value for item in closest(stages(), text)] == values


@pytest.mark.requirement("providers.references_closest")
@given(text=st.text(max_size=20), n=st.integers(0, 3))
def test_never_more_than_asked_for_and_a_resolved_text_is_the_closest(text: str, n: int) -> None:
    found = closest(stages(), text, n)
    assert len(found) <= n
    item = resolve(stages(), text)
    assert item is None or n == 0 or found[0] == item
