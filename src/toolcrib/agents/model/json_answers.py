"""Gets JSON from a model: requested by schema, validated, and requested again with the problems.

Also converts a model's failure to the error of a run.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import orjson

from toolcrib.agents.model.answer_checks import JournaledCheck, accept
from toolcrib.agents.model.client import ModelClient
from toolcrib.agents.toolset.schema_narrowing import schema_for_models
from toolcrib.contracts import (
    ErrorCode,
    InvalidInput,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    ModelErrorKind,
    Purpose,
    Reason,
    ToolError,
)
from toolcrib.core.executor import error
from toolcrib.core.registry import compile_schema
from toolcrib.core.runs import BudgetExhausted, RunEnd
from toolcrib.llm import NO_TOOLS, Message, ToolChoice, ToolSet, user

_REPAIRS = 2
_FENCE = "```"


class UnusableAnswer(InvalidInput):
    """A model answered prose or wrong JSON where a schema was asked for, also after it was told what is wrong."""

    code = "unusable_answer"


def _same(found: Json) -> Json:
    return found


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """How an answer is shown and read beyond its schema."""

    shown: JsonSchema | None = None
    """What the model gets to see instead of the schema: one that makes good answers easier to write."""
    translate: Callable[[Json], Json] = _same
    """What the answer means, before it is held against the schema."""
    check: JournaledCheck = accept
    """Judges an answer that meets the schema."""


async def ask_json(
    model_client: ModelClient,
    position: str,
    purpose: Purpose,
    question: str,
    schema: JsonSchema,
    *,
    name: str,
    system: str,
    reading: AnswerFormat | None = None,
    before: tuple[Message, ...] = (),
    tools: ToolSet = NO_TOOLS,
    repairs: int = _REPAIRS,
) -> JsonObject:
    """Ask for an object that meets a schema.

    Args:
        model_client: Where the model is asked.
        position: Journal position of the first model call; repairs follow as `position.fix1`, `position.fix2`.
        purpose: Why the model is asked; repairs have the purpose `error_recovery`.
        question: The user message.
        schema: What the answer must meet.
        name: Name of the schema for the provider.
        system: System prompt.
        reading: How the answer is shown and read, where the schema alone does not say it.
        before: The conversation that the question goes on with, under its own system prompt.
        tools: What that conversation offers; nothing of it can be called here.
        repairs: How often it is asked again.

    Raises:
        UnusableAnswer: No answer met the schema.
        ModelError: The provider failed.
        BudgetExhausted: The run may not spend another call.
    """
    reading = reading or AnswerFormat()
    new: tuple[Message, ...] = (user(question),)
    choice: ToolChoice = "none" if tools else "auto"
    messages, problem = (*before, *new), ""
    shown = cast("JsonSchema", schema_for_models(reading.shown or schema))
    for attempt in range(repairs + 1):
        request = model_client.request(
            messages, system=system, tools=tools, tool_choice=choice, output_schema=shown, output_name=name
        )
        place = position if attempt == 0 else f"{position}.fix{attempt}"
        call = model_client.call(
            place,
            purpose if attempt == 0 else "error_recovery",
            request,
            new=new,
            system=system if attempt == 0 and not before else None,
        )
        response = await model_client.context.model(call)
        found = reading.translate(read_object(response.message.text))
        problem = problem_of(found, schema, stopped=response.stop == "length") or await reading.check(place, found)
        if not problem:
            return cast("JsonObject", found)
        new = (user(f"That cannot be used: {problem}. Answer again with the whole corrected JSON object only."),)
        messages = (*messages, response.message, *new)
    msg = f"the model {model_client.model.name!r} gave no usable {name} after {repairs + 1} answers: {problem}"
    raise UnusableAnswer(msg)


def read_object(text: str) -> Json:
    """The JSON value in a model's answer: the whole text, or what stands in its first fence; null if there is none."""
    for candidate in (text, _text_in_fence(text)):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(candidate)
    return None


def fitting_object(text: str, schema: JsonSchema) -> JsonObject | None:
    """The object in a model's answer, if it meets a schema."""
    found = read_object(text)
    if not isinstance(found, dict):
        return None
    given = cast("JsonObject", found)
    return None if compile_schema(schema).problems(given) else given


def _text_in_fence(text: str) -> str:
    """What stands between the first two fences, without the name of a language."""
    inside = text.partition(_FENCE)[2].partition(_FENCE)[0]
    return inside if inside.lstrip().startswith("{") else inside.partition("\n")[2]


def problem_of(found: Json, schema: JsonSchema, *, stopped: bool) -> str:
    """Why an answer cannot be used; empty if it can. `stopped` says that it was cut off."""
    if not isinstance(found, dict):
        return "the answer was cut off at max_tokens" if stopped else "the answer is not one JSON object"
    return "; ".join(str(problem) for problem in compile_schema(schema).problems(cast("JsonObject", found))[:5])


_MEANINGS: Mapping[ModelErrorKind, tuple[ErrorCode, Reason]] = {
    "rate_limit": (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
    "quota": (ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
    "auth": (ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
    "not_found": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "context_length": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "content_filter": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "bad_request": (ErrorCode.PROVIDER_ERROR, Reason.REQUEST_REFUSED),
    "overloaded": (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    "server": (ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    "timeout": (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
    "connection": (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED),
    "stream_cut": (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED),
    "bad_response": (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
}


def end_without_output(
    partial: Json, failure: ModelError | UnusableAnswer | BudgetExhausted, warnings: tuple[str, ...]
) -> RunEnd:
    """The end of a run that did its work, and whose model did not put the answer into the schema that it promises.

    Args:
        partial: What was done.
        failure: Why there is no such answer.
        warnings: What else there is to say.
    """
    if isinstance(failure, BudgetExhausted):
        stop_reason, status, why = failure.shortage.stop_reason, "incomplete", failure.error
    else:
        stop_reason, status, why = "error", "failed", model_failure(failure)
    return RunEnd(partial=partial, status=status, stop_reason=stop_reason, error=why, warnings=warnings)


def model_failure(failure: ModelError | UnusableAnswer) -> ToolError:
    """The stable code, the provider's message, and how the provider failed in `details["kind"]`."""
    if isinstance(failure, UnusableAnswer):
        return error(ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE, str(failure))
    code, reason = _MEANINGS[failure.kind]
    tool_error = error(code, reason, str(failure), kind=failure.kind, status=failure.status)
    return tool_error.model_copy(update={"retry_after_s": failure.retry_after_s})
