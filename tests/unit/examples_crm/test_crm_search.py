"""Searching: filters, order, pages."""

from typing import Any

import pytest

from tests.unit.examples_crm.crm_client import Answer, Crm, where

FILTERS = pytest.mark.requirement("crm.search_filters")
EXPLAINS = pytest.mark.requirement("crm.errors_explain")


async def every_page(crm: Crm, *filters: Any, **members: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = (await crm.search(*filters, **members, **after)).body
        results += page["results"]
        if "paging" not in page:
            assert len(results) == page["total"]
            return results
        after = {"after": page["paging"]["next"]["after"]}


async def count(crm: Crm, *filters: Any) -> int:
    return (await crm.search(*filters, limit=1, properties=[])).body["total"]


def sql_count(crm: Crm, condition: str, *parameters: Any) -> int:
    sql = f"SELECT count(*) FROM deals JOIN companies ON companies.id = company_id WHERE {condition}"
    return crm.rows(sql, *parameters)[0][0]


@FILTERS
async def test_without_filters_every_deal_is_found_in_pages_of_twenty(crm: Crm) -> None:
    page = (await crm.search()).body
    assert page["total"] == 5_000
    assert len(page["results"]) == 20
    assert list(page["results"][0]["properties"]) == [
        "name", "amount", "stage", "pipeline", "close_date",
        "owner_id", "company_id", "company_name", "created_at", "updated_at",
    ]  # fmt: skip


@FILTERS
@pytest.mark.parametrize(
    ("item", "condition"),
    [
        (where("company_name", "EQ", "Acme Corp"), "companies.name = 'Acme Corp'"),
        (where("company_name", "EQ", "acme corp"), "FALSE"),
        (where("company_name", "NEQ", "Acme Corp"), "companies.name <> 'Acme Corp'"),
        (where("company_name", "CONTAINS", "aCmE c"), "companies.name = 'Acme Corp'"),
        (where("name", "CONTAINS", "Acme Corp"), "instr(lower(deals.name), 'acme corp')"),
        (where("name", "CONTAINS", "%"), "FALSE"),
        (where("amount", "LT", 5000), "amount_cents < 500000"),
        (where("amount", "LTE", 12345.5), "amount_cents <= 1234550"),
        (where("amount", "GT", 5000), "amount_cents > 500000"),
        (where("amount", "GTE", 5000), "amount_cents >= 500000"),
        (where("amount", "BETWEEN", 1000, high_value=2000), "amount_cents BETWEEN 100000 AND 200000"),
        (where("amount", "NOT_HAS_PROPERTY"), "amount_cents IS NULL"),
        (where("amount", "HAS_PROPERTY"), "amount_cents IS NOT NULL"),
        (where("owner_id", "NEQ", "501"), "deals.owner_id IS NOT 501"),
        (where("owner_id", "IN", values=["501", "502"]), "deals.owner_id IN (501, 502)"),
        (where("owner_id", "NOT_IN", values=["501"]), "deals.owner_id IS NOT 501"),
        (where("close_date", "GTE", "2026-01-01"), "close_date >= '2026-01-01'"),
        (where("created_at", "LT", "2025-06-01T02:00:00+02:00"), "deals.created_at < '2025-06-01'"),
    ],
)
async def test_each_operator_finds_what_it_says(crm: Crm, item: dict[str, Any], condition: str) -> None:
    assert await count(crm, item) == sql_count(crm, condition)


@FILTERS
async def test_filters_of_a_group_are_anded_and_groups_are_ored(crm: Crm) -> None:
    acme, globex = where("company_name", "EQ", "Acme Corp"), where("company_name", "EQ", "Globex")
    large = where("amount", "GTE", 20_000)
    assert await count(crm, acme, globex) == 0
    answer = await crm.search(filter_groups=[{"filters": [acme, large]}, {"filters": [globex]}])
    condition = "(companies.name = 'Acme Corp' AND amount_cents >= 2000000) OR companies.name = 'Globex'"
    assert answer.body["total"] == sql_count(crm, condition)


@FILTERS
async def test_stages_and_pipelines_are_filtered_by_id(crm: Crm) -> None:
    stages = await crm.stages("Sales")
    found = await every_page(
        crm,
        where("company_name", "EQ", "Acme Corp"),
        where("stage", "NEQ", stages["Negotiation"]),
        limit=100,
        properties=["stage"],
    )
    assert {entry["properties"]["stage"] for entry in found} == set(stages.values()) - {stages["Negotiation"]}


@FILTERS
async def test_only_the_wanted_properties_are_shown(crm: Crm) -> None:
    answer = await crm.search(properties=["amount", "name", "amount"], limit=1)
    assert list(answer.body["results"][0]["properties"]) == ["amount", "name"]


@FILTERS
async def test_companies_and_contacts_are_searched_the_same_way(crm: Crm) -> None:
    body = {"filter_groups": [{"filters": [where("name", "CONTAINS", "acme corp")]}]}
    companies = await crm.send("POST", "/crm/v1/companies/search", body)
    [company] = companies.body["results"]
    assert (await crm.send("GET", f"/crm/v1/companies/{company['id']}")).body == company

    body = {"filter_groups": [{"filters": [where("company_id", "EQ", company["id"])]}]}
    contacts = await crm.send("POST", "/crm/v1/contacts/search", body)
    assert contacts.body["results"]
    assert {entry["properties"]["company_name"] for entry in contacts.body["results"]} == {"Acme Corp"}


@pytest.mark.requirement("crm.search_order")
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
@pytest.mark.parametrize("name", ["amount", "close_date", "stage", "created_at"])
async def test_a_sorted_search_visits_every_deal_once_and_unset_values_last(
    crm: Crm, name: str, direction: str
) -> None:
    sorts = [{"property": name, "direction": direction}]
    found = await every_page(crm, where("company_name", "EQ", "Acme Corp"), sorts=sorts, limit=50)
    values = [entry["properties"][name] for entry in found]
    given = [value for value in values if value is not None]
    assert len({entry["id"] for entry in found}) == 237
    assert given == sorted(given, reverse=direction == "DESCENDING")
    assert values == given + [None] * (237 - len(given))


@pytest.mark.requirement("crm.search_order")
async def test_pages_go_on_among_the_deals_without_the_sort_property(crm: Crm) -> None:
    unset = where("amount", "NOT_HAS_PROPERTY")
    found = await every_page(crm, unset, sorts=[{"property": "amount"}], limit=70, properties=["amount"])
    assert len({entry["id"] for entry in found}) == len(found) == await count(crm, unset) > 140


@FILTERS
async def test_counts_are_compared_as_whole_numbers(crm: Crm) -> None:
    def body(value: Any) -> dict[str, Any]:
        return {"filter_groups": [{"filters": [where("employees", "GTE", value)]}], "limit": 1}

    answer = await crm.send("POST", "/crm/v1/companies/search", body(200))
    assert answer.body["total"] == crm.rows("SELECT count(*) FROM companies WHERE employees >= 200")[0][0]
    assert "a whole number" in refused(await crm.send("POST", "/crm/v1/companies/search", body(2.5)))[1]


@pytest.mark.requirement("crm.stable_paging")
async def test_paging_skips_nothing_while_pages_are_changed_out_of_the_result(crm: Crm) -> None:
    target = (await crm.stages())["Negotiation"]
    filters = [where("company_name", "EQ", "Acme Corp"), where("stage", "NEQ", target)]
    wanted = await count(crm, *filters)
    moved: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = await crm.search(*filters, limit=40, **after)
        await crm.batch([{"id": deal, "properties": {"stage": target}} for deal in page.ids])
        moved += page.ids
        if "paging" not in page.body:
            break
        after = {"after": page.body["paging"]["next"]["after"]}
    assert len(moved) == len(set(moved)) == wanted
    assert await count(crm, *filters) == 0


@EXPLAINS
@pytest.mark.requirement("crm.stable_paging")
async def test_a_position_belongs_to_its_search(crm: Crm) -> None:
    after = (await crm.search(limit=1)).body["paging"]["next"]["after"]
    other = await crm.search(where("amount", "GT", 1), after=after)
    assert other.status == 400
    assert "other filters" in other.details[0]["problem"]


@EXPLAINS
@pytest.mark.parametrize("after", ["", "nonsense", "é", 7, "WyJhIiwxLDFd", "e30", "W" * 70_000, ["x"]])
async def test_a_position_that_no_page_gave_is_refused(crm: Crm, after: Any) -> None:
    answer = await crm.search(after=after)
    assert (answer.status, answer.details[0]["path"]) == (400, "after")


def refused(answer: Answer) -> tuple[str, str]:
    assert answer.status == 400
    assert answer.error["code"] == "invalid_request"
    [detail] = answer.details
    return detail["path"], detail["problem"]


FILTER = "filter_groups[0].filters[0]"


@EXPLAINS
@pytest.mark.parametrize(
    ("item", "path", "problem"),
    [
        (where("compny_name", "EQ", "x"), f"{FILTER}.property", "did you mean 'company_name'"),
        (where("name", "LIKE", "x"), f"{FILTER}.operator", "'LIKE' is not an operator for name (text)"),
        (where("amount", "CONTAINS", 1), f"{FILTER}.operator", "not an operator for amount (money)"),
        (where("amount", "EQ", "12"), f"{FILTER}.value", "a JSON number"),
        (where("amount", "EQ", True), f"{FILTER}.value", "a JSON number"),
        (where("amount", "EQ", 1.005), f"{FILTER}.value", "two decimals"),
        (where("close_date", "GT", "1/2/2026"), f"{FILTER}.value", "YYYY-MM-DD"),
        (where("close_date", "GT", "2026-W10-1"), f"{FILTER}.value", "YYYY-MM-DD"),
        (where("created_at", "GT", "2026-01-01T00:00:00"), f"{FILTER}.value", "RFC 3339"),
        (where("created_at", "GT", "soon"), f"{FILTER}.value", "RFC 3339"),
        (where("created_at", "GT", 5), f"{FILTER}.value", "RFC 3339"),
        (where("owner_id", "EQ", "me"), f"{FILTER}.value", "string of digits"),
        (where("name", "EQ", " "), f"{FILTER}.value", "not empty"),
        (where("name", "EQ", "x" * 251), f"{FILTER}.value", "251 characters"),
        (where("name", "EQ", "a\x00b"), f"{FILTER}.value", "control characters"),
        (where("name", "EQ", "\ud800"), f"{FILTER}.value", "broken Unicode"),
        (where("name", "EQ"), f"{FILTER}.value", "is required by EQ"),
        (where("name", "EQ", "a", values=["b"]), f"{FILTER}.values", "has no meaning for EQ"),
        (where("amount", "BETWEEN", 1), f"{FILTER}.high_value", "is required by BETWEEN"),
        (where("name", "IN", values=[]), f"{FILTER}.values", "at least 1"),
        (where("name", "IN", values=["x"] * 101), f"{FILTER}.values", "101 values were sent; at most 100"),
        (where("name", "IN", values="x"), f"{FILTER}.values", "an array of values is wanted, not a string"),
        ({"operator": "EQ"}, f"{FILTER}.property", "is required"),
        (where("name", "EQ", "a", vlaue="b"), f"{FILTER}.vlaue", "did you mean 'value'"),
        (where("stage", "EQ", "Negotiation"), FILTER, "by an id, not by a label"),
        (where("pipeline", "IN", values=["Sales"]), FILTER, "no pipeline has the id 'Sales'"),
        ("name = 'x'", FILTER, "an object is wanted, not a string"),
    ],
)
async def test_a_faulty_filter_is_explained(crm: Crm, item: Any, path: str, problem: str) -> None:
    found_path, found_problem = refused(await crm.search(item))
    assert found_path == path
    assert problem in found_problem


FAULTY_SEARCHES: list[tuple[Any, str, str]] = [
    ([], "body", "not an array"),
    (None, "body", "not null"),
    (True, "body", "not a boolean"),
    (4, "body", "not a number"),
    ({"limit": 0}, "limit", "between 1 and 100"),
    ({"limit": 101}, "limit", "between 1 and 100"),
    ({"limit": True}, "limit", "between 1 and 100"),
    ({"filter_groups": [{}]}, "filter_groups[0].filters", "is required"),
    ({"filter_groups": [{"filters": []}]}, "filter_groups[0].filters", "at least 1"),
    ({"filter_groups": [{"filters": [{}] * 7}]}, "filter_groups[0].filters", "7 filters were sent; at most 6"),
    ({"filter_groups": [{"filters": []}] * 6}, "filter_groups", "6 filter groups were sent; at most 5"),
    ({"filter_groups": {}}, "filter_groups", "not an object"),
    ({"sorts": [{"property": "name"}] * 2}, "sorts", "2 sorts were sent; at most 1"),
    ({"sorts": [{}]}, "sorts[0].property", "is required"),
    ({"sorts": [{"property": "name", "direction": "UP"}]}, "sorts[0].direction", "not a direction"),
    ({"sorts": [{"property": "age"}]}, "sorts[0].property", "not a property of a deal"),
    ({"properties": ["stge"]}, "properties[0]", "did you mean 'stage'"),
    ({"properties": [3]}, "properties[0]", "a property of a deal is wanted"),
    ({"offset": 20}, "offset", "no member 'offset'"),
]


@EXPLAINS
@pytest.mark.parametrize(("body", "path", "problem"), FAULTY_SEARCHES)
async def test_a_faulty_search_is_explained(crm: Crm, body: Any, path: str, problem: str) -> None:
    text = b"null" if body is None else body
    found_path, found_problem = refused(await crm.send("POST", "/crm/v1/deals/search", text))
    assert found_path == path
    assert problem in found_problem


@EXPLAINS
async def test_a_label_in_place_of_an_id_is_answered_with_the_ids_of_all_stages(crm: Crm) -> None:
    answer = await crm.search(where("stage", "EQ", "Negotiation"))
    stages = await crm.stages()
    assert {"value": stages["Negotiation"], "label": "Negotiation (Sales)"} in answer.details[0]["allowed"]


@EXPLAINS
async def test_all_problems_are_told_at_once(crm: Crm) -> None:
    answer = await crm.search(where("nam", "EQ", "x"), where("amount", "EQ", "x"), limit=500)
    assert len(answer.details) == 3
    assert answer.error["message"].startswith("3 problems, the first: ")


@EXPLAINS
@pytest.mark.parametrize("body", [b"", b"{", b'{"limit": NaN}', b"\xff", b"[" * 200_000])
async def test_a_body_that_is_not_json_is_refused(crm: Crm, body: bytes) -> None:
    answer = await crm.send("POST", "/crm/v1/deals/search", body)
    assert answer.status == 400
    assert "not valid JSON" in answer.error["message"]


HOSTILE = (
    "'; DROP TABLE deals; --",
    "1 OR 1=1",
    '" OR ""="',
    "name) UNION SELECT sha256 FROM tokens --",
    "%",
    "_",
    "?",
)


@pytest.mark.requirement("crm.no_injection")
@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_a_value_or_an_unknown_name_and_never_sql(crm: Crm, text: str) -> None:
    for operator in ("EQ", "CONTAINS"):
        assert (await crm.search(where("name", operator, text))).body["total"] == 0
    assert (await crm.search(where("name", "IN", values=[text]))).body["total"] == 0
    assert (await crm.search(where(text, "EQ", "x"))).status == 400
    assert (await crm.search(where("name", text, "x"))).status == 400
    assert (await crm.search(sorts=[{"property": text}])).status == 400
    assert (await crm.search(properties=[text])).status == 400
    [deal] = await crm.some_deals(1)
    renamed = await crm.patch(deal, {"name": text})
    assert renamed.body["properties"]["name"] == text
    assert (await crm.search(where("name", "EQ", text))).ids == [deal]
    assert await count(crm) == 5_000
