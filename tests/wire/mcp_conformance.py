"""The client that the protocol's conformance suite (npm `@modelcontextprotocol/conformance`) drives: a crib.

The suite starts a command with the address of a server that judges what it is sent. The command only hands the address
to the process of the test, where a crib imports the server and calls everything that was imported. Where the server
wants authorization, this does what a person does: goes to the address that the crib names, each time that a call says
so. The crib does the rest: discovery, registration, authorization with PKCE, the issuer of the answer, tokens, scopes.
"""

import asyncio
import contextlib
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from tests.twins import MASTER_KEYS
from tests.wire.arguments import Unmet, arguments
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import (
    JsonObject,
    McpConnection,
    ProtectedResourceAuth,
    ProviderDefinition,
    Reason,
    ReconnectRequired,
    ToolcribError,
)

NAME: Final = "judge"
CLIENT: Final = "https://conformance-test.local/client-metadata.json"
"""The id of a client that an authorization server knows without registration (Client ID Metadata Documents)."""
REDIRECT: Final = "http://localhost:3000/callback"


_MOST_CONNECTED: Final = 3
"""How often a person connects to one server before giving up."""
_ANY_PORT: Final = EgressPolicy(allow=tuple(f"localhost:{port}" for port in range(1_024, 65_536)))
"""The suite starts its servers on ports that nobody knows before."""
_ECHO: Final = "json_schema_echo"
_STARTED: Final = Path(__file__).with_name("mcp_conformance_started.py")


@contextlib.asynccontextmanager
async def client_command(folder: Path) -> AsyncGenerator[str]:
    """The command that the suite may start as its client, as often as it likes, while the context is open."""

    async def started(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        given = orjson.loads(await reader.readline())
        try:
            await converse(given["url"], orjson.loads(given["context"]))
        except ToolcribError as refusal:
            writer.write(f"1{refusal}".encode())
        else:
            writer.write(b"0")
        writer.close()

    path = folder / "client"
    async with await asyncio.start_unix_server(started, path):
        yield shlex.join([sys.executable, "-S", str(_STARTED), str(path)])


async def converse(url: str, context: Mapping[str, Any]) -> None:
    """Import the server, and call all of its tools; connect to it as often as a person would be asked to."""
    environment = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS, "CLIENT_SECRET": context.get("client_secret", "")}
    async with (
        Crib("memory://", egress=_ANY_PORT, environment=environment) as crib,
        aiohttp.ClientSession() as browser,
    ):
        auth = ProtectedResourceAuth(client_metadata_url=CLIENT, **await _known_client(browser, url, context))
        connection = McpConnection(input_requests="defaults")
        await crib.save_provider(ProviderDefinition(name=NAME, connection=connection, base_url=url))
        for attempt in range(_MOST_CONNECTED + 1):
            try:
                await crib.imports.sync(NAME)
                await _call_all(crib, context)
            except ReconnectRequired:
                if attempt == _MOST_CONNECTED:
                    raise
            else:
                return
            provider = await crib.connections.provider(NAME)
            if provider.auth.kind == "none":
                await crib.save_provider(provider.model_copy(update={"auth": auth}))
            await _grant(crib, browser)


async def _known_client(browser: aiohttp.ClientSession, url: str, context: Mapping[str, Any]) -> JsonObject:
    """The client that an operator has made at the authorization server of a scenario, if the scenario says so."""
    if "client_id" not in context:
        return {}
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
    async with browser.get(place) as answer:
        servers = (await answer.json())["authorization_servers"]
    secret = {"client_secret": "${env:CLIENT_SECRET}"} if context.get("client_secret") else {}
    return {"client_id": context["client_id"], "authorization_servers": tuple(servers), **secret}


async def _grant(crib: Crib, browser: aiohttp.ClientSession) -> None:
    """Go where the crib sends a person, and come back with what the server gives."""
    request = await crib.connections.begin(NAME, redirect_uri=REDIRECT)
    async with browser.get(request.url, allow_redirects=False) as answer:
        location = answer.headers["location"]
    await crib.connections.finish(location)


async def _call_all(crib: Crib, context: Mapping[str, Any]) -> None:
    """The calls that the scenario wants, or else one of each tool."""
    tools = crib.registry.current("default")
    wanted: list[JsonObject] = context.get("toolCalls") or [
        {"name": tool.name, "arguments": _some(tool.definition.input_schema)} for tool in tools
    ]
    schemas = {tool.name: tool.definition.input_schema for tool in tools}
    if _ECHO in schemas:  # it is to be given the schema of the other tool, as we know it
        wanted = [{"name": _ECHO, "arguments": {"schema": next(schemas[name] for name in schemas if name != _ECHO)}}]
    for call in wanted:
        given: JsonObject = call["arguments"]
        envelope = await crib.call(str(call["name"]), {k: value for k, value in given.items() if value is not None})
        if envelope.error is not None and envelope.error.reason == Reason.RECONNECT_REQUIRED:
            raise ReconnectRequired(envelope.error.message)


def _some(schema: JsonObject) -> JsonObject:
    """Arguments of each name that a schema has, or of those that it requires."""
    try:
        return arguments({**schema, "required": list(schema.get("properties", ()))}, 0)
    except Unmet:
        return arguments(schema, 0)
