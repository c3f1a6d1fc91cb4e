"""Prepares an agentic tool's run: model, tools, reference data, prompt and policy.

It is rebuilt at each start and resume from what the run has pinned and recorded. Reference data is read by calls of
the run, so a resumed run sees the same lists. What follows from the revisions alone is worked out once for each state
of the catalogue, if the tool has no reference data and names its tools one by one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast

import orjson
from msgspec import Struct

from toolcrib.agents.model.client import ModelClient
from toolcrib.agents.reference.lists import References
from toolcrib.agents.toolset.allocation import GrantedRevision, ToolAllocation, allocation, resolve_allocation
from toolcrib.agents.toolset.drift import drift_of
from toolcrib.agents.toolset.placeholders import appendix_of, scope_of
from toolcrib.agents.toolset.schema_narrowing import enums_of
from toolcrib.agents.toolset.tool_search import Folded, fold, summary
from toolcrib.agents.toolset.toolset import Toolset, allot, each_once
from toolcrib.contracts import (
    AgenticImplementation,
    DriftReport,
    InvalidDefinition,
    Json,
    JsonObject,
    LLMConfig,
    ToolRevision,
)
from toolcrib.core.expressions import Template
from toolcrib.core.policy import CallPolicy, is_in_service
from toolcrib.core.providers import ReferenceList
from toolcrib.core.registry import Providers, Registry
from toolcrib.core.runs import RunContext
from toolcrib.llm.base.quirks import profile_of
from toolcrib.llm.models.model import LanguageModel

Models: TypeAlias = Callable[[LLMConfig], LanguageModel]
"""Opens the model that a configuration names."""

_MOST_PLACES = 1000
_MOST_CHANGES = 10
"""Changes of schemas in one warning."""


@dataclass(frozen=True, slots=True)
class SharedSetup:
    """What all runs of one agentic tool have in common, as long as its tools and its reference data are the same."""

    offer: Toolset
    prompt: Template
    scope: Mapping[str, Json]
    """What the prompt may use besides the task."""
    documentation: str
    """Follows every prompt as it stands."""
    lists: Mapping[str, ReferenceList]
    """Valid values by the property that they close."""
    shows_history: bool
    """Whether the prompt has a place for what was done so far."""
    writing: Mapping[str, ToolAllocation]
    """The tools that write, by name."""


class _Preparation(Struct):
    """What follows from the revisions that a run uses."""

    tool: ToolRevision
    llm: LLMConfig
    """With the temperature of the model's kind, if the definition has none."""
    place: SharedSetup
    warnings: tuple[str, ...]
    drift: DriftReport | None
    """Null if the prompt fits the tools."""
    _policies: tuple[CallPolicy, CallPolicy] | None = None
    """The policy of the last run, as it was given and as it became; runs of one revision are given the same."""

    def policy(self, given: CallPolicy) -> CallPolicy:
        """What the calls of a run may be."""
        if self._policies is None or self._policies[0] is not given:
            self._policies = given, self.place.offer.policy(given)
        return self._policies[1]


class Setup(ModelClient, frozen=True, kw_only=True):
    """Everything that one run of an agentic tool needs."""

    tool: ToolRevision
    implementation: AgenticImplementation
    place: SharedSetup
    task: str

    @property
    def allotted(self) -> tuple[ToolAllocation, ...]:
        """The tools that the embedded model may use."""
        return self.place.offer.allotted

    def system_prompt(self, history: str = "", **instead: str) -> str:
        """The system prompt with this run's task and what was done so far.

        Args:
            history: What was done so far.
            **instead: What placeholders stand for here, by their names.
        """
        scope = {
            **self.place.scope,
            "user_task": self.task,
            "input": self.context.request.input,
            "execution_history": history,
            **instead,
        }
        text, documentation = self.place.prompt.render_text(scope), self.place.documentation
        return f"{text}\n\n{documentation}" if text and documentation else text or documentation


class RunPreparer:
    """Prepares runs of agentic tools.

    Args:
        models: Opens models.
        registry: Finds the allotted tools.
        providers: Has the lists that a prompt was made from.
        references: Reads reference data.
    """

    def __init__(self, models: Models, registry: Registry, providers: Providers, references: References) -> None:
        self._models = models
        self._registry = registry
        self._providers = providers
        self._references = references
        self._places: dict[tuple[object, ...], SharedSetup] = {}

    def asking(self, models: Models) -> "RunPreparer":
        """One that opens other models, and prepares runs likewise besides."""
        return RunPreparer(models, self._registry, self._providers, self._references)

    async def prepare(self, context: RunContext, tool: ToolRevision) -> Setup:
        """Open the model, find the tools, read the reference data, and set the run's policy.

        Args:
            context: The run.
            tool: What it executes.

        Raises:
            InvalidSettings: The model cannot be opened.
            NotFound: An allotted tool does not exist.
            ReferenceUnavailable: A reference list could not be read.
        """
        implementation = tool.definition.implementation
        if not isinstance(implementation, AgenticImplementation):
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}, not agentic"
            raise InvalidDefinition(msg)
        model, given = self._models(implementation.llm), context.policy
        prepared = await self._preparation(context, tool, implementation, model.name)
        for warning in prepared.warnings:
            context.warn(warning)
        if prepared.drift is not None:
            await context.emit("drift", "schema_drift", prepared.drift.model_dump(mode="json"))
        context.policy = prepared.policy(given)
        return Setup(
            context=context,
            model=model,
            llm=prepared.llm,
            tool=tool,
            implementation=implementation,
            place=prepared.place,
            task=_task(context.request.input),
        )

    async def _preparation(
        self, context: RunContext, tool: ToolRevision, implementation: AgenticImplementation, model: str
    ) -> _Preparation:
        """What follows from the revisions; what was worked out for these very ones, if nothing has changed since."""
        realm_index, request = self._registry.index(context.run.realm), context.request
        key = ("agentic", tool.content_hash, model, request.has_old_rules, *request.pins.items())
        known: _Preparation | None = realm_index.derived.get(key)
        if known is not None and known.tool is tool:  # else the run has the tool with changes of its own
            return known
        changes = realm_index.changes
        prepared = await self._prepare(context, tool, implementation, model)
        is_current = self._registry.find(tool.realm, tool.name, tool.content_hash) is tool
        if is_current and realm_index.changes == changes and _is_fixed(implementation):
            realm_index.derive(key, prepared)
        return prepared

    async def _prepare(
        self, context: RunContext, tool: ToolRevision, implementation: AgenticImplementation, model: str
    ) -> _Preparation:
        found, warnings = await self._select_tools(context, tool, implementation)
        for warning in warnings:  # before those of the lists
            context.warn(warning)
        references = await self._references.lists(context, implementation.context)
        place = self._place(context, tool, implementation, found, references)
        drift, llm = await self._drift(context, tool), implementation.llm
        if drift is not None:
            changes = "; ".join(change.message for change in drift.changes[:_MOST_CHANGES])
            warnings += (f"schemas have changed since the prompt of {tool.ref!r} was made: {changes}; regenerate it",)
        if llm.temperature is None:
            llm = llm.model_copy(update={"temperature": profile_of(model).temperature})
        return _Preparation(tool, llm, place, warnings, drift)

    async def _select_tools(
        self, context: RunContext, tool: ToolRevision, implementation: AgenticImplementation
    ) -> tuple[Sequence[GrantedRevision], tuple[str, ...]]:
        """The tools of a run, and warnings of those that cannot be offered; a sequence needs all of its own."""
        found = await resolve_allocation(context, tool, allocation(implementation), self._registry)
        if implementation.mode == "deterministic":
            return found, ()
        offered: list[GrantedRevision] = []
        warnings: list[str] = []
        for item in found:
            reason = _not_offered(item.tool)
            if reason is None:
                offered.append(item)
            else:
                warnings.append(f"tool {item.tool.ref!r} {reason}, so the model was not offered it")
        return offered, tuple(warnings)

    def _place(
        self,
        context: RunContext,
        tool: ToolRevision,
        implementation: AgenticImplementation,
        found: Sequence[GrantedRevision],
        references: Sequence[ReferenceList],
    ) -> SharedSetup:
        began = context.run.created_at
        ages = (values.fetched_at if values.fetched_at < began else None for values in references)
        hints = not context.request.has_old_rules
        key = (
            tool.content_hash,
            hints,
            *(item.tool.content_hash for item in found),
            *zip((values.id for values in references), ages, strict=True),
        )
        if key not in self._places:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            self._places[key] = _furnish(implementation, found, references, began, hints=hints)
        return self._places[key]

    async def _drift(self, context: RunContext, tool: ToolRevision) -> DriftReport | None:
        """The schemas that have changed since the prompt was made; the run goes on as well as it can."""
        realm, pins = context.run.realm, context.request.pins

        def current(ref: str) -> ToolRevision | None:
            return self._registry.find(realm, ref.partition("@")[0], pins[ref]) if ref in pins else None

        report = await drift_of(tool, self._registry, self._providers, current)
        return report if report.drifted else None


def _furnish(
    implementation: AgenticImplementation,
    found: Sequence[GrantedRevision],
    references: Sequence[ReferenceList],
    began: datetime,
    *,
    hints: bool,
) -> SharedSetup:
    enums = enums_of(references)
    allotted = allot(found, enums)
    once = each_once(allotted)
    folded = fold(once) if implementation.mode == "agentic" else Folded(once, ())
    offer = Toolset(allotted, folded, in_words=implementation.llm.tool_calling == "text", hints=hints)
    prompt = Template.parse(implementation.system_prompt, "{{}}")
    return SharedSetup(
        offer=offer,
        prompt=prompt,
        scope=scope_of(implementation, folded.shown, references, began=began, more=summary(folded.hidden)),
        documentation=appendix_of(prompt, implementation.context),
        lists={name: values for name, values in enums.items() if values.items},
        shows_history="execution_history" in prompt.references,
        writing={item.tool.name: item for item in allotted if item.tool.definition.side_effects == "writes"},
    )


def _is_fixed(implementation: AgenticImplementation) -> bool:
    """Whether each run that has pinned the same revisions is prepared in the same way."""
    context = implementation.context
    has_lists = bool(context.reference_data or context.provider_data)
    return not has_lists and not any(share.many for share in allocation(implementation))


def _not_offered(tool: ToolRevision) -> str | None:
    """Why a model does not get to choose a tool."""
    if not is_in_service(tool):
        return "is out of service"
    return None if "tool" in tool.definition.available_as else "is only available in other ways than as a tool"


def _task(arguments: Json) -> str:
    given = cast("JsonObject", arguments) if isinstance(arguments, dict) else {}
    task = given.get("task")
    return task if isinstance(task, str) else orjson.dumps(arguments).decode()
