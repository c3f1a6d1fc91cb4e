"""Models that play a run's part: a planner with one plan, which it may or may not correct, and a reader beside it.

What stands in a question's wording or in the final answer decides nothing, so it is any JSON that meets the schema.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

import orjson

from tests.corpus.corpus import Task
from tests.corpus.second_reader import second_reading
from toolcrib.contracts import JsonObject, JsonSchema
from toolcrib.llm import Request

_CORRECTING: Final = "Check this plan against the task:"


def truthful(task: Task) -> Callable[[Request], str]:
    """The reader who knows what the task means."""
    return second_reading(task)


@dataclass(slots=True)
class Player:
    """The model of one run.

    It writes `first`; told what is wrong with it, `corrected`; and once a person has answered, `answered`.
    """

    task: Task
    first: JsonObject
    corrected: JsonObject
    answered: JsonObject
    read: Callable[[Request], str]
    """The second reading."""
    asked: list[str] = field(default_factory=list[str])
    """What it was asked for, in order."""
    plans: list[Request] = field(default_factory=list[Request])
    """The requests for a plan."""
    said: list[str] = field(default_factory=list[str])
    """The plans, as they were written."""

    def answer(self, request: Request) -> str:
        """What the model says."""
        self.asked.append(request.output_name)
        match request.output_name:
            case "plan":
                self.plans.append(request)
                self.said.append(_text(self._plan(request)))
                return self.said[-1]
            case "check":
                return self.read(request)
            case "step":
                return _text(self.first[system_step(request, self.first)])
            case _:
                return _text(filled(request.output_schema or {}))

    def _plan(self, request: Request) -> JsonObject:
        if len(request.messages) == 1:
            return self.first
        return self.corrected if request.messages[-1].text.startswith(_CORRECTING) else self.answered


def system_step(request: Request, plan: JsonObject) -> str:
    """The step that a review asks for anew."""
    return next(name for name in reversed(plan) if f"Step {name} " in request.messages[-1].text)


def filled(schema: JsonSchema) -> Any:
    """A value that meets a schema of objects, texts and enums."""
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        properties = cast("JsonObject", schema["properties"])
        return {name: filled(properties[name]) for name in schema.get("required", properties)}
    return "…"


def _text(value: JsonObject) -> str:
    return orjson.dumps(value).decode()
