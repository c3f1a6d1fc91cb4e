"""Texts about a tool that its own model writes: a system prompt, a description for parents.

A program like any other, within the run's budget. What the model writes is held against the same rules as what a person
writes; it is told what is wrong once, and then given up.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import orjson

from toolcrib.agents.model.failures import model_failure
from toolcrib.agents.model.json_answers import UnusableAnswer, read_object
from toolcrib.agents.prepare.agentic_tool import Models
from toolcrib.contracts import (
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    ToolDefinition,
    ToolRevision,
)
from toolcrib.core.runs import BudgetExhausted, Ended, ModelCall, RunContext
from toolcrib.llm import LanguageModel, Message, Request, user

Check: TypeAlias = Callable[[str], Sequence[str]]
"""What is wrong with a text; empty if nothing is."""

_REPAIRS = 1
_SYSTEM = "You write texts for tools that are used by AI agents: plain, exact and short. You never invent abilities."
_ANSWER: JsonSchema = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "One sentence: what the new text does better."},
        "text": {"type": "string", "description": "The whole new text."},
    },
    "required": ["reason", "text"],
    "additionalProperties": False,
}


class Draft:
    """The program that has a text written; its output is `{"text", "reason"}`.

    Args:
        models: Opens the tool's model.
        task: What is to be written, with the text to start from.
        check: Rules of the text.
    """

    def __init__(self, models: Models, task: str, check: Check) -> None:
        self._models = models
        self._task = task
        self._check = check

    async def __call__(self, context: RunContext, tool: ToolRevision) -> Ended:
        """Ask, and ask again with the problems named."""
        implementation = tool.definition.implementation
        if implementation.kind != "agentic":
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r} and has no model to write with"
            raise InvalidDefinition(msg)
        try:
            return Ended(output=await self._write(context, tool.definition, self._models(implementation.llm)))
        except BudgetExhausted as limit:
            return Ended(stop_reason=limit.shortage.stop_reason, warnings=(str(limit),))
        except (ModelError, UnusableAnswer) as failure:
            return Ended(status="failed", stop_reason="error", error=model_failure(failure))

    async def _write(self, context: RunContext, definition: ToolDefinition, model: LanguageModel) -> JsonObject:
        question = f"{self._task}\n\nThe tool:\n{facts_of(definition)}"
        messages: tuple[Message, ...] = (user(question),)
        new, problem = messages, ""
        for attempt in range(_REPAIRS + 1):
            request = Request(messages=messages, system=_SYSTEM, output_schema=_ANSWER, output_name="text")
            position = "draft" if attempt == 0 else f"draft.fix{attempt}"
            call = ModelCall(position, "formatting", model, request, new=new, system=_SYSTEM)
            response = await context.model(call)
            found = read_object(response.message.text)
            problem = self._problem(found)
            if not problem:
                return cast("JsonObject", found)
            new = (user(f"That cannot be used: {problem}. Answer again with the whole corrected JSON object only."),)
            messages = (*messages, response.message, *new)
        msg = f"the model {model.name!r} wrote no usable text after {_REPAIRS + 1} answers: {problem}"
        raise UnusableAnswer(msg)

    def _problem(self, found: Json) -> str:
        text = cast("JsonObject", found).get("text") if isinstance(found, dict) else None
        if not isinstance(text, str) or not text.strip():
            return "the answer is not one JSON object with a text"
        return "; ".join(self._check(text))


def facts_of(definition: ToolDefinition) -> str:
    """A definition as JSON, without what a writer of texts does not need."""
    body = definition.model_dump(mode="json", exclude_defaults=True)
    implementation = body["implementation"]
    kept = {
        key: implementation[key]
        for key in ("mode", "steps", "tools", "context", "result_schema")
        if key in implementation
    }
    wanted = ("name", "title", "description", "usage", "input_schema", "output_schema", "side_effects")
    facts = {key: body[key] for key in wanted if key in body}
    return orjson.dumps({**facts, **kept}).decode()
