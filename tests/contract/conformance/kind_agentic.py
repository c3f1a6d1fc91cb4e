"""Tools with a model inside: what goes well or wrong is the model, because what its tools do is for it to judge."""

from collections.abc import Mapping

from tests.contract.conformance.kind import INPUT, NAME, Kind
from tests.contract.conformance.kind_python import acting
from tests.contract.conformance.world import Behaviour, Flaky, Mischief, Refused, Unreachable, World
from toolcrib import AllocatedTool, Crib, Limits, LLMConfig, ScriptedModel
from toolcrib.contracts import AgenticImplementation, JsonObject, ModelError, ToolDefinition
from toolcrib.llm import LanguageModel, Request


class AgenticKind(Kind):
    """An agent whose model says what the world says."""

    name = "agentic"
    prices_itself = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._model = ScriptedModel(self._answer)

    def models(self) -> Mapping[str, LanguageModel]:
        return {"scripted:world": self._model}

    async def furnish(self, crib: Crib) -> None:
        crib.add(acting(self.world, "inner"), acting(self.world, "inner_writing", side_effects="writes"))
        await crib.open()

    def definition(self) -> ToolDefinition:
        return self.limited(Limits())

    def hasty(self) -> JsonObject:
        return {"implementation": self.limited(Limits(timeout_s=0.05)).implementation}

    def writing(self) -> JsonObject:
        return {"implementation": self.limited(Limits(), "inner_writing").implementation}

    def said(self, output: JsonObject) -> str:
        return output["summary"]

    def limited(self, limits: Limits, inner: str = "inner") -> ToolDefinition:
        """The tool, with an inner one that it may call."""
        return ToolDefinition(
            name=NAME,
            input_schema=INPUT,
            side_effects="reads",
            implementation=AgenticImplementation(
                mode="agentic",
                llm=LLMConfig(model="scripted:world"),
                system_prompt="Act.",
                tools=(AllocatedTool(tool=inner),),
                limits=limits,
            ),
        )

    async def _answer(self, request: Request) -> str | ModelError:
        asked = request.messages[0].text
        behaviour = next((known for known in Behaviour if f'"{known.value}"' in asked), Behaviour.SUCCEED)
        try:
            return (await self.world.act(behaviour))["said"]
        except Mischief as mischief:
            return mischief.what  # pyright: ignore[reportReturnType] - an answer or a failure of a model
        except Flaky:
            return ModelError("quota", "the quota is used up")
        except Unreachable:
            return ModelError("connection", "nobody answers")
        except Refused:
            return ModelError("auth", "wrong key")
