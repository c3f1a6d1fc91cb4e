"""The tools of one realm at hand: whatever happens to them one by one, they are found as if they were laid out anew."""

from random import Random

import pytest

from tests.twins.shelves import laid_out, revision
from toolcrib.contracts import ToolRevision
from toolcrib.core.registry import RealmIndex

VERBS = ("list", "get", "update")
THINGS = ("deal", "contact", "invoice")


def answers(shelf: RealmIndex) -> dict[str, object]:
    return {
        "names": list(shelf.names),
        "current": list(shelf.current()),
        "found": {name: shelf.find(name, "^1") for name in shelf.names},
        "deals": set(shelf.having("tag", "deal")),
        "updates": set(shelf.having("category", "update")),
        "blocked": set(shelf.having("status", "blocked")),
        "like": [tool.name for tool in shelf.like("get_*")],
        "page": [
            tool.name for tool in shelf.page(after="get_z", among=[shelf.having("tag", "deal")], text="REVISION 2")
        ],
        "search": [(hit.name, round(hit.score, 4)) for hit in shelf.search.find("update a deal", limit=5)],
    }


@pytest.mark.requirement("registry.shelf")
@pytest.mark.parametrize("seed", range(10))
def test_a_shelf_that_followed_its_changes_answers_like_one_that_was_filled_anew(seed: int):
    random = Random(seed)
    shelf, left = RealmIndex(), dict[tuple[str, int], ToolRevision]()
    for step in range(200):
        name = f"{random.choice(VERBS)}_{random.choice(THINGS)}_{random.randrange(6)}"
        if random.random() < 0.2:
            shelf.drop(name)
            left = {key: kept for key, kept in left.items() if key[0] != name}
            continue
        made = revision(
            name,
            number=random.randrange(1, 4),
            version=random.choice(("1.0.0", "1.1.0", "2.0.0")),
            status=random.choice(("active", "blocked")),
        )
        shelf.put(made)
        left[name, made.revision] = made
        if step == 50:
            assert shelf.search  # from here on the index follows too
    assert answers(shelf) == answers(laid_out(list(left.values())))


@pytest.mark.requirement("registry.shelf")
def test_dropping_one_revision_leaves_the_others_and_dropping_the_last_takes_the_name_away():
    shelf = laid_out([revision("get_deal"), revision("get_deal", number=2, version="1.1.0")])

    shelf.drop("get_deal", 2)
    assert shelf.find("get_deal", None) == revision("get_deal")
    shelf.drop("get_deal", 1)
    shelf.drop("get_deal", 1)
    assert (list(shelf.names), shelf.find("get_deal", None)) == ([], None)


@pytest.mark.requirement("registry.search")
def test_a_common_word_of_a_large_catalogue_orders_what_the_other_words_find():
    shelf = laid_out([revision(f"get_deal_{number}") for number in range(3_000)])
    shelf.put(revision("get_invoice"))
    shelf.put(revision("update_invoice"))

    assert [hit.name for hit in shelf.search.find("get invoice")] == ["get_invoice", "update_invoice"]
    assert [hit.name for hit in shelf.search.find("get deal", limit=3)] == [
        "get_deal_0",
        "get_deal_1",
        "get_deal_10",
    ]
    assert [hit.name for hit in shelf.search.find("get invoice", among={"update_invoice"})] == ["update_invoice"]


@pytest.mark.requirement("registry.search")
def test_what_was_taken_out_is_not_found_however_much_it_was():
    shelf = laid_out([revision(f"get_deal_{number}") for number in range(1_500)])
    assert len(shelf.search) == 1_500
    for number in range(1_499):
        shelf.drop(f"get_deal_{number}")

    assert [hit.name for hit in shelf.search.find("deal")] == ["get_deal_1499"]
    assert [hit.name for hit in shelf.search.find("")] == ["get_deal_1499"]


@pytest.mark.requirement("registry.shelf")
@pytest.mark.parametrize("count", [3, 200])
def test_names_that_come_one_by_one_and_all_at_once_are_in_order(count: int):
    shelf = RealmIndex()
    for number in reversed(range(count)):
        shelf.put(revision(f"tool_{number}"))
    shelf.drop("tool_1")
    shelf.put(revision("tool_0"))

    assert list(shelf.names) == sorted(f"tool_{number}" for number in range(count) if number != 1)
    assert [tool.name for tool in shelf.current()] == list(shelf.names)
