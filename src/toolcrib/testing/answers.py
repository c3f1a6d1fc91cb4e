"""Short forms for what a scripted model answers.

Example:
    from toolcrib.testing import calls, says

    model = ScriptedModel([calls("search_deals", company="Acme"), says("Acme has two deals.")])
"""

from collections.abc import Callable
from typing import Protocol

import orjson

from toolcrib.contracts import InvalidInput, Json, ModelError
from toolcrib.contracts.base.errors import MODEL_ERROR_KINDS, ModelErrorKind
from toolcrib.llm import Message, Request, ScriptedAnswer, ScriptedModel, ToolCall, assistant


def says(text: str) -> Message:
    """An answer in words.

    Example:
        from toolcrib.testing import says

        model = ScriptedModel([says("Acme has two deals.")])
    """
    return assistant(text)


def says_json(value: Json) -> Message:
    """An answer that is a JSON value, for agents and tools with structured output.

    Args:
        value: Any JSON value.

    Raises:
        InvalidInput: It is not JSON.

    Example:
        from toolcrib.testing import says_json

        model = ScriptedModel([says_json({"deals": 2})])
    """
    return assistant(_encoded(value, "the answer"))


def calls(name: str, /, **arguments: Json) -> Message:
    """An answer that calls one tool.

    Args:
        name: The tool, as the model sees it.
        **arguments: The arguments of the call; they may be wrong, to test how an agent recovers.

    Raises:
        InvalidInput: An argument is not JSON.

    Example:
        from toolcrib.testing import calls

        model = ScriptedModel([calls("search_deals", company="Acme"), "Acme has two deals."])
    """
    return Message("assistant", (ToolCall("call_1", name, _encoded(arguments, f"the arguments of {name!r}")),))


def together(*answers: Message | str) -> Message:
    """One answer with several texts and calls, in this order: the calls run in parallel.

    Args:
        *answers: Texts, and what `says` and `calls` return.

    Example:
        from toolcrib.testing import calls, together

        both = together("I look at both.", calls("search_deals", company="Acme"), calls("search_deals", company="Bolt"))
        model = ScriptedModel([both, "Both have two deals."])
    """
    parts = [part for answer in answers for part in (says(answer) if isinstance(answer, str) else answer).parts]
    number = 0
    for index, part in enumerate(parts):
        if isinstance(part, ToolCall):
            number += 1
            parts[index] = ToolCall(f"call_{number}", part.name, part.args)
    return Message("assistant", tuple(parts))


def fails(kind: ModelErrorKind = "server", message: str = "the provider failed", *, status: int = 0) -> ModelError:
    """An answer that fails, to test retries and the end of a run.

    Args:
        kind: `rate_limit`, `overloaded`, `server`, `timeout`, `connection` and `stream_cut` are retried; `quota`,
            `auth`, `not_found`, `context_length`, `content_filter`, `bad_request` and `bad_response` are not.
        message: What the provider says.
        status: The HTTP status, 0 if there was no answer.

    Raises:
        InvalidInput: There is no such kind.

    Example:
        from toolcrib.testing import fails, says

        model = ScriptedModel([fails("rate_limit"), says("Acme has two deals.")])
    """
    if kind not in MODEL_ERROR_KINDS:
        msg = f"{kind!r} is not a kind of model error; use one of {', '.join(MODEL_ERROR_KINDS)}"
        raise InvalidInput(msg)
    return ModelError(kind, message, status=status)


def _encoded(value: Json, what: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as problem:
        msg = f"{what} are not JSON: {problem}; pass text, numbers, booleans, null, lists and objects"
        raise InvalidInput(msg) from None


class ScriptModels(Protocol):
    """The fixture `scripted` of the pytest plugin, for annotations.

    Example:
        from toolcrib.testing import ScriptModels


        async def test_the_desk_answers(crib: Crib, scripted: ScriptModels) -> None:
            model = scripted("Five.")
            answer = await crib.invoke("desk", {"message": "How many?"})
            assert (answer.output, len(model.requests)) == ("Five.", 1)
    """

    def __call__(
        self, *answers: ScriptedAnswer | Callable[[Request], ScriptedAnswer], model: str | None = None
    ) -> ScriptedModel:
        """Have a scripted model answer until the test ends.

        Args:
            *answers: In order; or one function from the request to the answer.
            model: The reference that it answers for; all if null.

        Returns:
            The model, whose `requests` can be asserted.
        """
        ...
