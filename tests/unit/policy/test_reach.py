"""What grants reach among many tools agrees with asking for each."""

from random import Random

import pytest

from tests.twins.shelves import laid_out, revision
from toolcrib.contracts import tool_uri
from toolcrib.core.policy import VisibleTools, permits

NAMES = [
    f"{verb}_{thing}_{number}" for verb in ("get", "update") for thing in ("deal", "contact") for number in range(5)
]
SEGMENTS = ("*", "tools", "get", "update", "get_deal_1", "update_contact_4", "execute", "read", "agents", "")


@pytest.mark.requirement("policy.reach")
@pytest.mark.parametrize("seed", range(20))
def test_what_grants_reach_is_what_they_permit_tool_by_tool(seed: int):
    random = Random(seed)
    shelf = laid_out([revision(name) for name in NAMES])
    reach = VisibleTools(shelf)
    for _ in range(100):
        grants = [
            random.choice(("ai://", "ai://tools/", "")) + "/".join(random.choices(SEGMENTS, k=random.randrange(1, 5)))
            for _ in range(random.randrange(3))
        ]
        verbs = random.sample(("execute", "read", "write"), k=random.randrange(1, 4))
        found = reach.of(grants, verbs)
        allowed = {
            name
            for name in NAMES
            if any(permits(tuple(grants), tool_uri(name.split("_")[0], name, verb)) for verb in verbs)
        }
        assert (set(NAMES) if found is None else found) == allowed


@pytest.mark.requirement("policy.reach")
def test_a_changed_shelf_is_looked_at_anew():
    shelf = laid_out([revision("get_deal_1")])
    reach = VisibleTools(shelf)
    assert reach.of(["ai://tools/get/*"], ["read"]) == {"get_deal_1"}

    shelf.put(revision("get_deal_2"))

    assert reach.of(["ai://tools/get/*"], ["read"]) == {"get_deal_1", "get_deal_2"}
