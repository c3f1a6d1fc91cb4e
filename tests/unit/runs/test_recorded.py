"""The answers of recorded runs as a model."""

import pytest

from tests.unit.runs.house import House, Script
from toolcrib.contracts import InvalidInput, Json, ModelError
from toolcrib.core.runs import ModelCall, RunContext, recorded_model
from toolcrib.llm import Request, ScriptedModel, user

QUESTION = Request(messages=(user("How many?"),), system="Count.", max_tokens=100)


def asks(model: ScriptedModel) -> Script:
    """A program that asks a model once and returns what it said."""

    async def script(context: RunContext) -> Json:
        call = ModelCall("t1.llm", "tool_selection", model, QUESTION, new=QUESTION.messages)
        try:
            return (await context.model(call)).message.text
        except ModelError as problem:
            return str(problem)

    return script


@pytest.mark.requirement("runs.recorded_model")
async def test_a_recorded_run_is_a_model_that_answers_the_same_again():
    first = House(asks(ScriptedModel(["three"])))
    second = House(asks(ScriptedModel([ModelError("bad_request", "no")])), other=first)
    events = [
        entry
        for house in (first, second)
        for entry in await house.store.journal.events((await house.start()).result.run_id)
    ]

    model = recorded_model(events)

    assert (await model.request(QUESTION)).message.text == "three"
    with pytest.raises(ModelError, match="no"):
        await model.request(QUESTION)


@pytest.mark.requirement("runs.recorded_model")
async def test_a_run_whose_model_has_not_answered_is_no_model():
    house = House(asks(ScriptedModel(["three"])))
    run_id = (await house.start()).result.run_id
    events = await house.store.journal.events(run_id)

    with pytest.raises(InvalidInput, match=f"run {run_id} has no answer to its model call 't1.llm'"):
        recorded_model(events[:2])
