"""One call for a model, some tools and two prompts, for a program that defines no agent.

It makes a temporary agent: its run is journaled, and each call goes through the executor.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from hashlib import sha256
from typing import Any, TypeVar, overload

from toolcrib.contracts import (
    InvalidInput,
    Json,
    JsonObject,
    JsonSchema,
    Limits,
    LLMConfig,
    OnMalformed,
    Principal,
    canonical,
)
from toolcrib.core.runs import Result
from toolcrib.crib.api.definitions import Usable, reference_of
from toolcrib.crib.api.output_types import OutputType
from toolcrib.crib.crib import Crib
from toolcrib.llm import LanguageModel

OutputT = TypeVar("OutputT")


@overload
async def use_tools_with_ai(
    model: str | LLMConfig | LanguageModel,
    tools: Sequence[Usable],
    system_prompt: str,
    user_prompt: str,
    *,
    output_type: type[OutputT],
    limits: Limits | None = None,
    on_malformed: OnMalformed = "refuse",
    crib: Crib | None = None,
    principal: Principal | None = None,
) -> Result[OutputT]: ...


@overload
async def use_tools_with_ai(
    model: str | LLMConfig | LanguageModel,
    tools: Sequence[Usable],
    system_prompt: str,
    user_prompt: str,
    *,
    response_format: JsonSchema,
    limits: Limits | None = None,
    on_malformed: OnMalformed = "refuse",
    crib: Crib | None = None,
    principal: Principal | None = None,
) -> Result[JsonObject]: ...


@overload
async def use_tools_with_ai(
    model: str | LLMConfig | LanguageModel,
    tools: Sequence[Usable],
    system_prompt: str,
    user_prompt: str,
    *,
    limits: Limits | None = None,
    on_malformed: OnMalformed = "refuse",
    crib: Crib | None = None,
    principal: Principal | None = None,
) -> Result[str]: ...


@overload
async def use_tools_with_ai(
    model: str | LLMConfig | LanguageModel,
    tools: Sequence[Usable],
    system_prompt: str,
    user_prompt: str,
    *,
    output_type: object,
    limits: Limits | None = None,
    on_malformed: OnMalformed = "refuse",
    crib: Crib | None = None,
    principal: Principal | None = None,
) -> Result[Any]: ...


async def use_tools_with_ai(
    model: str | LLMConfig | LanguageModel,
    tools: Sequence[Usable],
    system_prompt: str,
    user_prompt: str,
    *,
    output_type: object | None = None,
    response_format: JsonSchema | None = None,
    limits: Limits | None = None,
    on_malformed: OnMalformed = "refuse",
    crib: Crib | None = None,
    principal: Principal | None = None,
) -> Result[Any]:
    r"""Let a model use tools by the text protocol until it has answered.

    Args:
        model: `provider:model`, a whole configuration, or a model itself, which needs a crib of its own.
        tools: What it may call. Those that the crib does not have are added to it.
        system_prompt: The system prompt, before the tools; the same in every request.
        user_prompt: The task.
        output_type: Type of the final answer, as of `Crib.agent`; text if null.
        response_format: JSON Schema of the final answer, an object, instead of a type.
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
        print(used.output, used.cost_usd)
    """
    async with AsyncExitStack() as stack:
        llm, given = _configure_model(model, on_malformed)
        if crib is None:
            crib = await stack.enter_async_context(Crib("memory://", models=given))
        elif given:
            msg = f"the crib must know the model {llm.model!r} itself: Crib(models={{{llm.model!r}: …}})"
            raise InvalidInput(msg)
        names = [reference_of(one, crib.add) for one in tools]
        name = _name(llm, names, system_prompt, response_format or _schema(output_type), limits)
        handle = crib.define_agent(
            name,
            llm,
            names,
            {"system_prompt": system_prompt},
            output_type=output_type,
            response_schema=response_format,
            limits=limits,
        )
        acting = crib if principal is None else crib.acting_as(principal)
        return handle.read(await acting.invoke(handle.definition.name, {"message": user_prompt}))


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


def _schema(output_type: object | None) -> JsonSchema | None:
    return None if output_type in (None, str) else OutputType("the answer", output_type).schema


def _name(llm: LLMConfig, tools: Sequence[str], prompt: str, schema: JsonSchema | None, limits: Limits | None) -> str:
    """A name that is the same for the same agent, so that it is saved once."""
    settings = [llm, limits or Limits()]
    parts: Json = [*(one.model_dump(mode="json") for one in settings), list(tools), prompt, schema]
    return f"tool-use-{sha256(canonical(parts)).hexdigest()[:12]}"
