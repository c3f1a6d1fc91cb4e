"""A server on a port with an agent whose model is scripted, and OpenAI's clients for it."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2
from openai import AsyncOpenAI

from tests.unit.executions.house import MODEL, Desk, agent
from tests.unit.mcp_server.served import on_a_port
from tests.unit.server.client import Server, authenticate
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import ModelError, ToolDefinition
from toolcrib.interfaces.server import create_app
from toolcrib.llm import LanguageModel, Message

PROMPT = "You are the clerk."


@dataclass(frozen=True)
class Endpoint:
    """What a test works with."""

    server: Server
    model: ScriptedModel
    desk: Desk
    base_url: str
    """As OpenAI's clients take it."""
    client: AsyncOpenAI
    """With the owner's key."""

    def client_of(self, key: str, *, retries: int = 0) -> AsyncOpenAI:
        """A client with another key."""
        return self.client.with_options(api_key=key, max_retries=retries)

    def prompts(self) -> list[str]:
        """What the model was shown as the last message of each request."""
        return [request.messages[-1].text for request in self.model.requests]


@asynccontextmanager
async def endpoint(
    *answers: Message | str | ModelError,
    definition: ToolDefinition | None = None,
    model: ScriptedModel | None = None,
    prepare: Callable[[Crib], None] = lambda _: None,
    models: Mapping[str, LanguageModel] | None = None,
    store: str = "memory://",
    functions: bool = True,
) -> AsyncGenerator[Endpoint]:
    """A served agent `clerk`.

    Args:
        answers: Of its model, in turn.
        definition: Another agent.
        model: Another model for it.
        prepare: Adds more to the crib.
        models: Other models of the crib.
        store: Where it keeps everything.
        functions: Whether it has the functions of the desk's tools; if not, the store must have tools and agent.
    """
    desk, model = Desk(), model or ScriptedModel(list(answers))
    crib = Crib(store, models={MODEL: model, **(models or {})})
    crib.add(*(desk.tools if functions else ()))
    prepare(crib)
    app = create_app(crib, authenticate)
    headers = {"Authorization": "Bearer owner"}
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://crib", headers=headers) as http,
    ):
        if functions:
            await crib.save(definition or agent(system_prompt=PROMPT))
        server = Server(app, crib, http)
        async with on_a_port(server.app) as url:
            base_url = url.removesuffix("/mcp") + "/v1"
            async with AsyncOpenAI(base_url=base_url, api_key="owner", max_retries=2) as client:
                yield Endpoint(server, model, desk, base_url, client)
