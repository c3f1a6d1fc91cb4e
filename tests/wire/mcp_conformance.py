"""The client that the protocol's conformance suite (npm `@modelcontextprotocol/conformance`) drives: a crib.

The suite starts a command with the address of a server that judges what it is sent. The command only hands the address
to the process of the test, where a crib imports the server and calls everything that was imported. Where the server
wants authorization, this does what an operator and a person do: looks up the server's documents, has a client
registered if it has none, saves the provider with what they say, and goes to the address that the crib names. What the
crib does is then the rest: authorization with PKCE, the issuer of the answer, tokens, and requests with them.
"""

import asyncio
import contextlib
import re
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
    AuthorizationCodeAuth,
    JsonObject,
    McpConnection,
    ProviderDefinition,
    ReconnectRequired,
    ToolcribError,
)

NAME: Final = "judge"
CLIENT: Final = "https://conformance-test.local/client-metadata.json"
"""The id of a client that an authorization server knows without registration (Client ID Metadata Documents)."""
REDIRECT: Final = "http://localhost:3000/callback"


_ACCEPTED: Final = {"accept": "application/json, text/event-stream"}
_ABOUT: Final = "io.modelcontextprotocol"
_REQUEST: Final[JsonObject] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            f"{_ABOUT}/protocolVersion": "2026-07-28",
            f"{_ABOUT}/clientInfo": {"name": "operator", "version": "1"},
            f"{_ABOUT}/clientCapabilities": {},
        }
    },
}
"""What the operator asks to see what the server wants."""
_CHALLENGE: Final = re.compile(r'(\w+)="([^"]*)"')
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
    """Import the server, and call all of its tools."""
    async with Crib("memory://", egress=_egress(url), environment={}) as crib:
        try:
            await crib.imports.mcp(url, name=NAME)
        except ReconnectRequired:
            pass
        else:
            return await _call_all(crib, context)
    return await _converse_with_authorization(url, context)


async def _converse_with_authorization(url: str, context: Mapping[str, Any]) -> None:
    async with aiohttp.ClientSession() as browser:
        described = await _protection(browser, url)
        issuer = next(iter(described.get("authorization_servers", ())), "")
        discovery_url, metadata = await _discovery(browser, issuer)
        client = await _client(browser, metadata if metadata.get("issuer") == issuer else {}, context)
        auth = _auth(described, discovery_url, metadata, client)
        environment = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS, "CLIENT_SECRET": client.get("client_secret", "")}
        async with Crib("memory://", egress=_egress(url, discovery_url), environment=environment) as crib:
            await crib.save_provider(ProviderDefinition(name=NAME, connection=McpConnection(), base_url=url, auth=auth))
            await _grant(crib, browser)
            await crib.imports.sync(NAME)
            await _call_all(crib, context)


def _egress(*urls: str) -> EgressPolicy:
    return EgressPolicy(allow=tuple(urlsplit(url).netloc for url in urls if url))


async def _protection(browser: aiohttp.ClientSession, url: str) -> JsonObject:
    """What a server says about its protection (RFC 9728), at the address that it names or a usual one."""
    async with browser.post(url, json=_REQUEST, headers=_ACCEPTED) as answer:
        challenge = dict(_CHALLENGE.findall(answer.headers.get("www-authenticate", "")))
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource"
    for address in (challenge.get("resource_metadata", ""), f"{root}{parts.path}", root):
        described = await _document(browser, address) if address else None
        if described is not None:
            scopes = challenge.get("scope", "").split() or described.get("scopes_supported", [])
            return {**described, "scopes_supported": scopes}
    return {}


async def _discovery(browser: aiohttp.ClientSession, issuer: str) -> tuple[str, JsonObject]:
    """An issuer's document and its address: RFC 8414, section 3, or OpenID Connect Discovery 1.0, section 4."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    addresses = (
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    )
    for address in addresses:
        metadata = await _document(browser, address)
        if metadata is not None:
            return address, metadata
    return "", {}


async def _client(browser: aiohttp.ClientSession, metadata: JsonObject, context: Mapping[str, Any]) -> JsonObject:
    """The client that is known already, by its document or by the scenario, or one that is registered (RFC 7591)."""
    if "client_id" in context:
        return dict(context)
    if metadata.get("client_id_metadata_document_supported") or "registration_endpoint" not in metadata:
        return {"client_id": CLIENT}
    methods = metadata.get("token_endpoint_auth_methods_supported") or ["none"]
    wanted = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": methods[0], "application_type": "native"}
    async with browser.post(metadata["registration_endpoint"], json=wanted) as answer:
        return await answer.json()


async def _document(browser: aiohttp.ClientSession, address: str) -> JsonObject | None:
    async with browser.get(address) as answer:
        return await answer.json() if answer.status == 200 and answer.content_type == "application/json" else None


def _auth(described: JsonObject, discovery_url: str, metadata: JsonObject, client: JsonObject) -> AuthorizationCodeAuth:
    """The authentication that the documents of a server ask for."""
    methods = metadata.get("token_endpoint_auth_methods_supported", ())
    return AuthorizationCodeAuth(
        discovery_url=discovery_url,
        client_id=client.get("client_id", CLIENT),
        client_secret="${env:CLIENT_SECRET}" if client.get("client_secret") else None,
        client_auth="body" if "client_secret_basic" not in methods and "client_secret_post" in methods else "basic",
        scopes=tuple(described.get("scopes_supported", ())),
        resource=described.get("resource"),
    )


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
    for call in wanted:
        given: JsonObject = call["arguments"]
        await crib.call(str(call["name"]), **{name: value for name, value in given.items() if value is not None})


def _some(schema: JsonObject) -> JsonObject:
    """Arguments of each name that a schema has, or of those that it requires."""
    try:
        return arguments({**schema, "required": list(schema.get("properties", ()))}, 0)
    except Unmet:
        return arguments(schema, 0)
