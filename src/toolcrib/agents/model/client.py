"""The model client of a run: its configuration, and requests within the run's budget."""

import msgspec
from msgspec import Struct

from toolcrib.contracts import JsonSchema, LLMConfig, Purpose
from toolcrib.core.runs import ModelCall, RunContext
from toolcrib.llm import NO_TOOLS, Message, Reasoning, Request, ToolChoice, ToolSet
from toolcrib.llm.models.model import LanguageModel


class ModelClient(Struct, frozen=True, kw_only=True):
    """Where the model of one run is asked."""

    context: RunContext
    model: LanguageModel
    llm: LLMConfig
    parallel: bool = True
    """Whether the model may call several tools in one answer."""
    blank: list[Request] = []
    """The request with what the configuration says, once there was one."""

    def request(
        self,
        messages: tuple[Message, ...],
        *,
        system: str,
        tools: ToolSet = NO_TOOLS,
        tool_choice: ToolChoice = "auto",
        output_schema: JsonSchema | None = None,
        output_name: str = "answer",
    ) -> Request:
        """A model request with the configuration."""
        return msgspec.structs.replace(
            self.blank[0] if self.blank else self._add_blank(),
            messages=messages,
            system=system,
            tools=tools,
            tool_choice=tool_choice,
            output_schema=output_schema,
            output_name=output_name,
        )

    def _add_blank(self) -> Request:
        llm = self.llm
        blank = Request(
            messages=(),
            parallel_tool_calls=self.parallel,
            max_tokens=llm.max_tokens or self.context.budget.limits.max_tokens_per_call,
            temperature=llm.temperature,
            top_p=llm.top_p,
            frequency_penalty=llm.frequency_penalty,
            presence_penalty=llm.presence_penalty,
            reasoning=Reasoning(llm.reasoning_effort) if llm.reasoning_effort else None,
            prompt_cache=llm.prompt_cache,
            extra=llm.extra,
        )
        self.blank.append(blank)
        return blank

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
        """A model call of this run.

        Args:
            position: Where it stands in the journal.
            purpose: Why the model is asked.
            request: What it is asked.
            new: Messages that stand nowhere else in the journal.
            system: System prompt, if it stands nowhere else in the journal.
            tools: Digest of the blob with the offered tools.
        """
        return ModelCall(position, purpose, self.model, request, new=new, system=system, tools=tools)
