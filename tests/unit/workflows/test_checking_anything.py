"""Whatever a definition says, checking it tells what is wrong and raises nothing; what it passes has a plan."""

from random import Random
from typing import Final

import pytest

from tests.unit.workflows.checked import house
from toolcrib.contracts import Json, JsonObject
from toolcrib.contracts.workflows import ConditionBinding, WorkflowImplementation
from toolcrib.workflows import plan_of

NAMES: Final = ("a", "b", "c", "input", "item", "steps", "order")
ATOMS: Final = (*NAMES, "1", "'s'", "null", "[]", "{}", "{a: 1}", "steps.a.output", "error.code", "item.x", "index")
CALLED: Final = ("get_order", "pay", "tag", "ship", "mail", "say", "desk", "nobody", "ai.invoke_agent", "anything")
ARGUMENTS: Final = ("id", "amount", "label", "order", "to", "text", "prompt", "context", "agent_ref", "message")
DEFINITIONS: Final = 150


class Writer:
    """Writes definitions that could have been meant."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def definition(self) -> JsonObject:
        steps = [self._step() for _ in range(self._random.randrange(1, 4))]
        return {"name": "flow", "steps": steps, "output": self._value()}

    def _step(self) -> JsonObject:
        pick = self._random.choice
        step: JsonObject = {"name": pick(("a", "b", "c", "order"))}
        parts: tuple[JsonObject, ...] = (
            {pick(("tool", "agent", "workflow", "handler_ref")): pick(CALLED)},
            {"input": {pick(ARGUMENTS): self._value() for _ in range(3)}},
            {"output": self._value()},
            {"condition": pick((self._text(), {"ref": "big", "input": {"n": self._value()}}))},
            {"for_each": {"items": self._text(), "on_item_error": pick(("fail", "continue"))}},
            {"depends_on": [pick(NAMES)], "join": pick(("any", "always"))},
            {"on_error": pick(("continue", {"go_to": pick(NAMES)}))},
            {"save_as": pick(NAMES)},
            {"wait": {pick(("seconds", "until", "signal")): self._text()}},
            {"approval": {"message": self._text(), "show": {"a": self._value()}}},
            {"pins": [{"name": "p", "selector": {"tool": "say"}}]},
        )
        for part in self._random.sample(parts, k=self._random.randrange(1, 5)):
            step |= part
        return step

    def _value(self, depth: int = 0) -> Json:
        choice = self._random.randrange(6)
        if choice == 0 and depth < 3:
            return {self._random.choice(NAMES): self._value(depth + 1) for _ in range(2)}
        if choice == 1 and depth < 3:
            return [self._value(depth + 1) for _ in range(2)]
        return self._random.choice((1, None, True, 1.5, "${")) if choice == 2 else self._text()

    def _text(self) -> str:
        return self._random.choice(("", "t ")) + "${" + self._expression(0) + "}"

    def _expression(self, depth: int) -> str:
        pick = self._random.choice
        if depth > 3 or self._random.random() < 0.3:
            return pick(ATOMS)
        inner = [self._expression(depth + 1) for _ in range(3)]
        return pick(
            (
                f"{inner[0]}.{pick((*NAMES, 'length', 'id', 'lines'))}",
                f"{inner[0]}?.{pick(NAMES)}",
                f"{inner[0]}[{pick(('0', '-1', '*', 'index', repr('id')))}]",
                f"{inner[0]}[*].{pick(NAMES)}",
                f"({inner[0]} {pick(('+', '-', '/', '&&', '||', '??', '==', 'in', '<'))} {inner[1]})",
                f"{pick('!-')}{inner[0]}",
                f"({inner[0]} ? {inner[1]} : {inner[2]})",
                f"{pick(('json', 'first', 'default', 'max', 'split', 'keys', 'nope'))}({inner[0]})",
                f"[{inner[0]}, {inner[1]}]",
                f"{{a: {inner[0]}}}",
            )
        )


@pytest.mark.requirement("workflow_checks.all_at_once")
@pytest.mark.parametrize("seed", range(4))
async def test_checking_raises_nothing_whatever_it_is_given(seed: int):
    writer = Writer(seed)
    async with house() as crib:
        await crib.conditions.save(ConditionBinding(name="big", parameters=("n",), expression="${n > 3}"))
        for _ in range(DEFINITIONS):
            definition = writer.definition()
            graph = await crib.workflows.check(definition)
            if not any(problem.is_error for problem in graph.problems):
                published = await crib.workflows.publish(definition)
                implementation = published.tool.definition.implementation
                assert isinstance(implementation, WorkflowImplementation)
                assert plan_of(implementation).nodes
