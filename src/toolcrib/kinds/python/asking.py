"""Questions of Python tools: what may ask, the schema of an answer, and the answer as the function wants it."""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from toolcrib.contracts import ErrorCode, InvalidDefinition, JsonSchema, Reason
from toolcrib.core.executor import CallerQuestion, CallFailed, Dispatch, error
from toolcrib.core.executor.retries import may_run_twice
from toolcrib.core.registry.schema.validation import compile_schema
from toolcrib.kinds.python.context import Ask

_LONGEST: Final = 2_000


class Asker:
    """Asks for one call of a function.

    Args:
        dispatch: The call.
        is_async: Whether it is an `async def` function.
    """

    def __init__(self, dispatch: Dispatch, *, is_async: bool) -> None:
        self._dispatch = dispatch
        self._is_async = is_async
        self._asked = 0

    async def ask(self, asks: Sequence[Ask]) -> Sequence[Any]:
        """The answers to questions that are asked at the same time, each of the wanted type.

        Raises:
            InvalidDefinition: The function may not ask, or a schema cannot describe a type.
            CallFailed: There is nobody to ask.
        """
        tool = self._dispatch.tool.definition
        if not (self._is_async and may_run_twice(tool)):
            msg = (
                f"tool {tool.name!r} may not ask: it is called again from its start when the answer is there; make it "
                "an async def function that reads, or that writes with idempotent=True"
            )
            raise InvalidDefinition(msg)
        forms = [_form_of(tool.name, ask.answer_type) for ask in asks]
        questions: list[CallerQuestion] = []
        for ask, (_, schema) in zip(asks, forms, strict=True):
            if len(ask.question) > _LONGEST:
                msg = f"the question of tool {tool.name!r} has {len(ask.question)} characters; {_LONGEST} is the limit"
                raise InvalidDefinition(msg)
            self._asked += 1
            question = CallerQuestion(self._asked, ask.question, schema, ask.name, ask.asked_of, ask.max_tokens)
            questions.append(question)
        return [await self._answer(questions[at:], form[0]) for at, form in enumerate(forms)]

    async def _answer(self, questions: Sequence[CallerQuestion], kind: TypeAdapter[Any] | None) -> Any:
        """The answer to the first of questions that are asked at the same time."""
        question = msgspec.structs.replace(questions[0], together_with=tuple(questions[1:]))
        tool = self._dispatch.tool.name
        answer = await self._dispatch.context.journal.ask_caller(self._dispatch.position, question)
        if answer is None:
            message = (
                f"tool {tool!r} asks: {question.text} There is no person to ask in a run that is part of another one"
            )
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.QUESTION, message), effect="none")
        if kind is None:
            return answer
        try:
            return kind.validate_json(answer)
        except ValidationError as problem:
            message = f"the answer to {question.text!r} is not what tool {tool!r} asked for: {problem}"
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.QUESTION, message), effect="none") from problem


def _form_of(tool: str, answer_type: Any) -> tuple[TypeAdapter[Any] | None, JsonSchema | None]:
    """How an answer is read, and its schema; null for words."""
    if answer_type is str:
        return None, None
    if isinstance(answer_type, dict):
        schema = cast("JsonSchema", answer_type)
        compile_schema(schema)
        return TypeAdapter(Any), schema
    try:
        kind = TypeAdapter[Any](answer_type)
        return kind, kind.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError) as problem:
        msg = f"tool {tool!r} asks for a {answer_type!r}, which JSON cannot describe; ask for a pydantic model"
        raise InvalidDefinition(msg) from problem
