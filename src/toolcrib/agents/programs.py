"""The programs of runs: a single tool call, agentic tools in both modes, and agents.

An agent answers `{"response": text}`, with `output` if its definition requires an object. If all of its tools are
gone, it does not begin. In agentic mode, the model chooses calls; the guard denies tools outside the allocation, and
the model sees the denial. In deterministic mode, one request fills in all steps, and the model reviews a step only if
a reference cannot be resolved or a call is invalid; nothing is written by a plan that does not match its schema.
"""

from collections.abc import Awaitable, Mapping, Sequence

import orjson
from msgspec import structs

from toolcrib.agents.history.variables import Recall
from toolcrib.agents.model.answer_checks import AnswerChecks, JournaledCheck
from toolcrib.agents.model.json_answers import (
    AnswerFormat,
    UnusableAnswer,
    ask_json,
    end_without_output,
    fitting_object,
    model_failure,
    read_object,
)
from toolcrib.agents.model.tool_calls import calls_in_short, preview
from toolcrib.agents.planner.caller_questions import UNANSWERED, Unanswered, end_with_question
from toolcrib.agents.planner.recorded_plans import RecordedPlan, plan_of
from toolcrib.agents.planner.step_results import StepRun, conclude, report, stop_reason_of, warnings_of
from toolcrib.agents.prepare.agent import AgentPreparer, Fragments, PreparedAgent
from toolcrib.agents.prepare.agentic_tool import Models, RunPreparer, Setup
from toolcrib.agents.reference.lists import References
from toolcrib.agents.turn.call_evidence import grounds_of
from toolcrib.agents.turn.turns import REFUSALS, Turns, end_cut_off, stop_warnings
from toolcrib.contracts import (
    AgenticImplementation,
    AgentImplementation,
    ErrorCode,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    ModelError,
    Reason,
    RunKind,
    ToolEnvelope,
    ToolRevision,
)
from toolcrib.contracts.workflows import SettledStep
from toolcrib.core.executor import CallFailed, CallRequest, error
from toolcrib.core.policy import Accounts
from toolcrib.core.registry import Providers, Registry
from toolcrib.core.runs import BudgetExhausted, Program, RunContext, RunEnd, end_of_failed_call
from toolcrib.llm import Message, Response, user
from toolcrib.llm.base.files import with_files

_FORMAT = "Give your final answer now: one JSON object that meets the schema, and nothing else."


class AgentProgram:
    """Runs agents.

    Args:
        preparer: Prepares runs.
        checks: Judge answers beyond their schema.
    """

    def __init__(self, preparer: AgentPreparer, checks: AnswerChecks) -> None:
        self._preparer = preparer
        self._checks = checks

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        agent = tool.definition.implementation
        if not isinstance(agent, AgentImplementation):
            msg = f"tool {tool.ref!r} is of kind {agent.kind!r}, not an agent"
            raise InvalidDefinition(msg)
        try:
            prepared = await self._preparer.prepare(context, tool, agent)
        except CallFailed as refusal:
            return RunEnd(status="failed", stop_reason="policy", error=refusal.error)
        if _names_tools(agent) and not prepared.offer.tools:
            return _no_tools(tool)
        return await Turns(_Reply(prepared, self._checks.of_run(context, tool)), prepared.found).run()


class _Reply:
    """The work of an agent: a message, and an answer."""

    def __init__(self, prepared: PreparedAgent, check: JournaledCheck) -> None:
        self._check = check
        self.model_client = prepared.model_client
        self.offer = prepared.offer
        self.opening = prepared.opening
        self.answer_schema = prepared.agent.answer_schema
        self._system = prepared.system

    def prompt(self, done: Sequence[ToolEnvelope]) -> str:
        """The same always."""
        del done
        return self._system

    def partial(self, turns: Turns) -> Json:
        """The last words and the calls with their results in short."""
        return {"response": turns.last_text, "calls": calls_in_short(turns.done)}

    async def end_with_answer(self, turns: Turns, response: Response) -> RunEnd:
        """The answer, or why there is none."""
        if response.stop in REFUSALS:
            return turns.end_refused(response)
        if self.answer_schema is not None:
            return await self._answer_as_object(turns, response, self.answer_schema)
        text, warnings = response.message.text, stop_warnings(response)
        if response.wants_format:
            text = _given_words(response) or await turns.final_words(response.message)
        if warnings:
            return end_cut_off({"response": text}, warnings)
        return RunEnd(output={"response": text}) if text.strip() else turns.nothing(response)

    async def _answer_as_object(self, turns: Turns, response: Response, schema: JsonSchema) -> RunEnd:
        text = response.message.text.strip()
        if not text and not response.wants_format:
            return turns.nothing(response)
        found = fitting_object(response.answer if response.wants_format else text, schema)
        problem = "" if found is None else await self._check("answer", found)
        if found is None or problem:
            question = f"That cannot be used: {problem}. {_FORMAT}" if problem else _FORMAT
            try:
                found = await turns.format_answer(response.message, question, schema, self._check)
            except UnusableAnswer as failure:
                partial = {"response": text, "calls": calls_in_short(turns.done)}
                return RunEnd(partial=partial, status="failed", stop_reason="error", error=model_failure(failure))
            if isinstance(read_object(text), dict):
                text = ""  # no words, but an object that has been put right since
        return RunEnd(output={"response": text or orjson.dumps(found).decode(), "output": found})


def _given_words(response: Response) -> str:
    """The answer that a model has given when it said that it was ready, in words; empty if it has given none."""
    given = orjson.loads(response.answer) if response.answer else ""
    return given.strip() if isinstance(given, str) else response.answer


def _names_tools(agent: AgentImplementation) -> bool:
    return bool(agent.tools or agent.tool_categories or agent.tool_tags or agent.delegates)


def _no_tools(tool: ToolRevision) -> RunEnd:
    message = f"agent {tool.ref!r} names tools, and none of them can be used; its journal says why each was left out"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return RunEnd(status="failed", stop_reason="no_tools", error=none)


_AGENTIC_FORMAT = "Give your final answer now: put it into the schema, truthfully, from the results above."


class AgenticProgram:
    """The program of an agentic tool in agentic mode.

    Args:
        preparer: Prepares runs.
        checks: Judge answers beyond their schema.
    """

    def __init__(self, preparer: RunPreparer, checks: AnswerChecks) -> None:
        self._preparer = preparer
        self._checks = checks

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        setup = await self._preparer.prepare(context, tool)
        if not setup.allotted:
            return _nothing_allocated(tool)
        work = _Task(setup, self._checks.of_run(context, tool))
        return await Turns(work, grounds=grounds_of(setup)).run()


class _Task:
    """The work of an agentic tool: a task, and an answer that is put into a schema."""

    def __init__(self, setup: Setup, check: JournaledCheck) -> None:
        self._check = check
        self.model_client = setup
        self.offer = setup.place.offer
        self.opening: tuple[Message, ...] = (with_files(user(setup.task), setup.context.request.files),)
        self.answer_schema: JsonSchema | None = None
        self._prompt = ""

    def prompt(self, done: Sequence[ToolEnvelope]) -> str:
        """The system prompt, with the history where it has a place for it: the messages have it anyway."""
        if self.model_client.place.shows_history:
            return self.model_client.system_prompt(_history(done))
        self._prompt = self._prompt or self.model_client.system_prompt()
        return self._prompt

    def partial(self, turns: Turns) -> Json:
        """The calls with their results in short."""
        return {"summary": turns.closing or None, "calls": calls_in_short(turns.done)}

    async def end_with_answer(self, turns: Turns, response: Response) -> RunEnd:
        """The answer as it is, or put into the result schema."""
        text, warnings = response.message.text, stop_warnings(response)
        schema = self.model_client.implementation.result_schema
        is_old = self.model_client.context.request.has_old_rules
        if response.stop in REFUSALS and not is_old:
            return structs.replace(turns.end_refused(response), partial=_so_far(text, turns))
        if warnings and not is_old:
            return end_cut_off(_so_far(text, turns), warnings)
        if response.wants_format and schema is None:
            text = _given_words(response) or await turns.final_words(response.message)
        if not text.strip() and not (response.wants_format and schema):
            return turns.nothing(response)
        if schema is None:
            return RunEnd(output={"summary": text}, warnings=warnings)
        found = fitting_object(response.answer or text, schema)
        problem = "" if found is None else await self._check("answer", found)
        if found is not None and not problem:
            return RunEnd(output=found, warnings=warnings)
        try:
            if response.wants_format:
                output = await turns.format_answer(response.message, _AGENTIC_FORMAT, schema, self._check)
            else:
                output = await self._format(turns.done, text, schema, problem)
        except (ModelError, UnusableAnswer, BudgetExhausted) as failure:
            warnings = (*warnings, f"the answer could not be formatted: {failure}")
            if not is_old:
                return end_without_output(_so_far(text, turns), failure, warnings)
            output = {"summary": text}
        return RunEnd(output=output, warnings=warnings)

    async def _format(self, done: Sequence[ToolEnvelope], text: str, schema: JsonSchema, problem: str) -> Json:
        facts = preview([{"tool": found.name, "output": found.output} for found in done if found.ok], 6000)
        question = (
            f"Task: {self.model_client.task}\n\nAnswer so far: {text}\n\nFacts: {facts}\n\n"
            "Put the answer into the schema."
        )
        question += f" What is wrong with the answer so far: {problem}." if problem else ""
        system = "You put an answer into the given schema, truthfully, from the text and the facts that you are given."
        reading = AnswerFormat(check=self._check)
        return await ask_json(
            self.model_client, "format", "formatting", question, schema, name="answer", system=system, reading=reading
        )


def _so_far(text: str, turns: Turns) -> JsonObject:
    """What a run has come to that ends without an answer."""
    return {"summary": text, "calls": calls_in_short(turns.done)}


def _history(done: Sequence[ToolEnvelope]) -> str:
    """The calls so far, one a line."""
    return "\n".join(
        f"{number}. {found.name}({preview(found.input, 300)}): "
        f"{found.error.message if found.error else preview(found.output, 300)}"
        for number, found in enumerate(done, start=1)
    )


def _nothing_allocated(tool: ToolRevision) -> RunEnd:
    message = f"agentic tool {tool.ref!r} has no tools to choose from; allot at least one that is in service"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return RunEnd(status="failed", stop_reason="no_tools", error=none)


class DeterministicProgram:
    """The program of a deterministic agentic tool.

    Args:
        preparer: Prepares runs.
    """

    def __init__(self, preparer: RunPreparer) -> None:
        self._preparer = preparer

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Run to the end; whatever goes wrong is an end too, with what was reached until then."""
        setup = await self._preparer.prepare(context, tool)
        return await _Sequence(setup).run() if setup.implementation.steps else _no_steps(tool)


class _Sequence:
    """One run."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._done: dict[str, SettledStep] = {}
        self._warnings: tuple[str, ...] = ()

    async def run(self) -> RunEnd:
        try:
            return await self._run()
        except Unanswered as question:
            return end_with_question(question.question, self._all_warnings, self._partial())
        except BudgetExhausted as limit:
            return limit.run_end({"steps": report(self._setup, self._done)}, self._all_warnings)
        except (ModelError, UnusableAnswer) as failure:
            return RunEnd(
                partial=self._partial(),
                status="failed",
                stop_reason="error",
                error=model_failure(failure),
                warnings=self._all_warnings,
            )

    async def _run(self) -> RunEnd:
        plan = await plan_of(self._setup)
        self._warnings = plan.warnings
        recorded = plan if isinstance(plan, RecordedPlan) else None
        if recorded is not None and recorded.question is not None:
            return RunEnd(output={"question": recorded.question}, warnings=(UNANSWERED,))
        self._setup.context.partial = self._partial
        for place, step in enumerate(self._setup.implementation.steps):
            left_out = recorded is not None and step.id in recorded.left_out
            stage = StepRun(
                self._setup, place, step.id, self._done, plan.assumptions, recorded is not None, left_out=left_out
            )
            ended = await stage.carry_out(plan.step(step.id))
            self._done[step.id] = ended
            if stop_reason_of(ended):
                break
        return await conclude(self._setup, self._done, self._warnings, "format", recorded=recorded is not None)

    @property
    def _all_warnings(self) -> tuple[str, ...]:
        return (*self._warnings, *warnings_of(self._done))

    def _partial(self) -> JsonObject | None:
        """What the steps have brought, if there is any."""
        facts = report(self._setup, self._done)
        return {"steps": facts} if facts else None


def _no_steps(tool: ToolRevision) -> RunEnd:
    message = f"agentic tool {tool.ref!r} has no steps; allot at least one tool"
    none = error(ErrorCode.POLICY_DENIED, Reason.TOOL_NOT_ALLOWED, message)
    return RunEnd(status="failed", stop_reason="no_tools", error=none)


CALL = "call"
"""Position of the only call of a run of kind `tool`."""


def programs(
    models: Models,
    registry: Registry,
    providers: Providers,
    references: References,
    *,
    fragments: Fragments,
    accounts: Accounts,
    recall: Recall,
    checks: AnswerChecks | None = None,
) -> Mapping[RunKind, Program]:
    """The program of every kind of run.

    Args:
        models: Opens the model that a configuration names.
        registry: Finds the tools that models are allotted.
        providers: Has the lists that prompts were made from.
        references: Reads reference data.
        fragments: Finds the pieces of agents' prompts.
        accounts: Finds the service accounts that agents act as.
        recall: Remembers agents' conversations.
        checks: Judge answers beyond their schema.
    """
    checks = checks or AnswerChecks()
    preparer = RunPreparer(models, registry, providers, references)
    agents = AgentPreparer(models, registry, fragments=fragments, accounts=accounts, recall=recall)
    deterministic, agentic = DeterministicProgram(preparer), AgenticProgram(preparer, checks)

    def run_agentic(context: RunContext, tool: ToolRevision) -> Awaitable[RunEnd]:
        implementation = tool.definition.implementation
        fixed = isinstance(implementation, AgenticImplementation) and implementation.mode == "deterministic"
        return (deterministic if fixed else agentic)(context, tool)

    return {"tool": call_once, "agentic": run_agentic, "agent": AgentProgram(agents, checks)}


async def call_once(context: RunContext, tool: ToolRevision) -> RunEnd:
    """One call of one tool; its envelope is the run's end."""
    scope = f"{context.run_id}/" if context.request.has_own_call_id else ""
    envelope = await context.make(CallRequest(CALL, tool.name, context.request.input, tool.content_hash, scope=scope))
    if envelope.error is None:
        return RunEnd(output=envelope.output, attachments=envelope.attachments)
    return end_of_failed_call(envelope)
