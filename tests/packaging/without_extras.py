"""Uses each feature that needs an extra, without any, and prints what each says, as one JSON document."""

import asyncio
import json
import os
from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path

from toolcrib import Crib, DefinitionOptions, LLMConfig, SharingOptions, ToolDefinition, builtin_tools, code_tool
from toolcrib.contracts import ToolcribError
from toolcrib.kinds.a2a.commands import A2aSource
from toolcrib.kinds.graphql.commands import GraphqlSource

KEY = "MSRnyqhbJnP5fGhlAlgx0VSgSZkfhKqyIjnxCDbMkTo="
SIGNED_IN = "anthropic-sdk openai-sdk azure-openai bedrock-anthropic vertex-anthropic vertex-google foundry-anthropic"
SAID: dict[str, str] = {}

os.environ.update(
    ANTHROPIC_API_KEY="no-key",
    OPENAI_API_KEY="no-key",
    AZURE_OPENAI_ENDPOINT="https://example.openai.azure.com",
    AWS_REGION="eu-west-1",
    GOOGLE_CLOUD_PROJECT="project",
    GOOGLE_CLOUD_LOCATION="europe-west1",
    ANTHROPIC_FOUNDRY_RESOURCE="resource",
    TOOLCRIB_MODELS_DIR=str(Path.cwd()),
)


async def tell(what: str, work: Awaitable[object]) -> None:
    """Note what a feature raises."""
    try:
        await work
    except ToolcribError as error:
        SAID[what] = str(error)


async def ask(crib: Crib, model: str) -> None:
    """Ask an agent of a model."""
    answer = await crib.agent(model.replace(":", "-"), model=model)("Hello")
    SAID[model] = "" if answer.error is None else answer.error.message


async def load_adapter(name: str) -> None:
    """Import an adapter of a framework."""
    import_module(f"toolcrib.interfaces.adapters.{name}")


async def call(crib: Crib, definition: ToolDefinition, what: str) -> None:
    """Call a tool."""
    await crib.save(definition)
    envelope = await crib.call(definition.name)
    SAID[what] = "" if envelope.error is None else envelope.error.message


async def open_crib(store: str = "memory://", *, keys: str = "", sharing: SharingOptions | None = None) -> None:
    """Open a crib, and keep a secret if there are keys."""
    environment = {**os.environ, "TOOLCRIB_MASTER_KEYS": keys} if keys else None
    async with Crib(store, environment=environment, sharing=sharing) as crib:
        if keys:
            await crib.secrets.set("TOKEN", "a-secret-value")


async def main() -> None:
    """Try everything."""
    async with Crib("memory://", definitions=DefinitionOptions(released=("*",))) as crib:
        places = (
            "anthropic-sdk openai-sdk azure-openai bedrock-anthropic vertex-anthropic vertex-google foundry-anthropic"
        )
        for place in places.split():
            await ask(crib, f"{place}:model")
        schema = GraphqlSource(name="graph", url="https://graph.example/graphql", schema_text="type Query { a: Int }")
        await tell("graphql", crib.imports.read(schema))
        await tell("grpc", crib.imports.grpc("grpcs://grpc.example:443", name="grpc"))
        await tell("a2a", crib.imports.read(A2aSource(name="agent", url="https://agent.example")))
        await tell("mcp", crib.imports.mcp("https://mcp.example.com/mcp", name="mcp"))
        crib.add(*builtin_tools.http())
        page = await crib.call("http_get", url="https://example.com/")
        SAID["web"] = "" if page.error is None else page.error.message
        (Path.cwd() / "qwen2.5-coder-1.5b.gguf").write_bytes(b"GGUF")
        await ask(crib, "local:qwen2.5-coder-1.5b")
        unpriced = crib.models.unpriced(LLMConfig(model="openai:gpt-4o"), "default", crib.clock.now())
        SAID["prices"] = "" if unpriced is None else unpriced.why
        await call(crib, code_tool("js", "function main(a) { return 1 }", language="javascript"), "sandbox")
    for name in ("langchain", "openai_agents", "pydantic_ai"):
        await tell(name, load_adapter(name))
    await tell("postgres", open_crib("postgresql://user:password@localhost/crib"))
    await tell("redis", open_crib(sharing=SharingOptions(redis="redis://localhost:1/0")))
    await tell("s3", open_crib("sqlite:///s3.db", sharing=SharingOptions(blobs="s3://bucket/prefix")))
    await tell("vault", open_crib(keys=f"k1:{KEY}"))
    print(json.dumps(SAID))


asyncio.run(main())
