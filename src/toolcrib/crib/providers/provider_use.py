"""Adds up the calls of providers' tools from the journals of runs, with bounded work."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from math import ceil
from typing import Final

from toolcrib.contracts import CallFinished, NotFound, Run, ToolEnvelope
from toolcrib.contracts.workflows.provider_use import Latencies, ProviderUsage
from toolcrib.core.registry import Registry
from toolcrib.infrastructure.store import Journal

_PAGE: Final = 100


@dataclass(slots=True)
class _Sum:
    """The calls of one provider."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[str] = field(default_factory=Counter[str])
    reused: int = 0
    unpriced: int = 0
    costs: list[Decimal] = field(default_factory=list[Decimal])
    latencies: list[float] = field(default_factory=list[float])
    last: datetime | None = None

    def add(self, envelope: ToolEnvelope) -> None:
        if envelope.cached or envelope.reused is not None:
            self.reused += 1
            return
        self.statuses[envelope.status] += 1
        if envelope.error is not None and envelope.status != "denied":
            self.errors[envelope.error.code.value] += 1
        if envelope.cost_usd is not None:
            self.costs.append(envelope.cost_usd)
        elif envelope.status == "success":
            self.unpriced += 1
        if envelope.attempts:
            self.latencies.append(envelope.timings.execute * 1000)
            self.last = envelope.t_end if self.last is None else max(self.last, envelope.t_end)

    def usage(self, provider: str, since: datetime, until: datetime, *, runs: int, complete: bool) -> ProviderUsage:
        succeeded, denied, skipped = (self.statuses[status] for status in ("success", "denied", "skipped"))
        calls = self.statuses.total()
        return ProviderUsage(
            provider=provider,
            since=since,
            until=until,
            calls=calls,
            succeeded=succeeded,
            failed=calls - succeeded - denied - skipped,
            denied=denied,
            skipped=skipped,
            reused=self.reused,
            errors=dict(self.errors.most_common()),
            latency_ms=_latencies(self.latencies),
            cost_usd=sum(self.costs, Decimal(0)) if self.costs else None,
            unpriced_calls=self.unpriced,
            last_used_at=self.last,
            runs=runs,
            complete=complete,
        )


def _latencies(measured: Sequence[float]) -> Latencies | None:
    """Percentiles by the nearest rank."""
    if not measured:
        return None
    ordered = sorted(measured)
    p50, p95, p99 = (ordered[ceil(len(ordered) * share) - 1] for share in (0.50, 0.95, 0.99))
    return Latencies(p50=p50, p95=p95, p99=p99, most=ordered[-1])


@dataclass(frozen=True, slots=True)
class UsageReader:
    """Reads the use of a realm's providers.

    Args:
        journal: Has the runs.
        registry: Knows which provider a tool has, also in a revision that is not current.
        realm: Of the runs.
        most_runs: Maximum number of runs that are read, the newest first.
    """

    journal: Journal
    registry: Registry
    realm: str
    most_runs: int

    async def read(self, names: Iterable[str], since: datetime, until: datetime) -> Sequence[ProviderUsage]:
        """The use of these providers in the runs that began in a time."""
        sums = {name: _Sum() for name in names}
        providers: dict[str, str | None] = {}
        runs, complete = 0, True
        async with aclosing(self._runs(since, until)) as found:
            async for run in found:
                if runs == self.most_runs:
                    complete = False
                    break
                runs += 1
                for entry in await self.journal.events(run.run_id):
                    if isinstance(entry.event, CallFinished):
                        provider = await self._provider_of(entry.event.envelope, providers)
                        if provider in sums:
                            sums[provider].add(entry.event.envelope)
        return [each.usage(name, since, until, runs=runs, complete=complete) for name, each in sums.items()]

    async def _runs(self, since: datetime, until: datetime) -> AsyncGenerator[Run]:
        """The runs that began in a time, newest first."""
        before: str | None = None
        while True:
            page = await self.journal.runs(self.realm, before=before, limit=_PAGE)
            for run in page:
                if run.created_at < since:
                    return
                if run.created_at < until:
                    yield run
            if len(page) < _PAGE:
                return
            before = page[-1].run_id

    async def _provider_of(self, envelope: ToolEnvelope, known: dict[str, str | None]) -> str | None:
        """The provider of the tool that was called, as its revision says."""
        content_hash = envelope.content_hash
        if content_hash is None:
            return None
        if content_hash not in known:
            try:
                tool = await self.registry.get_revision(self.realm, content_hash)
                known[content_hash] = tool.definition.provider
            except NotFound:
                known[content_hash] = None
        return known[content_hash]
