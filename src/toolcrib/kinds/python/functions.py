"""Python functions as tools: the `@tool` decorator, schemas from type hints, calls with validated arguments.

The decorated object is still the function: calling it directly bypasses policy, while a crib calls it through the
executor. Bound methods, `functools.partial` and callable objects are supported; bound arguments are not arguments of
the tool. Stored names are never imported. Pydantic makes the schemas, which are reduced to what a model needs.
"""

import inspect
import operator
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, partial, update_wrapper
from types import CoroutineType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    ParamSpec,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError

from toolcrib.contracts import (
    CachePolicy,
    ErrorRule,
    Example,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    McpOffer,
    RateLimit,
    RetryPolicy,
    SecretReference,
    SideEffects,
    ToolDefinition,
    Usd,
)
from toolcrib.contracts.tools.tools import UnknownOutcome
from toolcrib.kinds.python.context import ToolContext
from toolcrib.kinds.python.schemas import (
    SIMPLE_TYPES,
    ArgumentTypes,
    fits_simply,
    schema_of_arguments,
    schema_of_results,
    simple_schema,
    single_types,
)
from toolcrib.kinds.python.shape import PythonImplementation
from toolcrib.kinds.python.signatures import (
    Documentation,
    has_object,
    inner_function,
    name_of,
    open_parameters,
    public_methods,
    read_docstring,
)

if TYPE_CHECKING:
    from toolcrib.kinds.python.files import File
    from toolcrib.kinds.python.generators import Collected, Shows, Yields

P = ParamSpec("P")
R = TypeVar("R")


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
    metadata: JsonObject
    side_effects: SideEffects
    deletes: bool
    untrusted: bool
    idempotent: bool
    idempotency_key: str
    reconcile: str
    on_unknown: UnknownOutcome
    transactional: bool
    cache: CachePolicy
    cache_ttl_s: float
    timeout_s: float
    retry: RetryPolicy
    error_handling: tuple[ErrorRule, ...]
    rate_limit: RateLimit
    cost_usd_per_call: Usd
    cost_from: str
    requires_confirmation: bool
    confirmation_expires_s: float | None
    sequential: bool
    max_output_bytes: int
    runs_on: Any
    security_uri: str
    secrets: tuple[SecretReference, ...]
    mcp: McpOffer
    input_schema: JsonSchema
    """In place of the type hints: the function then gets its arguments as they came, and may take any by `**name`."""
    output_schema: JsonSchema | None
    """Replaces the return type hint; null allows any result, as text if JSON cannot represent it."""


class FunctionTool(Generic[P, R]):
    """A Python function with its definition as a tool.

    Example:
        print(search_deals.definition.input_schema)
        print(await search_deals("Acme"))  # calls the function; `crib.call` also applies the policy
    """

    def __init__(self, function: Callable[P, R], options: ToolOptions) -> None:
        self._function: Callable[P, R] = function.function if isinstance(function, FunctionTool) else function
        self._inner = inner_function(self._function)
        self._options = options
        self._is_async = inspect.iscoroutinefunction(self._inner)
        self._is_generator = inspect.isgeneratorfunction(self._inner) or inspect.isasyncgenfunction(self._inner)
        update_wrapper(self, self._inner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, without the crib."""
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        """The name and the function, without reading the type hints, which may name what is defined later."""
        return f"FunctionTool({self._name!r}, function={self._inner.__module__}.{self._inner.__qualname__})"

    @property
    def function(self) -> Callable[P, R]:
        """The function itself."""
        return self._function

    @cached_property
    def definition(self) -> ToolDefinition:
        """The definition, with schemas from the type hints and texts from the docstring.

        Raises:
            InvalidDefinition: The signature cannot be expressed in JSON, or an option is wrong.
        """
        place = PythonImplementation(function=f"{self._inner.__module__}:{self._inner.__qualname__}")
        fields: JsonObject = {"name": self._name, "description": self._documentation.summary, "implementation": place}
        if has_object(self._inner):
            fields["sequential"] = True
        fields |= self._options
        try:
            if "input_schema" not in fields:
                fields["input_schema"] = self._input_schema
            if "output_schema" not in fields:
                fields["output_schema"] = self._output_schema
            return ToolDefinition(**fields)
        except ValidationError as error:
            from toolcrib.kinds.python.refusals import refuse_option  # noqa: PLC0415 - rarely needed

            raise refuse_option(self._name, error) from None
        except (PydanticUserError, SchemaError, TypeError, ValueError) as error:
            from toolcrib.kinds.python.refusals import refuse_types  # noqa: PLC0415 - rarely needed

            typed = {name: self._hints[name] for name in self._open if name in self._hints}
            typed.pop(self._context_parameter or "", None)
            raise refuse_types(self._name, typed, self._result_hint) from error

    def check(self) -> None:
        """Refuse what no tool can be made of, as far as it can be told already.

        A type hint that names something which its module defines later is judged when the tool is added.

        Raises:
            InvalidDefinition: The signature cannot be expressed in JSON, or an option is wrong.
        """
        try:
            _ = self.definition
        except InvalidDefinition as problem:
            if not isinstance(problem.__cause__, NameError):
                raise

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Call the function with JSON arguments that match its schema, and return its result as JSON."""
        return await self.invoke(self.values_of(arguments, context))

    @cached_property
    def is_live(self) -> bool:
        """Whether the function may tell something while it runs: it yields its output, or has a `ToolContext`."""
        return self.takes_context or self.yields is not None

    @property
    def is_async(self) -> bool:
        """Whether it is an `async def` function."""
        return self._is_async

    @cached_property
    def takes_context(self) -> bool:
        """Whether one of the function's parameters is a `ToolContext`."""
        return self._context_parameter is not None

    def values_of(self, arguments: JsonObject, context: ToolContext | None) -> JsonObject:
        """The function's keyword arguments, as its type hints have them.

        Args:
            arguments: JSON that matches the schema.
            context: What a parameter gets that is annotated with it; only of a function that `takes_context`.

        Raises:
            ValidationError: Pydantic's: an argument has not the type of its hint, which a schema cannot always tell.
        """
        kinds = self._kinds
        if kinds is not None and kinds.hold(arguments):
            given = arguments if self._context_parameter is None else dict(arguments)
        elif "input_schema" in self._options:
            given = dict(arguments)
        else:
            values = self._arguments.__pydantic_validator__.validate_python(arguments)
            fields, names = values.__dict__, self._parameters
            given = {names[field]: fields[field] for field in values.__pydantic_fields_set__ | self._described}
        if self._context_parameter is not None:
            given[self._context_parameter] = context
        return given

    async def invoke(self, values: JsonObject) -> Json:
        """Call the function with its keyword arguments, and return its result as JSON.

        A plain function runs in a thread, so that it does not hold up the event loop; if it has only begun something,
        as one around an async function does, that is awaited. Whether the result fits the output schema is checked by
        the crib.
        """
        if self.yields is not None:
            return (await self.collect(values, self.collected(None))).output
        return self.as_json(await self.begin(values))

    @cached_property
    def yields(self) -> "Yields | None":
        """What the function yields; null if it returns its result as a whole."""
        hint = self._hints.get("return", Any)
        home = getattr(get_origin(hint) or hint, "__module__", "")
        if not self._is_generator and home not in ("collections.abc", "typing"):
            return None
        from toolcrib.kinds.python.generators import yields_of  # noqa: PLC0415 - rarely needed

        return yields_of(self._name, self._inner, hint)

    def collected(
        self, most_bytes: int | None, live: "Shows | None" = None, files: "list[File] | None" = None
    ) -> "Collected":
        """Where a call of a function that `yields` collects its output and its files; see `Collected`."""
        from toolcrib.kinds.python.generators import Collected  # noqa: PLC0415 - rarely needed

        return Collected(cast("Yields", self.yields), partial(self._element_as_json, files), most_bytes, live)

    async def collect(self, values: JsonObject, collected: "Collected") -> "Collected":
        """Call a function that `yields`, and take all that it yields."""
        await collected.collect(await self.begin(values))
        return collected

    def _element_as_json(self, files: "list[File] | None", value: object) -> Json:
        if type(value) is str:
            return value
        return self._serialize_element(
            value, mode="json", by_alias=True, warnings=False, fallback=self._to_json, context=files
        )

    def begin(self, values: JsonObject) -> Coroutine[Any, Any, Any]:
        """Call the function with its keyword arguments: what is still to await, for its result as it returns it."""
        call: Callable[..., Any] = self._function
        if self._is_async:
            begun: Any = call(**values)
            result: Coroutine[Any, Any, Any] = begun
            return result if type(begun) is CoroutineType else _awaited(begun)
        if self._is_generator:
            return _awaited(call(**values))
        return _call_beside(call, values)

    def as_json(self, result: object, files: "list[File] | None" = None) -> Json:
        """What the function has returned, as JSON.

        Args:
            result: As the function returned it.
            files: Gets the files in it, which the JSON only describes.
        """
        if type(result) is self._single:
            return result
        return self._serialize(
            result, mode="json", by_alias=True, warnings=False, fallback=self._to_json, context=files
        )

    def _to_json(self, value: object) -> Json:
        """What JSON has no form for: numbers and arrays of other libraries (NumPy); else text, if that will do."""
        if isinstance(value, SupportsIndex):
            return operator.index(value)
        if isinstance(value, SupportsFloat):
            return float(value)
        if callable(listed := getattr(value, "tolist", None)):
            return listed()
        if self._options.get("output_schema", {}) is None:
            return str(value)
        msg = f"a {type(value).__name__} has no form in JSON; return text, numbers, lists or objects"
        raise TypeError(msg)

    @property
    def _name(self) -> str:
        return self._options.get("name", name_of(self._function))

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return get_type_hints(self._inner, include_extras=True)
        except NameError as error:
            msg = (
                f"tool {self._name!r}: {error}; import or define it where the function's module can see it at run time"
            )
            raise InvalidDefinition(msg) from error
        except (SyntaxError, TypeError, AttributeError) as error:
            msg = (
                f"tool {self._name!r}: a type hint is not a type: {error}; put the parameter's description into "
                "the docstring"
            )
            raise InvalidDefinition(msg) from error

    @cached_property
    def _documentation(self) -> Documentation:
        return read_docstring(inspect.getdoc(self._inner) or "")

    @cached_property
    def _open(self) -> Mapping[str, inspect.Parameter]:
        return open_parameters(self._function)

    @cached_property
    def _context_parameter(self) -> str | None:
        hints = ((name, self._hints.get(name)) for name in self._open)
        return next((name for name, hint in hints if ToolContext in (hint, *get_args(hint))), None)

    @cached_property
    def _arguments(self) -> type[BaseModel]:
        """A model whose fields have the parameters' names as aliases only, so that one may be called `json`."""
        texts = self._documentation.parameters
        fields: dict[str, Any] = {}
        for name, parameter in self._open.items():
            if name == self._context_parameter:
                continue
            self._check_parameter(parameter)
            hint, info = self._hints[name], dict[str, Any](alias=name)
            if isinstance(parameter.default, FieldInfo):
                hint = Annotated[hint, parameter.default]
            elif parameter.default is not parameter.empty:
                info["default"] = parameter.default
            if texts.get(name):
                info["description"] = texts[name]
            fields[f"argument_{len(fields)}"] = (hint, Field(**info))
        return create_model(self._name, __config__=ConfigDict(extra="forbid"), **fields)

    @cached_property
    def _kinds(self) -> ArgumentTypes | None:
        """The types of arguments, if all are single values, which pydantic would only look at."""
        if "input_schema" in self._options:
            return None
        found: dict[str, frozenset[type]] = {}
        for name, parameter in self._open.items():
            if name == self._context_parameter:
                continue
            types = single_types(self._hints[name])
            if types is None or isinstance(parameter.default, FieldInfo):
                return None
            found[name] = types
        needed = (name for name in found if self._open[name].default is inspect.Parameter.empty)
        return ArgumentTypes(found, frozenset(needed))

    @cached_property
    def _parameters(self) -> dict[str, str]:
        """The parameters' names by the names of the model's fields."""
        return {name: str(field.alias) for name, field in self._arguments.model_fields.items()}

    @cached_property
    def _described(self) -> frozenset[str]:
        """The fields of parameters whose default is pydantic's `Field(...)`: the function can make nothing of it."""
        parameters = self._open
        named = self._parameters.items()
        return frozenset(field for field, name in named if isinstance(parameters[name].default, FieldInfo))

    def _check_parameter(self, parameter: inspect.Parameter) -> None:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            msg = f"tool {self._name!r}: parameter {name!r} cannot be named in JSON; use ordinary parameters"
            raise InvalidDefinition(msg)
        if name not in self._hints:
            msg = f"tool {self._name!r}: parameter {name!r} has no type hint; add one, e.g. {name}: str"
            raise InvalidDefinition(msg)

    @property
    def _simple_input_schema(self) -> JsonSchema | None:
        """The schema, if every parameter is of a simple type, with a default that is of it; as `_arguments` has it."""
        texts = self._documentation.parameters
        properties: dict[str, JsonSchema] = {}
        required: list[str] = []
        for name, parameter in self._open.items():
            if name == self._context_parameter:
                continue
            self._check_parameter(parameter)
            part = simple_schema(self._hints[name])
            if part is None:
                return None
            if parameter.default is parameter.empty:
                required.append(name)
            elif fits_simply(parameter.default, part):
                part["default"] = parameter.default
            else:
                return None
            if texts.get(name):
                part["description"] = texts[name]
            properties[name] = dict(sorted(part.items()))
        needed: JsonSchema = {"required": required} if required else {}
        return {"additionalProperties": False, "properties": properties, **needed, "type": "object"}

    @property
    def _input_schema(self) -> JsonSchema:
        from toolcrib.core.registry.schema.validation import compile_schema  # noqa: PLC0415 - heavy

        simple = self._simple_input_schema
        if simple is not None:
            return simple
        schema = schema_of_arguments(self._arguments)
        definitions = schema.get("$defs", {})
        for name, part in schema["properties"].items():
            if "default" in part and compile_schema({"$defs": definitions, **part}).problems(part["default"]):
                msg = (
                    f"tool {self._name!r}: the default {part['default']!r} of parameter {name!r} is not of its type; "
                    "change one of them, e.g. to `... | None` for None"
                )
                raise InvalidDefinition(msg)
        return schema

    @cached_property
    def _result_hint(self) -> Any:
        """The type of the whole output."""
        return self._hints.get("return", Any) if self.yields is None else self.yields.hint

    @cached_property
    def _result(self) -> TypeAdapter[Any]:
        hint = Any if "output_schema" in self._options else self._result_hint
        return TypeAdapter(Any if hint is type(None) else hint)

    @cached_property
    def _serialize_element(self) -> Callable[..., Json]:
        hint = Any if "output_schema" in self._options or self.yields is None else self.yields.element
        return TypeAdapter(hint).serializer.to_python

    @cached_property
    def _single(self) -> type | None:
        """The type of results that are JSON as they are; null if there is none."""
        hint = None if "output_schema" in self._options else self._hints.get("return")
        return hint if type(hint) is type and hint in SIMPLE_TYPES else None

    @cached_property
    def _serialize(self) -> Callable[..., Json]:
        return self._result.serializer.to_python

    @property
    def _output_schema(self) -> JsonSchema | None:
        if "return" not in self._hints or self._result_hint is type(None):
            return None
        simple = simple_schema(self._result_hint)
        return (schema_of_results(self._result) if simple is None else simple) or None


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool of a function: `@tool` or `@tool(side_effects="reads")`.

    Args:
        function: The function, when used without parentheses.
        **options: Fields of `ToolDefinition`. Without `side_effects` the tool is taken to write.

    Raises:
        InvalidDefinition: The signature cannot be expressed in JSON, or an option is unknown or not of its type.

    Example:
        @tool(side_effects="writes", idempotent=True)
        def close_deal(deal: str) -> dict[str, str]:
            return {"closed": deal}

        crib.add(close_deal)
    """
    if function is not None:
        return _checked(FunctionTool(function, options))

    def decorate(decorated: Callable[P, R]) -> FunctionTool[P, R]:
        return _checked(FunctionTool(decorated, options))

    return decorate


def _checked(made: FunctionTool[P, R]) -> FunctionTool[P, R]:
    made.check()
    return made


def tools_of(thing: object, *names: str, **options: Unpack[ToolOptions]) -> list[FunctionTool[..., Any]]:
    """Make tools of the methods of an object, which they share: `crib.add(*tools_of(account, side_effects="writes"))`.

    One of them runs at a time, in the order in which a model asks for them, unless `sequential=False` is said.

    Args:
        thing: The object.
        *names: Of the methods; all that do not begin with `_` if none is given.
        **options: As for `tool`, for each of them.

    Raises:
        InvalidDefinition: It has no such method, or none at all.

    Example:
        class Account:
            def balance(self) -> int:
                return 12

        crib.add(*tools_of(Account(), side_effects="reads"))
        print((await crib.call("balance")).output)
    """
    methods = public_methods(thing)
    if not methods:
        msg = f"{thing!r} has no public methods; pass an object that has some"
        raise InvalidDefinition(msg)
    if unknown := sorted(set(names) - methods.keys()):
        msg = f"{type(thing).__name__} has no method {unknown[0]!r}; it has: {', '.join(methods)}"
        raise InvalidDefinition(msg)
    chosen: ToolOptions = {"sequential": True, **options}
    return [tool(**chosen)(methods[name]) for name in names or methods]


def as_function_tool(function: FunctionTool[..., Any] | Callable[..., Any]) -> FunctionTool[..., Any]:
    """A decorated function as it is, a plain one as a tool that is taken to write."""
    return cast("FunctionTool[..., Any]", function) if isinstance(function, FunctionTool) else tool(function)


async def _call_beside(function: Callable[..., Any], values: JsonObject) -> Any:
    """Call a function in a thread, and await what it has only begun."""
    from asyncio import to_thread  # noqa: PLC0415 - heavy, and loaded where calls are made

    return await _awaited(await to_thread(_call_in_thread, function, values))


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result


def _call_in_thread(function: Callable[..., Any], values: JsonObject) -> Any:
    """Call a function in its thread; a `StopIteration`, which cannot leave a thread, is converted."""
    try:
        return function(**values)
    except StopIteration as error:
        msg = "the function raised StopIteration"
        raise RuntimeError(msg) from error
