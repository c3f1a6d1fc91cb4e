"""Two runs held against each other."""

import pytest

from tests.unit.agents.crm import Crm, asks
from tests.unit.forks.test_changing import agent
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import JsonObject, PermissionDenied, Principal
from toolcrib.contracts.runs.comparisons import ValueDiff
from toolcrib.core.runs.views.comparison import value_diffs

pytestmark = pytest.mark.requirement("forks.diff")

SEARCH = asks(("search_deals", {"company": "Acme"}))
OTHER = asks(("search_deals", {"company": "Beta"}))
UPDATE = asks(("update_deals", {"ids": ["d0"], "stage": "3001"}))


async def test_a_fork_is_held_against_its_run():
    script = ScriptedModel([SEARCH, UPDATE, "Ok."])
    other = ScriptedModel([SEARCH, OTHER, UPDATE, "Other."], name="o")
    async with Crib("memory://", models={"scripted:m": script, "scripted:o": other}) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        first = await crib.invoke("a", {"message": "go"})
        changes: JsonObject = {"model": "scripted:o"}
        fork = await crib.fork(first.run_id, changes=changes)

        diff = await crib.compare(first.run_id, fork.run_id)

        assert (diff.before.run_id, diff.after.run_id) == (first.run_id, fork.run_id)
        assert (diff.before.models, diff.after.models) == (("scripted:script",), ("scripted:o",))
        assert (diff.before.taken, diff.after.taken) == (0, 2)
        assert (diff.before.tool_calls, diff.after.tool_calls) == (2, 3)
        assert diff.after.fork is not None
        assert diff.after.fork.run_id == first.run_id
        assert diff.output == (ValueDiff(path="/response", before="Ok.", after="Other."),)
        assert [(each.position, each.change) for each in diff.calls] == [("t2.c1", "tool"), ("t3.c1", "only_after")]
        assert [each.position for each in diff.answers] == ["t2.llm", "t3.llm", "t4.llm"]
        assert diff.parting is not None
        assert diff.parting.position == "t2.llm"

        same = await crib.compare(first.run_id, (await crib.fork(first.run_id)).run_id)
        assert (same.parting, same.output, same.calls, same.answers, same.decisions) == (None, (), (), (), ())


async def test_other_arguments_other_decisions_and_runs_that_go_on():
    models = {"scripted:m": ScriptedModel([SEARCH, "Ok.", OTHER, "No.", UPDATE])}
    async with Crib("memory://", models=dict(models)) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a"))
        one, other = [await crib.invoke("a", {"message": "go"}) for _ in range(2)]
        await crib.save(agent("a", requires_approval=True))
        waits = await crib.invoke("a", {"message": "go"})

        [call] = (await crib.compare(one.run_id, other.run_id)).calls
        assert (call.change, call.arguments) == (
            "arguments",
            (ValueDiff(path="/company", before="Acme", after="Beta"),),
        )
        diff = await crib.compare(one.run_id, waits.run_id)
        assert (diff.after.status, diff.after.cost_usd) == ("awaiting_approval", 0)
        assert [(each.position, each.change) for each in diff.calls] == [("t1.c1", "only_before")]
        assert [(each.kind, each.before, each.after) for each in diff.decisions] == [("guard", "allow", None)]


async def test_who_may_not_read_both_runs_sees_no_difference():
    async with Crib("memory://", models={"scripted:m": ScriptedModel(["Ok."])}) as crib:
        await crib.save(agent("a", tools=()))
        first = await crib.invoke("a", {"message": "go"})

        with pytest.raises(PermissionDenied):
            await crib.acting_as(Principal(id="eve", grants=())).compare(first.run_id, first.run_id)


def test_values_differ_at_the_places_where_they_do():
    before = {"same": 1, "a/b": [1, {"x": True}], "gone": None, "kind": 1}
    after = {"same": 1, "a/b": [1, {"x": False}, 3], "new": "~", "kind": True}

    found = {each.path: (each.before, each.after) for each in value_diffs(before, after)}

    assert found == {
        "/a~1b/1/x": (True, False),
        "/a~1b/2": (None, 3),
        "/gone": (None, None),
        "/kind": (1, True),
        "/new": (None, "~"),
    }


async def test_what_people_decided_is_compared_too():
    async with Crib(
        "memory://", models={"scripted:m": ScriptedModel([SEARCH, UPDATE, "Ok.", SEARCH, UPDATE, "No."])}
    ) as crib:
        crib.add(*Crm(1).tools)
        await crib.save(agent("a", requires_approval=True))
        ids: list[str] = []
        for approve in (True, False):
            waiting = await crib.invoke("a", {"message": "go"})
            while asked := await crib.pending_approvals(waiting.run_id):
                await crib.decide(waiting.run_id, asked[0].position, approve=approve)
                await crib.resume(waiting.run_id)
            ids.append(waiting.run_id)

        decisions = (await crib.compare(*ids)).decisions

        assert {(each.before, each.after) for each in decisions} >= {("approved", "rejected")}
