"""Ranked search over tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.contracts import ToolDefinition
from toolcrib.core.registry import ToolGroup, ToolSearch, group_of
from toolcrib.kinds.python.shape import PythonImplementation

pytestmark = pytest.mark.requirement("registry.search")


def made(
    name: str, description: str = "", *, tags: tuple[str, ...] = (), parameters: tuple[str, ...] = ()
) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        description=description,
        category="crm",
        tags=tags,
        input_schema={"type": "object", "properties": {name: {} for name in parameters}},
        implementation=PythonImplementation(function="m:f"),
    )


TOOLS = [
    made("searchDeals", "Finds deals by company and stage.", tags=("deals",), parameters=("company", "dealstage")),
    made("update_deal", "Changes one deal, its stage or its amount.", tags=("deals", "write")),
    made("list_companies", "All companies.", tags=("companies",)),
    made("send_mail", "Sends a message to a contact.", tags=("mail",), parameters=("recipient",)),
    made("untagged", "Does something else."),
]
SEARCH = ToolSearch(TOOLS)


def names(query: str, **options: object) -> list[str]:
    return [hit.name for hit in SEARCH.find(query, **options)]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("find a deal", "searchDeals"),
        ("search deals", "searchDeals"),
        ("change the stage of a deal", "update_deal"),
        ("COMPANY", "list_companies"),
        ("recipient", "send_mail"),
        ("e-mail", "send_mail"),
        ("dealst", "searchDeals"),
        ("messages", "send_mail"),
    ],
)
def test_the_tool_that_a_person_means_comes_first(query: str, first: str) -> None:
    assert names(query)[0] == first


def test_a_group_and_the_groups_below_it_narrow_a_search() -> None:
    assert names("deal company", group="crm/companies") == ["list_companies"]
    assert set(names("deal company", group="crm")) == {"searchDeals", "update_deal", "list_companies"}
    assert names("deal", group="cr") == []
    assert SEARCH.groups() == [
        ToolGroup("crm", 1),
        ToolGroup("crm/companies", 1),
        ToolGroup("crm/deals", 2),
        ToolGroup("crm/mail", 1),
    ]
    assert group_of(TOOLS[4]) == "crm"


def test_an_empty_question_lists_all_by_name_and_a_limit_holds() -> None:
    assert names("", limit=2) == ["list_companies", "searchDeals"]
    assert names("the of", group="crm/mail") == ["send_mail"]
    assert len(names("deal company mail", limit=1)) == 1


def test_what_no_tool_says_finds_nothing() -> None:
    assert names("zz quantum") == []
    assert ToolSearch([]).find("deal") == []


@given(st.permutations(TOOLS), st.text(max_size=30))
def test_the_order_of_the_tools_does_not_matter(tools: list[ToolDefinition], query: str) -> None:
    assert ToolSearch(tools).find(query) == SEARCH.find(query)
