"""Reads reference lists through the run's own calls, or uses recent snapshots.

A run records its snapshots, so it sees the same values after each start. `snapshots` stores them, and `core.providers`
defines what a list means.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeAlias

from toolcrib.agents.reference.snapshots import ReferenceUnavailable, Snapshot, Snapshots, source_key
from toolcrib.contracts import (
    AgenticContext,
    AgenticImplementation,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    Principal,
    ReferenceSource,
    ToolDefinition,
    ToolEnvelope,
    format_timestamp,
)
from toolcrib.core.executor import CallRequest, Clock
from toolcrib.core.policy import CallPolicy, least, permit
from toolcrib.core.providers import ReferenceList, read_reference
from toolcrib.core.registry import Providers, Registry
from toolcrib.core.runs import RunContext

Fetch: TypeAlias = Callable[[], Awaitable[ToolEnvelope]]
"""Calls the tool that lists the values, through the executor."""


def require_source(providers: Providers, realm: str, provider: str, name: str) -> ReferenceSource:
    """The source that a provider declares under a name.

    Raises:
        NotFound: No such provider, or it declares no such data.
    """
    found = providers.find(realm, provider)
    if found is None:
        known = ", ".join(one.name for one in providers.current(realm)) or "none"
        msg = f"there is no provider {provider!r} in realm {realm!r}; available: {known}"
        raise NotFound(msg)
    for source in found.reference_data:
        if source.name == name:
            return source
    known = ", ".join(source.name for source in found.reference_data) or "none"
    msg = f"provider {provider!r} declares no reference data {name!r}; it declares: {known}"
    raise NotFound(msg)


def check_provider_data(definition: ToolDefinition, realm: str, providers: Providers) -> None:
    """Refuse an agentic tool that names reference data which nobody declares.

    Raises:
        NotFound: No such provider, or it declares no such data.
    """
    implementation = definition.implementation
    if isinstance(implementation, AgenticImplementation):
        for data in implementation.context.provider_data:
            for name in data.data_types:
                require_source(providers, realm, data.provider, name)


class References:
    """Reads the lists of a crib.

    Args:
        snapshots: Keeps what was read.
        registry: Finds the tools that list values.
        providers: Finds the sources that providers declare.
        clock: Tells the age of a snapshot.
    """

    def __init__(self, snapshots: Snapshots, *, registry: Registry, providers: Providers, clock: Clock) -> None:
        self.snapshots = snapshots
        self._registry = registry
        self._providers = providers
        self._clock = clock
        self._syncing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """One sync at a time of each source."""

    def source_of(self, realm: str, provider: str, name: str) -> ReferenceSource:
        """The source that a provider declares under a name; raises as `require_source`."""
        return require_source(self._providers, realm, provider, name)

    async def lists(self, context: RunContext, wanted: AgenticContext) -> Sequence[ReferenceList]:
        """All lists that an agentic tool names, as this run sees them.

        Raises:
            ReferenceUnavailable: A list could not be read, and there is no snapshot of it.
        """
        context.policy = CallPolicy(side_effects=least(context.policy.side_effects, "reads"))
        reading = {
            source.name: context.start(self._list(context, source.name, partial(_identity, source)))
            for source in wanted.reference_data
            if source.tool is not None
        }
        reading |= {
            name: context.start(
                self._list(context, name, partial(self.source_of, context.run.realm, data.provider, name))
            )
            for data in wanted.provider_data
            for name in data.data_types
        }
        fixed = [
            read_reference(source, None, fetched_at=context.run.created_at)
            for source in wanted.reference_data
            if source.tool is None
        ]
        return [*await context.wait_all(list(reading.values())), *fixed]

    async def newest(self, realm: str, source: ReferenceSource) -> ReferenceList | None:
        """The list as it is in use, however old; null if it was never read."""
        if source.tool is None:
            return read_reference(source, None, fetched_at=self._clock.now())
        known = await self.snapshots.newest(realm, source)
        return None if known is None else await self._load(realm, self._snapshot_entry(source, known))

    async def sync(
        self, principal: Principal, source: ReferenceSource, fetch: Fetch, *, accept: bool = False
    ) -> Snapshot:
        """Read a source now, whatever is known of it, and keep what it brings.

        Args:
            principal: Who reads it.
            source: What is read.
            fetch: Calls its tool.
            accept: Believe a list that has lost most of its values.

        Raises:
            ReferenceUnavailable: It could not be read, or not be believed.
        """
        async with self._syncing[source_key(principal.realm, source)]:
            return await self._sync(principal, source, fetch, accept=accept)

    # Inside -----------------------------------------------------------------------------------------------------------

    async def _list(self, context: RunContext, name: str, find: Callable[[], ReferenceSource]) -> ReferenceList:
        found: JsonObject = await context.once(
            f"reference.{name}", "reference_data", partial(self._choose, context, find)
        )
        if found["warning"]:
            context.warn(found["warning"])
        return await self._load(context.run.realm, found)

    async def _choose(self, context: RunContext, find: Callable[[], ReferenceSource]) -> Json:
        """The snapshot that a run shall use: a young one, else a new one, else with a warning an old one."""
        try:
            source = find()
        except NotFound as problem:
            raise ReferenceUnavailable(str(problem)) from problem
        if source.max_age_s == 0 or source.tool is None:
            return await self._read(context, source)
        async with self._syncing[source_key(context.run.realm, source)]:
            known = await self._usable(context, source)
            if known is not None and self._age_s(known) <= source.max_age_s:
                return self._snapshot_entry(source, known)
            return await self._read(context, source)

    async def _read(self, context: RunContext, source: ReferenceSource) -> Json:
        principal = context.request.principal
        try:
            return self._snapshot_entry(source, await self._sync(principal, source, lambda: _call(context, source)))
        except ReferenceUnavailable as problem:
            known = await self._usable(context, source)
            if known is None:
                raise
            since = format_timestamp(known.fetched_at)
            return self._snapshot_entry(source, known, f"{problem}; the values used are those of {since}")

    async def _usable(self, context: RunContext, source: ReferenceSource) -> Snapshot | None:
        """The newest snapshot, if the run's principal may read the list itself."""
        tool = self._registry.find_by_ref(context.run.realm, source.tool or "")
        if tool is None or permit(tool, context.request.principal) is not None:
            return None
        return await self.snapshots.newest(context.run.realm, source)

    async def _sync(
        self, principal: Principal, source: ReferenceSource, fetch: Fetch, *, accept: bool = False
    ) -> Snapshot:
        try:
            found = await self._fetch_list(source, fetch)
        except ReferenceUnavailable as problem:
            await self.snapshots.fail(principal, source, str(problem))
            raise
        return await self.snapshots.keep(principal, source, found, accept=accept)

    async def _fetch_list(self, source: ReferenceSource, fetch: Fetch) -> ReferenceList:
        output: Json = None
        fetched_at = self._clock.now()
        if source.tool is not None:
            envelope = await fetch()
            if envelope.error is not None:
                msg = f"reference data {source.name!r} could not be read: {envelope.error.message}"
                raise ReferenceUnavailable(msg)
            output, fetched_at = envelope.output, envelope.t_end
        try:
            return read_reference(source, output, fetched_at=fetched_at)
        except InvalidInput as problem:
            msg = f"reference data {source.name!r} could not be read: {problem}"
            raise ReferenceUnavailable(msg) from problem

    def _age_s(self, snapshot: Snapshot) -> float:
        return max((self._clock.now() - snapshot.fetched_at).total_seconds(), 0.0)

    def _snapshot_entry(self, source: ReferenceSource, snapshot: Snapshot, warning: str | None = None) -> JsonObject:
        """What a run writes down of the snapshot that it uses."""
        return {
            "name": source.name,
            "tool": source.tool,
            "applies_to": list(source.applies_to),
            "id": snapshot.id,
            "size": snapshot.size,
            "fetched_at": format_timestamp(snapshot.fetched_at),
            "age_s": round(self._age_s(snapshot), 3),
            "warning": warning,
        }

    async def _load(self, realm: str, found: JsonObject) -> ReferenceList:
        return ReferenceList(
            found["name"],
            await self.snapshots.items(realm, found["id"]),
            datetime.fromisoformat(found["fetched_at"]),
            found["tool"],
            applies_to=tuple(found["applies_to"]),
            id=found["id"],
        )


def _identity(source: ReferenceSource) -> ReferenceSource:
    return source


async def _call(context: RunContext, source: ReferenceSource) -> ToolEnvelope:
    ref = source.tool or ""
    name, _, version = ref.partition("@")
    wanted = context.request.pins.get(ref) or version or None
    return await context.make(CallRequest(f"reference.{source.name}", name, dict(source.input), wanted))
