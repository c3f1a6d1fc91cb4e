"""What each status of a server, and each way not to reach it, means for a call."""

import grpc
import pytest

from tests.unit.grpc.server import Crm, crm_server, local
from toolcrib import Crib, EgressPolicy
from toolcrib.contracts import EgressDenied, ErrorCode, Reason

MEANINGS = {
    "CANCELLED": ("PROVIDER_ERROR", "cancelled"),
    "UNKNOWN": ("PROVIDER_ERROR", "tool_failed"),
    "INVALID_ARGUMENT": ("VALIDATION_ERROR", "request_refused"),
    "DEADLINE_EXCEEDED": ("TIMEOUT", "tool_timeout"),
    "NOT_FOUND": ("VALIDATION_ERROR", "not_found"),
    "ALREADY_EXISTS": ("VALIDATION_ERROR", "request_refused"),
    "PERMISSION_DENIED": ("AUTH_REQUIRED", "request_refused"),
    "RESOURCE_EXHAUSTED": ("RATE_LIMIT", "rate_limited"),
    "FAILED_PRECONDITION": ("VALIDATION_ERROR", "request_refused"),
    "ABORTED": ("PROVIDER_ERROR", "tool_failed"),
    "OUT_OF_RANGE": ("VALIDATION_ERROR", "request_refused"),
    "UNIMPLEMENTED": ("PROVIDER_ERROR", "not_found"),
    "INTERNAL": ("PROVIDER_ERROR", "tool_failed"),
    "UNAVAILABLE": ("NETWORK_ERROR", "tool_failed"),
    "DATA_LOSS": ("PROVIDER_ERROR", "bad_response"),
    "UNAUTHENTICATED": ("AUTH_REQUIRED", "request_refused"),
}


@pytest.mark.requirement("grpc.statuses")
@pytest.mark.parametrize("status", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
async def test_every_status_has_its_code_and_says_what_the_server_said(crib: Crib, status: grpc.StatusCode) -> None:
    envelope = await crib.call("DealService_Fail", status=status.value[0], message="because of the deal")
    assert envelope.error is not None
    assert (envelope.error.code, envelope.error.details and envelope.error.details["reason"]) == MEANINGS[status.name]
    assert f"got {status.name}: because of the deal" in envelope.error.message
    assert envelope.metadata["grpc_status"] == status.name
    assert envelope.error.retry_after_s is None


@pytest.mark.requirement("grpc.statuses")
async def test_waits_wrong_fields_and_reasons_are_told_and_stack_traces_are_not(crib: Crib) -> None:
    envelope = await crib.call("DealService_Fail", status=8, message="rich")
    assert envelope.error is not None
    assert envelope.error.retry_after_s == 2.5
    assert "deal.id: is no id" in envelope.error.message
    assert envelope.error.details is not None
    assert envelope.error.details["problems"] == [{"path": "deal.id", "problem": "is no id"}]
    assert envelope.error.details["explanation"] == [
        {"@type": "type.googleapis.com/crm.v1.Unknown"},
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "OUT_OF_DEALS", "domain": "crm.example"},
    ]


@pytest.mark.requirement("grpc.statuses")
async def test_a_wait_is_not_told_where_the_same_call_cannot_work_later(crib: Crib) -> None:
    envelope = await crib.call("DealService_Fail", status=3, message="rich")
    assert envelope.error is not None
    assert envelope.error.retry_after_s is None


@pytest.mark.requirement("grpc.statuses")
@pytest.mark.parametrize(("sent", "wait"), [("1500", 1.5), ("-1", None), ("soon", None)])
async def test_a_pushback_is_a_wait(crib: Crib, crm: Crm, sent: str, wait: float | None) -> None:
    crm.trailing = (("grpc-retry-pushback-ms", sent), ("grpc-status-details-bin", b"\xff"))
    envelope = await crib.call("DealService_Fail", status=14)
    assert envelope.error is not None
    assert envelope.error.retry_after_s == wait


@pytest.mark.requirement("grpc.bad_answers")
async def test_an_answer_that_is_too_large_is_no_rate_limit(port: int, crm: Crm) -> None:
    small = EgressPolicy(allow=(f"127.0.0.1:{port}",), max_bytes=20_000)
    async with Crib("memory://", egress=small) as crib:
        await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
        crm.deal.note = "x" * 30_000
        envelope = await crib.call("DealService_GetDeal", id="7")
        assert envelope.error is not None
        assert (envelope.error.code, envelope.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
        assert "20000 bytes" in envelope.error.message
        crm.deal.note = "x" * 9_000
        stream = await crib.call("DealService_ListDeals", count=-1)
        assert stream.metadata["stream"]["complete"] is False
        assert "20000 bytes" in stream.metadata["warnings"][0]


@pytest.mark.requirement("grpc.channels", "grpc.statuses")
async def test_a_server_that_is_gone_is_a_network_error_and_is_found_again_when_it_is_back() -> None:
    crm = Crm()
    async with crm_server(crm) as port:
        crib = Crib("memory://", egress=local(port))
        await crib.imports.grpc(f"grpc://localhost:{port}", name="crm")
        assert (await crib.call("DealService_GetDeal", id="7")).error is None
    envelope = await crib.call("DealService_Fail", status=0)
    assert envelope.error is not None
    assert envelope.error.code in {ErrorCode.NETWORK_ERROR, ErrorCode.PROVIDER_ERROR}
    assert "check the provider's address" in envelope.error.message
    await crib.close()


@pytest.mark.requirement("grpc.egress")
async def test_an_address_that_the_policy_denies_is_never_connected_to(port: int, crm: Crm) -> None:
    async with Crib("memory://", egress=local(port)) as crib:
        await crib.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
        provider = crib.providers.current("default")[0]
        for address in ("grpc://127.0.0.2:50051", "grpc://169.254.169.254:80", "grpcs://u:p@localhost"):
            await crib.save_provider(provider.model_copy(update={"base_url": address}))
            envelope = await crib.call("DealService_GetDeal", id="7")
            assert envelope.error is not None
            assert (envelope.error.code, envelope.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)
        with pytest.raises(EgressDenied):
            await crib.imports.grpc("grpc://127.0.0.2:50051", name="other")
    assert crm.metadata == []


@pytest.mark.requirement("grpc.egress")
async def test_proxies_of_the_environment_are_not_used(
    port: int, crm: Crm, monkeypatch: pytest.MonkeyPatch, crib: Crib
) -> None:
    for name in ("grpc_proxy", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with Crib("memory://", egress=local(port)) as other:
        await other.imports.grpc(f"grpc://localhost:{port}", name="crm")
        assert (await other.call("DealService_GetDeal", id="7")).error is None
