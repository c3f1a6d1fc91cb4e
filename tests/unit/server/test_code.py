"""Code tools over REST: saved by who may write them, checked without being run, called like any tool."""

import pytest

from tests.unit.server.client import Server, body_of, checked
from toolcrib import code_tool

pytestmark = pytest.mark.requirement("server.code")

DEFINITION = code_tool(
    "names",
    "def main(company):\n    return [deal['name'] for deal in search(company=company)]\n",
    tools=["search"],
    side_effects="reads",
    input_schema={"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]},
)


async def test_code_is_saved_and_runs_as_a_tool(server: Server) -> None:
    await server.post("/ai/tools", body_of(DEFINITION), status=201)

    shown = await server.get("/ai/tools/names")
    result = await server.crib.invoke("names", {"company": "Acme"})

    assert shown["revision"] == 1
    assert result.ok
    assert isinstance(result.output, list)


async def test_validating_code_does_not_run_it(server: Server) -> None:
    body = body_of(code_tool("x", "raise SystemExit('it ran')\ndef main():\n    pass\n"))

    assert (await server.post("/ai/tools/validate", body))["valid"]
    refused = await server.post("/ai/tools/validate", body_of(code_tool("x", "def main(:")))
    assert "its code is no Python" in refused["problems"][0]["problem"]


async def test_who_may_not_write_tools_may_not_write_code(server: Server) -> None:
    async with server.client_of("reader") as reader:
        answer = await reader.post("/api/v1/ai/tools", json=body_of(DEFINITION))

    assert checked(answer, 403)["code"] == "permission_denied"
