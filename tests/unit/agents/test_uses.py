"""What a model is asked about each mention before it plans."""

import pytest

from tests.unit.agents.crm import DONE, Crm, plan, run_sequence
from toolcrib import AgenticContext, ReferenceSource
from toolcrib.agents.uses import Mention, uses_schema

pytestmark = pytest.mark.requirement("agents.uses")

LIVE = AgenticContext(reference_data=(ReferenceSource(name="stages", tool="list_stages", applies_to=("stage",)),))


def test_a_mention_may_select_or_be_set_as_far_as_the_tools_can():
    mentions = [Mention("Demo held", ("stage",)), Mention("Globex", ("name", "company"))]

    schema = uses_schema(mentions, selectable={"stage", "company"}, writable={"stage"})

    assert schema["properties"] == {
        "Demo_held": {"type": "string", "enum": ["select by stage", "set stage", "other"]},
        "Globex": {"type": "string", "enum": ["select by company", "other"]},
    }
    assert schema["required"] == ["Demo_held", "Globex"]


def test_a_bound_selects_and_is_never_set():
    (bound,) = [Mention("50000", ("amount",), "above")]

    schema = uses_schema([bound], selectable={"amount"}, writable={"amount"})

    assert schema["properties"]["50000"]["enum"] == ["select by amount", "other"]
    assert str(bound) == "'50000' (amount: above it)"
    assert str(Mention("50000", (), "below")) == "'50000' (below it)"
    assert str(Mention("Globex", ())) == "'Globex'"


def test_names_of_mentions_are_such_that_every_provider_takes_them():
    mentions = [Mention("Novák & Søn", ()), Mention("北京", ()), Mention("Nov k S n", ()), Mention("x" * 90, ())]

    names = list(uses_schema(mentions, (), ())["properties"])

    assert names == ["Nov_k_S_n", "mention_2", "Nov_k_S_n_3", "x" * 40]


async def test_the_name_of_a_mention_is_as_good_as_the_mention():
    crm = Crm(1)
    crm.stages = [*crm.stages, {"id": "3004", "label": "Closed won"}]
    written = plan()
    written["update_deals"]["input"]["stage"] = "Closed_won"

    result, model = await run_sequence(crm, written, DONE, task="Move all Acme deals to Closed won", context=LIVE)

    assert result.ok
    assert crm.updates == [(["d0"], "3004")]
    assert len(model.requests) == 2


async def test_a_plan_may_say_what_mentions_are_for_and_is_as_good_without():
    crm = Crm(1)
    written = {"uses": {"Acme": "select by company", "Negotiation": "set stage"}, **plan()}

    result, model = await run_sequence(crm, written, DONE, task="Move all Acme deals to Negotiation", context=LIVE)

    assert result.ok
    assert crm.updates == [(["d0"], "3003")]
    shown = model.requests[0].output_schema
    assert shown is not None
    assert shown["required"][0] == "uses"
    assert "'Acme' (company); 'Negotiation' (stage)" in model.requests[0].messages[0].text


async def test_a_task_without_mentions_is_not_asked_about_any():
    _, model = await run_sequence(Crm(1), plan(update_deals={"skip": True}), DONE, task="find deals", context=LIVE)

    shown = model.requests[0].output_schema
    assert shown is not None
    assert "uses" not in shown["properties"]
    assert "mentions" not in model.requests[0].messages[0].text
