"""Projects as files: the documents that only projects have, and the plan of what applying a project would change.

A document has `kind`, `name` and, for tools, agents and workflows, `version`; the other fields are those of its
contract. Secrets, keys and budgets are named, and never have values here.
"""

from typing import Any, Literal, Self, TypeAlias

from pydantic import Base64Bytes, Field, model_validator

from toolcrib.contracts.base.base import Contract, Json
from toolcrib.contracts.providers.auth import ProviderAuth
from toolcrib.contracts.providers.providers import NAME_PATTERN

ProjectKind: TypeAlias = Literal[
    "project",
    "secret",
    "key",
    "budget",
    "blob",
    "provider",
    "fragment",
    "account",
    "condition",
    "function",
    "import",
    "tool",
    "handler",
    "agent",
    "workflow",
    "mcp_server",
    "trigger",
]
"""What a document describes, in the order in which documents are saved."""

PlannedAction: TypeAlias = Literal["create", "change", "remove", "unchanged"]


class ProjectHeader(Contract):
    """The project itself. At most one document of a folder has it."""

    name: str = Field(pattern=NAME_PATTERN)
    """Owns what it applies; the name of the folder if no document says it."""
    description: str = ""


class ProjectImport(Contract):
    """A description of an API, each operation of which becomes a tool of a provider with the name of this document.

    It has one of `openapi`, `graphql`, `grpc`, `mcp`, `a2a` and `database`.
    """

    name: str = Field(pattern=NAME_PATTERN)
    openapi: str | None = Field(default=None, min_length=1)
    """Path of a JSON or YAML file, relative to the file that names it, inside of the project's folder."""
    graphql: str | None = None
    """Address of a GraphQL API that tells its schema."""
    grpc: str | None = None
    """`grpc://host:port` or `grpcs://host:port` of a server with reflection."""
    mcp: str | None = None
    """Address of an MCP server that speaks streamable HTTP."""
    a2a: str | None = None
    """Address of an agent that speaks A2A, or of its card."""
    database: str | None = None
    """Reference to a database's URL: `${env:SHOP_DATABASE_URL}`."""
    base_url: str | None = None
    """Address of the API of `openapi`, instead of the document's servers."""
    tables: tuple[str, ...] | None = None
    """Of `database`: tables and views, `schema.name` for those of another schema; all tables if null."""
    auth: ProviderAuth | None = None
    """Authentication, instead of that of the OpenAPI document; a database has it in its URL."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        sources = ("openapi", "graphql", "grpc", "mcp", "a2a", "database")
        if sum(getattr(self, source) is not None for source in sources) != 1:
            raise ValueError(f"must have exactly one of {', '.join(sources)}")
        return self


class ProjectFunction(Contract):
    """A Python function of an application.

    The module is never imported by this name: the person who applies the project names the application, or a worker has
    saved the function before.
    """

    name: str = Field(pattern=NAME_PATTERN)
    version: str = "1.0.0"
    application: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """Where its crib is: `shop.tools:crib`."""


class ProjectSecret(Contract):
    """A secret that the project needs in the vault, which `toolcrib secret set` stores. It has no value here."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    description: str = ""


class ProjectKey(Contract):
    """An API key that callers of the project need, which `toolcrib key add` makes. It has no value here."""

    name: str = Field(min_length=1, max_length=200)
    """The principal that its holder acts as."""
    scopes: tuple[str, ...] = ()
    """Patterns of security URIs that one key of the principal has, at least."""


class ProjectBudget(Contract):
    """A cap that the settings must have; applying a project does not change settings."""

    name: str = Field(min_length=1, max_length=200)
    cap: str
    """As in the setting `budgets`: `realm 50 usd/day`."""


class ProjectBlob(Contract):
    """Bytes that definitions name by their digest, such as the descriptors of gRPC tools."""

    name: str = Field(pattern=r"^[0-9a-f]{64}$")
    """The SHA-256 digest of the bytes, in hexadecimal."""
    media_type: str = "application/octet-stream"
    base64: Base64Bytes
    """The bytes; white space in the text is left out."""


class FieldChange(Contract):
    """One field that is different."""

    place: str
    """Dotted path; `steps[0].input.company`."""
    before: Json = None
    """Null if there was nothing."""
    after: Json = None
    """Null if there will be nothing."""


class PlannedChange(Contract):
    """What applying a project does to one thing in the store."""

    action: PlannedAction
    kind: ProjectKind
    name: str
    version: str | None = None
    """Of a tool, an agent or a workflow."""
    source: str | None = None
    """`file:line` of its document; null if none has it."""
    fields: tuple[FieldChange, ...] = ()
    dangers: tuple[str, ...] = ()
    """Why callers can be affected, and which tools, agents, workflows and runs depend on it."""
    drift: str | None = None
    """Who has changed or removed it, other than by this project, since the project was last applied; null if nobody."""


class ProjectNeed(Contract):
    """Something that the project names and applying it does not make."""

    kind: Literal["secret", "key", "budget"]
    name: str
    source: str
    present: bool
    message: str
    """What there is, or how to make it."""


class ProjectPlan(Contract):
    """What applying a project does, or has done, to a store."""

    project: str
    changes: tuple[PlannedChange, ...] = ()
    needs: tuple[ProjectNeed, ...] = ()
    warnings: tuple[str, ...] = ()
    """What imports have left out, and what authors should know of what is saved."""
    applied: bool = False

    @property
    def to_do(self) -> tuple[PlannedChange, ...]:
        """The changes that write something."""
        return tuple(change for change in self.changes if change.action != "unchanged")

    @property
    def is_dangerous(self) -> bool:
        """Whether a change can affect callers."""
        return any(change.dangers for change in self.changes)

    def counts(self) -> dict[str, int]:
        """How many changes there are of each action."""
        found: dict[str, Any] = dict.fromkeys(("create", "change", "remove", "unchanged"), 0)
        for change in self.changes:
            found[change.action] += 1
        return found
