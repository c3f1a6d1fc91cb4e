"""The test of a system prompt: what the model is told, and what it would do first. No tool that it wants is called.

A program like any other: it reads reference data through the run's calls and asks the model within the run's budget.
What it finds is its output; a prompt that would fail is an outcome, not an exception.
"""

import orjson

from toolcrib.agents.evidence.plan import StepPlan
from toolcrib.agents.model.failures import model_failure
from toolcrib.agents.model.json_answers import UnusableAnswer
from toolcrib.agents.planner.planning import first_plan
from toolcrib.agents.prepare.agentic_tool import Furnisher, Setup
from toolcrib.contracts import Json, JsonObject, ModelError, ToolRevision, TrialCall
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import BudgetExhausted, Ended, RunContext
from toolcrib.llm import ToolCall, user


class Trial:
    """The program of a prompt's test.

    Args:
        furnisher: Furnishes runs.
    """

    def __init__(self, furnisher: Furnisher) -> None:
        self._furnisher = furnisher

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Ask for the plan, or for the first turn."""
        setup = await self._furnisher.prepare(context, tool)
        found: JsonObject = {"system_prompt": setup.system_prompt(), "calls": [], "problems": []}
        try:
            found |= await (self._plan(setup) if setup.implementation.mode == "deterministic" else self._turn(setup))
        except BudgetExhausted as limit:
            return Ended(output=found, stop_reason=limit.shortage.stop_reason, warnings=(str(limit),))
        except (ModelError, UnusableAnswer) as failure:
            return Ended(output=found, status="failed", stop_reason="error", error=model_failure(failure))
        return Ended(output=found)

    async def _plan(self, setup: Setup) -> JsonObject:
        plan, doubts = await first_plan(setup)
        calls: list[JsonObject] = []
        for step in setup.implementation.steps:
            wanted = StepPlan.read(plan[step.id])
            call = TrialCall(
                step=step.id, tool=step.tool, input=wanted.input, skipped=wanted.skip, for_each=wanted.for_each
            )
            calls.append(call.model_dump(mode="json"))
        return {"answer": plan, "reasoning": plan.get("reasoning"), "calls": calls, "problems": doubts}

    async def _turn(self, setup: Setup) -> JsonObject:
        messages, system = (user(setup.task),), setup.system_prompt()
        request = setup.request(messages, system=system, tools=setup.place.offer.tools)
        response = await setup.context.model(
            setup.call("t1.llm", "tool_selection", request, new=messages, system=system)
        )
        judged = [_judged(setup, call) for call in response.message.calls]
        return {
            "answer": response.message.text or None,
            "calls": [call.model_dump(mode="json") for call, _ in judged],
            "problems": [problem for _, problem in judged if problem],
        }


def _judged(setup: Setup, call: ToolCall) -> tuple[TrialCall, str]:
    """A call that the model wants, and what is wrong with it."""
    name = setup.place.offer.named(call.name)
    item = next((allotted for allotted in setup.allotted if allotted.tool.name == name), None)
    try:
        arguments: Json = orjson.loads(call.args or "{}")
    except orjson.JSONDecodeError:
        return TrialCall(tool=name, input=call.args), f"the arguments of {name!r} are not JSON"
    if item is None:
        return TrialCall(tool=name, input=arguments), f"the model called {name!r}, which is not among its tools"
    problems = "; ".join(map(str, compile_schema(item.schema).problems(arguments)))
    wanted = TrialCall(tool=name, input=arguments)
    return wanted, f"the arguments of {name!r} do not fit: {problems}" if problems else ""
