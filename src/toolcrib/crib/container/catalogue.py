"""The definitions of a crib: read by realm, added by the program, checked and saved.

Added definitions are saved, in order, when the crib is opened or next used.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from toolcrib import agents, workflows
from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    CronSource,
    Implementation,
    InvalidDefinition,
    InvalidInput,
    McpServerDefinition,
    NotFound,
    PermissionDenied,
    Principal,
    PromptFragment,
    ProviderDefinition,
    ServiceAccount,
    ToolDefinition,
    ToolRevision,
    TriggerDefinition,
)
from toolcrib.contracts.workflows import (
    ConditionBinding,
    StepRegistration,
    WorkflowDefinition,
    WorkflowImplementation,
)
from toolcrib.core.executor import Clock
from toolcrib.core.expressions.suggestions import listing, suggestion
from toolcrib.core.policy import permits, require_publish
from toolcrib.core.registry import (
    DefinitionFaults,
    Named,
    Providers,
    Registry,
    check_callees,
    check_prices,
    check_provider,
    concerns,
    warnings_at_start,
    warnings_for,
)
from toolcrib.core.runs import check_pins
from toolcrib.core.triggers import check_schedule
from toolcrib.infrastructure.store import Definitions, Store
from toolcrib.kinds.dispatch import check_tool, complete_tool
from toolcrib.kinds.mcp.importer import AllowedPrograms
from toolcrib.kinds.plugin.runtime import PluginRuntimes
from toolcrib.kinds.python.functions import FunctionTool
from toolcrib.kinds.python.runtime import PythonRuntime
from toolcrib.kinds.table import source_of
from toolcrib.llm import ModelPool
from toolcrib.workflows import checks

if TYPE_CHECKING:
    from toolcrib.workflows.checks import CheckContext, Checked

_logger = logging.getLogger("toolcrib.tools")

Addition: TypeAlias = ToolDefinition | FunctionTool[..., Any] | McpServerDefinition
"""What a program adds: a definition, or a function with one."""
_CALLED: Final[Mapping[type[Implementation], str]] = {
    AgenticImplementation: "agentic tool",
    AgentImplementation: "agent",
    WorkflowImplementation: "workflow",
}
"""What messages call a definition, by its implementation; anything else is a tool."""
_MANY: Final = 1_000
"""Additions that are saved without the garbage collector, which a quarter of the time would go to."""


@dataclass(frozen=True, slots=True)
class StoredDefinitions:
    """The definitions of a store, in memory for the realms that were read."""

    registry: Registry
    providers: Providers
    fragments: Named[PromptFragment]
    accounts: Named[ServiceAccount]
    steps: Named[StepRegistration]
    conditions: Named[ConditionBinding]
    mcp_servers: Named[McpServerDefinition]
    triggers: Named[TriggerDefinition]

    @classmethod
    def of(cls, definitions: Definitions) -> Self:
        """Those of a store; nothing is read yet."""
        return cls(
            Registry(definitions),
            Providers(definitions),
            Named(definitions, "fragment", PromptFragment),
            Named(definitions, "account", ServiceAccount),
            Named(definitions, "workflow_step", StepRegistration),
            Named(definitions, "condition", ConditionBinding),
            Named(definitions, "mcp_server", McpServerDefinition),
            Named(definitions, "trigger", TriggerDefinition),
        )


class Catalogue:
    """Opens the store and keeps the definitions of the realms that were entered.

    Args:
        store: Where definitions are kept.
        stored: Its definitions, in memory.
        functions: Python functions by the revision that they belong to.
        models: Tells whether a model can be opened.
        commands: Tells which programs may be started.
        plugins: Tells what runtimes of other packages want.
        clock: Time.
    """

    def __init__(
        self,
        store: Store,
        stored: StoredDefinitions,
        *,
        functions: PythonRuntime,
        models: ModelPool,
        commands: AllowedPrograms,
        plugins: PluginRuntimes,
        clock: Clock,
    ) -> None:
        self._store = store
        self._registry, self._providers = stored.registry, stored.providers
        self._fragments, self._accounts = stored.fragments, stored.accounts
        self._steps, self._conditions = stored.steps, stored.conditions
        self._mcp_servers, self._triggers = stored.mcp_servers, stored.triggers
        self._functions = functions
        self._models = models
        self._commands = commands
        self._plugins = plugins
        self._clock = clock
        self._added: deque[tuple[Addition, Principal]] = deque()
        self._refused: dict[tuple[str, str], InvalidInput | NotFound | PermissionDenied] = {}
        """Why additions could not be saved, by realm and name."""
        self._told: set[tuple[str, str]] = set()
        """Those that `open` has raised already."""
        self._realms: dict[str, int] = {}
        """The realms that were read, with the number of the last change that was seen."""
        self._open = False
        self._opening = asyncio.Lock()

    def add(self, *additions: Addition, owner: Principal) -> None:
        """Have all of these saved before the next call, or none.

        What can be told without the store is checked here. What depends on other definitions is checked when it is
        saved: if it is refused then, its own calls and `raise_refusal` say why, and nothing else is disturbed.

        Raises:
            InvalidDefinition: One of them could not run.
        """
        for addition in additions:
            if isinstance(addition, McpServerDefinition):
                continue
            definition = addition if isinstance(addition, ToolDefinition) else addition.definition
            if type(definition.implementation) not in _CALLED:
                check_tool(definition)
        self._added.extend((addition, owner) for addition in additions)

    @property
    def additions(self) -> Sequence[tuple[Addition, Principal]]:
        """What was added and is not saved yet, and by whom."""
        return tuple(self._added)

    async def open(self, realm: str) -> None:
        """Connect the store, read a realm, and save what was added."""
        if self._open and not self._added:
            return
        async with self._opening:
            if not self._open:
                await self._store.open()
                await self.refresh(realm)
                self._open = True
            with _uncollected(len(self._added)):
                while self._added:
                    # It stays there while it is saved, so that no other task considers the crib up to date.
                    await self._try_to_save(*self._added[0])
                    del self._added[0]

    def raise_refusal(self) -> None:
        """Raise why something that was added could not be saved, each once.

        Raises:
            InvalidInput: It is not well formed, or its model cannot be opened.
            NotFound: It names something that does not exist.
            PermissionDenied: Its owner may not save it.
        """
        for place, problem in self._refused.items():
            if place not in self._told:
                self._told.add(place)
                raise problem.with_traceback(None)

    def require_saved(self, realm: str, ref: str) -> None:
        """Refuse a tool that was added and could not be saved; raises as `raise_refusal`, every time."""
        problem = self._refused.get((realm, ref.partition("@")[0]))
        if problem is not None:
            raise problem.with_traceback(None)

    async def close(self) -> None:
        """Let go of the store."""
        await self._store.close()
        self._open = False

    @property
    def is_open(self) -> bool:
        """Whether the store is open."""
        return self._open

    def has_read(self, realm: str) -> bool:
        """Whether the store is open, the realm was read, and all that was added is saved."""
        return realm in self._realms and self._open and not self._added

    async def read(self, realm: str) -> None:
        """Read the definitions of a realm into memory, if necessary."""
        if realm not in self._realms:
            async with self._opening:
                if realm not in self._realms:
                    await self.refresh(realm)

    async def refresh(self, realm: str) -> None:
        """Read definitions that other processes have saved."""
        changes = await self._registry.changes(realm)  # before reading: what is saved meanwhile is read once too often
        await self._registry.refresh(realm)
        await self._providers.refresh(realm)
        await self._fragments.refresh(realm)
        await self._accounts.refresh(realm)
        await self._steps.refresh(realm)
        await self._conditions.refresh(realm)
        await self._mcp_servers.refresh(realm)
        await self._triggers.refresh(realm)
        self._realms[realm] = changes

    async def renew(self, realm: str) -> None:
        """Refresh if something has changed in the store since, which costs one look-up to know."""
        if self._realms.get(realm) != await self._registry.changes(realm):
            await self.refresh(realm)

    async def require(self, realm: str, ref: str) -> ToolRevision:
        """The tool, also if another process has saved it since this one last looked.

        Raises:
            NotFound: No such tool.
            InvalidInput: It was added, and could not be saved.
        """
        self.require_saved(realm, ref)
        found = self._registry.find_by_ref(realm, ref)
        if found is None:
            await self.refresh(realm)
            found = self._registry.require(realm, ref)
        return found

    def check_tool(
        self, definition: ToolDefinition, realm: str, *, provider: ProviderDefinition | None = None
    ) -> ToolDefinition:
        """The definition as it is stored.

        Args:
            definition: As its author gave it.
            realm: Where it is to be saved.
            provider: The one that is saved together with it.

        Raises:
            InvalidDefinition: It is not well formed; several problems are told together.
            InvalidSettings: Its model cannot be opened.
            NotFound: It names a tool that does not exist.
        """
        if isinstance(definition.implementation, WorkflowImplementation):
            found = self.check_workflow(WorkflowDefinition.of(definition), realm)
            if found.errors:
                raise checks.refusal(definition.name, found.errors)
            return found.tool
        return self._check_and_complete(definition, realm, provider)

    def around(self, realm: str) -> CheckContext:
        """What the workflows of a realm are checked against."""
        return checks.CheckContext(realm, self._registry, self._steps, self._conditions, self._accounts)

    def check_workflow(self, workflow: WorkflowDefinition, realm: str, who: Principal | None = None) -> Checked:
        """A workflow as it would be stored, with all that is wrong with it; also with who would save it, if given."""
        found = checks.check_workflow(workflow, self.around(realm))
        try:
            self._check_and_complete(found.tool, realm)
        except (InvalidInput, NotFound) as problem:
            told = problem.problems if isinstance(problem, InvalidInput) else ()
            for text in [each["problem"] for each in told] if len(told) > 1 else [str(problem)]:
                found = found.with_error(text)
        if who is not None:
            for problem in self._account_problems(found.tool, who):
                found = found.with_error(problem)
        return found

    def check_step(self, step: StepRegistration, who: Principal) -> None:
        """Refuse a name for a tool that no workflow could use; raises as `check_registration`."""
        checks.check_registration(step, self._registry, who.realm)

    def check_condition(self, condition: ConditionBinding, who: Principal) -> None:
        """Refuse a condition that is not one expression over its parameters; raises as the check of that name."""
        del who
        checks.check_condition(condition)

    def _check_and_complete(
        self, definition: ToolDefinition, realm: str, provider: ProviderDefinition | None = None
    ) -> ToolDefinition:
        checked = self._check_parts(definition, realm, provider)
        implementation = checked.implementation
        if not isinstance(implementation, AgenticImplementation):
            return checked
        prompt = implementation.system_prompt
        is_default = prompt == agents.default_prompt(implementation, purpose=checked.description)
        if is_default:
            written = implementation.model_copy(update={"system_prompt": self.default_prompt(checked, realm)})
            checked = checked.model_copy(update={"implementation": written})
        return agents.with_basis(checked, realm, self._registry, self._providers, is_default=is_default)

    def _check_parts(
        self, definition: ToolDefinition, realm: str, provider: ProviderDefinition | None
    ) -> ToolDefinition:
        """The definition with what follows from its parts; each of them is looked at, whatever is wrong with others."""
        implementation = definition.implementation
        kind = _CALLED.get(type(implementation), "tool")
        found = DefinitionFaults(f"{kind} {definition.name!r}")
        found.attempt(lambda: check_tool(definition), None)
        found.attempt(lambda: self._plugins.check(definition), None)
        found.attempt(lambda: self._check_provider(definition, realm, provider), None, "/implementation/provider")
        checked = found.attempt(lambda: agents.check_agentic(definition, self._registry, realm), definition)
        checked = found.attempt(
            partial(check_callees, checked, self._registry, realm, complete_tool), checked, "/implementation"
        )
        checked = found.attempt(partial(agents.check_agent, checked, self._registry, realm, self._fragments), checked)
        found.attempt(
            lambda: agents.check_provider_data(definition, realm, self._providers), None, "/context/provider_data"
        )
        if isinstance(implementation, AgentImplementation):
            pins = implementation.pins
            found.attempt(lambda: check_pins(definition.name, pins), None, "/pins")
        if isinstance(implementation, AgentImplementation | AgenticImplementation):
            llm = implementation.llm
            found.attempt(lambda: self._models.check(llm, realm), None, "/llm")
        found.tell()
        self._check_prices(checked, realm)
        return checked

    def _check_provider(self, definition: ToolDefinition, realm: str, saved: ProviderDefinition | None) -> None:
        """Refuse a provider that there is not, unless the tool is disabled.

        Raises:
            InvalidDefinition: Names it, and the closest ones that there are.
        """
        name = definition.provider
        if name is None or not definition.enabled or (saved is not None and saved.name == name):
            return
        if self._providers.find(realm, name) is None:
            known = [each.name for each in self._providers.current(realm)]
            has = f"available: {listing(name, known)}" if known else "there is none"
            msg = (
                f"tool {definition.name!r}: there is no provider {name!r} in realm {realm!r}; "
                f"{suggestion(name, known)}{has}. Save the provider first, or save the tool with enabled: false"
            )
            raise InvalidDefinition(msg)

    def _check_prices(self, definition: ToolDefinition, realm: str) -> tuple[str, ...]:
        """What the author is to be told of models without a price; raises as `check_prices`."""
        at = self._clock.now()
        return check_prices(definition, self._registry, realm, lambda llm: self._models.unpriced(llm, realm, at))

    def default_prompt(self, definition: ToolDefinition, realm: str) -> str:
        """The default prompt of an agentic tool, with what its steps' tools are for; empty for any other tool."""
        implementation = definition.implementation
        if not isinstance(implementation, AgenticImplementation):
            return ""
        named = {step.tool: self._registry.find_by_ref(realm, step.tool) for step in implementation.steps}
        tools = {ref: found.definition for ref, found in named.items() if found is not None}
        return agents.default_prompt(implementation, purpose=definition.description, tools=tools)

    async def save(self, definition: ToolDefinition, who: Principal, *, after: int | None = None) -> ToolRevision:
        """Check a definition and store it; raises as `checked`, `Conflict` as the registry, and `PermissionDenied`."""
        if definition.provider is not None and self._providers.find(who.realm, definition.provider) is None:
            await self.refresh(who.realm)  # another process may have saved it
        checked = self.check_tool(definition, who.realm)
        return await self.keep(checked, who, after=after, as_given=checked is definition)

    async def keep(
        self, checked: ToolDefinition, who: Principal, *, after: int | None = None, as_given: bool = False
    ) -> ToolRevision:
        """Store what has been checked; raises `Conflict` as the registry, and `PermissionDenied`.

        Args:
            checked: As `check_tool` has returned it.
            who: Who saves it.
            after: As for the registry.
            as_given: The check has completed nothing, so that nothing is left to be checked.
        """
        if isinstance(checked.implementation, WorkflowImplementation):
            require_publish(who, checked.name)
        self.check_accounts(checked, who)
        now = self._clock.now()
        if isinstance(checked.implementation, AgentImplementation) and checked.implementation.can_create_workflows:
            await self._have_authoring(who.realm, who.id)
        saved = await self._registry.save(
            checked, realm=who.realm, made_by=who.id, at=now, after=after, is_checked=as_given
        )
        concerned = concerns(saved, self._registry)
        told = self._check_prices(checked, who.realm)
        warnings = (*warnings_for(checked, self._registry, who.realm, now), *concerned, *told)
        return saved.model_copy(update={"warnings": warnings}) if warnings else saved

    def check_accounts(self, definition: ToolDefinition, who: Principal) -> None:
        """Hold the accounts that an agent or a step would act as against what its author may give it.

        Raises:
            NotFound: There is no such account.
            PermissionDenied: The author has no grant for one of them.
        """
        accounts = _accounts_of(definition.implementation)
        if not accounts:
            return
        for name in accounts:
            self._accounts.require(who.realm, name)
        for problem in self._account_problems(definition, who):
            raise PermissionDenied(problem)

    async def _have_authoring(self, realm: str, made_by: str) -> None:
        """Have the tools for writing workflows in a realm as this release has them."""
        for definition in workflows.authoring_tools():
            present = self._registry.find_by_ref(realm, definition.name)
            if present is None or present.content_hash != definition.content_hash():
                await self._registry.save(definition, realm=realm, made_by=made_by, at=self._clock.now())

    def _account_problems(self, definition: ToolDefinition, who: Principal) -> Iterator[str]:
        kind = definition.implementation.kind
        for name in _accounts_of(definition.implementation):
            if not permits(who.grants, uri := f"ai://accounts/{name}/execute"):
                msg = f"{kind} {definition.name!r} would act as {name!r}, and {who.id!r} has no grant for {uri!r}"
                yield f"{msg}; ask the realm's owner for it, or leave principal_ref out"

    def warnings_at_start(self, tool: ToolRevision, pins: Mapping[str, str]) -> tuple[str, ...]:
        """What a run has to know of the tools that it has pinned: which of them are deprecated."""
        realm_index, key = self._registry.index(tool.realm), ("no warnings", tool.content_hash, *pins.items())
        known: tuple[str, ...] | None = realm_index.derived.get(key)
        if known is not None:
            return known
        warnings = warnings_at_start(tool, pins, self._registry, self._clock.now())
        # of a workflow they also depend on the functions of this process
        if not warnings and not isinstance(tool.definition.implementation, WorkflowImplementation):
            realm_index.derive(key, warnings)
        return warnings

    async def save_provider(self, provider: ProviderDefinition, who: Principal) -> None:
        """Store a provider, if its program may be started and its schedule can be kept."""
        self._commands.check(provider)
        auth = getattr(source_of(provider), "auth", None)
        if auth is not None:
            check_provider(ProviderDefinition(name=provider.name, base_url="https://any.invalid", auth=auth))
        if provider.auto_discover is not None and provider.auto_discover.cron is not None:
            check_schedule(CronSource(cron=provider.auto_discover.cron, timezone=provider.auto_discover.timezone))
        await self._providers.save(provider, realm=who.realm, made_by=who.id, at=self._clock.now())

    async def _try_to_save(self, added: Addition, owner: Principal) -> None:
        """Save what was added, or keep why it cannot be saved."""
        if isinstance(added, McpServerDefinition):
            await self._save_mcp_server(added, owner)
            return
        place = (owner.realm, added.name if isinstance(added, ToolDefinition) else added.definition.name)
        self._refused.pop(place, None)
        self._told.discard(place)
        try:
            await self._save_added(added, owner)
        except (InvalidInput, NotFound, PermissionDenied) as problem:
            _logger.warning("%r was added and cannot be saved: %s", place[1], problem)
            self._refused[place] = problem

    async def _save_mcp_server(self, added: McpServerDefinition, owner: Principal) -> None:
        if self._mcp_servers.find(owner.realm, added.name) != added:
            await self._mcp_servers.save(added, realm=owner.realm, made_by=owner.id, at=self._clock.now())

    async def _save_added(self, added: ToolDefinition | FunctionTool[..., Any], owner: Principal) -> None:
        if isinstance(added, ToolDefinition):
            await self.save(added, owner)
            return
        revision = await self.save(added.definition, owner)
        self._functions.bind(revision.content_hash, added)


@contextmanager
def _uncollected(added: int) -> Generator[None]:
    """Keep the garbage collector from looking through many definitions while they are saved: all of them stay."""
    if added < _MANY or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _accounts_of(implementation: Implementation) -> list[str]:
    """Names of the service accounts that a tool acts as, each once."""
    match implementation:
        case AgentImplementation(principal_ref=name):
            named = [name]
        case WorkflowImplementation(steps=steps):
            named = [step.principal_ref for step in steps]
        case _:
            return []
    return list(dict.fromkeys(name for name in named if name is not None))
