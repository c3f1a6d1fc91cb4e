"""Authoring of agentic tools: their definition, texts written by their model, and tests of their prompt.

Texts and tests are programs within a run's budget. A text of a model follows the same rules as one of a person, and
the model gets one correction. A prompt test calls no tool that the model asks for; a prompt that would fail is its
result, not an exception.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeAlias, cast

import orjson

from toolcrib.agents.model.json_answers import UnusableAnswer, model_failure, read_object
from toolcrib.agents.prepare.agentic_tool import Models, RunPreparer, Setup
from toolcrib.agents.toolset.allocation import allocation, meant
from toolcrib.agents.toolset.default_prompt import default_prompt, reference_names
from toolcrib.agents.toolset.placeholders import check_prompt, placeholder_texts
from toolcrib.contracts import (
    AgenticContext,
    AgenticImplementation,
    AgenticMode,
    AgenticStep,
    AllocatedTool,
    Grounding,
    InvalidDefinition,
    Json,
    JsonObject,
    JsonSchema,
    Limits,
    LLMConfig,
    ModelError,
    SideEffects,
    ToolDefinition,
    ToolRevision,
    TrialCall,
)
from toolcrib.core.registry import DefinitionFaults, Registry, compile_schema
from toolcrib.core.runs import BudgetExhausted, ModelCall, RunContext, RunEnd
from toolcrib.llm import LanguageModel, Message, Request, ToolCall, user

TASK_INPUT: JsonSchema = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What to do, in plain words.", "minLength": 1}},
    "required": ["task"],
    "additionalProperties": False,
}

_MOST_FIRST: tuple[SideEffects, ...] = ("writes", "reads")
_LEAST_TOKENS, _MOST_TOKENS = 1000, 8000
_NOT_IDENTIFIER = re.compile(r"\W+")
_RESERVED = frozenset({"format", "input", "item", "plan", "question", "reading", "reasoning", "reference"})
"""Names that the plan, references in it and positions in the journal use themselves."""


def agentic_definition(
    name: str,
    *,
    mode: AgenticMode,
    llm: LLMConfig,
    steps: Sequence[str | AgenticStep] = (),
    tools: Sequence[str | AllocatedTool] = (),
    description: str = "",
    system_prompt: str | None = None,
    context: AgenticContext | None = None,
    limits: Limits | None = None,
    input_schema: JsonSchema | None = None,
    result_schema: JsonSchema | None = None,
    grounding: Grounding = "evidence",
    preview_above: int = 500,
    version: str = "1.0.0",
) -> ToolDefinition:
    """The definition of an agentic tool, with defaults where nothing is given.

    Args:
        name: The tool's name.
        mode: `deterministic` uses `steps` in their order; `agentic` lets the model choose among `tools`.
        llm: The embedded model.
        steps: Tools of the fixed sequence, as references or with ids and purposes.
        tools: Tools to choose from, as references or with priorities.
        description: What a parent agent reads.
        system_prompt: A template; the default one for all this if null.
        context: Reference data, documentation.
        limits: What a run may spend.
        input_schema: Parameters; one `task` if null.
        result_schema: Shape of the answer; `{"summary": text}` if null.
        grounding: How sure one must be of what the model takes from a task.
        preview_above: A change of more items than this waits for a person.
        version: Semantic version.

    Raises:
        InvalidDefinition: A placeholder is unknown, `max_tokens` is out of range, a step's id stands twice, or there is
            only what the other mode works with.
    """
    implementation = AgenticImplementation(
        mode=mode,
        llm=llm,
        system_prompt=system_prompt or "",
        steps=_steps(steps),
        tools=tuple(item if isinstance(item, AllocatedTool) else AllocatedTool(tool=item) for item in tools),
        context=context or AgenticContext(),
        limits=limits or Limits(),
        result_schema=result_schema,
        grounding=grounding,
        preview_above=preview_above,
    )
    if not system_prompt:
        written = default_prompt(implementation, purpose=description)
        implementation = implementation.model_copy(update={"system_prompt": written})
    _faults_alone(name, implementation, input_schema or TASK_INPUT).tell()
    fields: dict[str, Any] = {"input_schema": input_schema or TASK_INPUT, "description": description}
    return ToolDefinition(name=name, version=version, category="agentic", implementation=implementation, **fields)


def check_agentic(definition: ToolDefinition, registry: Registry, realm: str) -> ToolDefinition:
    """Hold an agentic definition against the catalogue, and derive what follows from its parts.

    Its side effects are the most that its tools have. Its time-out as a call is that of its runs and one second more,
    so that a nested run ends itself before the call is cut off.

    Raises:
        InvalidDefinition: A placeholder is unknown or need not have a value, `max_tokens` is out of range, a step's id
            stands twice, the tool is allotted to itself, there is nothing that its mode works with and it is no draft,
            or the result schema is none. Several problems are told together.
        NotFound: Only an allotted tool, or one that lists reference data, does not exist.
    """
    implementation = definition.implementation
    if not isinstance(implementation, AgenticImplementation):
        return definition
    name = definition.name
    found = _faults_alone(name, implementation, definition.input_schema)
    if not (implementation.steps or implementation.tools) and implementation.status == "active":
        wanted = _work_field(implementation)
        problem = f"mode {implementation.mode!r} needs {wanted[1:]}"
        found.add(wanted, f"{problem}; name at least one, or save it with status 'draft'")
    found.attempt(lambda: _check_lists(name, implementation, registry, realm), None, "/context/reference_data")
    tools: list[ToolRevision] = []
    for share in allocation(implementation):
        if share.ref.partition("@")[0] != name:
            tools += found.attempt(
                partial(meant, share, registry, realm, name), (), _place_of(share.ref, implementation)
            )
    found.tell()
    effects = {tool.definition.side_effects for tool in tools}
    return definition.model_copy(
        update={
            "side_effects": next((most for most in _MOST_FIRST if most in effects), "none"),
            "timeout_s": implementation.limits.call_timeout_s,
        }
    )


def _faults_alone(name: str, implementation: AgenticImplementation, input_schema: JsonSchema) -> DefinitionFaults:
    """What can be said without a catalogue."""
    found = DefinitionFaults(f"agentic tool {name!r}")
    found.attempt(lambda: _check_mode(name, implementation), None, _work_field(implementation))
    for share in allocation(implementation):
        if share.ref.partition("@")[0] == name:
            found.add(_place_of(share.ref, implementation), "it is allotted to itself; take it out of its own tools")
    found.attempt(lambda: check_prompt(name, implementation, input_schema), None, "/system_prompt")
    found.attempt(lambda: _check_steps(name, implementation), None, "/steps")
    found.attempt(lambda: _check_result(name, implementation), None, "/result_schema")
    found.attempt(lambda: _check_tokens(name, implementation), None, "/llm/max_tokens")
    return found


def _work_field(implementation: AgenticImplementation) -> str:
    """Where what the tool works with stands in its definition."""
    return "/steps" if implementation.mode == "deterministic" else "/tools"


def _place_of(ref: str, implementation: AgenticImplementation) -> str:
    """Where a reference to a tool stands in the definition."""
    shares = implementation.steps if implementation.mode == "deterministic" else implementation.tools
    places = (place for place, share in enumerate(shares) if share.tool == ref)
    return f"{_work_field(implementation)}/{next(places)}/tool"


def _check_tokens(name: str, implementation: AgenticImplementation) -> None:
    tokens = implementation.llm.max_tokens
    if tokens is not None and not _LEAST_TOKENS <= tokens <= _MOST_TOKENS:
        msg = f"agentic tool {name!r}: max_tokens is {tokens}; it must be {_LEAST_TOKENS} to {_MOST_TOKENS}"
        raise InvalidDefinition(msg)


def _steps(steps: Sequence[str | AgenticStep]) -> tuple[AgenticStep, ...]:
    made: list[AgenticStep] = []
    for step in steps:
        if isinstance(step, AgenticStep):
            made.append(step)
            continue
        base = _NOT_IDENTIFIER.sub("_", step.partition("@")[0])
        ids_in_use = {other.id for other in made}
        ids = (f"{base}_{number}" if number > 1 else base for number in count(1))
        made.append(AgenticStep(id=next(free for free in ids if free not in ids_in_use), tool=step))
    return tuple(made)


def _check_mode(name: str, implementation: AgenticImplementation) -> None:
    """Refuse what the other mode needs where there is nothing of what this one needs: it was a slip."""
    steps, tools = (implementation.steps, "steps"), (implementation.tools, "tools")
    (own, wanted), (other, given) = (steps, tools) if implementation.mode == "deterministic" else (tools, steps)
    if other and not own:
        msg = f"agentic tool {name!r}: mode {implementation.mode!r} works with {wanted}, and there are only {given}"
        raise InvalidDefinition(f"{msg}; name them in {wanted}, or take the other mode")


def _check_steps(name: str, implementation: AgenticImplementation) -> None:
    ids = [step.id for step in implementation.steps]
    for place, step in enumerate(ids):
        if step in ids[:place] or step in _RESERVED:
            msg = f"agentic tool {name!r}: step id {step!r} is taken; give every step an id of its own"
            raise InvalidDefinition(msg)


def _check_lists(name: str, implementation: AgenticImplementation, registry: Registry, realm: str) -> None:
    names = reference_names(implementation)
    if len(set(names)) < len(names):
        msg = f"agentic tool {name!r}: two lists of reference data have one name; rename one of {', '.join(names)}"
        raise InvalidDefinition(msg)
    for source in implementation.context.reference_data:
        if source.tool is None:
            continue
        if isinstance(registry.require(realm, source.tool).definition.implementation, AgenticImplementation):
            msg = f"agentic tool {name!r}: reference data {source.name!r} is listed by a model; name a tool without one"
            raise InvalidDefinition(msg)


def _check_result(name: str, implementation: AgenticImplementation) -> None:
    if implementation.result_schema is None:
        return
    try:
        compile_schema(implementation.result_schema)
    except InvalidDefinition as problem:
        msg = f"agentic tool {name!r}: result_schema is not a JSON Schema 2020-12 that can be used offline: {problem}"
        raise InvalidDefinition(msg) from problem


Check: TypeAlias = Callable[[str], Sequence[str]]
"""What is wrong with a text; empty if nothing is."""

_REPAIRS = 1
_SYSTEM = "You write texts for tools that are used by AI agents: plain, exact and short. You never invent abilities."
_ANSWER: JsonSchema = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "One sentence: what the new text does better."},
        "text": {"type": "string", "description": "The whole new text."},
    },
    "required": ["reason", "text"],
    "additionalProperties": False,
}


class TextProgram:
    """The program that has a text written; its output is `{"text", "reason"}`.

    Args:
        models: Opens the tool's model.
        task: What is to be written, with the text to start from.
        check: Rules of the text.
    """

    def __init__(self, models: Models, task: str, check: Check) -> None:
        self._models = models
        self._task = task
        self._check = check

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Ask, and ask again with the problems named."""
        implementation = tool.definition.implementation
        if not isinstance(implementation, AgenticImplementation):
            msg = f"tool {tool.ref!r} is of kind {implementation.kind!r} and has no model to write with"
            raise InvalidDefinition(msg)
        try:
            return RunEnd(output=await self._write(context, tool.definition, self._models(implementation.llm)))
        except BudgetExhausted as limit:
            return limit.run_end()
        except (ModelError, UnusableAnswer) as failure:
            return RunEnd(status="failed", stop_reason="error", error=model_failure(failure))

    async def _write(self, context: RunContext, definition: ToolDefinition, model: LanguageModel) -> JsonObject:
        question = f"{self._task}\n\nThe tool:\n{facts_of(definition)}"
        messages: tuple[Message, ...] = (user(question),)
        new, problem = messages, ""
        for attempt in range(_REPAIRS + 1):
            request = Request(messages=messages, system=_SYSTEM, output_schema=_ANSWER, output_name="text")
            position = "draft" if attempt == 0 else f"draft.fix{attempt}"
            call = ModelCall(position, "formatting", model, request, new=new, system=_SYSTEM)
            response = await context.model(call)
            found = read_object(response.message.text)
            problem = self._problem(found)
            if not problem:
                return cast("JsonObject", found)
            new = (user(f"That cannot be used: {problem}. Answer again with the whole corrected JSON object only."),)
            messages = (*messages, response.message, *new)
        msg = f"the model {model.name!r} wrote no usable text after {_REPAIRS + 1} answers: {problem}"
        raise UnusableAnswer(msg)

    def _problem(self, found: Json) -> str:
        text = cast("JsonObject", found).get("text") if isinstance(found, dict) else None
        if not isinstance(text, str) or not text.strip():
            return "the answer is not one JSON object with a text"
        return "; ".join(self._check(text))


def facts_of(definition: ToolDefinition) -> str:
    """A definition as JSON, without what a writer of texts does not need."""
    body = definition.model_dump(mode="json", exclude_defaults=True)
    implementation = body["implementation"]
    kept = {
        key: implementation[key]
        for key in ("mode", "steps", "tools", "context", "result_schema")
        if key in implementation
    }
    wanted = ("name", "title", "description", "usage", "input_schema", "output_schema", "side_effects")
    facts = {key: body[key] for key in wanted if key in body}
    return orjson.dumps({**facts, **kept}).decode()


class PromptTestProgram:
    """The program of a prompt's test.

    Args:
        preparer: Prepares runs.
    """

    def __init__(self, preparer: RunPreparer) -> None:
        self._preparer = preparer

    async def __call__(self, context: RunContext, tool: ToolRevision) -> RunEnd:
        """Ask for the plan, or for the first turn."""
        setup = await self._preparer.prepare(context, tool)
        values = placeholder_texts(setup.implementation, setup.place.scope)
        found: JsonObject = {"system_prompt": setup.system_prompt(), "values": values, "calls": [], "problems": []}
        try:
            found |= await (self._plan(setup) if setup.implementation.mode == "deterministic" else self._turn(setup))
        except BudgetExhausted as limit:
            return limit.run_end(found)
        except (ModelError, UnusableAnswer) as failure:
            return RunEnd(partial=found, status="failed", stop_reason="error", error=model_failure(failure))
        return RunEnd(output=found)

    async def _plan(self, setup: Setup) -> JsonObject:
        from toolcrib.agents.evidence.plan_schema import StepPlan  # noqa: PLC0415 - a server starts without planning
        from toolcrib.agents.planner.planning import first_plan  # noqa: PLC0415

        plan, doubts = await first_plan(setup)
        calls: list[JsonObject] = []
        for step in setup.implementation.steps:
            wanted = StepPlan.read(plan[step.id])
            call = TrialCall(
                step=step.id, tool=step.tool, input=wanted.input, skipped=wanted.skip, for_each=wanted.for_each
            )
            calls.append(call.model_dump(mode="json"))
        return {"answer": plan, "reasoning": plan.get("reasoning"), "calls": calls, "problems": doubts}

    async def _turn(self, setup: Setup) -> JsonObject:
        messages, system = (user(setup.task),), setup.system_prompt()
        request = setup.request(messages, system=system, tools=setup.place.offer.tools)
        response = await setup.context.model(
            setup.call("t1.llm", "tool_selection", request, new=messages, system=system)
        )
        judged = [_trial_call(setup, call) for call in response.message.calls]
        return {
            "answer": response.message.text or None,
            "calls": [call.model_dump(mode="json") for call, _ in judged],
            "problems": [problem for _, problem in judged if problem],
        }


def _trial_call(setup: Setup, call: ToolCall) -> tuple[TrialCall, str]:
    """A call that the model wants, and what is wrong with it."""
    name = setup.place.offer.real_name(call.name)
    item = next((allotted for allotted in setup.allotted if allotted.tool.name == name), None)
    try:
        arguments: Json = orjson.loads(call.args or "{}")
    except orjson.JSONDecodeError:
        return TrialCall(tool=name, input=call.args), f"the arguments of {name!r} are not JSON"
    if item is None:
        return TrialCall(tool=name, input=arguments), f"the model called {name!r}, which is not among its tools"
    problems = "; ".join(map(str, compile_schema(item.schema).problems(arguments)))
    wanted = TrialCall(tool=name, input=arguments)
    return wanted, f"the arguments of {name!r} do not fit: {problems}" if problems else ""
