"""The model that an agentic tool is defined with in code."""

from toolcrib.contracts import InvalidSettings, LLMConfig
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
        msg = f"agentic tool {tool!r} has no model; name one, or set TOOLCRIB_MODEL and use Crib.from_settings()"
        raise InvalidSettings(msg)
    if llm.base_url is not None:
        models.trust(llm.base_url)
    models.check(llm)
    return llm
