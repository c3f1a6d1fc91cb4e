"""Python functions as tools: the `@tool` decorator, schemas from type hints, calls with validated arguments.

The decorated object is still the function: calling it directly bypasses policy, while a crib calls it through the
executor. Bound methods, `functools.partial` and callable objects are supported; bound arguments are not arguments of
the tool. Stored names are never imported. Pydantic makes the schemas, which are reduced to what a model needs.
"""

import inspect
import json
import operator
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property, partial, update_wrapper
from math import isfinite
from types import CoroutineType, FunctionType, MethodType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    NamedTuple,
    ParamSpec,
    SupportsFloat,
    SupportsIndex,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError, SchemaError

from toolcrib.contracts import (
    CachePolicy,
    ErrorRule,
    Example,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    RateLimit,
    RetryPolicy,
    SecretReference,
    SideEffects,
    ToolDefinition,
    Usd,
)
from toolcrib.contracts.tools.tools import UnknownOutcome
from toolcrib.infrastructure.store.ports.transactions import Doer, NoTransactions, Work
from toolcrib.kinds.python.shape import PythonImplementation

if TYPE_CHECKING:
    from toolcrib.infrastructure.net import HttpSession

_NAMED = frozenset({"properties", "patternProperties", "$defs"})
"""Keywords whose values are schemas by name."""
_DATA = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are no schemas."""


def schema_of_arguments(model: type[BaseModel]) -> JsonSchema:
    """What a model accepts."""
    return _lean(model.model_json_schema(schema_generator=_Generator))


def schema_of_results(adapter: TypeAdapter[Any]) -> JsonSchema:
    """What values of a type become."""
    return _lean(adapter.json_schema(mode="serialization", schema_generator=_Generator))


class _Generator(GenerateJsonSchema):
    """Pydantic's, but a default that JSON has no form for is left out without a word: the function has it."""

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        try:
            json.dumps(encoded, allow_nan=False)
        except ValueError as error:
            raise PydanticSerializationError(str(error)) from error
        return encoded

    def render_warning_message(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Nothing: who could read it has not written the type."""


def _lean(schema: JsonSchema) -> JsonSchema:
    """The schema without the titles that pydantic makes from names: a model pays for every token."""
    lean: JsonSchema = {}
    for key, value in schema.items():
        if key in _NAMED:
            lean[key] = {name: _lean_part(part) for name, part in value.items()}
        elif key in _DATA:
            lean[key] = value
        elif key != "title":
            lean[key] = _lean_part(value)
    return lean


def _lean_part(part: Json) -> Json:
    if isinstance(part, list):
        return [_lean_part(item) for item in cast("list[Json]", part)]
    return _lean(cast("JsonSchema", part)) if isinstance(part, dict) else part


_SIMPLE: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}
"""Types whose schema is their name, in arguments and in results."""


def simple_schema(hint: Any) -> JsonSchema | None:
    """The schema of a type that is made of text, numbers, booleans, null, lists and objects, as pydantic writes it.

    Making a model of such a signature only to have its schema would be most of what a tool costs to add.

    Args:
        hint: A type hint.

    Returns:
        A new schema; null for any other type.
    """
    if hint is Any:
        return {}
    if type(hint) is type:
        return {"type": _SIMPLE[hint]} if hint in _SIMPLE else None
    origin, inside = get_origin(hint), get_args(hint)
    if origin is list and len(inside) == 1:
        items = simple_schema(inside[0])
        return None if items is None else {"items": items, "type": "array"}
    if origin is dict and len(inside) == 2 and inside[0] is str:
        values = simple_schema(inside[1])
        return None if values is None else {"additionalProperties": values or True, "type": "object"}
    if origin in (UnionType, Union) and len(inside) == 2 and inside[1] is NoneType:
        some = simple_schema(inside[0])
        return None if some is None else {"anyOf": [some, {"type": "null"}]}
    return None


def _single_types(hint: Any) -> frozenset[type] | None:
    """The types of the JSON values that pydantic hands to a parameter as they are; null if there may be others."""
    if type(hint) is type:
        return frozenset((hint,)) if hint in _SIMPLE else None
    inside = get_args(hint) if get_origin(hint) in (UnionType, Union) else ()
    if len(inside) == 2 and inside[1] is NoneType and type(inside[0]) is type and inside[0] in _SIMPLE:
        return frozenset(inside)
    return None


class _Kinds(NamedTuple):
    """The types of a function's arguments."""

    types: Mapping[str, frozenset[type]]
    needed: frozenset[str]
    """Names of those without a default."""

    def hold(self, arguments: JsonObject) -> bool:
        """Whether all arguments are of their types, as they are, and none is missing."""
        types = self.types
        for name, value in arguments.items():
            if name not in types or type(value) not in types[name]:
                return False
        return self.needed <= arguments.keys()


def _fits_simply(default: object, schema: JsonSchema) -> bool:
    """Whether a default is surely of the type of a simple schema; only null and single values are looked at."""
    kinds = [schema, *cast("list[JsonSchema]", schema.get("anyOf", ()))]
    names = {kind.get("type") for kind in kinds}
    if default is None:
        return "null" in names
    if type(default) is float:
        return "number" in names and isfinite(default)
    return type(default) in _SIMPLE and _SIMPLE[type(default)] in names


_SECTION: Final = re.compile(r"^(?::|@|\.\.|-+[ \t\r\f\v]*$)|:[ \t\r\f\v]*$", re.MULTILINE)
"""What begins a section of a docstring, in every style; other things may look like it."""


class _Documentation(NamedTuple):
    """What a docstring says."""

    summary: str
    parameters: Mapping[str, str | None]


def _read_docstring(text: str) -> _Documentation:
    if _SECTION.search(text):
        from docstring_parser import parse  # noqa: PLC0415 - heavy

        found = parse(text)
        first, rest = found.short_description, found.long_description
        parameters = {parameter.arg_name: parameter.description for parameter in found.params}
    else:
        first, _, rest = text.partition("\n")
        rest, parameters = rest.strip(), {}
    return _Documentation("\n\n".join(filter(None, (first, rest))), parameters)


def inner_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that has the type hints and the docstring.

    Raises:
        InvalidDefinition: It cannot be called, or is a method of a type that is written in C.
    """
    whole = _whole(function)
    if not callable(whole):
        msg = f"{whole!r} is not callable; pass a function or a method"
        raise InvalidDefinition(msg)
    inner = whole if hasattr(whole, "__name__") else whole.__call__
    if not hasattr(inner, "__module__"):
        raise InvalidDefinition(_untold(function))
    return inner


def has_object(function: Callable[..., Any]) -> bool:
    """Whether it is a method of an object, which its calls share."""
    return isinstance(function, MethodType) and not isinstance(function.__self__, type)


def name_of(function: Callable[..., Any]) -> str:
    """The default name of its tool; for a callable object, the name of its class."""
    whole = _whole(function)
    return getattr(whole, "__name__", type(whole).__name__)


def open_parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters that are still to be given.

    Raises:
        InvalidDefinition: It is written in C, and its parameters are unknown.
    """
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        raise InvalidDefinition(_untold(function)) from None
    held = function.keywords if isinstance(function, partial) else {}
    return {name: parameter for name, parameter in parameters.items() if name not in held}


def public_methods(thing: object) -> Mapping[str, Callable[..., Any]]:
    """The public methods of an object, by name. Properties are not evaluated, so there are no side effects."""
    kind = type(thing)
    named = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    methods = (name for name, found in named.items() if isinstance(found, FunctionType | classmethod | staticmethod))
    return {name: getattr(thing, name) for name in methods}


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a partial is a part of."""
    while isinstance(function, partial):
        function = function.func
    return function


def _untold(function: Callable[..., Any]) -> str:
    return f"{function!r} does not declare its parameters; wrap it in a function"


P = ParamSpec("P")
R = TypeVar("R")


async def no_transaction(work: Work) -> Json:
    """Refuse: there is no store."""
    return await NoTransactions().transact(Doer("", 0, "", ""), work)


class ToolContext(Struct, frozen=True):
    """What a function gets if one of its parameters is annotated with this type.

    Example:
        @tool(side_effects="writes", idempotent=True)
        async def add_note(text: str, context: ToolContext) -> str:
            return f"{context.principal} wrote {text!r} ({context.idempotency_key})"

        crib.add(add_note)
        print((await crib.call("add_note", text="Called Acme")).output)
    """

    run_id: str
    """The run that calls: an agent's, or the instance of a workflow."""
    position: str
    """Of the call in it: in a workflow the name of the step, with `[place]` for an element of a list."""
    realm: str
    principal: str
    idempotency_key: str
    """The same on every attempt of this call; pass it to systems that accept one."""
    attempt: int
    auth: Mapping[str, str]
    """Resolved secrets by name."""
    http: "HttpSession"
    """The crib's HTTP session: requests through it are subject to the crib's egress policy."""
    transact: Callable[[Work], Awaitable[Json]] = no_transaction
    """Of a tool with `transactional=True`: `await context.transact(work)` runs `work(connection)` in the store's own
    database, once for the call, and returns its result. It commits together with the record that it has run."""


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
        update_wrapper(self, self._inner)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, without the crib."""
        return self._function(*args, **kwargs)

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
            listed = "; ".join(f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors())
            msg = f"tool {self._name!r} is not well formed: {listed}; correct it in @tool(...)"
            raise InvalidDefinition(msg) from error
        except (PydanticUserError, SchemaError, TypeError, ValueError) as error:
            reason = getattr(error, "message", error)
            msg = f"tool {self._name!r}: a type in its signature has no form in JSON: {reason}"
            raise InvalidDefinition(msg) from error

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Call the function with JSON arguments that match its schema, and return its result as JSON."""
        return await self.invoke(self.values_of(arguments, context))

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
        return self.as_json(await self.begin(values))

    def begin(self, values: JsonObject) -> Coroutine[Any, Any, Any]:
        """Call the function with its keyword arguments: what is still to await, for its result as it returns it."""
        call: Callable[..., Any] = self._function
        if self._is_async:
            begun: Any = call(**values)
            result: Coroutine[Any, Any, Any] = begun
            return result if type(begun) is CoroutineType else _awaited(begun)
        return _call_beside(call, values)

    def as_json(self, result: object) -> Json:
        """What the function has returned, as JSON."""
        if type(result) is self._single:
            return result
        return self._serialize(result, mode="json", by_alias=True, warnings=False, fallback=self._to_json)

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
    def _documentation(self) -> _Documentation:
        return _read_docstring(inspect.getdoc(self._inner) or "")

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
    def _kinds(self) -> "_Kinds | None":
        """The types of arguments, if all are single values, which pydantic would only look at."""
        if "input_schema" in self._options:
            return None
        found: dict[str, frozenset[type]] = {}
        for name, parameter in self._open.items():
            if name == self._context_parameter:
                continue
            types = _single_types(self._hints[name])
            if types is None or isinstance(parameter.default, FieldInfo):
                return None
            found[name] = types
        needed = (name for name in found if self._open[name].default is inspect.Parameter.empty)
        return _Kinds(found, frozenset(needed))

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
            elif _fits_simply(parameter.default, part):
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
    def _result(self) -> TypeAdapter[Any]:
        hint = Any if "output_schema" in self._options else self._hints.get("return", Any)
        return TypeAdapter(Any if hint is type(None) else hint)

    @cached_property
    def _single(self) -> type | None:
        """The type of results that are JSON as they are; null if there is none."""
        hint = None if "output_schema" in self._options else self._hints.get("return")
        return hint if type(hint) is type and hint in _SIMPLE else None

    @cached_property
    def _serialize(self) -> Callable[..., Json]:
        return self._result.serializer.to_python

    @property
    def _output_schema(self) -> JsonSchema | None:
        if self._hints.get("return", type(None)) is type(None):
            return None
        simple = simple_schema(self._hints["return"])
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

    Example:
        @tool(side_effects="writes", idempotent=True)
        def close_deal(deal: str) -> dict[str, str]:
            return {"closed": deal}

        crib.add(close_deal)
    """
    if function is not None:
        return FunctionTool(function, options)

    def decorate(decorated: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(decorated, options)

    return decorate


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
