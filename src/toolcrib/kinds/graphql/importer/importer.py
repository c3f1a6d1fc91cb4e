"""The queries and mutations of a GraphQL schema as a provider and its tools: `import_graphql`, a pure function.

Each field of the query and mutation types becomes a tool. Subscriptions and introspection fields are left out and
reported. A tool contains the text of its operation, so calls need neither the schema nor graphql-core. Loads
graphql-core.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from graphql import GraphQLError, GraphQLField, GraphQLObjectType, GraphQLSchema, parse, validate

from toolcrib.contracts import (
    InvalidDefinition,
    LossReport,
    NoAuth,
    OperationImport,
    ProviderAuth,
    ProviderDefinition,
    RetryPolicy,
    ToolDefinition,
)
from toolcrib.core.providers.imports import MAX_NAME, Group, ImportedApi, Losses, cut_text, tell_large_input, with_hash
from toolcrib.kinds.graphql.importer.inputs import InputSchemas, note, prose, variable_type
from toolcrib.kinds.graphql.importer.schema import check_schema
from toolcrib.kinds.graphql.importer.selections import NESTED_NODES, SelectionLimits, Selections, Why
from toolcrib.kinds.graphql.shape import GraphqlImplementation, GraphqlOperation

_NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
_RETRIES: Final = RetryPolicy(count=3)
"""For queries, which may be repeated."""
_MAX_LONG: Final = 20_000
_GROUPS: Final[Mapping[GraphqlOperation, tuple[str, str]]] = MappingProxyType(
    {"query": ("queries", "Reads from the API."), "mutation": ("mutations", "Changes what the API keeps.")}
)
_INFRASTRUCTURE: Final = frozenset({"_entities", "_service"})
"""Fields with which a gateway asks its subgraphs (Apollo Federation)."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_MAX_WHY: Final = 300

_DEFAULT_LIMITS: Final = SelectionLimits()


class _Root(NamedTuple):
    """A field that may become a tool."""

    operation: GraphqlOperation
    owner: GraphQLObjectType
    name: str
    field: GraphQLField

    @property
    def key(self) -> str:
        """`query deal`: what the next import knows it by."""
        return f"{self.operation} {self.name}"

    @property
    def place(self) -> str:
        """`Query.deal`."""
        return f"{self.owner.name}.{self.name}"


def import_graphql(
    schema: GraphQLSchema,
    *,
    name: str,
    base_url: str,
    source: str = "GraphQL schema",
    auth: ProviderAuth | None = None,
    names: Mapping[str, str] = _NO_NAMES,
    limits: SelectionLimits = _DEFAULT_LIMITS,
) -> ImportedApi:
    """Make a provider and one tool per field of the query and mutation types.

    Args:
        schema: As `read_schema` has read it.
        name: Name of the provider.
        base_url: The address that takes operations: `https://api.example/graphql`.
        source: Where the schema comes from, for the report.
        auth: How calls authenticate.
        names: Tools' names of an earlier import by `query FIELD` or `mutation FIELD`, which stay.
        limits: The limits of a selection.

    Returns:
        Definitions that are not stored anywhere yet, and everything that was left out.

    Raises:
        InvalidDefinition: The schema is not valid, or larger than a limit.
    """
    check_schema(schema)
    roots = list(_roots(schema))
    reader = _SchemaReader(schema, name, limits)
    called = _tool_names(roots, names)
    for root in roots:
        reader.read(root, called[root.key])
    reader.leave_out_subscriptions()
    report = LossReport(format=source, operations=tuple(reader.operations))
    provider = ProviderDefinition(
        name=name,
        base_url=base_url,
        auth=auth or NoAuth(),
        metadata={"import": report.summary()},
    )
    sizes = Counter(tool.tags[0] for tool in reader.tools)
    groups = tuple(Group(tag, sizes[tag], text) for tag, text in _GROUPS.values() if sizes[tag])
    return ImportedApi(provider, tuple(reader.tools), groups, report)


def _roots(schema: GraphQLSchema) -> Iterator[_Root]:
    operations: tuple[tuple[GraphqlOperation, GraphQLObjectType | None], ...] = (
        ("query", schema.query_type),
        ("mutation", schema.mutation_type),
    )
    for operation, owner in operations:
        if owner is not None:
            yield from (_Root(operation, owner, name, field) for name, field in owner.fields.items())


class _SchemaReader:
    """Makes the tools of one schema."""

    def __init__(self, schema: GraphQLSchema, provider: str, limits: SelectionLimits) -> None:
        self._schema = schema
        self._provider = provider
        self._limits = limits
        self._inputs = InputSchemas()
        self._selections = Selections(schema, limits)
        self.tools: list[ToolDefinition] = []
        self.operations: list[OperationImport] = []

    def read(self, root: _Root, name: str) -> None:
        """Make a tool of a field, or report why it is left out."""
        losses = Losses()
        tool: ToolDefinition | None = None
        if root.name in _INFRASTRUCTURE:
            losses.add_dropped(root.place, "operation", "operation", "left out: only a gateway asks it")
        else:
            try:
                tool = self._tool(root, name, losses)
                tell_large_input(name, tool.input_schema, root.place, losses)
            except (InvalidDefinition, GraphQLError, RecursionError, ValueError) as problem:
                losses = Losses()
                losses.add_dropped(root.place, "operation", "operation", f"left out: {problem}"[:_MAX_WHY])
        if tool is not None:
            self.tools.append(tool)
        self.operations.append(
            OperationImport(
                operation=root.key,
                place=root.place,
                tool=None if tool is None else tool.name,
                group=None if tool is None else tool.tags[0],
                kept=() if tool is None else tuple(f"variable {argument}" for argument in root.field.args),
                losses=losses.report(),
            )
        )

    def leave_out_subscriptions(self) -> None:
        """Say of every subscription that it is no tool."""
        owner = self._schema.subscription_type
        for name in owner.fields if owner is not None else ():
            losses = Losses()
            place = f"{owner.name if owner else ''}.{name}"
            losses.add_dropped(place, "operation", "operation", "left out: a subscription has more than one answer")
            self.operations.append(
                OperationImport(operation=f"subscription {name}", place=place, tool=None, losses=losses.report())
            )

    def _tool(self, root: _Root, name: str, losses: Losses) -> ToolDefinition:
        schema = self._inputs.of(root.place, root.field, losses)
        selection = self._selections.of(root.field)
        for why, places in selection.cuts.items():
            _account(why, places, self._limits, losses)
        operation_name = root.name[:1].upper() + root.name[1:]
        document = _document(root, operation_name, selection.text)
        self._check(document)
        reads = root.operation == "query"
        text = prose(root.field.description) or f"The {root.operation} {root.name} of {self._provider}."
        if root.field.deprecation_reason is not None:
            text = f"Deprecated: {note(root.field.deprecation_reason)} {text}"
        return ToolDefinition(
            name=name,
            description=cut_text(text),
            long_description=cut_text(text, _MAX_LONG) if cut_text(text) != text else None,
            category=self._provider,
            tags=(_GROUPS[root.operation][0],),
            source="imported",
            input_schema=schema,
            output_schema=selection.schema,
            side_effects="reads" if reads else "writes",
            idempotent=reads,
            retry=_RETRIES if reads else RetryPolicy(),
            implementation=GraphqlImplementation(
                provider=self._provider,
                document=document,
                operation_name=operation_name,
                operation=root.operation,
                root_field=root.name,
                output_key=root.name,
            ),
        )

    def _check(self, document: str) -> None:
        """Refuse an operation that the server would refuse."""
        problems = validate(self._schema, parse(document), max_errors=1)
        if problems:
            raise InvalidDefinition(f"its operation would not be valid: {problems[0].message}")


def _document(root: _Root, operation_name: str, selection: str) -> str:
    arguments = root.field.args
    variables = ", ".join(f"${name}: {variable_type(argument)}" for name, argument in arguments.items())
    given = ", ".join(f"{name}: ${name}" for name in arguments)
    head = f"{root.operation} {operation_name}" + (f"({variables})" if variables else "")
    return f"{head} {{\n  {root.name}" + (f"({given})" if given else "") + f"{selection}\n}}\n"


def _account(why: Why, places: Sequence[str], limits: SelectionLimits, losses: Losses) -> None:
    """Report the fields that are not selected."""
    for place in places:
        match why:
            case "arguments":
                losses.add_dropped(place, "unsupported", "field", "not asked for: it needs arguments")
            case "deprecated":
                losses.add_dropped(place, "annotation", "field", "not asked for: it is deprecated")
            case "cost":
                losses.add_dropped(place, "bound", "field", f"not asked for: the cost of {limits.cost} is used up")
            case "depth":
                losses.add_changed(place, "bound", "field", f"names only, or nothing: deeper than {limits.depth}")
            case "cycle":
                losses.add_changed(place, "bound", "field", "names only, or nothing: it leads back to a type around it")
            case "first":
                losses.add_changed(place, "bound", "field", f"the first {NESTED_NODES} only")
            case "paging":
                losses.add_dropped(place, "response", "field", "not asked for: the nodes are asked for directly")
            case "types":
                losses.add_dropped(place, "bound", "type", "not asked for: there are too many possible types")


def _tool_names(roots: Sequence[_Root], known: Mapping[str, str]) -> dict[str, str]:
    """One name per field, in snake case, or what an earlier import called it; equal names get a hash."""
    keys = {root.key for root in roots}
    names = {key: name for key, name in known.items() if key in keys}
    names_in_use = set(known.values())
    for root in roots:
        if root.key in names:
            continue
        name = "_".join(word.lower() for word in _WORDS.findall(root.name))
        name = name if name[:1].isalpha() else f"call_{name}".rstrip("_")
        if name in names_in_use or len(name) > MAX_NAME:
            name = with_hash(name, root.key)
        names[root.key] = name
        names_in_use.add(name)
    return names
