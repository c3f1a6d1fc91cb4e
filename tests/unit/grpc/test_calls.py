"""Calls of a real server: messages there and back, streams, deadlines, metadata."""

import asyncio
import base64
from functools import partial
from typing import Any

import grpc
import pytest
from aiohttp import web

from tests.unit.grpc.server import Crm, Deal, local
from tests.unit.net.servers import serving as http_serving
from toolcrib import Crib, DefinitionOptions, EgressPolicy
from toolcrib.contracts import ApiKeyAuth, BasicAuth, BearerAuth, ErrorCode, OAuth2Auth, ProviderDefinition, Reason
from toolcrib.kinds.grpc.shape import GrpcImplementation

FULL: dict[str, Any] = {
    "id": "7",
    "display_name": "Acme",
    "amount_cents": "9007199254740993",
    "stage": "STAGE_WON",
    "closes_at": "2026-01-31T12:00:00Z",
    "reminder": "3.500s",
    "tags": ["a", "b"],
    "scores": {"fit": 3},
    "team": {"name": "EMEA"},
    "note": "",
    "document": base64.b64encode(b"\x00\xff").decode(),
    "probability": "Infinity",
    "extra": {"a": [1, None, {"b": "c"}]},
    "anything": None,
    "mask": "displayName,team.name",
    "nickname": "",
    "parent": {"id": "1", "user": "u1"},
    "attachment": {"@type": "type.googleapis.com/crm.v1.Team", "name": "inside"},
    "visits": "18446744073709551615",
    "teams": {"-4": {"name": "x"}},
}


async def provider_of(crib: Crib) -> ProviderDefinition:
    """The imported provider."""
    return next(found for found in crib.providers.current("default") if found.name == "crm")


async def change(crib: Crib, **fields: Any) -> None:
    """Save the provider with other fields."""
    await crib.save_provider((await provider_of(crib)).model_copy(update=fields))


async def revise(crib: Crib, name: str, **fields: Any) -> None:
    """Save a tool with other fields."""
    definition = crib.registry.require("default", name).definition
    await crib.save(definition.model_copy(update=fields))


@pytest.mark.requirement("grpc.messages")
async def test_every_kind_of_field_arrives_as_its_type_and_comes_back_as_it_went(crib: Crib, crm: Crm) -> None:
    envelope = await crib.call("DealService_PutDeal", FULL)
    assert envelope.error is None
    assert envelope.output == FULL | {"parent": envelope.output["parent"], "created_by": ""}
    assert envelope.output["parent"]["user"] == "u1"
    (deal,) = crm.stored
    assert deal.amount_cents == 9007199254740993
    assert deal.closes_at.seconds == 1769860800
    assert deal.document == b"\x00\xff"
    assert deal.HasField("note")
    assert deal.HasField("nickname")
    assert deal.WhichOneof("owner") == "team"
    assert deal.teams[-4].name == "x"
    assert envelope.metadata["grpc_status"] == "OK"
    assert "warnings" not in envelope.metadata


@pytest.mark.requirement("grpc.messages")
async def test_groups_defaults_and_required_fields_of_proto2_arrive(crib: Crib, crm: Crm) -> None:
    envelope = await crib.call("Orders_Place", {"number": 1, "line": [{"sku": "a"}, {"sku": "b"}]})
    assert envelope.output == {"number": 1, "colour": "BLUE", "copies": 3, "line": [{"sku": "a"}, {"sku": "b"}]}
    assert [line.sku for line in crm.stored[0].line] == ["a", "b"]


@pytest.mark.requirement("grpc.messages")
async def test_a_request_that_is_no_object_is_the_argument_value(crib: Crib) -> None:
    envelope = await crib.call("DealService_Shout", value="hello")
    assert envelope.output == "HELLO"


@pytest.mark.requirement("grpc.messages", "grpc.schemas")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("DealService_PutDeal", {"unknown": 1}),
        ("DealService_PutDeal", {"user": "u1", "team": {"name": "x"}}),
        ("DealService_PutDeal", {"stage": "LOST"}),
        ("DealService_PutDeal", {"created_by": "me"}),
        ("DealService_PutDeal", {"amount_cents": "99999999999999999999"}),
        ("DealService_PutDeal", {"closes_at": "tomorrow"}),
        ("DealService_PutDeal", {"mask": "display_name"}),
        ("DealService_PutDeal", {"document": "a"}),
        ("DealService_PutDeal", {"attachment": {"@type": "type.googleapis.com/no.Such"}}),
        ("DealService_PutDeal", {"teams": {"99999999999": {}}}),
        ("DealService_GetDeal", {}),
        ("Orders_Place", {"line": []}),
        ("DealService_Shout", {"value": 3}),
    ],
)
async def test_arguments_that_are_no_such_message_are_refused_and_nothing_is_sent(
    crib: Crib, crm: Crm, tool: str, arguments: dict[str, Any]
) -> None:
    envelope = await crib.call(tool, arguments)
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.VALIDATION_ERROR
    assert envelope.error.reason is Reason.INPUT_SCHEMA_MISMATCH
    assert crm.metadata == []


@pytest.mark.requirement("grpc.unknown_any")
async def test_what_nobody_describes_is_kept_as_type_and_bytes_at_any_depth(crib: Crib, crm: Crm) -> None:
    inner: Any = Deal()
    inner.attachment.type_url, inner.attachment.value = "type.googleapis.com/no.Such", b"\x01"
    crm.deal.parent.CopyFrom(inner)
    crm.deal.attachment.Pack(inner)
    envelope = await crib.call("DealService_GetDeal", id="7")
    kept = {
        "@type": "type.googleapis.com/google.protobuf.Struct",
        "value": {"type_url": "type.googleapis.com/no.Such", "value": "AQ=="},
    }
    assert envelope.output["parent"]["attachment"] == kept
    assert envelope.output["attachment"]["attachment"] == kept


@pytest.mark.requirement("grpc.bad_answers")
@pytest.mark.parametrize("spoil", ["extra", "closes_at"])
async def test_an_answer_that_json_cannot_say_is_an_error_of_the_provider(crib: Crib, crm: Crm, spoil: str) -> None:
    if spoil == "extra":
        crm.deal.extra.fields["a"].number_value = float("nan")
    else:
        crm.deal.closes_at.seconds = 10**15
    envelope = await crib.call("DealService_GetDeal", id="7")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)


@pytest.mark.requirement("grpc.streams")
async def test_a_stream_is_the_list_of_its_messages(crib: Crib) -> None:
    envelope = await crib.call("DealService_ListDeals", count=3)
    assert [deal["id"] for deal in envelope.output] == ["0", "1", "2"]
    assert envelope.metadata["stream"] == {"messages": 3, "complete": True}


@pytest.mark.requirement("grpc.streams")
async def test_a_stream_without_end_is_cancelled_after_max_messages(crib: Crib, crm: Crm) -> None:
    made = crib.registry.require("default", "DealService_ListDeals").definition.implementation
    assert isinstance(made, GrpcImplementation)
    await revise(crib, "DealService_ListDeals", implementation=made.model_copy(update={"max_messages": 4}))
    envelope = await crib.call("DealService_ListDeals", count=-1)
    assert len(envelope.output) == 4
    assert envelope.metadata["stream"] == {"messages": 4, "complete": False}
    assert "max_messages=4" in envelope.metadata["warnings"][0]
    await crm.ended.wait()


@pytest.mark.requirement("grpc.deadline")
async def test_the_server_is_told_the_shorter_of_the_two_limits(crib: Crib, crm: Crm) -> None:
    await crib.call("DealService_GetDeal", id="7")
    assert 30 < crm.remaining_s[-1] < 70
    await change(crib, timeout_s=20.0)
    await crib.call("DealService_GetDeal", id="7")
    assert 1 < crm.remaining_s[-1] < 30


@pytest.mark.requirement("grpc.deadline")
async def test_a_call_that_is_given_up_is_cancelled_at_the_server(crib: Crib, crm: Crm) -> None:
    begun = asyncio.Event()
    ended = asyncio.Event()

    async def hang(request: Any, context: Any) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    crm.note = partial(hang, None)
    asked = asyncio.create_task(crib.call("DealService_GetDeal", id="7"))
    await begun.wait()
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await ended.wait()


@pytest.mark.requirement("grpc.deadline")
@pytest.mark.slow
async def test_a_server_that_never_answers_ends_in_a_timeout(crib: Crib, crm: Crm) -> None:
    async def hang(context: Any) -> None:
        await asyncio.Event().wait()

    crm.note = hang
    await change(crib, timeout_s=0.2)
    envelope = await crib.call("DealService_Fail", status=0)
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT)


@pytest.mark.requirement("grpc.credentials")
@pytest.mark.parametrize(
    ("auth", "name", "value"),
    [
        (BearerAuth(token="${env:CRM_TOKEN}"), "authorization", "Bearer s3cret-token"),
        (BasicAuth(username="${env:CRM_TOKEN}", password="${env:CRM_TOKEN}"), "authorization", None),
        (ApiKeyAuth(key="${env:CRM_TOKEN}", name="X-Api-Key"), "x-api-key", "s3cret-token"),
    ],
)
async def test_credentials_and_headers_travel_as_metadata_and_are_not_shown(
    port: int, crm: Crm, auth: Any, name: str, value: str | None
) -> None:
    environment = {"CRM_TOKEN": "s3cret-token"}
    async with Crib(
        "memory://", egress=local(port), environment=environment, definitions=DefinitionOptions(released=("CRM_*",))
    ) as crib:
        await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm", auth=auth)
        await change(crib, headers={"X-Tenant": "t1"})
        crm.deal.display_name = "echo s3cret-token"
        envelope = await crib.call("DealService_GetDeal", id="7")
    assert crm.metadata[-1]["x-tenant"] == "t1"
    assert value is None or crm.metadata[-1][name] == value
    assert envelope.error is None
    assert "s3cret-token" not in envelope.model_dump_json()


@pytest.mark.requirement("grpc.credentials")
async def test_credentials_of_a_query_are_refused_with_the_remedy(port: int, crm: Crm, crib: Crib) -> None:
    await crib.close()
    async with Crib(
        "memory://",
        egress=local(port),
        environment={"CRM_TOKEN": "s3cret"},
        definitions=DefinitionOptions(released=("CRM_*",)),
    ) as other:
        await other.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
        await change(other, auth=ApiKeyAuth(key="${env:CRM_TOKEN}", name="key", place="query"))
        envelope = await other.call("DealService_GetDeal", id="7")
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.AUTH_REQUIRED
    assert "place 'header'" in envelope.error.message
    assert crm.metadata == []


@pytest.mark.requirement("grpc.credentials")
@pytest.mark.parametrize("headers", [{"Grpc-Timeout": "1S"}, {"a-bin": "x"}, {"a b": "x"}, {"a": "ü"}, {"te": "x"}])
async def test_a_header_that_is_no_metadata_is_refused(crib: Crib, crm: Crm, headers: dict[str, str]) -> None:
    await change(crib, headers=headers)
    envelope = await crib.call("DealService_GetDeal", id="7")
    assert envelope.error is not None
    assert next(iter(headers)).lower() in envelope.error.message
    assert crm.metadata == []


@pytest.mark.requirement("grpc.messages")
async def test_a_tool_that_takes_a_key_gets_it_as_metadata_or_as_an_argument(crib: Crib, crm: Crm) -> None:
    await revise(crib, "DealService_GetDeal", idempotency_key="header:Idempotency-Key")
    await crib.call("DealService_GetDeal", id="7")
    assert crm.metadata[-1]["idempotency-key"]
    await revise(crib, "DealService_PutDeal", idempotency_key="note")
    envelope = await crib.call("DealService_PutDeal", id="7")
    assert envelope.output["note"]


@pytest.mark.requirement("grpc.bad_answers")
async def test_a_tool_whose_descriptors_are_not_at_hand_says_to_import_again(crib: Crib, crm: Crm) -> None:
    made = crib.registry.require("default", "DealService_GetDeal").definition.implementation
    assert isinstance(made, GrpcImplementation)
    for update in ({"descriptors": "0" * 64}, {"request": "no.Such"}):
        await revise(crib, "DealService_GetDeal", implementation=made.model_copy(update=update))
        envelope = await crib.call("DealService_GetDeal", id="7")
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.NOT_FOUND)
        assert "import it again" in envelope.error.message
    assert crm.metadata == []


@pytest.mark.requirement("grpc.statuses")
def test_grpc_knows_seventeen_statuses() -> None:
    assert len(grpc.StatusCode) == 17


@pytest.mark.requirement("grpc.credentials")
async def test_a_fetched_token_that_the_server_refuses_is_fetched_anew_once(port: int, crm: Crm) -> None:
    issued: list[str] = []

    async def issue(request: web.BaseRequest) -> web.StreamResponse:
        issued.append(f"fetched-token-{len(issued) + 1}")
        return web.json_response({"access_token": issued[-1], "token_type": "bearer", "expires_in": 3600})

    async with http_serving(issue) as issuer:
        policy = EgressPolicy(allow=(f"127.0.0.1:{port}", f"127.0.0.1:{issuer}"))
        environment = {"CRM_ID": "id", "CRM_SECRET": "s3cret"}
        async with Crib("memory://", egress=policy, environment=environment) as other:
            await other.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
            auth = OAuth2Auth(
                token_url=f"http://127.0.0.1:{issuer}/token",
                client_id="${env:CRM_ID}",
                client_secret="${env:CRM_SECRET}",
            )
            await change(other, auth=auth)
            assert (await other.call("DealService_GetDeal", id="7")).error is None
            crm.reject = "Bearer fetched-token-1"
            envelope = await other.call("DealService_GetDeal", id="7")
            assert envelope.error is None
            assert [sent["authorization"] for sent in crm.metadata] == [
                "Bearer fetched-token-1",
                "Bearer fetched-token-1",
                "Bearer fetched-token-2",
            ]
            crm.reject = "Bearer fetched-token-2"
            issued[:] = ["x"]
            refused = await other.call("DealService_GetDeal", id="7")
    assert refused.error is not None
    assert refused.error.code is ErrorCode.AUTH_REQUIRED
    assert "fetched-token-2" not in refused.model_dump_json()
