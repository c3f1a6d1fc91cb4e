"""The crib: the object that wires everything together, and the Python API.

Nothing is connected until the first call, and what a crib is made of is loaded with the first crib. All operations of
a crib use its executor and its journal.

Example:
    crib = Crib()  # SQLite in the working directory
    crib.add(search_deals, update_deals)
    deals = crib.agentic_tool(
        "deals", mode="deterministic", model="anthropic:claude-sonnet-4", steps=["search_deals", "update_deals"]
    )
    result = await deals("Update all Acme Corp deals to Negotiation")
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from toolcrib import llm
from toolcrib.contracts import OWNER
from toolcrib.core import engines, runs
from toolcrib.crib import container
from toolcrib.crib import runs as run_parts
from toolcrib.crib import workflows as workflow_parts
from toolcrib.crib.api.acting import ActingCrib
from toolcrib.crib.api.definitions import Definer
from toolcrib.infrastructure import net
from toolcrib.llm import local

if TYPE_CHECKING:
    from toolcrib.contracts import (
        Principal,
    )
    from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport
    from toolcrib.core.executor import Clock
    from toolcrib.core.runs.journal.bundles import Manifest
    from toolcrib.crib.container.catalogue import Addition
    from toolcrib.crib.settings import Settings
    from toolcrib.infrastructure.store import Store
    from toolcrib.infrastructure.store.memory.shadow import ShadowStore


class Crib(ActingCrib, Definer):
    """A crib of tools with its store, executor and engine.

    Example:
        async with Crib("memory://", models={"scripted:m": ScriptedModel(["Done."])}) as crib:
            crib.add(search_deals, update_deals)

    Args:
        store: A URL (`sqlite:///crib.db`, `postgresql://user:password@host/crib`, `memory://`) or a store.
        principal: The principal that acts unless `acting_as` names another.
        models: Models by reference that are used instead of opening one: scripted ones for tests and demonstrations.
        egress: Which addresses HTTP tools and models may reach.
        environment: Where `${env:NAME}` and API keys are looked up; `os.environ` if null.
        clock: Time.
        definitions: What definitions may use, and what they get where they say nothing.
        sharing: What the processes of the crib share, and how they divide the work.
    """

    def __init__(
        self,
        store: str | Store = "sqlite:///toolcrib.db",
        *,
        principal: Principal = OWNER,
        models: Mapping[str, llm.LanguageModel] | None = None,
        egress: net.EgressPolicy | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        definitions: container.DefinitionOptions | None = None,
        sharing: container.SharingOptions | None = None,
    ) -> None:
        definitions, sharing = definitions or container.DefinitionOptions(), sharing or container.SharingOptions()
        parts = container.CribServices.wire(
            container.Environment(
                store=container.resolve_store(store, sharing.blobs),
                clock=clock or engines.SystemClock(),
                egress=egress or net.EgressPolicy(),
                environment=os.environ if environment is None else environment,
                models=models or {},
                sandbox=definitions.sandbox or container.machine_sandbox(),
                definitions=definitions,
                sharing=sharing,
            )
        )
        super().__init__(parts, container.Actor(parts.catalogue, principal.realm, principal, is_application=True))
        self.retention = run_parts.Retention(self.store, self.clock, self._actor, keep=sharing.keep_ended)
        workflow_parts.Authoring(lambda who: self.acting_as(who).workflows, self.registry).bind(parts.functions)

    @classmethod
    def from_settings(
        cls,
        settings: Settings | None = None,
        *,
        store: Store | None = None,
        principal: Principal = OWNER,
        models: Mapping[str, llm.LanguageModel] | None = None,
        environment: Mapping[str, str] | None = None,
        prices: llm.Prices | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """A crib with the operator's settings, as the command line and the server use it.

        Args:
            settings: As `load_settings` reads them from the environment and `toolcrib.toml` if null.
            store: An open store instead of the one that the settings name.
            principal: As in the constructor, like all that follow.
            models: See there.
            environment: See there.
            prices: See there.
            clock: See there.

        Raises:
            InvalidSettings: A setting cannot be used.

        Example:
            async with Crib.from_settings() as crib:  # reads TOOLCRIB_STORE and toolcrib.toml
                crib.add(search_deals)
        """
        from toolcrib.crib.settings import load_settings

        settings = settings or load_settings(environment=environment).settings
        if settings.models_dir is not None:
            around = os.environ if environment is None else environment
            environment = {**around, local.MODELS_FOLDER: str(settings.models_dir)}
        return cls(
            store or settings.store,
            principal=principal,
            models=models,
            egress=settings.egress.policy(),
            environment=environment,
            clock=clock,
            definitions=container.definitions_of(settings, prices or llm.Prices()),
            sharing=container.sharing_of(settings, blobs=settings.blobs if store is None else None),
        )

    def acting_as(self, principal: Principal, *, start: container.StartRecord | None = None) -> ActingCrib:
        """This crib for one principal: it acts in the principal's realm and with the principal's permissions.

        Args:
            principal: In whose realm and name everything is done.
            start: Remembers the run that is begun, for the one request that this crib is for: a request that is sent
                again gets the same run.

        Example:
            ann = crib.acting_as(Principal(id="ann", grants=("ai://tools/crm/*/execute",)))
            result = await ann.invoke("search_deals", {"company": "Acme"})

        The crib itself acts as the application, which needs no grant to see and decide.
        """
        actor = container.Actor(self._catalogue, self.principal.realm, principal, start=start)
        return ActingCrib(self._parts, actor)

    @property
    def additions(self) -> Sequence[tuple[Addition, Principal]]:
        """What was added and is not saved yet, and by which principal."""
        return self._catalogue.additions

    @property
    def budgets(self) -> Sequence[str]:
        """The caps on what many runs spend together."""
        return self._parts.outside.sharing.budgets

    @cached_property
    def ids(self) -> run_parts.Ids:
        """Finds ids of the realm by their first characters."""
        return run_parts.Ids(self._opened, self.principal.realm, lambda: self.instances.page(limit=1))

    async def _opened(self) -> Store:
        await self.open()
        return self.store

    # Life -------------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect the store and save what was added; calls do this too.

        Raises:
            InvalidInput: Something that was added is not well formed, or its model cannot be opened. Each refusal is
                raised by one `open`, and by every call of what was refused. Everything else is saved.
            NotFound: Something that was added names something that does not exist.

        Example:
            crib.agent("greeter", model="anthropic:claude-sonnet-4")
            await crib.open()  # raises here what would else be raised by the first call
        """
        await self._catalogue.open(self.principal.realm)
        self._catalogue.raise_refusal()

    async def recover(self) -> Sequence[runs.Result]:
        """Resume all runs that can continue now.

        Example:
            resumed = await crib.recover()
        """
        await self.open()
        return [await self._parts.result(driven) for driven in await self.engine.recover()]

    async def export_run(self, run_id: str, file: IO[bytes], *, sees: run_parts.Sees = lambda _: True) -> Manifest:
        """Write a run, ended or not, with everything needed to replay it, into one seekable file.

        Args:
            run_id: The run.
            file: Where to.
            sees: Tells of another run, or of a definition, that the run names whether it may be in the file.

        Raises:
            NotFound: No such run.

        Example:
            result = await crib.invoke("search_deals", {"company": "Acme"})
            with open("run.bundle", "wb") as file:
                await crib.export_run(result.run_id, file)
        """
        await self.open()
        return await run_parts.Capture(self.store, run_id, sees).write(file)

    async def rehearse(
        self, changes: Callable[[Crib], Awaitable[object]] | None = None, *, functions_here: bool = True
    ) -> RehearsalReport:
        """Test whether all runs that have not ended could continue in this process after a change.

        Nothing runs, no model is asked, and nothing is saved: neither the change, which is made to a shadow of the
        store, nor what was added to this crib and not saved yet.

        Args:
            changes: Does to the crib that it is given what is to be rehearsed; null for the code of this process alone.
            functions_here: Whether the Python functions were added here that the runs call; if not, nothing is said
                of them.

        Example:
            report = await crib.rehearse(lambda shadow: shadow.save(update_deals.definition))
        """
        from toolcrib.contracts.pruning_and_rehearsal import RehearsalReport

        clock = run_parts.ShiftedClock(self.clock)
        async with self.shadow(clock) as (shadow, store):
            if changes is not None:
                await changes(shadow)
            parts = shadow._parts  # noqa: SLF001 - of a crib too
            rehearsal = run_parts.Rehearsal(self._parts, store, parts, clock, functions_here=functions_here)
            return RehearsalReport(at=self.clock.now(), runs=await rehearsal.of_all(await self._realms()))

    @asynccontextmanager
    async def shadow(self, clock: Clock | None = None) -> AsyncGenerator[tuple[Crib, ShadowStore]]:
        """A crib on a shadow of the store: it has the same definitions, and what is saved there is never stored.

        Args:
            clock: Its time; that of this crib if null.

        Example:
            async with crib.shadow() as (shadow, _):
                await shadow.save(update_deals.definition)  # checked, and not stored
        """
        from toolcrib.infrastructure.store.memory.shadow import ShadowStore

        await self.store.open()
        outside, store = self._parts.outside, ShadowStore(self.store)
        shadow = Crib(
            store,
            principal=self.principal,
            models=outside.models,
            egress=outside.egress,
            environment=outside.environment,
            clock=clock or self.clock,
            definitions=replace(outside.definitions, sandbox=outside.sandbox),
        )
        try:
            await shadow._parts.begin_with(self._parts, store, await self._realms())
            await shadow.open()
            yield shadow, store
        finally:
            await shadow._parts.let_go()

    async def _realms(self) -> Sequence[str]:
        return tuple(dict.fromkeys((*await self.store.retention.realms(), self.principal.realm)))

    async def refresh(self, realm: str | None = None) -> None:
        """Read definitions that other processes have saved.

        Example:
            await crib.refresh()
        """
        await self._catalogue.refresh(realm or self.principal.realm)

    async def close(self) -> None:
        """Let go of leases, connections and the store."""
        await self._parts.close()

    def __del__(self) -> None:
        """In an interactive session, warn of a crib that was left open; a script ends, and needs no hint."""
        if hasattr(sys, "ps1") and getattr(self, "_catalogue", None) is not None and self._catalogue.is_open:
            msg = f"{self!r} was left open; write `async with Crib(...) as crib:`, or `await crib.close()` at the end"
            warnings.warn(msg, ResourceWarning, source=self, stacklevel=2)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
