"""Names for tools and for conditions: refused where no step could use them, kept by name."""

import pytest

from tests.unit.workflows.checked import house
from toolcrib.contracts import InvalidDefinition, NotFound
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration

pytestmark = pytest.mark.requirement("workflow_checks.vocabulary")


async def test_registrations_and_conditions_are_saved_listed_and_removed():
    async with house() as crib:
        talk = StepRegistration(name="talk", tool="say", input_mapping={"text": "${input.text}"})
        big = ConditionBinding(name="big", parameters=("n",), expression="${n > 3}")

        await crib.steps.save(talk)
        await crib.conditions.save(big)

        assert (await crib.steps.get("talk"), await crib.conditions.list()) == (talk, [big])
        await crib.steps.remove("talk")
        with pytest.raises(NotFound, match="there is no workflow step 'talk'"):
            await crib.steps.get("talk")


def test_a_registration_is_read_as_004_writes_it_and_written_as_everything_is():
    written = {"name": "talk", "toolRef": "say", "inputMapping": {"text": "hi"}, "outputMapping": {"said": "${output}"}}

    read = StepRegistration.model_validate(written)

    assert read == StepRegistration(
        name="talk", tool="say", input_mapping={"text": "hi"}, output_mapping={"said": "${output}"}
    )
    assert read.model_dump(exclude_defaults=True).keys() == {"name", "tool", "input_mapping", "output_mapping"}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (StepRegistration(name="ai.invoke_agent", tool="say"), "'ai.invoke_agent' is built in; give yours"),
        (StepRegistration(name="t", tool="say", input_mapping={"text": "${"}), "'t': input_mapping: /text: '${'"),
        (StepRegistration(name="t", tool="say", output_mapping={"a": "${b(}"}), "'t': output_mapping: /a: "),
    ],
)
async def test_a_registration_that_no_step_could_use_is_refused(step: StepRegistration, said: str):
    async with house() as crib:
        with pytest.raises(InvalidDefinition) as refused:
            await crib.steps.save(step)

    assert said in str(refused.value)


async def test_a_registration_names_a_tool_that_there_is():
    async with house() as crib:
        with pytest.raises(NotFound, match="no tool 'shout'"):
            await crib.steps.save(StepRegistration(name="t", tool="shout"))


@pytest.mark.parametrize(
    ("parameters", "expression", "said"),
    [
        (("n", "n"), "${n > 3}", "two of its parameters have one name: n, n"),
        (("n",), "${m > 3}", "expression: unknown placeholder '${m}'"),
        (("n",), "${n > }", "expression: in '${n > }'"),
        (("n",), "n > 3", "'n > 3' is not one expression; write it as ${…}"),
        (("n",), "${n} > 3", "'${n} > 3' is not one expression"),
        (("n", "m"), "${n > 3}", "its expression does not read m; take it out of the parameters"),
    ],
)
async def test_a_condition_is_one_expression_over_parameters(parameters: tuple[str, ...], expression: str, said: str):
    async with house() as crib:
        with pytest.raises(InvalidDefinition) as refused:
            await crib.conditions.save(ConditionBinding(name="c", parameters=parameters, expression=expression))

    assert str(refused.value).startswith(f"condition 'c': {said}")
