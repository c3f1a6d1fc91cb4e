"""Reads a GraphQL schema from untrusted text (SDL or introspection JSON), or requests it from a server.

Nothing in the text is executed. Size, nesting and number of types are limited before and after parsing, and each
refusal is an `InvalidDefinition` that names the limit. Directives that SDL uses without a definition are ignored,
because servers often publish such SDL. Requests use the provider's credentials and the egress policy; a server that
does not support the newer parts of introspection gets a second request without them. Loads graphql-core.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import orjson
from graphql import (
    DocumentNode,
    GraphQLEnumType,
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    build_ast_schema,
    build_client_schema,
    get_introspection_query,
    is_introspection_type,
    parse,
    validate_schema,
)
from graphql.validation import (
    KnownDirectivesRule,
    UniqueDirectivesPerLocationRule,
)
from graphql.validation.specified_rules import specified_sdl_rules
from graphql.validation.validate import validate_sdl

from toolcrib.contracts import (
    InvalidDefinition,
    InvalidInput,
    Json,
    JsonObject,
    Principal,
    ProviderDefinition,
    ReconnectRequired,
    ToolcribError,
    Unavailable,
)
from toolcrib.core.providers import Credentials, ProviderAccess
from toolcrib.infrastructure.net import HttpResponse, HttpSession
from toolcrib.kinds.graphql.exchange import (
    GraphqlAnswer,
    UnsendableOperation,
    is_refusal,
    post,
    read_answer,
    write_operation,
)
from toolcrib.kinds.graphql.importer.inputs import inner_of, is_list, is_non_null, type_of

MAX_BYTES: Final = 16 * 2**20
"""Of the text."""
MAX_TOKENS: Final = 2_000_000
"""Of an SDL text, without its comments."""
MAX_COMMENTS: Final = 200_000
MAX_TYPES: Final = 20_000
MAX_FIELDS: Final = 200_000
"""Fields, arguments and input fields of all types together."""
MAX_OPERATIONS: Final = 10_000
"""Fields of the query and mutation types together."""
MAX_NAME_LENGTH: Final = 200
"""Characters of the name of a type, a field, an argument or an enum value."""
MAX_WRAPPERS: Final = 12
"""Lists and non-null marks around one type."""
MAX_NODES: Final = 5_000_000
"""Values in the JSON of an introspection."""
MAX_NESTING: Final = 64
"""Objects and lists inside each other in the JSON of an introspection."""

SchemaSource: TypeAlias = bytes | str | Mapping[str, Json]
"""SDL text, introspection JSON as text, or what that parses to."""

_NAME: Final = re.compile(r"[_A-Za-z][_0-9A-Za-z]*")
_SHOWN: Final = 300
"""Characters of foreign words in a message."""
_LENIENT: Final = {KnownDirectivesRule, UniqueDirectivesPerLocationRule}
_PROBLEMS: Final = (GraphQLError, TypeError, ValueError, KeyError, AttributeError, RecursionError)
"""What graphql-core raises about input that is no schema."""


@dataclass(frozen=True, slots=True)
class SchemaReading:
    """A schema and the form that it was given in."""

    schema: GraphQLSchema
    form: str
    """`GraphQL SDL` or `GraphQL introspection`."""


def read_schema(source: SchemaSource) -> SchemaReading:
    """Read a schema.

    Args:
        source: SDL text, the JSON of an introspection query as text, or what that parses to: with `__schema`, alone or
            below `data`.

    Raises:
        InvalidDefinition: It is neither, is not valid, or is larger than a limit.
    """
    if isinstance(source, Mapping):
        return _read_introspection(dict(source))
    text = _text(source)
    if text.lstrip()[:1] != "{":
        return SchemaReading(check_schema(_read_sdl(text)), "GraphQL SDL")
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        msg = f"the schema begins as JSON does and is invalid: {str(problem)[:_SHOWN]}; give SDL or introspection JSON"
        raise InvalidDefinition(msg) from None
    return _read_introspection(found)


def _text(source: bytes | str) -> str:
    size = len(source if isinstance(source, bytes) else source.encode(errors="replace"))
    if size > MAX_BYTES:
        raise _too_large("the schema has", size, "bytes", MAX_BYTES)
    if isinstance(source, str):
        return source.removeprefix("\ufeff")
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        msg = f"the schema is no UTF-8 text: {problem.reason} at byte {problem.start}; save it as UTF-8"
        raise InvalidDefinition(msg) from None


def _read_sdl(text: str) -> GraphQLSchema:
    try:
        document = parse(text, no_location=False, max_lexical_tokens=MAX_TOKENS, max_comments=MAX_COMMENTS)
    except GraphQLError as problem:
        where = f" in line {problem.locations[0].line}" if problem.locations else ""
        msg = f"the schema is no SDL that can be read: {problem.message[:_SHOWN]}{where}"
        msg = f"{msg}; correct it, or give introspection JSON"
        raise InvalidDefinition(msg) from None
    try:
        return _build(document)
    except _PROBLEMS as problem:
        raise _not_valid([_words(problem)]) from None


def _build(document: DocumentNode) -> GraphQLSchema:
    rules = [rule for rule in specified_sdl_rules if rule not in _LENIENT]
    problems = validate_sdl(document, rules=rules)
    if problems:
        raise _not_valid([problem.message for problem in problems])
    return build_ast_schema(document, assume_valid_sdl=True)


def _read_introspection(given: Json) -> SchemaReading:
    _check_json(given)
    whole = cast("JsonObject", given) if isinstance(given, dict) else {}
    data = whole.get("data", whole)
    found: Any = cast("JsonObject", data) if isinstance(data, dict) else {}
    if not isinstance(found.get("__schema"), dict):
        msg = "the JSON holds no '__schema'; give the answer to an introspection query, or the schema as SDL"
        raise InvalidDefinition(msg)
    types = found["__schema"].get("types")
    if isinstance(types, list) and len(cast("list[Json]", types)) > MAX_TYPES:
        raise _too_large("the schema has", len(cast("list[Json]", types)), "types", MAX_TYPES)
    try:
        schema = build_client_schema(found)
    except _PROBLEMS as problem:
        raise _not_valid([_words(problem)]) from None
    return SchemaReading(check_schema(schema), "GraphQL introspection")


def _check_json(given: Json) -> None:
    """Refuse what is too large or too deep before anything recursive looks at it."""
    nodes = 0
    level: list[Json] = [given]
    depth = 0
    while level:
        nodes += len(level)
        if nodes > MAX_NODES:
            raise _too_large("the introspection has more than", MAX_NODES, "values", MAX_NODES)
        if depth > MAX_NESTING:
            raise _too_large("the introspection nests", depth, "levels", MAX_NESTING)
        level = [part for value in level for part in _parts(value)]
        depth += 1


def _parts(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return cast("JsonObject", value).values()
    return cast("list[Json]", value) if isinstance(value, list) else ()


def check_schema(schema: GraphQLSchema) -> GraphQLSchema:
    """The schema, if it is valid and within the limits.

    Raises:
        InvalidDefinition: Names what is wrong or too large.
    """
    if len(schema.type_map) > MAX_TYPES:
        raise _too_large("the schema has", len(schema.type_map), "types", MAX_TYPES)
    roots = [root for root in (schema.query_type, schema.mutation_type) if root is not None]
    operations = sum(len(root.fields) for root in roots)
    if operations > MAX_OPERATIONS:
        raise _too_large("the query and mutation types have", operations, "fields", MAX_OPERATIONS)
    for fields, (place, name, type_) in enumerate(_members(schema), 1):
        if fields > MAX_FIELDS:
            raise _too_large("the schema has more than", MAX_FIELDS, "fields and arguments", MAX_FIELDS)
        if len(name) > MAX_NAME_LENGTH:
            raise _too_large(f"the name {name[:40]!r}… in {place[:40]} has", len(name), "characters", MAX_NAME_LENGTH)
        if not _NAME.fullmatch(name):
            raise _not_valid([f"{name[:40]!r} in {place[:40]} is not a valid GraphQL name"])
        wrappers = _wrappers(type_)
        if wrappers > MAX_WRAPPERS:
            what = f"the type of {place[:80]}.{name} has"
            raise _too_large(what, wrappers, "lists and non-null marks inside each other", MAX_WRAPPERS)
    try:
        problems = validate_schema(schema)
    except _PROBLEMS as problem:
        raise _not_valid([_words(problem)]) from None
    if problems:
        raise _not_valid([problem.message for problem in problems])
    return schema


def _members(schema: GraphQLSchema) -> Iterator[tuple[str, str, Any]]:
    """The place, name and type of everything except introspection types."""
    for name, named in schema.type_map.items():
        if is_introspection_type(named):
            continue
        yield "the schema", name, None
        if isinstance(named, GraphQLObjectType | GraphQLInterfaceType | GraphQLInputObjectType):
            for field_name, field in named.fields.items():
                yield name, field_name, type_of(field)
                arguments: Mapping[str, Any] = getattr(field, "args", {})
                yield from ((f"{name}.{field_name}", key, type_of(argument)) for key, argument in arguments.items())
        if isinstance(named, GraphQLEnumType):
            yield from ((name, value, None) for value in named.values)


def _wrappers(type_: Any) -> int:
    count, inner = 0, type_
    while is_list(inner) or is_non_null(inner):
        count, inner = count + 1, inner_of(inner)
    return count


def _too_large(what: str, value: int, unit: str, limit: int) -> InvalidDefinition:
    return InvalidDefinition(
        f"{what} {value} {unit} and {limit} is the most; give an SDL file with the part that you need"
    )


def _not_valid(problems: list[str]) -> InvalidDefinition:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InvalidDefinition(f"the schema is not valid: {problems[0][:_SHOWN]}{more}; correct it, or give it as SDL")


def _words(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "something in it is nested too deeply"
    message = problem.message if isinstance(problem, GraphQLError) else str(problem)
    return " ".join(message.partition("\n\n")[0].split()) or type(problem).__name__


TIMEOUT_S: Final = 60.0
"""Of each question."""

_QUESTION_NAME: Final = "IntrospectionQuery"
_QUESTIONS: Final = (
    get_introspection_query(specified_by_url=True, input_value_deprecation=True, one_of=True),
    get_introspection_query(),
)
_MAX_WORDS: Final = 300
_INSTEAD: Final = "give the schema as an SDL file instead"


async def introspect(
    session: HttpSession,
    providers: ProviderAccess,
    provider: ProviderDefinition,
    principal: Principal,
    *,
    within_s: float = TIMEOUT_S,
) -> JsonObject:
    """What a server says of its schema: an object with `__schema`, as `read_schema` reads it.

    Args:
        session: The way out.
        providers: Finds credentials.
        provider: Its address is where operations go.
        principal: The principal that acts.
        within_s: Seconds for each of at most two questions.

    Raises:
        CallFailed: The credentials are not available.
        EgressDenied: The policy forbids the address.
        Unavailable: The server cannot be reached, or does not answer in time or with its own failure.
        ReconnectRequired: It refuses the credentials.
        InvalidInput: Introspection is turned off, or it answers with something else.
        InvalidDefinition: The answer is larger than a limit.
    """
    credentials = await providers.credentials(provider, provider.address, principal)
    response, answer = await _ask(session, provider, credentials, _QUESTIONS[0], within_s)
    if _is_misunderstood(response, answer):
        response, answer = await _ask(session, provider, credentials, _QUESTIONS[1], within_s)
    found = None if answer is None or answer.data is None else answer.data.get("__schema")
    if isinstance(found, dict):
        return {"__schema": found}
    raise _refusal(provider.address, response, answer)


async def _ask(
    session: HttpSession, provider: ProviderDefinition, credentials: Credentials, question: str, within_s: float
) -> tuple[HttpResponse, GraphqlAnswer | None]:
    try:
        response = await post(
            session, provider, credentials, write_operation(question, _QUESTION_NAME, {}), within_s=within_s
        )
    except UnsendableOperation as problem:
        raise InvalidInput(f"{provider.address} cannot be asked: {problem}; correct the provider's headers") from None
    if len(response.body) > MAX_BYTES:
        msg = f"{provider.address} describes its schema in {len(response.body)} bytes and {MAX_BYTES} is the most"
        raise InvalidDefinition(f"{msg}; {_INSTEAD}, with the part that you need")
    return response, read_answer(response)


def _is_misunderstood(response: HttpResponse, answer: GraphqlAnswer | None) -> bool:
    """Whether the server may know an older form of introspection: it answers in errors, and not about credentials."""
    if answer is None or answer.data is not None or response.status in {401, 403, 429}:
        return False
    return not is_refusal(answer)


def _refusal(address: str, response: HttpResponse, answer: GraphqlAnswer | None) -> ToolcribError:
    messages = "; ".join(map(str, answer.errors[:2])) if answer is not None else ""
    reply = f"{response.status}" + (f": {messages[:_MAX_WORDS]}" if messages else "")
    if response.status in {401, 403} or (answer is not None and is_refusal(answer)):
        return ReconnectRequired(f"{address} refused the credentials with {reply}; check or renew them, or {_INSTEAD}")
    if response.status == 429 or (response.status >= 500 and answer is None):
        return Unavailable(
            f"{address} did not describe its schema and answered {reply}; try again later, or {_INSTEAD}"
        )
    if answer is None:
        msg = f"{address} answered {reply} and no GraphQL; give the address that takes operations, or {_INSTEAD}"
        return InvalidInput(msg)
    return InvalidInput(
        f"{address} does not describe its schema, introspection may be turned off ({reply}); {_INSTEAD}"
    )
