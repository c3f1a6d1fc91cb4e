"""Agents, which are tools to whoever calls them: what goes well or wrong is the model here too."""

from tests.contract.conformance.kind import INPUT, NAME
from tests.contract.conformance.kind_agentic import AgenticKind
from toolcrib import AllocatedTool, Limits, LLMConfig
from toolcrib.contracts import AgentDefinition, JsonObject, JsonSchema, ToolDefinition

_INPUT: JsonSchema = {**INPUT, "properties": {**INPUT["properties"], "message": {"type": "string"}}}


class AgentKind(AgenticKind):
    """An agent whose model says what the world says; what is to happen is a parameter beside the message."""

    name = "agent"

    def said(self, output: JsonObject) -> str:
        return output["response"]

    def limited(self, limits: Limits, inner: str = "inner") -> ToolDefinition:
        agent = AgentDefinition(
            name=NAME,
            category="utility",
            input_schema=_INPUT,
            llm=LLMConfig(model="scripted:world"),
            tools=(AllocatedTool(tool=inner),),
            limits=limits,
            side_effects="reads" if inner == "inner" else "writes",
        )
        return agent.tool()
