"""Triggers of a crib: kept by name, paused and resumed, fired, and started when their times, webhooks or runs come.

An occurrence has an id, and the id of its run is made from it: the journal takes a run's id only once, so an occurrence
is started once, whichever process comes to it, and however often. How far a trigger has come is kept in the store. One
process at a time works on a trigger; if it dies, the next one has it after a minute.
"""

import contextlib
import hashlib
import logging
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct
from pydantic_core import from_json

from toolcrib.contracts import (
    Conflict,
    CronSource,
    InvalidInput,
    Json,
    JsonObject,
    NotFound,
    PermissionDenied,
    Principal,
    Run,
    RunEndSource,
    ToolcribError,
    TriggerDefinition,
    TriggerStart,
    TriggerState,
    Unauthenticated,
    Unavailable,
    WebhookSource,
)
from toolcrib.core.executor import CallFailed
from toolcrib.core.expressions import compile_structure, resolve
from toolcrib.core.policy import permits
from toolcrib.core.triggers import check_schedule, due_times, next_time, verify
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.container import CribServices
from toolcrib.crib.container.leases import hold_lease
from toolcrib.crib.container.requests import refusal_of_run, request_of

_LEASE_S: Final = 60.0
"""Seconds after which another process takes a trigger over from one that died."""
_WAIT_S: Final = 5.0
"""Seconds for which a webhook waits for another one of the same trigger."""
_LATE: Final = timedelta(minutes=2)
"""How much later a run may become visible than its end says: clocks of machines differ, and commits take time."""
_PAGE: Final = 100
_REMEMBERED: Final = 500
"""Handled runs that are kept: more than end in the time above."""
_SHOWN_HEADERS: Final = ("content-type", "user-agent", "x-github-event", "x-github-delivery", "webhook-id")
"""Headers of a webhook that its input can read; not those that sign it."""

_logger = logging.getLogger(__name__)


class Occurrence(Struct, frozen=True):
    """What has happened."""

    kind: str
    id: str
    """Of several with one id, the first counts."""
    at: datetime
    data: JsonObject
    """What `${event.…}` reads."""
    is_foreign: bool = False
    """Whether outsiders have written some of it."""


class TriggerProgress(Struct):
    """How far a trigger has come, as the store keeps it."""

    since: datetime
    """Nothing earlier counts."""
    through: datetime
    """Up to when all was looked at: times, or ends of runs."""
    handled: tuple[str, ...] = ()
    """Ids of the last runs whose ends were handled."""
    last_at: datetime | None = None
    last_run_id: str | None = None
    started: int = 0
    skipped: int = 0
    problem: str | None = None


class Triggers:
    """What starts runs without a person.

    Args:
        parts: The parts of the crib.
        actor: The actor of the crib.
    """

    def __init__(self, parts: CribServices, actor: Actor) -> None:
        self._parts = parts
        self._actor = actor
        self._named = parts.triggers
        self._clock = parts.outside.clock
        self._cache = parts.outside.store.cache
        self._journal = parts.outside.store.journal
        self._next: dict[str, tuple[TriggerDefinition, datetime | None]] = {}
        """The next time of each schedule, by name."""
        self._known: dict[str, TriggerProgress] = {}
        """How far those have come that wait for runs, as this process knows it, by name."""

    async def save(self, trigger: TriggerDefinition, *, after: int | None = None) -> int:
        """Store a trigger, in place of the one with its name. It counts from now on: nothing earlier is caught up.

        Args:
            trigger: The trigger.
            after: Number of the revision that the author has changed, 0 for none; null to save over whatever is there.

        Returns:
            The number of the new revision.

        Raises:
            Conflict: Another revision has been saved since `after`.
            InvalidDefinition: Its times, its time zone or an expression of its input cannot be used.
            NotFound: There is no such account, or nothing with the name that it starts or waits for.
            PermissionDenied: The caller may not have runs act as the account.

        Example:
            from toolcrib.contracts import CronSource, ServiceAccount, TriggerDefinition

            await crib.accounts.save(ServiceAccount(name="reviewer", grants=("ai://tools/*",)))
            source = CronSource(cron="0 6 * * mon-fri", timezone="Europe/Berlin")
            await crib.triggers.save(
                TriggerDefinition(
                    name="review", when=source, start="search_deals", input={"company": "Acme"}, account="reviewer"
                )
            )
            print((await crib.triggers.state("review")).next_at)
        """
        who = await self._actor.authorize(newest=True)
        await self._check(trigger, who)
        before = self._named.find(who.realm, trigger.name)
        revision = await self._named.save(trigger, realm=who.realm, made_by=who.id, at=self._clock.now(), after=after)
        if before is None or before.when != trigger.when or before.enabled != trigger.enabled:
            progress = await self._progress(who.realm, trigger.name)
            progress.since = progress.through = self._clock.now()
            progress.problem = None
            await self._keep(who.realm, trigger.name, progress)
            self._forget(trigger.name)
        return revision

    async def revision(self, name: str) -> int:
        """The number of the newest revision.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in await crib.triggers.list():
                print(trigger.name, await crib.triggers.revision(trigger.name))
        """
        return self._named.revision((await self._actor.authorize(newest=True)).realm, name)

    async def get(self, name: str) -> TriggerDefinition:
        """A trigger as it was saved.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in await crib.triggers.list():
                print((await crib.triggers.get(trigger.name)).start)
        """
        return self._named.require((await self._actor.authorize(newest=True)).realm, name)

    async def list(self) -> Sequence[TriggerDefinition]:
        """All of the realm, by name.

        Example:
            print([trigger.name for trigger in await crib.triggers.list()])
        """
        return self._named.current((await self._actor.authorize(newest=True)).realm)

    async def remove(self, name: str) -> None:
        """Remove a trigger. Runs that it has started continue.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in await crib.triggers.list():
                await crib.triggers.remove(trigger.name)
        """
        realm = (await self._actor.authorize()).realm
        await self._named.remove(realm, name)
        self._forget(name)

    async def pause(self, name: str) -> None:
        """Have a trigger start nothing, until it is resumed.

        Raises:
            NotFound: The name is unknown.
            PermissionDenied: The caller may not have runs act as its account.

        Example:
            for trigger in await crib.triggers.list():
                await crib.triggers.pause(trigger.name)
        """
        await self.save((await self.get(name)).model_copy(update={"enabled": False}))

    async def resume(self, name: str) -> None:
        """Have a paused trigger start runs again. What has passed meanwhile is not caught up.

        Raises:
            NotFound: The name is unknown.
            PermissionDenied: The caller may not have runs act as its account.

        Example:
            for trigger in await crib.triggers.list():
                await crib.triggers.resume(trigger.name)
        """
        await self.save((await self.get(name)).model_copy(update={"enabled": True}))

    async def state(self, name: str) -> TriggerState:
        """How a trigger stands: its next time, and what it has started.

        Raises:
            NotFound: The name is unknown.

        Example:
            for trigger in await crib.triggers.list():
                state = await crib.triggers.state(trigger.name)
                print(state.next_at, state.last_status, state.problem)
        """
        trigger = await self.get(name)
        realm = self._actor.principal.realm
        progress = await self._progress(realm, name)
        upcoming = None
        if trigger.enabled and isinstance(trigger.when, CronSource):
            upcoming = next_time(trigger.when, max(progress.through, self._clock.now()))
        run = None if progress.last_run_id is None else await self._find_run(progress.last_run_id)
        return TriggerState(
            name=name,
            enabled=trigger.enabled,
            next_at=upcoming,
            last_at=progress.last_at,
            last_run_id=progress.last_run_id,
            last_status=None if run is None else run.status,
            started=progress.started,
            skipped=progress.skipped,
            problem=progress.problem,
        )

    async def fire(self, name: str, event: JsonObject | None = None) -> TriggerStart:
        """Start what a trigger starts, now, also if it is paused or its last run has not ended.

        Args:
            name: The trigger.
            event: What its input reads as `${event.…}`, beside `scheduled_at`, which is now.

        Raises:
            NotFound: The name is unknown.
            PermissionDenied: The caller may not have runs act as its account.

        Example:
            for trigger in await crib.triggers.list():
                start = await crib.triggers.fire(trigger.name, {"day": "Monday"})
                print(start.outcome, start.run_id)
        """
        trigger = await self.get(name)
        who, now = self._actor.principal, self._clock.now()
        self._check_account(trigger, who)
        data: JsonObject = {"scheduled_at": now.isoformat(), **(event or {})}
        found = Occurrence("manual", secrets.token_hex(16), now, data)
        async with self._hold(who.realm, trigger.name, wait_s=_WAIT_S):
            return await self._handle(trigger, found, await self._progress(who.realm, name), anyway=True)

    async def receive(self, name: str, headers: Mapping[str, str], body: bytes) -> TriggerStart:
        """Take a webhook: check its signature, and start what its trigger starts, once per event.

        Args:
            name: The trigger.
            headers: Of the request, with names in lower case.
            body: Byte for byte as it came.

        Raises:
            Unauthenticated: The signature is missing, wrong or too old, or there is no such webhook; the message does
                not say which.
            Conflict: The trigger is paused.
            Unavailable: Other webhooks of the trigger are being taken, and it did not end in time.

        Example:
            from toolcrib.contracts import Unauthenticated

            try:
                await crib.triggers.receive("deal-won", {"webhook-id": "msg_1"}, b"{}")
            except Unauthenticated as refused:
                print(refused)
        """
        realm = (await self._actor.authorize(newest=True)).realm
        trigger = self._named.find(realm, name)
        source = None if trigger is None else trigger.when
        if trigger is None or not isinstance(source, WebhookSource):
            raise Unauthenticated(_REFUSED)
        secret = await self._secret(trigger, source, realm)
        now = self._clock.now()
        event_id = verify(source.signature, secret, headers, body, now=now, tolerance_s=source.tolerance_s)
        if not trigger.enabled:
            raise Conflict(f"trigger {name!r} is paused; resume it, or send the webhook again later")
        shown: JsonObject = {header: headers[header] for header in _SHOWN_HEADERS if header in headers}
        data: JsonObject = {"id": event_id, "headers": shown, "body": _read_body(body), "received_at": now.isoformat()}
        found = Occurrence("webhook", event_id, now, data, is_foreign=True)
        async with self._hold(realm, name, wait_s=_WAIT_S):
            return await self._handle(trigger, found, await self._progress(realm, name))

    async def start_due(self) -> Sequence[TriggerStart]:
        """Start what is due in the realm: times that have passed, runs that have ended. A serving process does so.

        Example:
            for start in await crib.triggers.start_due():
                print(start.trigger, start.outcome, start.run_id)
        """
        realm = (await self._actor.authorize(newest=True)).realm
        started: list[TriggerStart] = []
        for trigger in self._named.current(realm):
            if trigger.enabled and not isinstance(trigger.when, WebhookSource) and await self._is_due(trigger, realm):
                with contextlib.suppress(TriggerBusy):
                    async with self._hold(realm, trigger.name):
                        started += await self._start_due_of(trigger, realm)
        return started

    # Looking ----------------------------------------------------------------------------------------------------------

    async def _is_due(self, trigger: TriggerDefinition, realm: str) -> bool:
        """Whether there may be something to start, as far as this process knows without asking much."""
        match trigger.when:
            case CronSource() as source:
                known, moment = self._next.get(trigger.name, (None, None))
                if known != trigger:
                    moment = next_time(source, (await self._progress(realm, trigger.name)).through)
                    self._next[trigger.name] = trigger, moment
                return moment is not None and moment <= self._clock.now()
            case RunEndSource() as source:
                if trigger.name not in self._known:
                    self._known[trigger.name] = await self._progress(realm, trigger.name)
                runs = self._ended(source, self._known[trigger.name], realm)
                async with aclosing(runs):
                    return await anext(runs, None) is not None
            case WebhookSource():
                return False

    async def _start_due_of(self, trigger: TriggerDefinition, realm: str) -> Sequence[TriggerStart]:
        progress = await self._progress(realm, trigger.name)
        match trigger.when:
            case CronSource() as source:
                return await self._start_times(trigger, source, progress)
            case RunEndSource() as source:
                return await self._start_after_runs(trigger, source, progress, realm)
            case WebhookSource():
                return ()

    async def _start_times(
        self, trigger: TriggerDefinition, source: CronSource, progress: TriggerProgress
    ) -> Sequence[TriggerStart]:
        now, started = self._clock.now(), list[TriggerStart]()
        for moment in due_times(source, progress.through, now):
            if trigger.overlap == "queue" and await self._is_active(progress):
                return started
            found = Occurrence("cron", moment.isoformat(), moment, {"scheduled_at": moment.isoformat()})
            progress.through = moment
            started.append(await self._handle(trigger, found, progress))
        self._next[trigger.name] = trigger, next_time(source, now)
        return started

    async def _start_after_runs(
        self, trigger: TriggerDefinition, source: RunEndSource, progress: TriggerProgress, realm: str
    ) -> Sequence[TriggerStart]:
        started: list[TriggerStart] = []
        async with aclosing(self._ended(source, progress, realm)) as runs:
            async for run in runs:
                if trigger.overlap == "queue" and await self._is_active(progress):
                    break
                data: JsonObject = {
                    "run_id": run.run_id,
                    "tool": run.request.tool,
                    "status": run.status,
                    "output": run.output_or_partial,
                    "error": None if run.error is None else msgspec.to_builtins(run.error),
                    "ended_at": run.updated_at.isoformat(),
                }
                found = Occurrence("run_end", run.run_id, run.updated_at, data, is_foreign=run.request.tainted)
                progress.through = max(progress.through, run.updated_at)
                progress.handled = (*progress.handled[-_REMEMBERED:], run.run_id)
                started.append(await self._handle(trigger, found, progress))
        self._known[trigger.name] = progress
        return started

    async def _ended(self, source: RunEndSource, progress: TriggerProgress, realm: str) -> AsyncGenerator[Run]:
        """The runs that a trigger waits for and that were not handled, in the order of their ends.

        It begins a little before the last one that was, because a run may become visible later than its end says.
        """
        after = (max(progress.through - _LATE, progress.since), "")
        while True:
            page = await self._journal.ended_runs(realm, tool=source.tool, after=after, limit=_PAGE)
            for run in page:
                is_meant = run.status in source.statuses and run.request.parent_run_id is None
                if is_meant and run.run_id not in progress.handled:
                    yield run
            if len(page) < _PAGE:
                return
            after = (page[-1].updated_at, page[-1].run_id)

    # Starting ---------------------------------------------------------------------------------------------------------

    async def _handle(
        self, trigger: TriggerDefinition, found: Occurrence, progress: TriggerProgress, *, anyway: bool = False
    ) -> TriggerStart:
        """Start the run of an occurrence, and keep how far the trigger has come."""
        realm = self._actor.principal.realm
        start = await self._start(trigger, found, progress, realm, anyway=anyway)
        if start.outcome == "skipped":
            progress.skipped += 1
        elif start.outcome != "known":
            progress.problem = start.problem
        if start.run_id is not None and (start.outcome == "started" or progress.last_run_id is None):
            progress.last_run_id, progress.last_at = start.run_id, found.at
            progress.started += start.outcome == "started"
        if start.problem is not None:
            _logger.warning("trigger %s started nothing: %s", trigger.name, start.problem)
        await self._keep(realm, trigger.name, progress)
        return start

    async def _start(
        self, trigger: TriggerDefinition, found: Occurrence, progress: TriggerProgress, realm: str, *, anyway: bool
    ) -> TriggerStart:
        run_id = run_id_of(realm, trigger.name, found)
        if await self._find_run(run_id) is not None:
            return TriggerStart(trigger=trigger.name, run_id=run_id, outcome="known")
        if trigger.overlap == "skip" and not anyway and await self._is_active(progress):
            return TriggerStart(trigger=trigger.name, outcome="skipped")
        parts = self._parts
        try:
            who = self._account(trigger, realm)
            tool = await parts.catalogue.require(realm, trigger.start)
            arguments: Any = resolve(trigger.input, {"event": found.data})
            request = request_of(tool, arguments, who, parts.registry, session_id=f"trigger:{trigger.name}")
            if found.is_foreign:
                request = msgspec.structs.replace(request, tainted=True)
            refusal = refusal_of_run(parts.executor, tool, request, registry=parts.registry)
            if refusal is not None:
                return TriggerStart(trigger=trigger.name, outcome="failed", problem=refusal.message)
            await parts.engine.create(request, run_id=run_id)
        except Conflict:
            return TriggerStart(trigger=trigger.name, run_id=run_id, outcome="known")
        except Unavailable:
            raise
        except (ToolcribError, CallFailed) as problem:
            return TriggerStart(trigger=trigger.name, outcome="failed", problem=str(problem))
        return TriggerStart(trigger=trigger.name, run_id=run_id, outcome="started")

    async def _is_active(self, progress: TriggerProgress) -> bool:
        run = None if progress.last_run_id is None else await self._find_run(progress.last_run_id)
        return run is not None and not run.ended

    async def _find_run(self, run_id: str) -> Run | None:
        try:
            return await self._journal.run(run_id)
        except NotFound:
            return None

    async def _secret(self, trigger: TriggerDefinition, source: WebhookSource, realm: str) -> str:
        try:
            found = await self._parts.keeping.access.secret(source.secret, self._account(trigger, realm))
        except (ToolcribError, CallFailed):
            found = None
        if not found:
            _logger.warning("trigger %s: its signing secret %s is not set", trigger.name, source.secret)
            raise Unauthenticated(_REFUSED)
        return found

    def _account(self, trigger: TriggerDefinition, realm: str) -> Principal:
        account = self._parts.accounts.require(realm, trigger.account)
        if not account.enabled:
            raise PermissionDenied(f"the account {trigger.account!r} is disabled; enable it")
        return account.principal(realm)

    # Keeping ----------------------------------------------------------------------------------------------------------

    async def _check(self, trigger: TriggerDefinition, who: Principal) -> None:
        self._parts.accounts.require(who.realm, trigger.account)
        self._check_account(trigger, who)
        await self._parts.catalogue.require(who.realm, trigger.start)
        if isinstance(trigger.when, CronSource):
            check_schedule(trigger.when)
        if isinstance(trigger.when, RunEndSource):
            await self._parts.catalogue.require(who.realm, trigger.when.tool)
        if isinstance(trigger.when, WebhookSource):
            self._check_secret(trigger, trigger.when, who)
        compile_structure(trigger.input)

    def _check_secret(self, trigger: TriggerDefinition, source: WebhookSource, who: Principal) -> None:
        kind, _, name = source.secret[2:-1].partition(":")
        uri = f"ai://secrets/{name}/execute"
        if kind == "secret" and not permits(who.grants, uri):
            msg = f"trigger {trigger.name!r} would use {source.secret}, which needs the grant {uri!r}"
            raise PermissionDenied(f"{msg}; ask a principal that has it to save the trigger")

    def _check_account(self, trigger: TriggerDefinition, who: Principal) -> None:
        uri = f"ai://accounts/{trigger.account}/execute"
        if not permits(who.grants, uri):
            msg = f"trigger {trigger.name!r} would act as account {trigger.account!r}, which needs the grant {uri!r}"
            raise PermissionDenied(f"{msg}; ask a principal that has it to save the trigger")

    @contextlib.asynccontextmanager
    async def _hold(self, realm: str, name: str, *, wait_s: float = 0.0) -> AsyncGenerator[None]:
        """Be the one process that works on a trigger."""
        key = f"trigger-lease/{realm}/{name}"
        lease = hold_lease(
            self._cache, self._clock, key, realm=realm, made_by=_MADE_BY, lease_s=_LEASE_S, wait_s=wait_s
        )
        async with lease as is_held:
            if not is_held:
                raise TriggerBusy(f"trigger {name!r} is busy with other events; send this one again")
            yield

    async def _progress(self, realm: str, name: str) -> TriggerProgress:
        now = self._clock.now()
        kept = await self._cache.get(_key(realm, name), now=now)
        return TriggerProgress(now, now) if kept is None else msgspec.convert(kept, TriggerProgress)

    async def _keep(self, realm: str, name: str, progress: TriggerProgress) -> None:
        value = msgspec.to_builtins(progress)
        await self._cache.put(_key(realm, name), value, realm=realm, made_by=_MADE_BY, expires_at=None)

    def _forget(self, name: str) -> None:
        self._next.pop(name, None)
        self._known.pop(name, None)


class TriggerBusy(Unavailable):
    """Another process works on the trigger."""


_MADE_BY: Final = "triggers"
_REFUSED: Final = "the webhook's signature is missing, wrong or too old"


def run_id_of(realm: str, name: str, found: Occurrence) -> str:
    """The id of an occurrence's run, which the journal takes only once."""
    named = "\0".join((realm, name, found.kind, found.id))
    return f"run_{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _key(realm: str, name: str) -> str:
    return f"trigger/{realm}/{name}"


def _read_body(body: bytes) -> Json:
    """A body as expressions read it: JSON, or its text."""
    try:
        return from_json(body)
    except ValueError:
        pass
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("the webhook's body is neither JSON nor UTF-8 text; send one of them") from None
