"""Prompts of agentic tools: proposals of prompts and descriptions, their history, and tests.

A proposal stores nothing. Accepting it makes a new revision, so the history of a prompt is the history of its tool.
Tests run definitions that are not saved, as dry runs with the usual limits, in a temporary journal; they are not
listed among the executions.

Example:
    proposal = await crib.prompts.regenerate("deals")
    print(proposal.diff, proposal.reason)
    await crib.prompts.accept(proposal)
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from difflib import unified_diff
from typing import Any, Self, cast

from toolcrib.agents import (
    Models,
    PromptTestProgram,
    RunPreparer,
    TextProgram,
    basis_of,
    check_prompt,
    describe_placeholders,
    drift_of,
)
from toolcrib.contracts import (
    PLAN_FORMAT,
    AgenticImplementation,
    DriftReport,
    InvalidDefinition,
    Json,
    JsonObject,
    LLMConfig,
    ModelError,
    NotFound,
    Principal,
    PromptDifference,
    PromptRevision,
    PromptTest,
    ProposalSource,
    ProposedText,
    Run,
    RunRequest,
    TextProposal,
    ToolDefinition,
    ToolRevision,
    Unavailable,
)
from toolcrib.contracts.tools.rendered_prompts import ModelPrompt, PromptPlaceholders, RenderedPrompt
from toolcrib.core.engines import EngineSettings, LocalEngine, new_run_id
from toolcrib.core.executor import Clock, Executor
from toolcrib.core.export import check_description, generate_description
from toolcrib.core.registry import Providers, Registry, pins_of
from toolcrib.core.runs import Program, Result
from toolcrib.core.runs.views.model_prompts import prompt_of_request
from toolcrib.crib.container.access import Actor
from toolcrib.crib.container.catalogue import Catalogue
from toolcrib.crib.container.container import CribServices
from toolcrib.infrastructure.store import MemoryStore
from toolcrib.llm import Cost, LanguageModel, Request, Response, TokenUsage
from toolcrib.llm.base.messages import Done, Event


class Bench:
    """Runs programs on definitions as they are written.

    Args:
        registry: Finds the tools that a definition is allotted.
        executor: Runs tool calls.
        clock: Time.
    """

    def __init__(self, registry: Registry, executor: Executor, clock: Clock) -> None:
        self._registry = registry
        self._executor = executor
        self.clock = clock

    async def run(self, definition: ToolDefinition, program: Program, arguments: JsonObject, who: Principal) -> Result:
        """Run a program once.

        Args:
            definition: The tool, checked; it need not be saved.
            program: What is done with it.
            arguments: Its input.
            who: The principal that acts.
        """
        store = MemoryStore()
        drawer = Registry(store.definitions)
        tool = await drawer.save(definition, realm=who.realm, made_by=who.id, at=self.clock.now())
        engine = LocalEngine(
            store=store,
            registry=drawer,
            executor=self._executor,
            programs={"agentic": program},
            clock=self.clock,
            new_run_id=new_run_id,
            settings=EngineSettings(owner="bench"),
            check_able=_anything,
        )
        request = RunRequest(
            kind="agentic",
            plan_format=PLAN_FORMAT,
            tool=tool.ref,
            content_hash=tool.content_hash,
            pins=pins_of(tool, self._registry),
            input=arguments,
            principal=who,
            dry_run=True,
        )
        try:
            driven = await engine.start(request)
        finally:
            await engine.close()
        return Result(driven.result, driven.log)


async def _anything(_run: Run) -> None:
    """Whatever is on the bench is here."""


_PROMPT_TASK = """Write the system prompt of the tool below. It is a template: keep every placeholder in double braces \
that the present text has, write no others, and keep the text short. Say what the operations are for, how the task is \
to be read, and what to do if something does not fit.

The present text:
{current}"""

_DESCRIPTION_TASK = """Write the description of the tool below for the agents that call it. Keep the parts, the \
headings and the list of inputs of the present text exactly; make what they say clearer. Hide how the tool works inside.

The present text:
{current}"""


class Prompts:
    """The texts of agentic tools, as their authors work on them.

    Args:
        catalogue: Checks and saves definitions.
        registry: The tools.
        providers: The lists that prompts are made from.
        bench: Runs what is not saved.
        preparer: Prepares the runs of tests.
        models: Opens the models that write texts.
        actor: The actor of the crib.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        registry: Registry,
        providers: Providers,
        bench: Bench,
        preparer: RunPreparer,
        models: Models,
        actor: Actor,
    ) -> None:
        self._catalogue = catalogue
        self._registry = registry
        self._providers = providers
        self._bench = bench
        self._preparer = preparer
        self._models = models
        self._actor = actor

    @classmethod
    def of(cls, parts: CribServices, actor: Actor) -> Self:
        """The texts of a crib that is made of these parts."""
        return cls(
            parts.catalogue,
            registry=parts.registry,
            providers=parts.providers,
            bench=Bench(parts.registry, parts.executor, parts.outside.clock),
            preparer=parts.preparer,
            models=parts.models.model,
            actor=actor,
        )

    async def default(self, definition: ToolDefinition) -> str:
        """The default prompt of a tool, saved or not, by rule.

        Raises:
            InvalidDefinition: The tool is not agentic.

        Example:
            print(await crib.prompts.default(deals.definition))
        """
        who = await self._actor.authorize()
        agentic(definition)
        return self._catalogue.default_prompt(definition, who.realm)

    async def drift(self, tool: str) -> DriftReport:
        """What has changed in the tools of an agentic tool since its prompt was made; empty for any other tool.

        Raises:
            NotFound: No such tool.

        Example:
            report = await crib.prompts.drift("deals")
            print(report.drifted, [change.message for change in report.changes])
        """
        who = await self._actor.authorize()
        return await drift_of(self._registry.require(who.realm, tool), self._registry, self._providers)

    async def regenerate(self, tool: str, *, source: ProposalSource = "generator") -> TextProposal:
        """A new system prompt for a tool as it is now: by rule, or written by the tool's own model.

        Raises:
            NotFound: No such tool.
            InvalidDefinition: The tool is not agentic.
            Unavailable: The model wrote no usable text; the message says why.

        Example:
            proposal = await crib.prompts.regenerate("deals")
            print(proposal.reason, proposal.diff)
        """
        who = await self._actor.authorize()
        revision = self._registry.require(who.realm, tool)
        current = agentic(revision.definition).system_prompt
        text = await self.default(revision.definition)
        if source == "model":
            return await self._draft_text(revision, "system_prompt", current, _PROMPT_TASK.format(current=text), who)
        drift = await drift_of(revision, self._registry, self._providers)
        reason = "; ".join(change.message for change in drift.changes) or (
            "it is the default prompt for the tool as it is now"
            if text != current
            else "the prompt is the default one and nothing has changed since"
        )
        return _proposal(revision, "system_prompt", current, text, reason)

    async def describe(self, tool: str, *, source: ProposalSource = "generator") -> TextProposal:
        """A new text for parent agents, which exports show: by rule, or written by the tool's own model.

        Raises:
            NotFound: No such tool.
            InvalidDefinition: A model is to write, and the tool has none.
            Unavailable: The model wrote no usable text.

        Example:
            proposal = await crib.prompts.describe("deals")
            await crib.prompts.accept(proposal)
        """
        who = await self._actor.authorize()
        revision = self._registry.require(who.realm, tool)
        current = revision.definition.long_description or ""
        text = generate_description(revision.definition)
        if source == "generator":
            return _proposal(revision, "long_description", current, text, "it is made from the tool as it is now")
        task = _DESCRIPTION_TASK.format(current=text)
        return await self._draft_text(revision, "long_description", current, task, who)

    async def accept(self, proposal: TextProposal) -> ToolRevision:
        r"""Store a proposal, as it is or edited, as a new revision.

        Raises:
            Conflict: The tool has changed since the proposal was made.
            InvalidDefinition: The text breaks a rule: an unknown placeholder, a missing part.
            NotFound: No such tool.

        Example:
            proposal = await crib.prompts.regenerate("deals")
            edited = proposal.model_copy(update={"proposed": proposal.proposed + "\nNever change a deal that is lost."})
            await crib.prompts.accept(edited)
        """
        who = await self._actor.authorize()
        definition = self._registry.require(who.realm, proposal.tool).definition
        if proposal.text == "system_prompt":
            implementation = agentic(definition)
            basis = basis_of(implementation, who.realm, self._registry, self._providers)
            changed = {"system_prompt": proposal.proposed, "made_from": basis}
            update: dict[str, Any] = {"implementation": implementation.model_copy(update=changed)}
        else:
            missing = check_description(proposal.proposed, definition)
            if missing:
                msg = f"tool {proposal.tool!r}: the description cannot be used: {'; '.join(missing)}"
                raise InvalidDefinition(msg)
            update = {"long_description": proposal.proposed}
        return await self._catalogue.save(definition.model_copy(update=update), who, after=proposal.revision)

    async def history(self, tool: str) -> Sequence[PromptRevision]:
        """The prompt in all revisions of a tool, oldest first.

        Raises:
            NotFound: No such tool.
            InvalidDefinition: The tool is not agentic.

        Example:
            for entry in await crib.prompts.history("deals"):
                print(entry.revision, entry.made_by, entry.changed)
        """
        who = await self._actor.authorize()
        current = self._registry.require(who.realm, tool)
        agentic(current.definition)
        found: list[PromptRevision] = []
        for revision in await self._registry.revisions(who.realm, current.name):
            prompt = prompt_of(revision.definition)
            found.append(
                PromptRevision(
                    revision=revision.revision,
                    version=revision.version,
                    content_hash=revision.content_hash,
                    made_by=revision.made_by,
                    created_at=revision.created_at,
                    current=revision.revision == current.revision,
                    changed=not found or found[-1].system_prompt != prompt,
                    system_prompt=prompt,
                )
            )
        return found

    async def compare(self, tool: str, older: int, newer: int) -> PromptDifference:
        """How the prompt changed from one revision to another.

        Raises:
            NotFound: No such tool or revision.

        Example:
            await crib.prompts.accept(await crib.prompts.describe("deals"))
            print((await crib.prompts.compare("deals", 1, 2)).diff or "the prompt is the same")
        """
        known = {entry.revision: entry for entry in await self.history(tool)}
        for wanted in (older, newer):
            if wanted not in known:
                msg = f"tool {tool!r} has no revision {wanted}; it has {', '.join(map(str, known))}"
                raise NotFound(msg)
        before, after = known[older].system_prompt, known[newer].system_prompt
        return PromptDifference(
            tool=tool,
            older=older,
            newer=newer,
            diff=difference(before, after, f"revision {older}", f"revision {newer}"),
        )

    async def roll_back(self, tool: str, revision: int, *, after: int | None = None) -> ToolRevision:
        """Make an older revision the newest one again, the whole of it, under the version that calls get now.

        Args:
            tool: The tool's name.
            revision: The older revision's number.
            after: Number of the current revision as the author knows it; null for any.

        Raises:
            NotFound: No such tool or revision.
            Conflict: Another revision has been saved since `after`.

        Example:
            await crib.prompts.accept(await crib.prompts.describe("deals"))
            await crib.prompts.roll_back("deals", 1)
        """
        who = await self._actor.authorize()
        current = self._registry.require(who.realm, tool)
        known = {entry.revision: entry for entry in await self._registry.revisions(who.realm, current.name)}
        if revision not in known:
            msg = f"tool {tool!r} has no revision {revision}; it has {', '.join(map(str, known))}"
            raise NotFound(msg)
        older = known[revision].definition.model_copy(update={"version": current.version})
        return await self._catalogue.save(older, who, after=after)

    async def test(self, definition: ToolDefinition, arguments: JsonObject) -> PromptTest:
        """Test a tool's prompt with a sample input: returns the model's first calls, which are not made.

        Args:
            definition: The tool as it is, or as it may become; it need not be saved.
            arguments: The sample input. Reads of reference data need the grants that a run needs.

        Raises:
            InvalidDefinition: The tool is not agentic.
            InvalidSettings: Its model cannot be opened.

        Example:
            test = await crib.prompts.test(deals.definition, {"task": "Update all Acme Corp deals to Negotiation"})
            print(test.system_prompt, test.answer, test.problems)
        """
        who = await self._actor.authorize()
        implementation = agentic(definition)
        facts: dict[str, Any] = {
            "tool": definition.name,
            "mode": implementation.mode,
            "model": implementation.llm.model,
            "input": arguments,
        }
        try:
            checked = self._catalogue.check_tool(definition, who.realm)
        except (InvalidDefinition, NotFound) as problem:
            return PromptTest(**facts, system_prompt=None, problems=(str(problem),))
        trial = PromptTestProgram(self._preparer)
        return _make_prompt_test(facts, await self._bench.run(checked, trial, arguments, who))

    async def render(self, definition: ToolDefinition, arguments: JsonObject) -> RenderedPrompt:
        """The first request that a tool would send to its model for a sample input, with its length. Nothing is sent.

        Args:
            definition: The tool as it is, or as it may become; it need not be saved.
            arguments: The sample input. Reads of reference data need the grants that a run needs.

        Raises:
            InvalidDefinition: The tool is not agentic.
            InvalidSettings: Its model cannot be opened.

        Example:
            found = await crib.prompts.render(deals.definition, {"task": "Update all Acme Corp deals to Negotiation"})
            print(found.prompt.system, found.prompt.tokens.total, found.problems)
        """
        implementation = agentic(definition)
        prompt, values, problems = await self._rendered(definition, arguments)
        return RenderedPrompt(
            tool=definition.name,
            mode=implementation.mode,
            model=implementation.llm.model,
            input=arguments,
            prompt=prompt,
            placeholders=tuple(describe_placeholders(implementation, values)),
            problems=problems,
        )

    async def placeholders(self, definition: ToolDefinition) -> PromptPlaceholders:
        """The placeholders that a tool's system prompt can use, with the present length of their values.

        Args:
            definition: The tool; it need not be saved.

        Raises:
            InvalidDefinition: The tool is not agentic.
            InvalidSettings: Its model cannot be opened.

        Example:
            for each in (await crib.prompts.placeholders(deals.definition)).items:
                print(each.name, each.used, each.tokens)
        """
        implementation = agentic(definition)
        _, values, problems = await self._rendered(definition, {})
        items = tuple(describe_placeholders(implementation, values))
        return PromptPlaceholders(tool=definition.name, items=items, problems=problems)

    async def _rendered(
        self, definition: ToolDefinition, arguments: JsonObject
    ) -> tuple[ModelPrompt | None, Mapping[str, str], tuple[str, ...]]:
        """The first request of a tool, what its placeholders stand for, and what would go wrong."""
        who = await self._actor.authorize()
        try:
            checked = self._catalogue.check_tool(definition, who.realm)
        except (InvalidDefinition, NotFound) as problem:
            return None, {}, (str(problem),)
        models = _UnaskedModels(self._models)
        program = PromptTestProgram(self._preparer.asking(models.model))
        result = await self._bench.run(checked, program, arguments, who)
        output: Json = result.summary.output_or_partial
        found = cast("JsonObject", output) if isinstance(output, dict) else {}
        problems = result.summary.warnings
        if models.asked is None:
            failed = result.summary.error
            return None, found.get("values", {}), (*problems, failed.message if failed else "no request was made")
        return prompt_of_request(*models.asked, self._bench.clock.now()), found.get("values", {}), problems

    async def _draft_text(
        self, revision: ToolRevision, text: ProposedText, current: str, task: str, who: Principal
    ) -> TextProposal:
        definition = revision.definition

        def problems(written: str) -> Sequence[str]:
            if text == "long_description":
                return check_description(written, definition)
            return _prompt_problems(definition, written)

        agentic(definition)
        result = await self._bench.run(definition, TextProgram(self._models, task, problems), {}, who)
        output: Json = result.output
        if not isinstance(output, dict):
            why = result.summary.error.message if result.summary.error else "; ".join(result.summary.warnings)
            msg = f"the model of {revision.ref!r} wrote no usable {text}: {why}"
            raise Unavailable(msg)
        written = cast("JsonObject", output)
        proposal = _proposal(revision, text, current, written["text"], written["reason"])
        spent = {"source": "model", "usage": result.summary.usage, "cost_usd": _known_cost(result)}
        return proposal.model_copy(update=spent)


class _UnaskedModels:
    """Opens models, keeps the first request that one of them is asked, and lets none be sent.

    Args:
        models: Opens them.
    """

    def __init__(self, models: Models) -> None:
        self._models = models
        self.asked: tuple[LanguageModel, Request] | None = None
        """The model and the request."""

    def model(self, llm: LLMConfig) -> LanguageModel:
        """The model of a configuration."""
        return _UnaskedModel(self, self._models(llm))


class _UnaskedModel:
    """A model that costs nothing, because it is never asked."""

    def __init__(self, models: _UnaskedModels, model: LanguageModel) -> None:
        self.name = model.name
        self._models = models
        self._model = model

    async def request(self, request: Request) -> Response:
        """Keep the request.

        Raises:
            ModelError: Always: there is no answer.
        """
        self._models.asked = self._models.asked or (self._model, request)
        raise ModelError("bad_request", f"the model {self.name!r} is not asked, because only the prompt is wanted")

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """The same."""
        yield Done(await self.request(request))

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        """Nothing, so that no limit on costs keeps the request back."""
        return Cost(Decimal(0), "not asked")


def agentic(definition: ToolDefinition) -> AgenticImplementation:
    """What an agentic tool is made of.

    Raises:
        InvalidDefinition: The tool is of another kind.
    """
    implementation = definition.implementation
    if isinstance(implementation, AgenticImplementation):
        return implementation
    msg = f"tool {definition.name!r} is of kind {implementation.kind!r} and has no prompt; name an agentic one"
    raise InvalidDefinition(msg)


def prompt_of(definition: ToolDefinition) -> str:
    """The system prompt; empty for a revision that was no agentic tool."""
    implementation = definition.implementation
    return implementation.system_prompt if isinstance(implementation, AgenticImplementation) else ""


def difference(before: str, after: str, old: str = "current", new: str = "proposed") -> str:
    """A unified diff; empty if the texts are equal."""
    return "\n".join(unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm=""))


def _proposal(revision: ToolRevision, text: ProposedText, current: str, proposed: str, reason: str) -> TextProposal:
    return TextProposal(
        tool=revision.name,
        revision=revision.revision,
        text=text,
        source="generator",
        current=current,
        proposed=proposed,
        diff=difference(current, proposed),
        reason=reason,
        cost_usd=Decimal(0),
    )


def _prompt_problems(definition: ToolDefinition, written: str) -> Sequence[str]:
    try:
        check_prompt(definition.name, agentic(definition).model_copy(update={"system_prompt": written}))
    except InvalidDefinition as problem:
        return [str(problem)]
    return []


def _known_cost(result: Result) -> Decimal | None:
    """What a run cost; null where a part of it is unknown."""
    return None if result.summary.cost_unknown else result.cost_usd


def _make_prompt_test(facts: dict[str, Any], result: Result) -> PromptTest:
    output: Json = result.summary.output_or_partial
    found = cast("JsonObject", output) if isinstance(output, dict) else {}
    summary = result.summary
    failure = [summary.error.message] if summary.error else []
    return PromptTest(
        **facts,
        system_prompt=found.get("system_prompt"),
        answer=found.get("answer"),
        reasoning=found.get("reasoning"),
        calls=tuple(found.get("calls", ())),
        problems=(*found.get("problems", ()), *summary.warnings, *failure),
        usage=summary.usage,
        cost_usd=_known_cost(result),
        duration_ms=result.trace.duration_ms,
    )
