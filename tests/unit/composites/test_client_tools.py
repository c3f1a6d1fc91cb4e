"""Tools whose act a client performs: what it is given, and what becomes of what it brings (002)."""

from typing import Any, cast

import pytest

from tests.twins import make_definition
from toolcrib import Crib, Principal, tool
from toolcrib.contracts import (
    OWNER,
    BearerAuth,
    ClientResult,
    Conflict,
    ErrorCode,
    Json,
    JsonSchema,
    ProviderDefinition,
    Reason,
    ToolError,
)
from toolcrib.kinds.entity.shape import EntityColumn, EntityImplementation
from toolcrib.kinds.grpc.shape import GrpcImplementation
from toolcrib.kinds.http.shape import HttpBody, HttpImplementation
from toolcrib.kinds.mcp.shape import McpImplementation

ID: JsonSchema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
prepared: list[str] = []


@tool(name="pick", side_effects="reads", runs_on="client")
async def pick(question: str) -> Any:
    """Let the person at the client choose."""
    prepared.append(question)
    return {"ask": question}


async def after(*results: ClientResult, output_schema: JsonSchema | None = None) -> Any:
    """The envelope of a call whose client brings these results in turn."""
    async with Crib("memory://") as crib:
        crib.add(pick)
        revision = await crib.save((await _picked(crib)).model_copy(update={"output_schema": output_schema}))
        crib._parts.functions.bind(revision.content_hash, cast("Any", pick))  # pyright: ignore[reportPrivateUsage] - as in the suite
        waiting = await crib.invoke("pick", {"question": "which?"}, as_call=True)
        for result in results:
            await crib.return_client_result(waiting.run_id, "call", result)
        [envelope] = (await crib.resume(waiting.run_id)).envelopes
        return envelope


async def _picked(crib: Crib) -> Any:
    await crib.open()
    return crib.registry.require(OWNER.realm, "pick").definition


@pytest.mark.requirement("client.results")
async def test_what_the_client_brings_is_the_output_and_the_tool_prepares_once():
    prepared.clear()

    envelope = await after(ClientResult(output="this"), ClientResult(output="this"))

    assert (envelope.output, envelope.requires_client_execution) == ("this", True)
    assert prepared == ["which?"]


@pytest.mark.requirement("client.results")
@pytest.mark.parametrize(("output", "ok"), [({"a": 1}, True), ("text", False)])
async def test_what_the_client_brings_is_held_against_the_output_schema(output: Json, ok: bool):
    envelope = await after(ClientResult(output=output), output_schema={"type": "object"})

    assert envelope.ok is ok
    if not ok:
        assert (envelope.error.code, envelope.error.reason) == ("PROVIDER_ERROR", "output_schema_mismatch")


@pytest.mark.requirement("client.results")
async def test_an_error_of_the_client_is_the_calls_error_with_a_reason():
    refused = ToolError(code=ErrorCode.POLICY_DENIED, message="the person closed the window")

    envelope = await after(ClientResult(error=refused))

    assert envelope.error.message == "the person closed the window"
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.REQUEST_REFUSED)


@pytest.mark.requirement("client.posting")
async def test_the_same_result_may_be_posted_again_and_no_other_one_counts():
    done, other = ClientResult(output="this"), ClientResult(output="that")
    async with Crib("memory://") as crib:
        crib.add(pick)
        run_id = (await crib.invoke("pick", {"question": "which?"}, as_call=True)).run_id

        with pytest.raises(Conflict, match="no call at 'elsewhere' that waits for a client; waiting: call"):
            await crib.return_client_result(run_id, "elsewhere", done)
        assert await crib.return_client_result(run_id, "call", done)
        assert await crib.return_client_result(run_id, "call", done)
        assert not await crib.acting_as(Principal(id="x", realm="default")).return_client_result(run_id, "call", done)
        with pytest.raises(Conflict):
            await crib.return_client_result(run_id, "call", other)
        assert (await crib.resume(run_id)).output == "this"
        assert await crib.return_client_result(run_id, "call", done)


@pytest.mark.requirement("client.prepared")
async def test_an_http_operation_is_prepared_as_its_request_without_credentials():
    post = HttpImplementation(
        method="POST", url="/deals", provider="crm", body=HttpBody(fields={"id": "id"}), headers={"x-a": "b"}
    )
    provider = ProviderDefinition(
        name="crm", base_url="https://crm.example", auth=BearerAuth(token="${env:KEY}"), headers={"x-team": "emea"}
    )
    async with Crib("memory://", environment={"KEY": "hunter2-but-longer"}) as crib:
        await crib.save_provider(provider)
        await crib.save(make_definition("post", input_schema=ID, implementation=post, runs_on="client"))
        run_id = (await crib.invoke("post", {"id": "7"}, as_call=True)).run_id
        [handed] = await crib.pending_handoffs(run_id)

    assert (handed.output["method"], handed.output["url"]) == ("POST", "https://crm.example/deals")
    assert handed.output["body"] == '{"id":"7"}'
    assert (handed.output["headers"]["x-a"], handed.output["headers"]["x-team"]) == ("b", "emea")
    assert "authorization" not in handed.output["headers"]


@pytest.mark.requirement("client.prepared")
@pytest.mark.parametrize(
    ("implementation", "address"),
    [
        (McpImplementation(provider="p", name="find", fingerprint={}), {"capability": "tool", "name": "find"}),
        (
            GrpcImplementation(provider="p", method="/a.B/C", request="a.Q", response="a.R", descriptors="0"),
            {"method": "/a.B/C", "request": "a.Q"},
        ),
        (
            EntityImplementation(
                provider="p", operation="get", table="t", columns={"id": EntityColumn(type="string")}, key=("id",)
            ),
            {"operation": "get", "table": "t"},
        ),
    ],
)
async def test_any_other_systems_operation_is_prepared_as_its_name_and_its_arguments(implementation: Any, address: Any):
    async with Crib("memory://") as crib:
        await crib.save_provider(ProviderDefinition(name="p", base_url="https://p.example"))
        await crib.save(make_definition("ask", input_schema=ID, implementation=implementation, runs_on="client"))
        run_id = (await crib.invoke("ask", {"id": "7"}, as_call=True)).run_id
        [handed] = await crib.pending_handoffs(run_id)

    assert handed.output == {"provider": "p", "kind": implementation.kind, "arguments": {"id": "7"}, **address}
    assert handed.requires_client_execution
