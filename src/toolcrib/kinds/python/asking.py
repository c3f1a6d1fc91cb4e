"""Questions of Python tools: what may ask, the schema of an answer, and the answer as the function wants it."""

from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from toolcrib.contracts import ErrorCode, InvalidDefinition, JsonSchema, Reason
from toolcrib.core.executor import CallerQuestion, CallFailed, Dispatch, error
from toolcrib.core.executor.retries import may_run_twice
from toolcrib.core.registry.schema.validation import compile_schema

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

    async def ask(self, question: str, answer_type: Any, name: str | None) -> Any:
        """The answer of a person, of the wanted type.

        Raises:
            InvalidDefinition: The function may not ask, or a schema cannot describe the type.
            CallFailed: There is no person to ask.
        """
        tool = self._dispatch.tool.definition
        if not (self._is_async and may_run_twice(tool)):
            msg = (
                f"tool {tool.name!r} may not ask: it is called again from its start when the answer is there; make it "
                "an async def function that reads, or that writes with idempotent=True"
            )
            raise InvalidDefinition(msg)
        if len(question) > _LONGEST:
            msg = f"the question of tool {tool.name!r} has {len(question)} characters; {_LONGEST} is the limit"
            raise InvalidDefinition(msg)
        kind, schema = _form_of(tool.name, answer_type)
        self._asked += 1
        journal, position = self._dispatch.context.journal, self._dispatch.position
        answer = await journal.ask_caller(position, CallerQuestion(self._asked, question, schema, name))
        if answer is None:
            message = (
                f"tool {tool.name!r} asks: {question} There is no person to ask in a run that is part of another one"
            )
            raise CallFailed(error(ErrorCode.VALIDATION_ERROR, Reason.QUESTION, message), effect="none")
        if kind is None:
            return answer
        try:
            return kind.validate_json(answer)
        except ValidationError as problem:
            message = f"the answer to {question!r} is not what tool {tool.name!r} asked for: {problem}"
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
