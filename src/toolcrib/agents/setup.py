"""Everything an agentic tool's run needs before its first model call: model, tools, reference data, prompt, policy.

Built anew at each start and resume from what the run has pinned; reference data comes through the run's own calls, so a
resumed run sees the same lists.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, cast

import msgspec
import orjson
from msgspec import Struct

from toolcrib.agents.narrowing import enums_of, narrow, shown_to_models, without_cursor
from toolcrib.contracts import (
    AgenticContext,
    AgenticImplementation,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    LLMConfig,
    Purpose,
    ReferenceSource,
    ToolcribError,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.executor import ToolCall
from toolcrib.expressions import Template
from toolcrib.llm import NO_TOOLS, Message, Request, Tool, ToolSet
from toolcrib.llm.model import LanguageModel
from toolcrib.policy import CallPolicy
from toolcrib.providers import ReferenceList, read_reference
from toolcrib.registry import Registry
from toolcrib.runs import ModelCall, Pending, RunContext

Models: TypeAlias = Callable[[LLMConfig], LanguageModel]
"""Opens the model that a configuration names."""

PLACEHOLDERS = ("integration_schema", "reference_data", "user_task", "available_tools", "execution_history", "input")
"""Names that a system prompt may use (000, section 4.4); `input` holds all parameters of the tool."""

DEFAULT_TEMPERATURE = 0.2
_MOST_PLACES = 1000
_NOT_IN_MODEL_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_MODEL_NAME = 64


class ReferenceUnavailable(ToolcribError):
    """A reference list could not be read, so nothing that depends on it may be written."""

    code = "reference_unavailable"


@dataclass(frozen=True, slots=True)
class Allotted:
    """One tool that the embedded model may use, as this run sees it."""

    tool: ToolRevision
    alias: str
    """The name that models accept: letters, digits, `_` and `-`, 64 characters."""
    schema: JsonSchema
    """Input schema with live enums."""
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What all runs of one agentic tool have in common, as long as its tools and its reference data are the same."""

    allotted: tuple[Allotted, ...]
    policy: CallPolicy
    tools: ToolSet
    """The allotted tools as models see them."""
    offered: bytes
    """The same as JSON, for the journal's blob."""
    prompt: Template
    scope: Mapping[str, Json]
    """What the prompt may use besides the task."""
    documentation: str
    """Follows every prompt as it stands."""


class Setup(Struct, frozen=True):
    """The furnished workplace of one run."""

    context: RunContext
    tool: ToolRevision
    implementation: AgenticImplementation
    model: LanguageModel
    place: Workplace
    task: str

    @property
    def allotted(self) -> tuple[Allotted, ...]:
        """The tools that the embedded model may use."""
        return self.place.allotted

    def system_prompt(self, history: str = "") -> str:
        """The system prompt with this run's task and what was done so far."""
        scope = {
            **self.place.scope,
            "user_task": self.task,
            "input": self.context.request.input,
            "execution_history": history,
        }
        return "\n\n".join(filter(None, (self.place.prompt.render_text(scope), self.place.documentation)))

    def named(self, alias: str) -> str:
        """The tool's real name behind a model's name for it; an unknown one stays as it is."""
        return next((item.tool.name for item in self.place.allotted if item.alias == alias), alias)

    def request(
        self,
        messages: tuple[Message, ...],
        *,
        system: str,
        tools: ToolSet = NO_TOOLS,
        output_schema: JsonSchema | None = None,
        output_name: str = "answer",
    ) -> Request:
        """A model request with the tool's configuration."""
        llm = self.implementation.llm
        return Request(
            messages=messages,
            system=system,
            tools=tools,
            output_schema=output_schema,
            output_name=output_name,
            max_tokens=llm.max_tokens or self.context.budget.limits.max_tokens_per_call,
            temperature=DEFAULT_TEMPERATURE if llm.temperature is None else llm.temperature,
            top_p=llm.top_p,
            frequency_penalty=llm.frequency_penalty,
            presence_penalty=llm.presence_penalty,
            extra=llm.extra,
        )

    def call(
        self,
        position: str,
        purpose: Purpose,
        request: Request,
        *,
        new: tuple[Message, ...],
        system: str | None = None,
        tools: str | None = None,
    ) -> ModelCall:
        """A model call of this run."""
        return ModelCall(position, purpose, self.model, request, new=new, system=system, tools=tools)


class Furnisher:
    """Furnishes runs of agentic tools.

    Args:
        models: Opens models.
        registry: Finds the allotted tools.
    """

    def __init__(self, models: Models, registry: Registry) -> None:
        self._models = models
        self._registry = registry
        self._places: dict[tuple[str, ...], Workplace] = {}

    async def prepare(self, context: RunContext, tool: ToolRevision) -> Setup:
        """Open the model, find the tools, read the reference data, and set the run's policy.

        Raises:
            InvalidSettings: The model cannot be opened.
            NotFound: An allotted tool does not exist.
            ReferenceUnavailable: A reference list could not be read.
        """
        implementation = tool.definition.implementation
        if implementation.kind != "agentic":
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r}, not agentic"
            raise InvalidDefinition(msg)
        model = self._models(implementation.llm)
        place = await self._place(context, tool, implementation)
        context.policy = place.policy
        return Setup(context, tool, implementation, model, place, _task(context.request.input))

    async def _allotted(self, context: RunContext, ref: str) -> ToolRevision:
        """The revision that the run has pinned: what was saved since it began does not change it."""
        pinned = context.request.pins.get(ref)
        if pinned is None:
            return self._registry.require(context.run.realm, ref)
        return await self._registry.pinned(context.run.realm, pinned)

    async def _place(self, context: RunContext, tool: ToolRevision, implementation: AgenticImplementation) -> Workplace:
        found = [(await self._allotted(context, ref), purpose) for ref, purpose in allocation(implementation)]
        if implementation.context.reference_data:
            return _furnish(implementation, found, await _read_references(context, implementation))
        key = (tool.content_hash, *(revision.content_hash for revision, _ in found))
        if key not in self._places:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            self._places[key] = _furnish(implementation, found, {})
        return self._places[key]


def pins_of(tool: ToolRevision, registry: Registry) -> dict[str, str]:
    """Content hashes of the tools that a run of this one may call, as they are now, by reference."""
    implementation = tool.definition.implementation
    if implementation.kind != "agentic":
        return {}
    sources = [source.tool for source in implementation.context.reference_data if source.tool]
    refs = [*(ref for ref, _ in allocation(implementation)), *sources]
    return {ref: found.content_hash for ref in refs if (found := registry.named(tool.realm, ref)) is not None}


def allocation(implementation: AgenticImplementation) -> list[tuple[str, str]]:
    """References of the allotted tools with the purpose of each, in order of use or priority."""
    if implementation.mode == "deterministic":
        return [(step.tool, step.purpose) for step in implementation.steps]
    return [(item.tool, "") for item in sorted(implementation.tools, key=lambda item: -item.priority)]


def describe(tool: ToolRevision) -> str:
    """A tool's description for a model: what it does and when to use it."""
    definition = tool.definition
    return "\n".join(filter(None, (definition.description, definition.usage)))


async def _read_references(context: RunContext, implementation: AgenticImplementation) -> Mapping[str, ReferenceList]:
    sources = implementation.context.reference_data
    context.policy = CallPolicy(
        allowed=frozenset(source.tool.partition("@")[0] for source in sources if source.tool), side_effects="reads"
    )
    pending = {source.name: _fetch(context, source) for source in sources if source.tool}
    await context.wait_all(list(pending.values()))
    found: dict[str, ReferenceList] = {}
    for source in sources:
        output: Json = list(source.values)
        fetched_at = context.run.created_at
        if source.name in pending:
            envelope = pending[source.name].result()
            if envelope.error is not None:
                msg = f"reference data {source.name!r} could not be read: {envelope.error.message}"
                raise ReferenceUnavailable(msg)
            output, fetched_at = envelope.output, envelope.t_end
        found[source.name] = read_reference(source, output, fetched_at=fetched_at)
    return found


def _fetch(context: RunContext, source: ReferenceSource) -> Pending[ToolEnvelope]:
    ref = source.tool or ""
    name, _, version = ref.partition("@")
    wanted = context.request.pins.get(ref) or version or None
    return context.call(ToolCall(f"reference.{source.name}", name, dict(source.input), wanted))


def _furnish(
    implementation: AgenticImplementation,
    found: Sequence[tuple[ToolRevision, str]],
    references: Mapping[str, ReferenceList],
) -> Workplace:
    lists = [(source.applies_to, references[source.name]) for source in implementation.context.reference_data]
    enums = enums_of(lists)
    aliases = _aliases(revision.name for revision, _ in found)
    allotted = tuple(
        Allotted(revision, aliases[revision.name], narrow(without_cursor(revision.definition), enums), purpose)
        for revision, purpose in found
    )
    offered = {item.alias: item for item in allotted}
    tools = ToolSet([_shown(item) for item in offered.values()])
    narrowed = {item.tool.name: item.schema for item in allotted if item.schema != item.tool.definition.input_schema}
    return Workplace(
        allotted=allotted,
        policy=CallPolicy(
            allowed=frozenset(item.tool.name for item in allotted),
            narrowed=narrowed,
            versions={item.tool.name: item.tool.content_hash for item in allotted},
        ),
        tools=tools,
        offered=msgspec.json.encode(tools.tools),
        prompt=Template.parse(implementation.system_prompt, "{{}}"),
        scope=_scope(implementation, allotted, references),
        documentation=_documentation(implementation.context),
    )


def _aliases(names: Iterable[str]) -> Mapping[str, str]:
    """Names that models accept, each its own: where two come out the same, the later one gets a number."""
    aliases: dict[str, str] = {}
    for name in dict.fromkeys(names):
        plain = _NOT_IN_MODEL_NAME.sub("_", name)
        endings = (f"_{number}" if number > 1 else "" for number in count(1))
        candidates = (plain[: _LONGEST_MODEL_NAME - len(ending)] + ending for ending in endings)
        aliases[name] = next(free for free in candidates if free not in aliases.values())
    return aliases


def _shown(item: Allotted) -> Tool:
    return Tool(item.alias, describe(item.tool), cast("JsonSchema", shown_to_models(item.schema)))


def _documentation(context: AgenticContext) -> str:
    examples = "\n".join(f"- {example}" for example in context.example_queries)
    return "\n\n".join(filter(None, (context.documentation, examples and f"Examples of tasks:\n{examples}")))


def _task(arguments: Json) -> str:
    given = cast("JsonObject", arguments) if isinstance(arguments, dict) else {}
    task = given.get("task")
    return task if isinstance(task, str) else orjson.dumps(arguments).decode()


def _scope(
    implementation: AgenticImplementation, allotted: Sequence[Allotted], references: Mapping[str, ReferenceList]
) -> Mapping[str, Json]:
    schemas = [
        f"{item.alias}: {orjson.dumps(shown_to_models(item.schema)).decode()}"
        for item in allotted
        if implementation.context.include_schemas
    ]
    return {
        "integration_schema": "\n".join(schemas),
        "reference_data": {name: _listed(values) for name, values in references.items()},
        "available_tools": "\n".join(f"- {item.alias}: {describe(item.tool)}" for item in allotted),
    }


def _listed(values: ReferenceList) -> str:
    return "; ".join(
        str(item.value) if item.label == str(item.value) else f"{item.value} = {item.label}" for item in values.items
    )
