"""Every route of our own OpenAPI document, asked by those who may not: nothing is told and nothing changes.

The requests are made from the document, so that a route that is added later is asked as well.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.twins import MASTER_KEYS
from tests.unit.server.client import PRINCIPALS, Server, body_of, checked, http_tool, serving
from toolcrib.contracts import Principal

pytestmark = pytest.mark.requirement("server.closed_to_others", "server.realms", "server.grants")

CANARY = "canary-7d1f2c"
"""Stands in everything that the owner has, and in no request of others."""
TOOL, AGENT, PROVIDER, SECRET = "canary_tool", "canary_agent", "canary_crm", "CANARY_KEY"
DESK = "canary_desk"
"""An agent that holds conversations; `AGENT` is an agentic tool."""
FLOW, STEP = "canary_flow", "canary_step"
"""A workflow, its draft, and a name in the vocabulary of workflows."""
READS = (
    "ai://tools/*/*/read",
    "ai://providers/*/read",
    "ai://secrets/*/read",
    "ai://runs/*/read",
    "ai://agents/*/read",
    "ai://workflows/*/read",
    "ai://steps/*/read",
    "ai://conditions/*/read",
)
OTHERS = {
    "foreigner": Principal(id="foreigner", realm="elsewhere"),
    "nobody": Principal(id="nobody", grants=()),
    "onlooker": Principal(id="onlooker", grants=READS),
}
STATE = (
    "/ai/tools",
    "/agentic-tools",
    "/ai/agents",
    f"/ai/tools/{TOOL}",
    f"/ai/tools/{AGENT}",
    "/providers",
    "/secrets",
    "/ai/workflows",
    "/ai/drafts",
    "/ai/steps",
    "/ai/conditions",
    f"/ai/workflows/{FLOW}/graph",
)


class Asked(NamedTuple):
    """One request to a route."""

    method: str
    path: str
    body: Any


@asynccontextmanager
async def owned(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[Server, str]]:
    """A server on which the owner has one of everything, and the id of a run."""
    for name, principal in OTHERS.items():
        monkeypatch.setitem(PRINCIPALS, name, principal)
    async with serving(environment={"TOOLCRIB_MASTER_KEYS": MASTER_KEYS}) as server:
        await server.post("/ai/tools", body_of(http_tool(TOOL, description=CANARY)), 201)
        agent = {"name": AGENT, "description": CANARY, "llm": {"model": "scripted:free"}, "tools": [{"tool": "search"}]}
        made = await server.client.post("/api/v1/agentic-tools", json=agent | {"mode": "agentic"})
        assert made.status_code == 201, made.text
        await server.post(
            "/ai/agents", {key: agent[key] for key in ("description", "llm", "tools")} | {"name": DESK}, 201
        )
        await server.post("/providers", {"name": PROVIDER, "base_url": "https://api.test", "title": CANARY}, 201)
        checked(await server.client.put(f"/api/v1/secrets/{SECRET}", json={"value": CANARY}), 200)
        yield server, await workflow(server)


async def workflow(server: Server) -> str:
    """A workflow of the owner, with a draft and a vocabulary, and the id of an instance."""
    steps = [{"name": "look", "handler_ref": STEP, "input": {"company": CANARY}}]
    definition = {"name": FLOW, "description": CANARY, "steps": steps}
    checked(await server.client.put(f"/api/v1/ai/steps/{STEP}", json={"name": STEP, "tool": "search"}), 200)
    condition = {"name": STEP, "description": CANARY, "parameters": ["x"], "expression": "${x}"}
    checked(await server.client.put(f"/api/v1/ai/conditions/{STEP}", json=condition), 200)
    await server.post(f"/ai/workflows/{FLOW}/publish", {"definition": definition})
    checked(await server.client.put(f"/api/v1/ai/drafts/{FLOW}", json={"definition": definition}), 200)
    return (await server.post(f"/ai/workflows/{FLOW}/run"))["run_id"]


def requests(document: dict[str, Any], run_id: str) -> Iterator[Asked]:
    """A request to every operation about what the owner has, with the smallest body that the document allows."""
    for template, operations in document["paths"].items():
        names = [DESK] if "/ai/agents/" in template else [TOOL, AGENT]
        names = [PROVIDER] if "/providers/" in template or "/connections/" in template else names
        names = [SECRET] if "/secrets/" in template else names
        names = [FLOW] if "/ai/workflows/" in template or "/ai/drafts/" in template else names
        names = [STEP] if "/ai/steps/" in template or "/ai/conditions/" in template else names
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            for name in names:
                path = template.format_map(_Filled(name=name, run_id=run_id, form="openai", call_id="x", position="0"))
                yield Asked(method.upper(), path, content and sample(content["schema"], document, name))


class _Filled(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "x"


def sample(schema: dict[str, Any], document: dict[str, Any], name: str) -> Any:
    """The smallest value that a schema plainly allows; whatever is a name is the given one."""
    if "$ref" in schema:
        return sample(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, name)
    given = [schema[key] for key in ("const", "default") if key in schema] or schema.get("enum")
    if given:
        return given[0]
    alternatives = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
    if alternatives:
        return sample(alternatives[0], document, name)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {field: sample(fields[field], document, name) for field in schema.get("required", ())}
        case "array":
            return [sample(schema["items"], document, name)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return name


async def state(server: Server, run_id: str) -> list[Any]:
    """What the owner has."""
    return [await server.get(path) for path in STATE] + [await server.get(f"/executions/{run_id}")]


async def attempts(server: Server, run_id: str) -> set[Any]:
    """How the runs ended that others have asked for, and how many tokens of models they took."""
    runs: list[Any] = [await server.finished(run["run_id"]) for run in (await server.get("/executions"))["items"]]
    return {
        (found["run"]["status"], found["trace"]["error"] and found["trace"]["error"]["code"], found["trace"]["tokens"])
        for found in runs
        if found["run"]["run_id"] != run_id
    }


async def answers(server: Server, who: str, run_id: str) -> list[tuple[Asked, httpx2.Response]]:
    """What somebody is answered at every route."""
    async with server.client_of(who) as client:
        return [
            (asked, await client.request(asked.method, asked.path, json=asked.body))
            for asked in requests(server.app.openapi(), run_id)
        ]


@pytest.mark.parametrize("who", OTHERS)
async def test_who_has_no_grant_to_write_changes_nothing_at_any_route(
    who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owned(monkeypatch) as (server, run_id):
        before = await state(server, run_id)
        found = await answers(server, who, run_id)
        assert len(found) > 50
        assert [(asked, answer.text) for asked, answer in found if answer.status_code >= 500] == []
        assert await state(server, run_id) == before
        assert await attempts(server, run_id) <= {("failed", code, 0) for code in ("POLICY_DENIED", "VALIDATION_ERROR")}


@pytest.mark.parametrize("who", ["foreigner", "nobody"])
async def test_who_may_not_read_is_told_nothing_at_any_route(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with owned(monkeypatch) as (server, run_id):
        found = await answers(server, who, run_id)
        assert [(asked, answer.text) for asked, answer in found if CANARY in answer.text] == []
        told = [
            (asked.method, asked.path, answer.status_code)
            for asked, answer in found
            if run_id in asked.path and answer.status_code not in {403, 404, 422}
        ]
        assert told == []
        if who == "foreigner":  # an id of another realm is told apart from none by nothing
            read = [(asked, answer.status_code) for asked, answer in found if asked.method == "GET"]
            named = [(asked.path, status) for asked, status in read if run_id in asked.path or TOOL in asked.path]
            assert [(path, status) for path, status in named if status not in {404, 422}] == []
