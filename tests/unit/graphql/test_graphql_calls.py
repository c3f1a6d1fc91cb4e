"""Calls of a real GraphQL server: arguments there, answers and errors back."""

import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from starlette.responses import Response

from tests.twins import DictSecrets, ManualClock, make_access, make_context, make_tool
from tests.unit.graphql.server import Api, adopt, crm_import, local
from tests.unit.net.servers import serving
from toolcrib import Crib, DefinitionOptions
from toolcrib.contracts import (
    ApiKeyAuth,
    BearerAuth,
    ErrorCode,
    OAuth2Auth,
    ProviderAuth,
    ProviderDefinition,
    Reason,
    RetryPolicy,
    ToolDefinition,
)
from toolcrib.core.executor import CallFailed, Dispatch
from toolcrib.infrastructure.net import HttpSession
from toolcrib.kinds.graphql.runtime import GraphqlRuntime

PERSON = {"__typename": "Person", "id": "p1", "name": "Ada", "secret": "x", "born": "1815-12-10T00:00:00Z"}

RELEASED_T = DefinitionOptions(released=("T",))
RELEASED_CRM = DefinitionOptions(released=("CRM_*",))


def definition(crib: Crib, name: str) -> ToolDefinition:
    """A tool as it is saved."""
    return crib.registry.require("default", name).definition


async def revise(crib: Crib, name: str, **fields: Any) -> None:
    """Save a tool with other fields."""
    await crib.save(definition(crib, name).model_copy(update=fields))


async def change(crib: Crib, **fields: Any) -> None:
    """Save the provider with other fields."""
    provider: ProviderDefinition | None = crib.providers.find("default", "crm")
    assert provider is not None
    await crib.save_provider(provider.model_copy(update=fields))


def replying(body: Any, status: int = 200, kind: str = "application/json", **headers: str) -> Response:
    """An answer of any kind."""
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(text, status, media_type=kind, headers=sent)


@pytest.mark.requirement("graphql.calls")
async def test_a_query_brings_the_field_that_it_asks_for(crib: Crib, api: Api) -> None:
    envelope = await crib.call("deal", id=1)
    assert envelope.error is None
    assert envelope.output["owner"] == PERSON
    assert envelope.output["notes"] == ["a"]
    assert envelope.output["createdAt"] == "2026-01-31T12:00:00Z"
    assert envelope.side_effects == "reads"
    assert envelope.http_status == 200
    assert "warnings" not in envelope.metadata
    sent = json.loads(api.bodies[-1])
    assert sent["operationName"] == "Deal"
    assert sent["variables"] == {"id": 1}
    assert sent["query"].startswith("query Deal($id: ID!) {")
    assert api.headers[-1]["accept"] == "application/graphql-response+json, application/json;q=0.9"
    assert api.headers[-1]["content-type"] == "application/json"


@pytest.mark.requirement("graphql.calls")
async def test_what_is_not_there_is_null_and_no_error(crib: Crib) -> None:
    envelope = await crib.call("deal", id="none")
    assert (envelope.error, envelope.output) == (None, None)


@pytest.mark.requirement("graphql.calls", "graphql.selections")
async def test_a_list_a_union_and_a_plain_value_come_back_as_they_are(crib: Crib) -> None:
    deals = await crib.call("deals", stage="WON")
    assert [deal["id"] for deal in deals.output] == ["1"]
    assert (await crib.call("deals", stage="LOST")).output == []
    party = await crib.call("party", id="c1")
    assert party.output["__typename"] == "Company"
    assert party.output["size"] == 3
    assert (await crib.call("echo", text="é \n \u2713")).output == "é \n \u2713"


@pytest.mark.requirement("graphql.calls")
async def test_a_mutation_writes_with_its_variables(crib: Crib, api: Api) -> None:
    envelope = await crib.call("create_deal", input={"name": "New", "parent": {"name": "Old"}})
    assert envelope.error is None
    assert envelope.side_effects == "writes"
    assert (envelope.output["name"], envelope.output["stage"]) == ("New", "OPEN")
    assert api.created[0]["tags"] == []
    assert api.created[0]["parent"]["name"] == "Old"


@pytest.mark.requirement("graphql.calls", "graphql.schemas")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("deal", {}),
        ("deal", {"id": None}),
        ("deal", {"id": "1", "other": 1}),
        ("deals", {"stage": "MAYBE"}),
        ("deals", {"first": 2**31}),
        ("deals", {"first": None}),
        ("create_deal", {"input": {"stage": "OPEN"}}),
        ("create_deal", {"input": {"name": "x", "tags": "a"}}),
        ("create_deal", {"input": {"name": "x", "parent": {}}}),
        ("echo", {"text": 3}),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_before_anything_is_sent(
    crib: Crib, api: Api, tool: str, arguments: dict[str, Any]
) -> None:
    envelope = await crib.call(tool, arguments)
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.VALIDATION_ERROR
    assert api.bodies == []


@pytest.mark.requirement("graphql.calls")
async def test_text_that_json_cannot_hold_is_refused_before_anything_is_sent(crib: Crib, api: Api) -> None:
    envelope = await crib.call("echo", text="\ud800")
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.VALIDATION_ERROR
    assert api.bodies == []


@pytest.mark.requirement("graphql.calls")
async def test_a_call_has_its_key_as_a_header_or_as_a_variable(crib: Crib, api: Api) -> None:
    await revise(crib, "create_deal", idempotency_key="header:Idempotency-Key")
    await crib.call("create_deal", input={"name": "a"})
    assert len(api.headers[-1]["idempotency-key"]) > 10
    await revise(crib, "create_deal", idempotency_key="key")
    await crib.call("create_deal", input={"name": "a"})
    assert len(api.created[-1]["key"]) > 10
    await crib.call("create_deal", input={"name": "a"}, key="mine")
    assert api.created[-1]["key"] == "mine"


@pytest.mark.requirement("graphql.calls")
async def test_a_client_is_handed_the_operation_and_no_credentials(port: int, api: Api) -> None:
    async with Crib(
        "memory://",
        egress=local(port),
        environment={"T": "s3cret-token"},
        definitions=RELEASED_T,
    ) as crib:
        await adopt(crib, crm_import(port, BearerAuth(token="${env:T}")))
        await revise(crib, "deal", runs_on="client")
        run_id = (await crib.invoke("deal", {"id": "1"}, as_call=True)).run_id
        [handed] = await crib.pending_handoffs(run_id)
    assert handed.output["url"] == f"http://127.0.0.1:{port}/graphql"
    assert handed.output["query"].startswith("query Deal")
    assert (handed.output["operationName"], handed.output["variables"]) == ("Deal", {"id": "1"})
    assert "s3cret" not in handed.model_dump_json()
    assert api.bodies == []


@pytest.mark.requirement("graphql.calls")
async def test_all_of_data_is_the_output_of_an_operation_of_ones_own(crib: Crib) -> None:
    own = definition(crib, "echo").implementation
    document = 'query Two { one: echo(text: "1") two: echo(text: "2") }'
    await revise(
        crib,
        "echo",
        output_schema=None,
        input_schema={"type": "object"},
        implementation=own.model_copy(update={"document": document, "operation_name": "Two", "output_key": None}),
    )
    assert (await crib.call("echo")).output == {"one": "1", "two": "2"}


@pytest.mark.requirement("graphql.calls")
@pytest.mark.parametrize(
    ("auth", "place"),
    [
        (BearerAuth(token="${env:CRM_TOKEN}"), "authorization"),
        (ApiKeyAuth(key="${env:CRM_TOKEN}", name="X-Api-Key"), "x-api-key"),
        (ApiKeyAuth(key="${env:CRM_TOKEN}", name="key", place="cookie"), "cookie"),
        (ApiKeyAuth(key="${env:CRM_TOKEN}", name="key", place="query"), None),
    ],
)
async def test_credentials_and_headers_are_sent_and_not_shown(
    port: int, api: Api, auth: ProviderAuth, place: str | None
) -> None:
    environment = {"CRM_TOKEN": "s3cret-token"}
    async with Crib("memory://", egress=local(port), environment=environment, definitions=RELEASED_CRM) as crib:
        await adopt(crib, crm_import(port, auth))
        await change(crib, headers={"X-Tenant": "t1"})
        api.deals[0]["name"] = "it is s3cret-token"
        envelope = await crib.call("deal", id="1")
        api.answer = replying({"errors": [{"message": "s3cret-token", "path": ["s3cret-token"]}]})
        failed = await crib.call("deal", id="1")
    assert api.headers[0]["x-tenant"] == "t1"
    assert "s3cret-token" in (api.urls[0] if place is None else api.headers[0][place])
    assert envelope.error is None
    assert failed.error is not None
    assert "s3cret-token" not in envelope.model_dump_json() + failed.model_dump_json()


@pytest.mark.requirement("graphql.calls")
async def test_credentials_are_added_to_the_query_of_the_address(port: int, api: Api) -> None:
    async with Crib("memory://", egress=local(port), environment={"T": "a&b"}, definitions=RELEASED_T) as crib:
        await adopt(crib, crm_import(port, ApiKeyAuth(key="${env:T}", name="key", place="query")))
        await change(crib, base_url=f"http://127.0.0.1:{port}/graphql?v=1#x")
        assert (await crib.call("echo", text="a")).error is None
    assert api.urls[0].endswith("/graphql?v=1&key=a%26b")


@pytest.mark.requirement("graphql.calls")
async def test_a_header_that_would_break_is_refused(crib: Crib, api: Api) -> None:
    await change(crib, headers={"X-Tenant": "a\r\nb"})
    envelope = await crib.call("echo", text="a")
    assert envelope.error is not None
    assert "x-tenant" in envelope.error.message
    assert api.bodies == []


@pytest.mark.requirement("graphql.errors")
async def test_refused_credentials_need_new_ones_and_are_not_shown(port: int, api: Api) -> None:
    api.token = "Bearer right"
    async with Crib(
        "memory://",
        egress=local(port),
        environment={"T": "wrong-token"},
        definitions=RELEASED_T,
    ) as crib:
        await adopt(crib, crm_import(port, BearerAuth(token="${env:T}")))
        envelope = await crib.call("echo", text="a")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.http_status) == (ErrorCode.AUTH_REQUIRED, 401)
    assert "check the provider's credentials" in envelope.error.message
    assert "wrong-token" not in envelope.model_dump_json()


@pytest.mark.requirement("graphql.calls")
@pytest.mark.parametrize("status", [200, 401])
async def test_a_fetched_token_that_is_refused_is_fetched_anew_once(port: int, api: Api, status: int) -> None:
    issued: list[str] = []

    async def issue(request: web.BaseRequest) -> web.StreamResponse:
        issued.append(f"fetched-token-{len(issued) + 1}")
        return web.json_response({"access_token": issued[-1], "token_type": "bearer", "expires_in": 3600})

    refusal = {"errors": [{"message": "old", "path": ["echo"], "extensions": {"code": "UNAUTHENTICATED"}}]}

    async def refuse_first(request: web.BaseRequest) -> web.StreamResponse:
        api.headers.append({"authorization": request.headers["authorization"]})
        if request.headers["authorization"] == "Bearer fetched-token-1":
            return web.json_response({**refusal, "data": {"echo": None}}, status=status)
        return web.json_response({"data": {"echo": "hi"}})

    async with serving(issue) as issuer, serving(refuse_first) as other:
        environment = {"CRM_ID": "id", "CRM_SECRET": "s3cret"}
        async with Crib("memory://", egress=local(other, issuer), environment=environment) as crib:
            auth = OAuth2Auth(
                token_url=f"http://127.0.0.1:{issuer}/token",
                client_id="${env:CRM_ID}",
                client_secret="${env:CRM_SECRET}",
            )
            await adopt(crib, crm_import(other, auth))
            envelope = await crib.call("echo", text="a")
    assert envelope.output == "hi"
    assert [sent["authorization"][-1] for sent in api.headers] == ["1", "2"]


@pytest.mark.requirement("graphql.partial")
async def test_errors_beside_data_are_a_success_with_a_warning(crib: Crib, api: Api) -> None:
    api.answer = replying(
        {
            "data": {"deal": {"id": "1", "risky": None}},
            "errors": [
                {"message": "too risky", "path": ["deal", "risky"], "extensions": {"exception": {"stack": "s"}}}
            ],
        }
    )
    await revise(crib, "deal", output_schema=None)
    envelope = await crib.call("deal", id="1")
    assert envelope.error is None
    assert envelope.output == {"id": "1", "risky": None}
    shown = envelope.metadata["graphql"]
    assert shown == {"errors": [{"message": "too risky", "path": ["deal", "risky"]}], "error_count": 1}
    assert envelope.metadata["warnings"] == [
        "the server reports 1 error beside the data: too risky (at deal.risky)",
    ]


@pytest.mark.requirement("graphql.partial")
async def test_a_mutation_whose_answer_failed_has_taken_effect_and_is_not_repeated(crib: Crib, api: Api) -> None:
    envelope = await crib.call("spoil", id="1")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
    assert envelope.error.effect == "done"
    assert "has taken effect" in envelope.error.message
    assert len(api.bodies) == 1


@pytest.mark.requirement("graphql.partial", "graphql.errors")
@pytest.mark.parametrize(
    ("code", "effect"), [("FORBIDDEN", "none"), ("BAD_USER_INPUT", "none"), ("INTERNAL_SERVER_ERROR", "unknown")]
)
async def test_a_mutation_that_was_refused_has_changed_nothing_and_one_that_failed_may_have(
    crib: Crib, code: str, effect: str
) -> None:
    envelope = await crib.call("refuse", code=code)
    assert envelope.error is not None
    assert envelope.error.effect == effect


@pytest.mark.requirement("graphql.errors")
@pytest.mark.parametrize(
    ("code", "meaning", "reason"),
    [
        ("UNAUTHENTICATED", ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
        ("access-denied", ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
        ("BadUserInput", ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        ("GRAPHQL_VALIDATION_FAILED", ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        ("PERSISTED_QUERY_NOT_FOUND", ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        ("MAX_COST_EXCEEDED", ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        ("NOT_FOUND", ErrorCode.VALIDATION_ERROR, Reason.NOT_FOUND),
        ("THROTTLED", ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
        ("GATEWAY_TIMEOUT", ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
        ("INTERNAL_SERVER_ERROR", ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        ("WHATEVER", ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        ("", ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
    ],
)
async def test_codes_of_errors_are_the_nine_codes(crib: Crib, code: str, meaning: ErrorCode, reason: Reason) -> None:
    envelope = await crib.call("refuse", code=code)
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (meaning, reason)
    assert "no, thanks (at refuse)" in envelope.error.message
    assert envelope.error.details is not None
    assert envelope.error.details["problems"] == [{"path": "refuse", "problem": "no, thanks"}]


@pytest.mark.requirement("graphql.errors")
@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("GRAPHQL_VALIDATION_FAILED", "import the provider again"),
        ("PERSISTED_QUERY_NOT_FOUND", "have this one registered there"),
        ("MAX_COST_EXCEEDED", "with a lower cost"),
        ("RATE_LIMITED", "wait before calling again"),
    ],
)
async def test_an_error_says_what_to_do(crib: Crib, code: str, remedy: str) -> None:
    envelope = await crib.call("refuse", code=code)
    assert envelope.error is not None
    assert remedy in envelope.error.message


@pytest.mark.requirement("graphql.errors")
async def test_a_wait_is_told_from_the_error_or_from_the_header(crib: Crib, api: Api) -> None:
    envelope = await crib.call("refuse", code="THROTTLED", wait=7.5)
    assert envelope.error is not None
    assert envelope.error.retry_after_s == 7.5
    throttled = {"errors": [{"message": "slow down", "type": "RATE_LIMITED"}]}
    api.answer = replying(throttled, 200, retry_after="4")
    again = await crib.call("refuse")
    assert again.error is not None
    assert (again.error.code, again.error.retry_after_s) == (ErrorCode.RATE_LIMIT, 4.0)


@pytest.mark.requirement("graphql.errors")
@pytest.mark.parametrize("kind", ["application/json", "application/graphql-response+json"])
@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (400, ErrorCode.VALIDATION_ERROR),
        (403, ErrorCode.AUTH_REQUIRED),
        (429, ErrorCode.RATE_LIMIT),
        (500, ErrorCode.PROVIDER_ERROR),
        (504, ErrorCode.TIMEOUT),
    ],
)
async def test_errors_without_a_known_code_mean_what_the_status_says(
    crib: Crib, api: Api, status: int, meaning: ErrorCode, kind: str
) -> None:
    api.answer = replying({"errors": [{"message": "no"}]}, status, kind)
    envelope = await crib.call("create_deal", input={"name": "a"})
    assert envelope.error is not None
    assert envelope.error.code is meaning
    assert envelope.error.message.startswith("tool 'create_deal' got errors: no")
    assert envelope.error.effect == ("unknown" if status >= 500 else "none")


@pytest.mark.requirement("graphql.errors")
async def test_a_server_whose_schema_has_changed_refuses_the_operation(crib: Crib, api: Api) -> None:
    own = definition(crib, "echo").implementation
    document = "query Echo { gone }"
    await revise(crib, "echo", implementation=own.model_copy(update={"document": document}))
    envelope = await crib.call("echo", text="a")
    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.VALIDATION_ERROR
    assert "Cannot query field 'gone'" in envelope.error.message
    assert len(api.bodies) == 1


@pytest.mark.requirement("graphql.errors")
async def test_many_errors_are_told_in_short(crib: Crib, api: Api) -> None:
    several = [{"message": f"problem {number} " + "x" * 2_000, "path": ["a"] * 50} for number in range(500)]
    api.answer = replying({"errors": several, "data": None})
    envelope = await crib.call("create_deal", input={"name": "a"})
    assert envelope.error is not None
    assert "and 497 more" in envelope.error.message
    assert len(envelope.model_dump_json()) < 50_000


@pytest.mark.requirement("graphql.bad_answers")
@pytest.mark.parametrize(
    "body",
    [
        "<p>hello",
        "[]",
        "{}",
        '{"data": 3}',
        '{"data": null}',
        '{"data": {}}',
        '{"errors": []}',
        '{"errors": ["no"]}',
        "",
    ],
)
async def test_a_success_that_is_no_answer_of_graphql_is_an_error_of_the_provider(
    crib: Crib, api: Api, body: str
) -> None:
    api.answer = replying(body)
    read = await crib.call("deal", id="1")
    wrote = await crib.call("create_deal", input={"name": "a"})
    for envelope in (read, wrote):
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
        assert "check the provider's address" in envelope.error.message
    assert wrote.error is not None
    assert wrote.error.effect == "unknown"


@pytest.mark.requirement("graphql.bad_answers", "graphql.errors")
@pytest.mark.parametrize(
    ("status", "body", "meaning"),
    [
        (404, "nothing", ErrorCode.VALIDATION_ERROR),
        (502, "<html>", ErrorCode.PROVIDER_ERROR),
        (429, "", ErrorCode.RATE_LIMIT),
        (302, "", ErrorCode.PROVIDER_ERROR),
        (500, '{"data": {"deal": null}}', ErrorCode.PROVIDER_ERROR),
        (500, '{"message": "no"}', ErrorCode.PROVIDER_ERROR),
    ],
)
async def test_a_failure_that_is_no_answer_of_graphql_means_what_its_status_says(
    crib: Crib, api: Api, status: int, body: str, meaning: ErrorCode
) -> None:
    await revise(crib, "deal", retry=definition(crib, "create_deal").retry)
    api.answer = replying(body, status, location="/x")
    envelope = await crib.call("deal", id="1")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.http_status) == (meaning, status)


@pytest.mark.requirement("graphql.calls")
async def test_data_under_the_type_of_graphql_count_whatever_the_status(crib: Crib, api: Api) -> None:
    api.answer = replying({"data": {"echo": "a"}}, 294, "application/json")
    assert (await crib.call("echo", text="a")).output == "a"
    api.answer = replying({"data": {"echo": "b"}}, 422, "application/graphql-response+json")
    assert (await crib.call("echo", text="a")).output == "b"


@pytest.mark.requirement("graphql.bad_answers")
async def test_an_answer_that_is_too_large_is_an_error_of_the_provider(port: int, api: Api) -> None:
    policy = local(port)
    async with Crib("memory://", egress=replace(policy, max_bytes=5_000)) as crib:
        await adopt(crib, crm_import(port))
        envelope = await crib.call("echo", text="x" * 10_000)
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)


@pytest.mark.requirement("graphql.bad_answers")
@pytest.mark.slow
async def test_a_late_mutation_has_an_unknown_effect_and_one_that_was_not_sent_has_none(port: int, api: Api) -> None:
    async with Crib("memory://", egress=local(port, 1)) as crib:
        await adopt(crib, crm_import(port))
        await revise(crib, "slow", side_effects="writes", idempotent=False, timeout_s=0.3, retry=RetryPolicy())
        late = await crib.call("slow", seconds=5.0)
        assert late.error is not None
        assert (late.error.code, late.error.effect) == (ErrorCode.TIMEOUT, "unknown")
        await change(crib, base_url="http://127.0.0.1:1/graphql")
        unsent = await crib.call("create_deal", input={"name": "a"})
    assert unsent.error is not None
    assert (unsent.error.code, unsent.error.effect) == (ErrorCode.NETWORK_ERROR, "none")


@pytest.mark.requirement("graphql.calls")
async def test_only_what_the_policy_allows_is_reached(crib: Crib, api: Api) -> None:
    await change(crib, base_url="http://127.0.0.1:9/graphql")
    envelope = await crib.call("echo", text="a")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)


@pytest.mark.requirement("graphql.calls")
async def test_the_runtime_refuses_tools_of_other_kinds() -> None:
    call = Dispatch(
        tool=make_tool("other"),
        input={},
        auth={},
        idempotency_key="k",
        position="p",
        attempt=1,
        context=make_context(),
    )
    clock = ManualClock()
    async with HttpSession() as session:
        access = make_access(session, clock, DictSecrets({}), lambda _realm, _name: None)
        with pytest.raises(CallFailed, match="is of kind 'python', which this runtime does not execute"):
            await GraphqlRuntime(session, access, clock=clock).run(call)
