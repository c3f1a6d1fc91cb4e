"""The ports of a store for definitions, runs, signals, conversations, results, API keys, encrypted values and blobs.

There are two implementations: in memory and SQL. A store makes no decisions: it knows no tool, model or policy. Every
row has its realm and its creator.
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from toolcrib.contracts import Event, JsonObject, LifeCycle, Run, RunEvent, RunResult, RunStatus, Signal
from toolcrib.infrastructure.queries.grammar import Condition
from toolcrib.infrastructure.store.ports.queried_fields import StoreQuery
from toolcrib.infrastructure.store.ports.records import ApprovalStore, ConversationStore, Counters, SealedValues
from toolcrib.infrastructure.store.ports.retention import RetentionStore

DefinitionKind: TypeAlias = Literal[
    "tool",
    "provider",
    "baseline",
    "fragment",
    "account",
    "workflow_step",
    "condition",
    "draft",
    "project",
    "mcp_server",
    "trigger",
]
"""`baseline`: what a provider offered under a tool's name when it was last adopted. `workflow_step`, `condition`: the
workflow vocabulary. `draft`: a workflow that is not published, under the name that it would have.
`project`: what a folder of definitions has made, so that only this is removed with its documents.
`mcp_server`: a virtual MCP server. `trigger`: what starts runs without a person."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One immutable revision of a definition; only its life-cycle fields can change."""

    kind: DefinitionKind
    realm: str
    name: str
    version: str
    revision: int
    content_hash: str
    body: JsonObject
    made_by: str
    created_at: datetime
    status: LifeCycle = "active"
    status_message: str | None = None
    sunset: datetime | None = None
    replacement: str | None = None


class Changed(NamedTuple):
    """The revisions of a realm that are different now."""

    revisions: Sequence[Definition]
    """New ones, ones that were brought back, and ones in another life-cycle state."""
    removed: Sequence[tuple[str, int]]
    """Name and number of those that were taken out of all lists."""


@dataclass(frozen=True, slots=True)
class VersionState:
    """The life-cycle state that all revisions of a version get."""

    kind: DefinitionKind
    realm: str
    name: str
    version: str
    status: LifeCycle
    message: str | None = None
    sunset: datetime | None = None
    replacement: str | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """What is taken out of all lists: a name, or one version of it."""

    kind: DefinitionKind
    name: str
    version: str | None = None
    """Null for all its versions."""


class Definitions(Protocol):
    """Immutable revisions, named by content hash."""

    async def save(self, definition: Definition, *, after: int | None = None) -> Definition:
        """Append a revision; its number is assigned here.

        The content that the newest revision of this name and version has is not saved again: that revision is returned,
        and brought back if the name had been removed. An older content becomes the newest revision once more, in the
        life-cycle state that it has.

        Args:
            definition: What is to be saved.
            after: Number of the name's newest revision as the author knows it, 0 for a name that is in no list, null
                for any.

        Raises:
            Conflict: Another revision has been saved since.
        """
        ...

    async def save_all(
        self,
        realm: str,
        definitions: Sequence[Definition],
        states: Sequence[VersionState] = (),
        *,
        seen: int,
        removals: Sequence[Removal] = (),
    ) -> Sequence[Definition]:
        """Append revisions, each as `save` does, change life-cycle states, and remove names: all of it, or nothing.

        Args:
            realm: Of all of them.
            definitions: What is to be saved, in order.
            states: What changes besides, in order.
            seen: The realm's last change, as `changes` told it before all this was decided.
            removals: What is removed after that, in order.

        Raises:
            Conflict: Something in the realm has changed since; nothing was written.
        """
        ...

    async def changes(self, realm: str) -> int:
        """A number that grows with every change of a realm's definitions; 0 before the first."""
        ...

    async def changes_since(
        self, kind: DefinitionKind, realm: str, since: int, *, without: Collection[str] = ()
    ) -> "Changed":
        """What has changed since `changes` had a value, so that nobody has to read everything once more.

        Args:
            kind: Of definitions.
            realm: Of them.
            since: The value of `changes`.
            without: Content hashes whose bodies the caller has; a store may leave them empty.
        """
        ...

    async def get(self, realm: str, content_hash: str) -> Definition | None:
        """The revision with this hash, even if its name was removed."""
        ...

    async def revisions(self, kind: DefinitionKind, realm: str, name: str | None = None) -> Sequence[Definition]:
        """All revisions of one name, or of every name that was not removed; by name and revision."""
        ...

    async def set_status(
        self,
        kind: DefinitionKind,
        realm: str,
        name: str,
        version: str,
        *,
        status: LifeCycle,
        message: str | None = None,
        sunset: datetime | None = None,
        replacement: str | None = None,
    ) -> int:
        """Change the life-cycle state of a version's revisions; returns how many there are."""
        ...

    async def remove(self, kind: DefinitionKind, realm: str, name: str, version: str | None = None) -> int:
        """Take a name, or one version of it, out of all lists.

        Revisions stay readable by hash. Returns how many there were.
        """
        ...


class Claim(Struct, frozen=True):
    """A run that this process now owns: its row after the epoch was raised, its whole log, its signals."""

    run: Run
    events: Sequence[RunEvent]
    signals: Mapping[str, Signal]


class Lease(Struct, frozen=True):
    """Who owns a run, and until when without renewing it."""

    owner: str
    until: datetime


class RunChange(Struct, frozen=True):
    """New state of a run's row, written together with events."""

    status: RunStatus
    result: RunResult | None = None
    """Given when the run has ended."""
    waiting_for: tuple[str, ...] = ()
    """Names of the signals of a run that waits. If one is there already, the run is queued instead."""
    wake_at: datetime | None = None
    tells: tuple[str, Signal] | None = None
    """A run and a signal that is left for it: how a nested run that ends wakes its parent, whatever happens next."""


class Journal(Protocol):
    """Runs and their append-only logs.

    Order is everything: the events of a run become durable in the order of their numbers, so what survives a crash is
    always a prefix. `append` may gather events of many runs into one commit (group commit).

    A caller names times by its own clock. A store that several machines share compares them by one that they share too:
    there a lease or a wait is as long as the caller says, counted from when the store hears of it.
    """

    def create(self, run: Run, first: Event, *, lease: Lease | None = None) -> Awaitable[None]:
        """Insert a run with its event number 1. Takes effect in the order of the calls, like `append`.

        Without a lease the run is queued, at epoch 0, and owned by nobody. With one, this process drives it at once:
        the run is `running`, at epoch 1.

        Raises (when awaited):
            Conflict: A run with this id exists.
            InvalidInput: Status and epoch are not those of a new run.
        """
        ...

    async def claim(self, run_id: str, *, owner: str, now: datetime, lease_s: float) -> Claim | None:
        """Take a run for this process: raises its epoch, sets status `running` and the lease.

        Returns None if the run has ended, still waits (a signal or `wake_at` makes it claimable), or another owner's
        lease is alive.

        Raises:
            NotFound: No such run.
        """
        ...

    async def claimable(self, *, now: datetime, limit: int) -> Sequence[str]:
        """Ids of runs that are queued, have an expired lease, or whose `wake_at` has come; oldest first."""
        ...

    async def renew(self, run_ids: Sequence[str], *, owner: str, now: datetime, lease_s: float) -> Sequence[str]:
        """Prolong the leases this owner still holds; returns the ids of those that it does."""
        ...

    def append(
        self, run_id: str, epoch: int, events: Sequence[RunEvent], change: RunChange | None = None
    ) -> Awaitable[None]:
        """Add events that follow the last one, and change the run's row, in one transaction.

        Takes effect in the order of the calls, also if nobody awaits. The awaitable ends when all this is durable;
        awaiting makes it happen at once, else it happens within a few milliseconds.

        Raises (when awaited):
            Fenced: Another process has claimed the run since this epoch; nothing was written.
        """
        ...

    async def signal(self, run_id: str, signal: Signal) -> bool:
        """Leave a signal for a run, and make the run claimable if it waits for it.

        Every waiting run waits for `CANCEL`. Returns False if one of that name was there: the first wins.

        Raises:
            NotFound: No such run.
        """
        ...

    async def signal_all(self, signals: Sequence[tuple[str, Signal]]) -> bool:
        """Leave signals for the runs of these ids, as `signal` does: all of them, or none. No name is twice in a run.

        Returns False, and leaves none, if one of their names was there.

        Raises:
            NotFound: No such run; none was left.
        """
        ...

    async def signals(self, run_id: str) -> Mapping[str, Signal]:
        """The signals left for a run so far."""
        ...

    async def runs_with_signal(self, name: str, run_ids: Sequence[str]) -> Sequence[str]:
        """Those of the runs that were left a signal of this name."""
        ...

    async def run(self, run_id: str) -> Run:
        """The run's row.

        Raises:
            NotFound: No such run.
        """
        ...

    async def runs(
        self,
        realm: str,
        *,
        tool: str | None = None,
        made_by: str | None = None,
        status: RunStatus | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[Run]:
        """A page of runs, newest first.

        Args:
            realm: Of the runs.
            tool: Name, without version, of the tool that they execute.
            made_by: Id of whose they are.
            status: How they stand.
            before: The last id of the page before.
            limit: Most runs of a page.

        Raises:
            NotFound: The realm has no run `before`.
        """
        ...

    async def find(self, realm: str, query: StoreQuery) -> Sequence[Run]:
        """The runs of a realm that meet a condition, in an order, from a place on.

        Raises:
            InvalidInput: The condition compares a field with what it cannot be.
        """
        ...

    async def count(self, realm: str, condition: Condition) -> int:
        """How many runs of a realm meet a condition.

        Raises:
            InvalidInput: As `find` raises.
        """
        ...

    async def ended_runs(
        self, realm: str, *, tool: str, after: tuple[datetime, str], limit: int = 100
    ) -> Sequence[Run]:
        """Runs of a tool that have ended, in the order in which they did: by `updated_at` and id.

        Args:
            realm: Of the runs.
            tool: Its name, without version.
            after: `updated_at` and id of the last one that is known.
            limit: Most runs of a page.
        """
        ...

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        """The first ids of the realm's runs that begin with a prefix, sorted."""
        ...

    async def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[RunEvent]:
        """The events with numbers above `after`, in order."""
        ...


class ResultCache(Protocol):
    """Results of calls, for tools that allow it. Values are JSON."""

    async def get(self, key: str, *, now: datetime) -> JsonObject | None:
        """The stored value, unless it has expired."""
        ...

    async def put(self, key: str, value: JsonObject, *, realm: str, made_by: str, expires_at: datetime | None) -> None:
        """Store or replace a value; null expiry for ever."""
        ...

    async def add(
        self, key: str, value: JsonObject, *, realm: str, made_by: str, now: datetime, expires_at: datetime
    ) -> bool:
        """Store a value if there is none or it has expired; false if there is one. Of several at once, one succeeds."""
        ...

    async def purge(self, *, now: datetime) -> int:
        """Forget what has expired; returns how much that was."""
        ...


class Blobs(Protocol):
    """Byte strings by SHA-256 digest, stored once."""

    async def put(self, data: bytes, *, realm: str, made_by: str, content_type: str = "application/json") -> str:
        """Store bytes; returns the digest (64 hex characters). Durable on return."""
        ...

    async def get(self, realm: str, digest: str) -> bytes:
        """The bytes.

        Raises:
            NotFound: This realm has no such blob.
        """
        ...

    async def remove(self, realm: str, digests: Sequence[str], *, untouched_since: datetime) -> Sequence[str]:
        """Remove those of the blobs that were not put since a moment; returns which."""
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A server's API key. Only an HMAC of the secret part is kept."""

    key_id: str
    realm: str
    principal: str
    secret_hash: str
    made_by: str
    created_at: datetime
    expires_at: datetime | None = None
    last_four: str = ""
    scopes: tuple[str, ...] = ("ai://*",)
    """Patterns of the security URIs that the key's holder may use."""


class ApiKeys(Protocol):
    """API keys by id."""

    async def add(self, key: ApiKey) -> None:
        """Store a key."""
        ...

    async def get(self, key_id: str) -> ApiKey | None:
        """The key, expired or not."""
        ...

    async def count(self) -> int:
        """How many there are."""
        ...

    async def list(self, realm: str) -> Sequence[ApiKey]:
        """The keys of a realm, expired ones included, oldest first."""
        ...

    async def find_ids(self, realm: str, prefix: str, *, limit: int) -> Sequence[str]:
        """The first ids of the realm's keys that begin with a prefix, sorted."""
        ...

    async def remove(self, realm: str, key_id: str) -> bool:
        """Forget a key; false if the realm has none of this id."""
        ...


class Store(Protocol):
    """All of the above, opened and closed together."""

    @property
    def definitions(self) -> Definitions:
        """Definitions."""
        ...

    @property
    def journal(self) -> Journal:
        """Runs and their logs."""
        ...

    @property
    def approvals(self) -> ApprovalStore:
        """The inbox, which is kept with the journal."""
        ...

    @property
    def cache(self) -> ResultCache:
        """Cached results."""
        ...

    @property
    def blobs(self) -> Blobs:
        """Blobs."""
        ...

    @property
    def api_keys(self) -> ApiKeys:
        """API keys."""
        ...

    @property
    def sealed(self) -> SealedValues:
        """Sealed values."""
        ...

    @property
    def conversations(self) -> ConversationStore:
        """Conversations."""
        ...

    @property
    def retention(self) -> RetentionStore:
        """Takes out what is old."""
        ...

    @property
    def counters(self) -> Counters:
        """Counters."""
        ...

    async def open(self) -> None:
        """Connect, and bring the schema up to date; safe to call twice.

        Raises:
            Unavailable: The database cannot be reached or was written by a newer release.
        """
        ...

    async def close(self) -> None:
        """Write what is pending and let go of all connections."""
        ...
