"""Python functions as tools: the `@tool` decorator, schemas from type hints, calling with validated arguments.

The decorated object still is the function: calling it calls the function, ungoverned. A crib that it is added to
calls it through the executor. Nothing here is looked up by a stored name.
"""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, get_type_hints, overload

from docstring_parser import parse as parse_docstring
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from toolcrib.contracts import (
    CachePolicy,
    ErrorRule,
    Example,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    PythonImplementation,
    RateLimit,
    RetryPolicy,
    SecretReference,
    SideEffects,
    ToolDefinition,
    Usd,
)

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a function gets if one of its parameters is annotated with this type."""

    run_id: str
    position: str
    realm: str
    principal: str
    idempotency_key: str
    """The same on every attempt of this call; pass it to systems that accept one."""
    attempt: int
    auth: Mapping[str, str]
    """Resolved secrets by name."""


class ToolOptions(TypedDict, total=False):
    """What `@tool` accepts: fields of `ToolDefinition`."""

    name: str
    version: str
    title: str
    description: str
    category: str
    tags: tuple[str, ...]
    usage: str
    examples: tuple[Example, ...]
    side_effects: SideEffects
    idempotent: bool
    reconcile: str
    cache: CachePolicy
    cache_ttl_s: float
    timeout_s: float
    retry: RetryPolicy
    error_handling: tuple[ErrorRule, ...]
    rate_limit: RateLimit
    cost_usd_per_call: Usd
    requires_confirmation: bool
    sequential: bool
    max_output_bytes: int
    runs_on: Any
    security_uri: str
    secrets: tuple[SecretReference, ...]


class FunctionTool(Generic[P, R]):
    """A Python function with its definition as a tool."""

    def __init__(self, function: Callable[P, R], options: ToolOptions) -> None:
        self._function = function
        self._options = options
        self._is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, without the crib."""
        return self._function(*args, **kwargs)

    @cached_property
    def definition(self) -> ToolDefinition:
        """The definition, with schemas from the type hints and texts from the docstring.

        Raises:
            InvalidDefinition: A parameter has no usable type.
        """
        documentation = parse_docstring(inspect.getdoc(self._function) or "")
        summary = "\n\n".join(filter(None, (documentation.short_description, documentation.long_description)))
        fields: JsonObject = {"name": self._name, "description": summary, **self._options}
        return ToolDefinition(
            **fields,
            input_schema=_lean(self._arguments.model_json_schema()),
            output_schema=self._output_schema,
            implementation=PythonImplementation(function=f"{self._function.__module__}:{self._function.__qualname__}"),
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Call the function with JSON arguments that match its schema, and bring its result back as JSON.

        A plain function runs in a thread, so that it does not hold up the event loop.
        """
        values = self._arguments.model_validate(arguments)
        given: dict[str, Any] = {name: getattr(values, name) for name in values.model_fields_set}
        if self._context_parameter is not None:
            given[self._context_parameter] = context
        call = cast("Callable[..., Any]", self._function)
        result = await call(**given) if self._is_async else await asyncio.to_thread(call, **given)
        return self._result.dump_python(result, mode="json")

    @property
    def _name(self) -> str:
        return self._options.get("name", self._function.__name__)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self._function, include_extras=True)

    @cached_property
    def _context_parameter(self) -> str | None:
        return next((name for name, hint in self._hints.items() if hint is ToolContext), None)

    @cached_property
    def _arguments(self) -> type[BaseModel]:
        documentation = parse_docstring(inspect.getdoc(self._function) or "")
        texts = {parameter.arg_name: parameter.description for parameter in documentation.params}
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(self._function).parameters.items():
            if name == self._context_parameter:
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                msg = f"tool {self._name!r}: parameter {name!r} cannot be named in JSON; use ordinary parameters"
                raise InvalidDefinition(msg)
            if name not in self._hints:
                msg = f"tool {self._name!r}: parameter {name!r} has no type hint; add one, e.g. {name}: str"
                raise InvalidDefinition(msg)
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[name] = (self._hints[name], Field(default, description=texts.get(name)))
        try:
            config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
            return create_model(self._function.__name__, __config__=config, **fields)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            msg = f"tool {self._name!r}: a parameter's type is not expressible in JSON: {error}"
            raise InvalidDefinition(msg) from error

    @cached_property
    def _result(self) -> TypeAdapter[Any]:
        hint = self._hints.get("return", Any)
        return TypeAdapter(Any if hint is type(None) else hint)

    @property
    def _output_schema(self) -> JsonSchema | None:
        if self._hints.get("return", type(None)) is type(None):
            return None
        return _lean(self._result.json_schema(mode="serialization")) or None


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function: `@tool` or `@tool(side_effects="reads")`.

    Args:
        function: The function, when used without parentheses.
        **options: Fields of `ToolDefinition`. Without `side_effects` the tool is taken to write.
    """
    if function is not None:
        return FunctionTool(function, options)

    def decorate(decorated: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(decorated, options)

    return decorate


def _lean(schema: JsonSchema) -> JsonSchema:
    """The schema without the titles that pydantic makes from names: a model pays for every token."""
    return cast("JsonSchema", _without_titles(schema, is_schema=True))


def _without_titles(node: Json, *, is_schema: bool) -> Json:
    if isinstance(node, list):
        return [_without_titles(item, is_schema=is_schema) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    entries = cast("JsonObject", node)
    return {
        key: _without_titles(value, is_schema=not is_schema or key not in ("properties", "$defs"))
        for key, value in entries.items()
        if not (is_schema and key == "title" and isinstance(value, str))
    }
