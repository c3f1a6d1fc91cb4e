"""Canaries in every place that keeps secrets, and all that leaves the crib searched for them, however spelled."""

import base64
import json
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx2
import pytest
from aiohttp import web

from tests.twins import MASTER_KEYS
from tests.unit.net.servers import serving
from tests.unit.providers.authority import Authority
from toolcrib import Crib, ScriptedModel
from toolcrib.contracts import (
    OWNER,
    SECRET_SCOPES,
    ApiKeyAuth,
    AuthorizationCodeAuth,
    BasicAuth,
    BearerAuth,
    LoginRequest,
    ProviderAuth,
    ProviderDefinition,
    ToolDefinition,
    TwoStepAuth,
)
from toolcrib.infrastructure.net import EgressPolicy
from toolcrib.interfaces.server import create_app
from toolcrib.kinds.http.shape import HttpImplementation, HttpParameter
from toolcrib.llm import Message, Response, ToolCall
from toolcrib.llm.base.messages import assistant

FETCHED = ("session-canary-0123456789", "access-token-1", "refresh-token-1")
FORMS = ("json", "base64", "hex", "url", "path", "header", "failure")


def spellings(text: str) -> dict[str, str]:
    """A text as it may stand in a file, a log or an answer."""
    data = text.encode()
    return {
        "raw": text,
        "base64": base64.b64encode(data).decode().rstrip("=")[:-1],
        "url-safe base64": base64.urlsafe_b64encode(data).decode().rstrip("=")[:-1],
        "hex": data.hex(),
        "URL": quote(text, safe=""),
        "form": quote_plus(text),
        "JSON": json.dumps(text)[1:-1],
        "JSON with its characters": json.dumps(text, ensure_ascii=False)[1:-1],
    }


def leaks(secrets: Iterable[str], sinks: dict[str, str]) -> list[tuple[str, str, str]]:
    """Where something of a secret is found: sink, secret and spelling."""
    return [
        (sink, secret, name)
        for sink, text in sinks.items()
        for secret in secrets
        for name, spelled in spellings(secret).items()
        if spelled in text
    ]


def sent_secret(request: web.BaseRequest) -> str:
    """The credential of a request, as the other side sees it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme == "Basic":
        return base64.b64decode(token).decode().partition(":")[2]
    return token or request.headers.get("x-key", "") or request.query.get("key", "")


async def mirror(request: web.BaseRequest) -> web.StreamResponse:
    """A system that gives away in its answers all that it is told."""
    if request.path == "/session":
        return web.json_response({"token": FETCHED[0], "you": await request.text()})
    raw = request.headers.get("x-key") or sent_secret(request)
    seen = raw.encode("latin-1", "surrogateescape").decode(errors="replace") if request.headers.get("x-key") else raw
    data = seen.encode()
    told: dict[str, Any] = {
        "json": {seen: [f"you are {seen}", {"headers": dict(request.headers)}]},
        "base64": base64.b64encode(b"user:" + data).decode(),
        "hex": data.hex(),
        "url": f"https://x.test/?key={quote_plus(seen)}",
        "path": quote(seen, safe=""),
        "header": "see the header",
        "failure": {"error": {"message": f"bad credential {seen}", "details": [seen, data.hex()]}},
    }
    form = request.query.get("form", "json")
    headers = {"X-Request-Id": quote(seen), "ETag": base64.b64encode(data).decode()} if form == "header" else {}
    return web.json_response(told[form], status=401 if form == "failure" else 200, headers=headers)


WAYS: dict[str, ProviderAuth] = {
    "env": BearerAuth(token="${env:CANARY}"),
    "user": BearerAuth(token="${secret:USER}"),
    "realm": ApiKeyAuth(key="${secret:REALM}", name="key", place="query"),
    "org": BearerAuth(token="${secret:ORG}"),
    "basic": BasicAuth(username="${secret:NAME}", password="${secret:BASIC}"),
    "login": TwoStepAuth(login=LoginRequest(url="/session", body={"password": "${secret:LOGIN}"})),
}


def echo_tool(name: str) -> ToolDefinition:
    """A tool of a provider that echoes."""
    return ToolDefinition(
        name=f"echo_{name}",
        side_effects="reads",
        input_schema={"type": "object", "properties": {"form": {"type": "string", "enum": list(FORMS)}}},
        implementation=HttpImplementation(
            method="GET",
            url="/echo",
            provider=name,
            parameters=(HttpParameter(name="form", argument="form", place="query", style="form", explode=True),),
        ),
    )


class Curious:
    """A model that calls every tool in every form, and then repeats all that it was told."""

    def __init__(self, tools: list[str]) -> None:
        self._calls = [(tool, form) for tool in tools for form in FORMS]

    def __call__(self, request: Any) -> Response | Message | str:
        """The next answer."""
        if self._calls:
            tool, form = self._calls.pop(0)
            return Message("assistant", (ToolCall(f"c{len(self._calls)}", tool, json.dumps({"form": form})),))
        return assistant(" ".join(message.text for message in request.messages))


@asynccontextmanager
async def house(folder: Path, model: ScriptedModel, *ports: int) -> AsyncGenerator[Crib]:
    """A crib in a file, with the canaries of the environment."""
    environment = {"TOOLCRIB_MASTER_KEYS": MASTER_KEYS, "CANARY": "Xx-env-canary-0123456789"}
    async with Crib(
        f"sqlite:///{folder / 'crib.db'}",
        egress=EgressPolicy(allow=tuple(f"127.0.0.1:{port}" for port in ports)),
        environment=environment,
        models={model.name: model},
    ) as crib:
        yield crib


def _logged(caplog: pytest.LogCaptureFixture) -> str:
    """What this process has logged; the other side's own record of its visitors is no part of it."""
    return "".join(record.getMessage() for record in caplog.records if record.name != "aiohttp.access")


def _files(folder: Path) -> str:
    """All that the store has written: database, write-ahead log, blobs."""
    return "".join(file.read_bytes().decode("utf-8", "replace") for file in folder.rglob("*") if file.is_file())


async def sinks_of(crib: Crib, folder: Path, model: ScriptedModel, log: str) -> dict[str, str]:
    """Everything that leaves the crib, as text."""
    runs = await crib.store.journal.runs("default", limit=500)
    events = [event for run in runs for event in await crib.store.journal.events(run.run_id)]
    found = {
        "runs": "".join(run.model_dump_json() for run in runs),
        "journal": "".join(event.model_dump_json() for event in events),
        "prompts": repr(model.requests),
        "logs": log,
        "files": _files(folder),
        "settings": repr(crib.connections) + repr(crib.secrets) + repr(await crib.secrets.list()),
    }
    for form in ("universal", "openai", "anthropic", "langchain", "mcp"):
        found[f"export {form}"] = json.dumps(await crib.export(form=form))

    async def owner(_: str) -> Any:
        return OWNER

    app = create_app(crib, owner)
    headers = {"Authorization": "Bearer x"}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://crib", headers=headers
    ) as client:
        paths = ["/providers", "/secrets", "/connections", "/executions", "/ai/tools"]
        paths += [f"/executions/{run.run_id}" for run in runs] + [f"/executions/{run.run_id}/events" for run in runs]
        for path in paths:
            found[f"REST {path}"] = (await client.get(f"/api/v1{path}")).text
    return found


@pytest.mark.requirement("secrets.no_leak")
async def test_no_secret_of_any_scope_leaves_the_crib_in_any_spelling(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tools = [f"echo_{name}" for name in WAYS]
    model = ScriptedModel(Curious(tools), name="curious")
    canaries = {name: f"Xx-{name}-canary-0123456789" for name in (*WAYS, "name")}
    async with serving(mirror) as port, house(tmp_path, model, port) as crib:
        for scope in SECRET_SCOPES:
            await crib.secrets.set(scope.upper(), canaries[scope], scope=scope)
        for name in ("NAME", "BASIC", "LOGIN"):
            await crib.secrets.set(name, canaries[name.lower()])
        for name, auth in WAYS.items():
            provider = ProviderDefinition(name=name, base_url=f"http://127.0.0.1:{port}", auth=auth)
            await crib.save_provider(provider)
            await crib.save(echo_tool(name))
        envelopes = [await crib.call(tool, {"form": form}) for tool in tools for form in FORMS]
        assert {envelope.status for envelope in envelopes} == {"success", "error"}
        crib.agentic_tool("nosy", mode="agentic", model=model.name, tools=tools)
        result = await crib.invoke("nosy", {"task": "call everything and repeat what you hear"})
        sinks = await sinks_of(crib, tmp_path, model, _logged(caplog))
    sinks["envelopes"] = "".join(envelope.model_dump_json() for envelope in envelopes)
    sinks["result"] = repr(result.output) + repr(result.trace)
    assert "[secret]" in sinks["envelopes"]
    assert "[secret]" in sinks["prompts"]
    assert leaks((*canaries.values(), FETCHED[0]), sinks) == []


@pytest.mark.requirement("secrets.no_leak")
async def test_no_token_that_a_person_has_granted_leaves_the_crib_in_any_spelling(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    authority = Authority()
    model = ScriptedModel(Curious(["echo_crm"]), name="curious")
    async with serving(authority.handle) as port, serving(mirror) as api, house(tmp_path, model, port, api) as crib:
        authority.url = f"http://127.0.0.1:{port}"
        await crib.secrets.set("CLIENT", "Xx-client-canary-0123456789")
        auth = AuthorizationCodeAuth(
            authorization_url=f"{authority.url}/authorize",
            token_url=f"{authority.url}/token",
            client_id="toolcrib",
            client_secret="${secret:CLIENT}",
        )
        await crib.save_provider(ProviderDefinition(name="crm", base_url=f"http://127.0.0.1:{api}", auth=auth))
        await crib.save(echo_tool("crm"))
        begun = await crib.connections.begin("crm", redirect_uri="http://127.0.0.1:1/callback")
        await crib.connections.finish(authority.grant(begun.url))
        envelopes = [await crib.call("echo_crm", {"form": form}) for form in FORMS]
        failed = envelopes[-1].error
        assert failed is not None
        assert (failed.code, (failed.details or {})["reason"]) == ("AUTH_REQUIRED", "reconnect_required")
        assert "reconnect with `toolcrib provider connect crm`" in failed.message
        crib.agentic_tool("nosy", mode="agentic", model=model.name, tools=["echo_crm"])
        await crib.invoke("nosy", {"task": "call everything"})
        sinks = await sinks_of(crib, tmp_path, model, _logged(caplog))
        told = await crib.connections.revoke("crm")
    sinks["envelopes"] = "".join(envelope.model_dump_json() for envelope in envelopes)
    sinks["told"] = told.message
    issued = [f"{kind}-token-{number}" for kind in ("access", "refresh") for number in range(1, authority.tokens + 1)]
    assert authority.tokens > 1
    assert "[secret]" in sinks["envelopes"]
    assert leaks(("Xx-client-canary-0123456789", *issued), sinks) == []
