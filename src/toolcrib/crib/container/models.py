"""The model that a tool is defined with in code, and the one that a run asks in its place."""

from toolcrib.contracts import AgenticImplementation, AgentImplementation, InvalidSettings, LLMConfig, ToolRevision
from toolcrib.core.runs import Ended, Program, RunContext
from toolcrib.llm import ModelPool


def llm_of(
    tool: str, model: str | LLMConfig | None, base_url: str | None, *, default: LLMConfig | None, models: ModelPool
) -> LLMConfig:
    """The configuration of a tool's model; its address was named in code, so it is trusted.

    Args:
        tool: The tool's name, for the message.
        model: `provider:model`, or a whole configuration.
        base_url: Address of the model's server, beside `provider:model`.
        default: What is taken if no model is named.
        models: Checks it, and is told to trust its address.

    Raises:
        InvalidSettings: The reference is malformed, its provider unknown, or there is none.
    """
    llm = LLMConfig(model=model, base_url=base_url) if isinstance(model, str) else model or default
    if llm is None:
        msg = f"{tool!r} has no model; name one, or set TOOLCRIB_MODEL and use Crib.from_settings()"
        raise InvalidSettings(msg)
    if llm.base_url is not None:
        models.trust(llm.base_url)
    models.check(llm)
    return llm


def asking(program: Program) -> Program:
    """A program that asks the model of its run's request, where it names one, instead of the definition's."""

    async def run(context: RunContext, tool: ToolRevision) -> Ended:
        model = context.request.model
        return await program(context, tool if model is None else _with_model(tool, model))

    return run


def _with_model(tool: ToolRevision, model: str) -> ToolRevision:
    """The revision with another model."""
    implementation = tool.definition.implementation
    if not isinstance(implementation, AgentImplementation | AgenticImplementation):
        return tool
    inside = implementation.model_copy(update={"llm": implementation.llm.asking(model)})
    return tool.model_copy(update={"definition": tool.definition.model_copy(update={"implementation": inside})})
