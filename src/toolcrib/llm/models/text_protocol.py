"""Any model as one that has no tool calling: it writes its calls as text, and its caller sees native ones.

Also the scripted twin can be wrapped, which then plays the text of a model. A `Model` whose endpoint calls tools by
text does the same by itself.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime

from toolcrib.contracts import OnMalformed
from toolcrib.llm.base.events import Event
from toolcrib.llm.base.messages import Request, Response, Usage
from toolcrib.llm.base.prices import Cost
from toolcrib.llm.base.quirks import Quirks
from toolcrib.llm.models.model import LanguageModel
from toolcrib.llm.text import TextTools


class TextProtocol:
    """A model that is offered its tools as text.

    Args:
        model: The model; it is never sent a tool or a schema.
        on_malformed: What becomes of an answer with a malformed block: `refuse` runs none of its calls, `skip` all
            the others.
    """

    def __init__(self, model: LanguageModel, on_malformed: OnMalformed = "refuse") -> None:
        self.name = model.name
        self._model = model
        self._quirks = Quirks(tool_calling="text", structured="prompt", on_malformed=on_malformed)

    def __repr__(self) -> str:
        return f"TextProtocol({self._model!r})"

    async def request(self, request: Request) -> Response:
        """See `LanguageModel.request`."""
        tools = TextTools(request, self._quirks)
        return tools.response(await self._model.request(tools.request))

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        """See `LanguageModel.stream`."""
        tools = TextTools(request, self._quirks)
        async with aclosing(self._model.stream(tools.request)) as events:
            async for event in events:
                for shown in tools.read((event,)):
                    yield shown

    def cost(self, usage: Usage, at: datetime) -> Cost:
        """See `LanguageModel.cost`."""
        return self._model.cost(usage, at)
