"""What a server gets that asks for input while it is called (elicitation), by the provider's `input_requests`.

A form is filled with the defaults of its fields, or by who has started the run. Nothing else is given: no model and no
files of ours are at a server's service.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import orjson

from toolcrib.contracts import ErrorCode, Json, JsonObject, Reason
from toolcrib.core.executor import CallerQuestion, CallFailed, Dispatch, error
from toolcrib.core.executor.retries import may_run_twice
from toolcrib.kinds.mcp.runtime.failures import MOST_WORDS, unusable

InputAnswers: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[JsonObject]]
"""The answers to the requests of a server, both by key and as the specification has them."""

MAX_ROUNDS: Final = 10
"""How often a server may ask during one call."""
_ELICIT: Final = "elicitation/create"


def answers_of(dispatch: Dispatch, provider: str, policy: str) -> InputAnswers:
    """What answers the server of a provider during one call.

    Args:
        dispatch: The call.
        provider: Its name, for errors and questions.
        policy: The provider's `input_requests`.
    """
    asked = 0

    async def refuse(requests: Mapping[str, Any]) -> JsonObject:
        methods = ", ".join(sorted({str(each.get("method"))[:MOST_WORDS] for each in requests.values()}))
        msg = f"it asks for more input ({methods}), which a call cannot give; see input_requests of its connection"
        raise unusable(provider, msg)

    async def fill(requests: Mapping[str, Any]) -> JsonObject:
        _check_methods(requests, provider)
        return {key: filled_form(each.get("params") or {}) for key, each in requests.items()}

    async def ask(requests: Mapping[str, Any]) -> JsonObject:
        nonlocal asked
        _check_methods(requests, provider)
        if not may_run_twice(dispatch.tool.definition):
            msg = (
                "it asks for input, and the tool is called again when the answer is there: it may not be, as it writes"
            )
            raise unusable(provider, f"{msg} and is not idempotent")
        answers: JsonObject = {}
        for key, each in requests.items():
            asked += 1
            params: JsonObject = each.get("params") or {}
            text = f"The MCP server {provider!r} asks: {str(params.get('message'))[:MOST_WORDS]}"
            schema = cast("JsonObject", params.get("requestedSchema") or {})
            question = CallerQuestion(asked, text, schema, key[:MOST_WORDS])
            answer = await dispatch.context.journal.ask_caller(dispatch.position, question)
            if answer is None:
                message = f"{text} There is no person to ask in a run that is part of another one"
                raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.QUESTION, message), effect="none")
            answers[key] = {"action": "accept", "content": orjson.loads(answer)}
        return answers

    return {"defaults": fill, "ask": ask}.get(policy, refuse)


def filled_form(params: JsonObject) -> JsonObject:
    """A form with the defaults of its fields; declined if a required field has none (SEP-1034)."""
    schema = cast("JsonObject", params.get("requestedSchema") or {})
    fields = cast("dict[str, JsonObject]", schema.get("properties") or {})
    content: dict[str, Json] = {name: each["default"] for name, each in fields.items() if "default" in each}
    missing = set(cast("list[str]", schema.get("required") or ())) - content.keys()
    return {"action": "decline"} if missing else {"action": "accept", "content": content}


def _check_methods(requests: Mapping[str, Any], provider: str) -> None:
    other = next((each.get("method") for each in requests.values() if each.get("method") != _ELICIT), None)
    if other is not None:
        msg = f"it asks for {str(other)[:MOST_WORDS]!r}, and only forms are answered; it gets no model and no files"
        raise unusable(provider, msg)
