"""Reference data of providers outside of runs: show the last snapshot and its values, and sync it.

Agentic tools sync what they need by themselves; use this to inspect the values or to sync them in advance.
"""

from collections.abc import Sequence
from typing import Protocol

from toolcrib.agents import ReferenceUnavailable
from toolcrib.contracts import (
    Conflict,
    JsonObject,
    NotFound,
    Principal,
    ProviderDefinition,
    ReferenceReading,
    ReferenceSnapshot,
    ReferenceSource,
    ReferenceValue,
    ReferenceValues,
    ToolEnvelope,
)
from toolcrib.core.runs import Result
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices


class Invoke(Protocol):
    """Makes one call of a tool as a separate run."""

    async def __call__(self, ref: str, arguments: JsonObject, *, as_call: bool) -> Result:
        """The run, ended or waiting."""
        ...


class ReferenceData:
    """The reference data of a crib's providers.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
        invoke: Makes one call as a run, so that a sync has its receipt.
    """

    def __init__(self, parts: CribServices, actor: Actor, invoke: Invoke) -> None:
        self._references = parts.references
        self._providers = parts.providers
        self._clock = parts.outside.clock
        self._actor = actor
        self._invoke = invoke

    async def list(self, provider: str | None = None) -> Sequence[ReferenceSnapshot]:
        """Every list that a provider declares, or all do, with its last snapshot.

        Raises:
            NotFound: No such provider.

        Example:
            for snapshot in await crib.reference_data.list("crm"):
                print(snapshot.name, snapshot.size, snapshot.age_s)
        """
        who = await self._actor.authorize()
        return [
            await self._snapshot(who.realm, found.name, source)
            for found in self._find_providers(who.realm, provider)
            for source in found.reference_data
        ]

    async def history(self, provider: str, name: str) -> Sequence[ReferenceReading]:
        """The results of the last readings of a list, newest first, including those that were rejected as implausible.

        Raises:
            NotFound: No such provider, or it declares no such list.

        Example:
            for reading in await crib.reference_data.history("crm", "stages"):
                print(reading.fetched_at, reading.size, reading.refused)
        """
        who = await self._actor.authorize()
        source = self._references.source_of(who.realm, provider, name)
        return await self._references.snapshots.readings(who.realm, source)

    async def values(self, provider: str, name: str) -> ReferenceValues:
        """The values of a list that are in use, however old they are.

        Raises:
            NotFound: No such provider, it declares no such list, or the list was never read.

        Example:
            stages = await crib.reference_data.values("crm", "stages")
            print([each.label for each in stages.values])
        """
        who = await self._actor.authorize()
        source = self._references.source_of(who.realm, provider, name)
        found = await self._references.newest(who.realm, source)
        if found is None:
            msg = f"reference data {name!r} of provider {provider!r} was never read; read it: "
            raise NotFound(f"{msg}`toolcrib reference sync {provider} {name}`")
        items = (ReferenceValue(value=each.value, label=each.label, extra=each.extra) for each in found.items)
        fetched_at = None if found.id is None else found.fetched_at
        return ReferenceValues(provider=provider, name=name, id=found.id, fetched_at=fetched_at, values=tuple(items))

    async def sync_due(self) -> Sequence[ReferenceSnapshot]:
        """Read every list of a realm whose schedule says so and whose turn no other process has taken.

        Example:
            for snapshot in await crib.reference_data.sync_due():
                print(snapshot.name, snapshot.error or snapshot.size)
        """
        who = await self._actor.authorize()
        return [
            await self._sync(who, provider.name, source)
            for provider in self._providers.current(who.realm)
            for source in provider.reference_data
            if await self._is_due(who, source)
        ]

    async def sync(self, provider: str | None = None, *names: str, accept: bool = False) -> Sequence[ReferenceSnapshot]:
        """Read lists now, however young their snapshots are. One that fails has its error and its last snapshot.

        Args:
            provider: Name of the provider; all if null.
            *names: Lists of it; all if none is given.
            accept: Believe lists that have lost most of their values.

        Raises:
            NotFound: No such provider, or it declares no such list.

        Example:
            [stages] = await crib.reference_data.sync("crm", "stages")
            print(stages.size, stages.error)
        """
        who = await self._actor.authorize()
        if provider is not None and names:
            wanted = [(provider, self._references.source_of(who.realm, provider, name)) for name in names]
        else:
            wanted = [
                (found.name, source)
                for found in self._find_providers(who.realm, provider)
                for source in found.reference_data
            ]
        return [await self._sync(who, name, source, accept=accept) for name, source in wanted]

    async def _is_due(self, who: Principal, source: ReferenceSource) -> bool:
        every_s = source.sync_every_s
        return every_s is not None and await self._references.snapshots.take_turn(who, source, every_s)

    async def _sync(
        self, who: Principal, provider: str, source: ReferenceSource, *, accept: bool = False
    ) -> ReferenceSnapshot:
        async def fetch() -> ToolEnvelope:
            result = await self._invoke(source.tool or "", dict(source.input), as_call=True)
            if not result.envelopes:
                status = result.summary.status.replace("_", " ")
                msg = f"run {result.run_id} that reads {source.name!r} is {status}; decide it and sync again"
                raise Conflict(msg)
            return result.envelopes[-1]

        try:
            await self._references.sync(who, source, fetch, accept=accept)
        except ReferenceUnavailable:
            pass  # and written down, so that the snapshot says it
        except (NotFound, Conflict) as problem:
            await self._references.snapshots.fail(who, source, str(problem))
        return await self._snapshot(who.realm, provider, source)

    def _find_providers(self, realm: str, provider: str | None) -> Sequence[ProviderDefinition]:
        if provider is None:
            return self._providers.current(realm)
        found = self._providers.find(realm, provider)
        if found is None:
            known = ", ".join(one.name for one in self._providers.current(realm)) or "none"
            msg = f"there is no provider {provider!r} in realm {realm!r}; available: {known}"
            raise NotFound(msg)
        return [found]

    async def _snapshot(self, realm: str, provider: str, source: ReferenceSource) -> ReferenceSnapshot:
        known = await self._references.snapshots.newest(realm, source)
        failure = await self._references.snapshots.failure(realm, source)
        shown = ReferenceSnapshot(
            provider=provider,
            name=source.name,
            tool=source.tool,
            max_age_s=source.max_age_s,
            error=failure.error if failure else None,
            failed_at=failure.at if failure else None,
        )
        if known is None:
            return shown
        age = max((self._clock.now() - known.fetched_at).total_seconds(), 0.0)
        found: JsonObject = {"id": known.id, "size": known.size, "fetched_at": known.fetched_at, "age_s": age}
        return shown.model_copy(update=found)
