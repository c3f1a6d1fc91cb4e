"""One call for a model, some tools and two prompts, for a program that defines no agent.

It makes a temporary agent: its run is journaled, and each call goes through the executor.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

from toolcrib.contracts import InvalidInput, Json, JsonSchema, Limits, LLMConfig, OnMalformed, Principal, canonical
from toolcrib.core.runs import Result
from toolcrib.crib.api.definitions import AgentOptions, Usable, reference_of
from toolcrib.crib.crib import Crib
from toolcrib.llm import LanguageModel


@dataclass(frozen=True)
class ToolUse:
    """What a model came to with its tools.

    Example:
        used = await use_tools_with_ai(
            "anthropic:claude-sonnet-4", [search_deals], "You are brief.", "Which deals has Acme?", crib=crib
        )
        print(used.output, used.run.cost_usd)
    """

    output: Json
    """The object that meets the response format, or the answer's text if there is none; null if the run did not end
    with an answer."""
    run: Result
    """The run: how it ended, its calls, its cost, its trace."""


async def use_tools_with_ai(
    model: str | LLMConfig | LanguageModel,
    tools: Sequence[Usable],
    system_prompt: str,
    user_prompt: str,
    *,
    response_format: JsonSchema | None = None,
    limits: Limits | None = None,
    on_malformed: OnMalformed = "refuse",
    crib: Crib | None = None,
    principal: Principal | None = None,
) -> ToolUse:
    r"""Let a model use tools by the text protocol until it has answered.

    Args:
        model: `provider:model`, a whole configuration, or a model itself, which needs a crib of its own.
        tools: What it may call. Those that the crib does not have are added to it.
        system_prompt: The system prompt, before the tools; the same in every request.
        user_prompt: The task.
        response_format: JSON Schema of the final answer, an object; null for text.
        limits: What the run may spend.
        on_malformed: What becomes of an answer with a malformed call: `refuse` makes none of its calls, `skip` all
            the others.
        crib: Where the run takes place; one in memory that ends with it if null.
        principal: The principal that acts; the crib's own if null.

    Raises:
        InvalidInput: A model itself was given together with a crib.
        InvalidDefinition: A tool, the schema or the limits are not well formed.
        InvalidSettings: The model cannot be opened.
        NotFound: There is no tool of such a name.

    Example:
        model = ScriptedModel(["```tool\nreturn search_deals('Acme');\n```", "Acme has two deals."])
        used = await use_tools_with_ai(model, [search_deals], "You are brief.", "Which deals has Acme?")
        print(used.output)
    """
    async with AsyncExitStack() as stack:
        llm, given = _configure_model(model, on_malformed)
        if crib is None:
            crib = await stack.enter_async_context(Crib("memory://", models=given))
        elif given:
            msg = f"the crib must know the model {llm.model!r} itself: Crib(models={{{llm.model!r}: …}})"
            raise InvalidInput(msg)
        names = [reference_of(one, crib.add) for one in tools]
        agent = crib.agent(
            _name(llm, names, system_prompt, response_format, limits),
            model=llm,
            tools=names,
            limits=limits,
            **_options(system_prompt, response_format),
        )
        acting = crib if principal is None else crib.acting_as(principal)
        run = await acting.invoke(agent.definition.name, {"message": user_prompt})
        return ToolUse(_output(run, "response" if response_format is None else "output"), run)


def _configure_model(
    model: str | LLMConfig | LanguageModel, on_malformed: OnMalformed
) -> tuple[LLMConfig, dict[str, LanguageModel]]:
    """The configuration, and the model by its name if it is given itself."""
    given: dict[str, LanguageModel] = {}
    if isinstance(model, str):
        model = LLMConfig(model=model)
    elif not isinstance(model, LLMConfig):
        given[model.name] = model
        model = LLMConfig(model=model.name)
    return model.model_copy(update={"tool_calling": "text", "on_malformed": on_malformed}), given


def _options(system_prompt: str, response_format: JsonSchema | None) -> AgentOptions:
    options: AgentOptions = {"system_prompt": system_prompt}
    if response_format is not None:
        options["response_schema"] = response_format
    return options


def _name(llm: LLMConfig, tools: Sequence[str], prompt: str, schema: JsonSchema | None, limits: Limits | None) -> str:
    """A name that is the same for the same agent, so that it is saved once."""
    settings = [llm, limits or Limits()]
    parts: Json = [*(one.model_dump(mode="json") for one in settings), list(tools), prompt, schema]
    return f"tool-use-{sha256(canonical(parts)).hexdigest()[:12]}"


def _output(run: Result, name: str) -> Json:
    output = run.output
    is_answer = run.ok and run.summary.stop_reason == "final_answer" and isinstance(output, dict)
    return cast("dict[str, Json]", output).get(name) if is_answer else None
