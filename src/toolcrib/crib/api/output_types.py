"""Types of answers: the JSON Schema that a model is told, and how its answer becomes an instance of the type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, Generic, cast

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from typing_extensions import TypeVar

from toolcrib.contracts import InvalidDefinition, InvalidInput

if TYPE_CHECKING:
    from toolcrib.contracts import Json, JsonObject, JsonSchema

OutputT_co = TypeVar("OutputT_co", covariant=True, default=Any)

_MEMBER: Final = "result"
"""Where the answer is that is not an object itself: models answer with objects."""
_MOST_PROBLEMS: Final = 5


class OutputType(Generic[OutputT_co]):
    """The type of an answer: a pydantic model, dataclass, TypedDict, enum, Literal, list, union or number.

    Args:
        owner: What has the type, such as `agent 'desk'`, for messages.
        wanted: The type.

    Raises:
        InvalidDefinition: The type has no JSON Schema; the message says what to use.
    """

    def __init__(self, owner: str, wanted: Any) -> None:
        self.name = getattr(wanted, "__name__", None) or str(wanted)
        self._owner = owner
        self._wanted = wanted
        if isinstance(wanted, Mapping):
            raise _refusal(owner, "a JSON Schema", "pass it as response_schema=, or make a type of it")
        if isinstance(wanted, str | FunctionType):
            raise _refusal(owner, repr(wanted), "pass a type, such as a pydantic model or a dataclass")
        self._schema = self._schema_of_type()
        self.is_wrapped = self._schema.get("type") != "object"
        """Whether the model is told an object that has the answer as its only property."""

    @cached_property
    def schema(self) -> JsonSchema:
        """What the model's answer must meet: always an object."""
        return self._wrapped() if self.is_wrapped else self._schema

    @property
    def value_schema(self) -> JsonSchema:
        """What the value itself must meet."""
        return self._schema

    def read(self, answer: Json) -> OutputT_co:
        """The instance that an answer of a model means.

        Raises:
            InvalidInput: A validator of the type refuses it, or it does not meet the schema.
        """
        if self.is_wrapped:
            answer = cast("JsonObject", answer).get(_MEMBER) if isinstance(answer, dict) else answer
        return self.read_value(answer)

    def read_value(self, value: Json) -> OutputT_co:
        """The instance that a JSON value means, which is not wrapped."""
        try:
            return self._adapter.validate_json(orjson.dumps(value))
        except ValidationError as problem:
            found = problem.errors(include_url=False, include_input=False, include_context=False)[:_MOST_PROBLEMS]
            texts = [f"{_place(each['loc'])}{each['msg'].removeprefix('Value error, ')}" for each in found]
        except InvalidInput:
            raise
        except Exception as problem:  # noqa: BLE001 - a validator of the user's own
            texts = [f"its validator raised {type(problem).__name__}"]
        msg = f"the answer is not a valid {self.name}: {'; '.join(texts)}"
        raise InvalidInput(msg)

    def problem_of(self, answer: Json) -> str:
        """Why an answer that meets the schema is refused; empty if it is not."""
        try:
            self.read(answer)
        except InvalidInput as problem:
            return str(problem)
        return ""

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._wanted)

    def _schema_of_type(self) -> JsonSchema:
        advice = "use a pydantic model, a dataclass, a TypedDict, an enum, Literal, or a list or union of them"
        try:
            return self._adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
            raise _refusal(self._owner, f"{self.name}, which has no JSON Schema", advice) from None
        except PydanticUserError as problem:
            if problem.code == "typed-dict-version":
                advice = "import TypedDict from typing_extensions, which Python before 3.12 needs"
            raise _refusal(self._owner, f"{self.name}, which cannot be described", advice) from None
        except (NameError, TypeError) as problem:
            raise _refusal(self._owner, f"{self.name}, which cannot be described ({problem})", advice) from None

    def _wrapped(self) -> JsonSchema:
        value = {key: part for key, part in self._schema.items() if key != "$defs"}
        whole: JsonSchema = {
            "type": "object",
            "properties": {_MEMBER: value},
            "required": [_MEMBER],
            "additionalProperties": False,
        }
        return {**whole, "$defs": self._schema["$defs"]} if "$defs" in self._schema else whole


def check_response_schema(owner: str, schema: object) -> None:
    """Refuse a type where a JSON Schema is expected.

    Raises:
        InvalidDefinition: It is not a JSON Schema.
    """
    if not isinstance(schema, Mapping):
        name = getattr(schema, "__name__", None) or repr(schema)
        msg = f"response_schema of {owner} is {name}, which is not a JSON Schema; use output_type={name}"
        raise InvalidDefinition(msg)


def _refusal(owner: str, what: str, advice: str) -> InvalidDefinition:
    return InvalidDefinition(f"output_type of {owner} is {what}; {advice}")


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""
