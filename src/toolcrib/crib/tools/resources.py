"""What can be queried, field by field, and how filters, sorts and cursors over it are read.

`RESOURCES` is the one table of it: REST, the command line, `crib.queries`, error messages and `docs/queries.md` are
made of it. Runs, approvals and conversations are queried in the store, everything else in memory, where it is anyway.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args

from pydantic_core import from_json, to_json

from toolcrib.contracts import (
    AgenticMode,
    AgenticStatus,
    InvalidInput,
    LifeCycle,
    NotFound,
    ProviderDefinition,
    SideEffects,
    ToolRevision,
)
from toolcrib.contracts.providers.connections import SecretEntry, SecretScope
from toolcrib.contracts.workflows import WorkflowDraft
from toolcrib.infrastructure.queries.grammar import Condition, Every, OrderKey, equal, read_filter, read_order
from toolcrib.infrastructure.queries.rows import Field, compile_test, sort_page, types_of, values_of
from toolcrib.infrastructure.store.ports.queried_fields import (
    APPROVAL_FIELDS,
    CONVERSATION_FIELDS,
    EVERYTHING,
    RUN_FIELDS,
    StoreQuery,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
ResourceName: TypeAlias = Literal[
    "tools",
    "ai-tools",
    "agentic-tools",
    "agents",
    "workflows",
    "drafts",
    "instances",
    "runs",
    "approvals",
    "conversations",
    "providers",
    "secrets",
    "fragments",
    "accounts",
    "steps",
    "conditions",
    "mcp_servers",
    "triggers",
]
ToolResource: TypeAlias = Literal["tools", "ai-tools", "agentic-tools", "agents", "workflows"]
KINDS: Final[Mapping[str, str | None]] = {
    "tools": None,
    "ai-tools": None,
    "agentic-tools": "agentic",
    "agents": "agent",
    "workflows": "workflow",
}
"""The resources that are tools, and of which kind; null for any."""
_CURSOR: Final = "~"
"""What a cursor begins with; ids and names never do."""


@dataclass(frozen=True, slots=True)
class QueriedResource(Generic[T]):
    """Things of one kind that can be queried."""

    noun: str
    fields: Mapping[str, Field[T]]
    order: tuple[OrderKey, ...] = (OrderKey("name"),)
    """Of lists without a sort."""
    key: str | None = "name"
    """The field that names one: pages of lists without a sort end with it. Null if it takes all of the order."""

    @property
    def unique(self) -> tuple[str, ...]:
        """The fields that together differ for each of them."""
        return tuple(key.field for key in self.order) if self.key is None else (self.key,)


@dataclass(frozen=True, slots=True)
class QueryPage(Generic[T]):
    """Some of the things that were asked for, in order."""

    items: Sequence[T]
    next: str | None
    """`after` of the next page; null on the last."""


class ResourceQuery(Generic[T]):
    """A filter and a sort over a resource, as they were read.

    Args:
        resource: What is queried.
        filter: A condition such as `status eq 'failed' and cost_usd gt 1`; null for none.
        sort: Fields such as `cost_usd desc`; null for the resource's own order.
        now: The present moment.

    Raises:
        InvalidInput: One of them is not valid; the message lists the fields.
    """

    def __init__(self, resource: QueriedResource[T], filter: str | None, sort: str | None, *, now: datetime) -> None:
        types = types_of(resource.fields)
        given = (filter or "").strip()
        self.resource = resource
        self.condition: Condition = read_filter(given, types, now=now) if given else EVERYTHING
        keys = read_order(sort, types, parameter="sort") if sort and sort.strip() else ()
        self.has_sort = bool(keys)
        last = [OrderKey(name, keys[-1].descending) for name in resource.unique if keys and name not in _names(keys)]
        self.order = (*keys, *last) or resource.order

    def test_of(self, condition: Condition) -> Callable[[T], bool]:
        """What tells whether a condition over the resource is met.

        Raises:
            InvalidInput: It compares a field with what it cannot be.
        """
        return compile_test(condition, self.resource.fields)

    def is_named(self, key: str) -> Condition:
        """The condition that a thing has a name or an id."""
        return equal(str(self.resource.key), key)

    def place_of(self, found: Sequence[T], after: str) -> tuple[Any, ...]:
        """The values of what a page begins after.

        Args:
            found: What has the id, if anything has.
            after: The id.

        Raises:
            NotFound: Nothing has it.
        """
        if not found:
            noun = self.resource.noun
            raise NotFound(f"there is no {noun} {after[:100]!r} which a page could begin after; begin with the first")
        return values_of(self.order, self.resource.fields, found[0])

    def cursor(self, row: T) -> str:
        """Where a page ends that has this row as its last."""
        if not self.has_sort and self.resource.key is not None:
            return str(self.resource.fields[self.resource.key].of(row))
        values = values_of(self.order, self.resource.fields, row)
        token = urlsafe_b64encode(to_json([self._sort_text(), values]))
        return _CURSOR + token.decode().rstrip("=")

    def place(self, after: str) -> tuple[Any, ...] | None:
        """The values of the last row of the page before, one for each key; null if `after` is only the row's id.

        Raises:
            InvalidInput: It is a cursor of another sort, or none.
        """
        if not after.startswith(_CURSOR):
            if self.has_sort or self.resource.key is None:
                raise self._foreign(after)
            return (after,) if len(self.order) == 1 else None
        token = after.removeprefix(_CURSOR)
        try:
            sort, values = from_json(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            pairs = list(zip(self.order, cast("Sequence[Any]", values), strict=True))
        except (ValueError, TypeError):
            raise self._foreign(after) from None
        if sort != self._sort_text():
            raise self._foreign(after)
        fields = self.resource.fields
        return tuple(None if value is None else fields[key.field].read(key.field, value) for key, value in pairs)

    def page(self, rows: Iterable[T], *, after: str | None, limit: int) -> QueryPage[T]:
        """A page of things that are in memory.

        Raises:
            InvalidInput: `after` is not where a page of this sort ended.
        """
        place = self.place(after) if after else None
        met = filter(self.test_of(self.condition), rows)
        found = sort_page(met, self.order, self.resource.fields, after=place, limit=limit + 1)
        return self.cut(found, limit)

    def cut(self, found: Sequence[T], limit: int) -> QueryPage[T]:
        """The page of which one row more was read, if there is one."""
        more = len(found) > limit
        return QueryPage(found[:limit], self.cursor(found[limit - 1]) if more else None)

    def _sort_text(self) -> str:
        return ",".join(f"{key.field} {'desc' if key.descending else 'asc'}" for key in self.order)

    def _foreign(self, after: str) -> InvalidInput:
        return InvalidInput(
            f"after is {after[:100]!r}, which no page of this sort ended with; send `next` of the page before, "
            "with the same filter and sort"
        )


class QueriedStore(Protocol[T_co]):
    """What a store finds and counts."""

    async def find(self, realm: str, query: StoreQuery) -> Sequence[T_co]:
        """Those that meet a condition, in an order, from a place on."""
        ...

    async def count(self, realm: str, condition: Condition) -> int:
        """How many meet a condition."""
        ...


async def stored_page(
    stored: QueriedStore[T], realm: str, query: ResourceQuery[T], visible: Condition, *, after: str | None, limit: int
) -> QueryPage[T]:
    """A page of what the store has.

    Args:
        stored: Finds it.
        realm: Whose it is.
        query: What is meant.
        visible: What else must be true: that the caller may see it, for one.
        after: Where the page before ended; null for the first.
        limit: At most so many.

    Raises:
        InvalidInput: `after` is not where a page of this sort ended.
        NotFound: There is nothing `after` that the caller may see.
    """
    place = query.place(after) if after else None
    if after and place is None:
        one = StoreQuery(Every((visible, query.is_named(after))), query.order)
        place = query.place_of(await stored.find(realm, one), after)
    condition = Every((query.condition, visible))
    return query.cut(await stored.find(realm, StoreQuery(condition, query.order, place, limit + 1)), limit)


def _names(keys: Iterable[OrderKey]) -> set[str]:
    return {key.field for key in keys}


def _implementation(name: str) -> Callable[[ToolRevision], Any]:
    return lambda tool: getattr(tool.definition.implementation, name, None)


def _model(tool: ToolRevision) -> str | None:
    llm = getattr(tool.definition.implementation, "llm", None)
    return None if llm is None else llm.model


def _text(tool: ToolRevision) -> str:
    made = tool.definition
    return "\n".join((made.name, made.title or "", made.description, *made.tags))


def _own_status(tool: ToolRevision) -> str:
    return _implementation("status")(tool) or "active"


_OF_TOOLS: Final[Mapping[str, Field[ToolRevision]]] = {
    "name": Field("string", "Its name.", lambda tool: tool.name, nullable=False),
    "title": Field("string", "Its title; null without one.", lambda tool: tool.definition.title),
    "text": Field("string", "Name, title, description and tags, a line each.", _text),
    "category": Field("string", "Its category.", lambda tool: tool.definition.category),
    "tag": Field("strings", "Its tags.", lambda tool: tool.definition.tags),
    "kind": Field("string", "What it is made of: `http`, `agent`.", _implementation("kind")),
    "provider": Field("string", "Name of its provider; null without one.", _implementation("provider_name")),
    "model": Field("string", "`provider:model` that it asks; null without one.", _model),
    "mode": Field("string", "Of an agentic tool; null for others.", _implementation("mode"), get_args(AgenticMode)),
    "side_effects": Field(
        "string", "What its calls may do.", lambda tool: tool.definition.side_effects, get_args(SideEffects)
    ),
    "source": Field("string", "Where its definition came from.", lambda tool: tool.definition.source),
    "enabled": Field("boolean", "Whether it can be called.", lambda tool: tool.definition.enabled),
    "version": Field("string", "Its version.", lambda tool: tool.version),
    "revision": Field("integer", "Number of its revision.", lambda tool: tool.revision),
    "made_by": Field("string", "Id of who saved the revision.", lambda tool: tool.made_by),
    "created_at": Field("datetime", "When the revision was saved.", lambda tool: tool.created_at),
}
TOOL_FIELDS: Final[Mapping[str, Field[ToolRevision]]] = {
    **_OF_TOOLS,
    "status": Field("string", "Its state in the life cycle.", lambda tool: tool.status, get_args(LifeCycle)),
}
AUTHORED_FIELDS: Final[Mapping[str, Field[ToolRevision]]] = {
    **_OF_TOOLS,
    "status": Field("string", "What its author says of it.", _own_status, get_args(AgenticStatus)),
    "life_cycle": Field("string", "Its state in the life cycle.", lambda tool: tool.status, get_args(LifeCycle)),
}
PROVIDER_FIELDS: Final[Mapping[str, Field[ProviderDefinition]]] = {
    "name": Field("string", "Its name.", lambda each: each.name, nullable=False),
    "title": Field("string", "Its title; null without one.", lambda each: each.title),
    "text": Field("string", "Name and title, a line each.", lambda each: f"{each.name}\n{each.title or ''}"),
    "kind": Field("string", "How it is reached: `http`, `mcp`.", lambda each: each.connection.kind),
    "base_url": Field("string", "Its address.", lambda each: each.base_url),
    "auth": Field("string", "Its type of authentication.", lambda each: each.auth.kind),
    "enabled": Field("boolean", "Whether it can be used.", lambda each: each.enabled),
}
SECRET_FIELDS: Final[Mapping[str, Field[SecretEntry]]] = {
    "name": Field("string", "Its name.", lambda each: each.name, nullable=False),
    "scope": Field("string", "Whose it is.", lambda each: each.scope, get_args(SecretScope)),
    "version": Field("integer", "How often it was set.", lambda each: each.version),
    "made_by": Field("string", "Id of who set it.", lambda each: each.made_by),
    "created_at": Field("datetime", "When this version was set.", lambda each: each.created_at),
}
DRAFT_FIELDS: Final[Mapping[str, Field[WorkflowDraft]]] = {
    "name": Field("string", "Name of the workflow.", lambda each: each.definition.name, nullable=False),
    "text": Field("string", "Name and note, a line each.", lambda each: f"{each.definition.name}\n{each.note}"),
    "authored_by": Field("string", "The agent that wrote it; null for a person.", lambda each: each.authored_by),
    "run_id": Field("string", "The run in which it was written; null without one.", lambda each: each.run_id),
    "revision": Field("integer", "Number of its revision.", lambda each: each.revision),
    "made_by": Field("string", "Id of who saved it.", lambda each: each.made_by),
    "created_at": Field("datetime", "When it was saved.", lambda each: each.created_at),
}


def _named_fields(**more: Field[Any]) -> Mapping[str, Field[Any]]:
    """The fields of what is kept by name, and others."""
    return {
        "name": Field("string", "Its name.", lambda each: each.name, nullable=False),
        "text": Field("string", "Name and description, a line each.", lambda each: f"{each.name}\n{each.description}"),
        **more,
    }


def _attribute(name: str, kind: Literal["string", "strings", "boolean"], text: str) -> Field[Any]:
    return Field(kind, text, lambda each: getattr(each, name))


_ENABLED: Final = _attribute("enabled", "boolean", "Whether it is in use.")
_NEWEST: Final = OrderKey("created_at", descending=True)
_RUNS: Final = QueriedResource("run", RUN_FIELDS, (_NEWEST, OrderKey("run_id", descending=True)), "run_id")
_TOOLS: Final = QueriedResource("tool", TOOL_FIELDS)

RESOURCES: Final[Mapping[ResourceName, QueriedResource[Any]]] = {
    "tools": _TOOLS,
    "ai-tools": QueriedResource("tool", AUTHORED_FIELDS),
    "agentic-tools": QueriedResource("agentic tool", AUTHORED_FIELDS),
    "agents": QueriedResource("agent", AUTHORED_FIELDS),
    "workflows": QueriedResource("workflow", AUTHORED_FIELDS),
    "drafts": QueriedResource("draft", DRAFT_FIELDS),
    "instances": _RUNS,
    "runs": _RUNS,
    "approvals": QueriedResource(
        "approval", APPROVAL_FIELDS, (OrderKey("created_at"), OrderKey("approval_id")), "approval_id"
    ),
    "conversations": QueriedResource(
        "conversation", CONVERSATION_FIELDS, (_NEWEST, OrderKey("conversation_id", descending=True)), "conversation_id"
    ),
    "providers": QueriedResource("provider", PROVIDER_FIELDS),
    "secrets": QueriedResource("secret", SECRET_FIELDS, (OrderKey("name"), OrderKey("scope", descending=True)), None),
    "fragments": QueriedResource("fragment", _named_fields()),
    "accounts": QueriedResource(
        "account", _named_fields(enabled=_ENABLED, grant=_attribute("grants", "strings", "Its grants."))
    ),
    "steps": QueriedResource("step", _named_fields(tool=_attribute("tool", "string", "The tool that it names."))),
    "conditions": QueriedResource("condition", _named_fields(enabled=_ENABLED)),
    "mcp_servers": QueriedResource(
        "MCP server",
        _named_fields(
            enabled=_ENABLED,
            tool=_attribute("tools", "strings", "What it selects."),
            offer=_attribute("offer", "string", "How it offers its tools."),
        ),
    ),
    "triggers": QueriedResource(
        "trigger",
        _named_fields(
            enabled=_ENABLED,
            start=_attribute("start", "string", "What it starts."),
            account=_attribute("account", "string", "The account that its runs act as."),
            kind=Field("string", "What it waits for.", lambda each: each.when.kind),
        ),
    ),
}
"""What can be queried, by its name in paths."""
