"""What an answer of the service means for the call."""

from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from tests.twins import AT, make_definition
from tests.unit.net.servers import answering as raw_answer
from tests.unit.net.servers import serving_raw, silent
from tests.unit.runtimes_http.service import BEARER, TOKEN, Answering, Seen, service
from toolcrib.contracts import ErrorCode, Reason
from toolcrib.core.providers.request_errors import retry_after
from toolcrib.infrastructure.net import HttpResponse
from toolcrib.kinds.http.runtime.failures import status_failure


def answering(body: bytes = b"", status: int = 200, **headers: str) -> Answering:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: web.Response(body=body, status=status, headers=sent)


@pytest.mark.requirement("runtime_http.answers")
@pytest.mark.parametrize(
    ("content_type", "body", "output"),
    [
        ("application/json", b'{"a": [1, null]}', {"a": [1, None]}),
        ("application/json; charset=utf-8", b"\xef\xbb\xbf1", 1),
        ("application/problem+json", b'"x"', "x"),
        ("application/json", b"", None),
        ("text/plain; charset=latin-1", b"\xe4", "ä"),
        ("text/plain; charset=nonsense", "ä".encode(), "ä"),
        ("text/csv", b"a,b", "a,b"),
        ("application/atom+xml", b"<a/>", "<a/>"),
        ("image/png", b"\x89PNG", {"media_type": "image/png", "filename": None, "size": 4, "base64": "iVBORw=="}),
        (
            "application/octet-stream",
            b"x",
            {"media_type": "application/octet-stream", "filename": None, "size": 1, "base64": "eA=="},
        ),
    ],
)
async def test_a_body_is_read_by_its_content_type(content_type: str, body: bytes, output: Any) -> None:
    async with service(answering(body, content_type=content_type)) as svc:
        outcome = await svc.run(svc.tool())
        assert (outcome.output, outcome.http_status) == (output, 200)


@pytest.mark.requirement("runtime_http.answers")
async def test_no_content_is_null() -> None:
    async with service(answering(status=204)) as svc:
        outcome = await svc.run(svc.tool(method="DELETE"))
        assert (outcome.output, outcome.http_status) == (None, 204)


@pytest.mark.requirement("runtime_http.bad_answers")
async def test_broken_json_is_a_provider_error() -> None:
    async with service(answering(b'{"a":', content_type="application/json"), auth=BEARER) as svc:
        failed = await svc.failure(svc.tool())
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)
        assert (failed.http_status, failed.secrets) == (200, (TOKEN,))


@pytest.mark.requirement("runtime_http.statuses")
@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (400, ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (401, ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
        (403, ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED),
        (404, ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (408, ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
        (409, ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (418, ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (422, ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (429, ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED),
        (499, ErrorCode.VALIDATION_ERROR, Reason.REQUEST_REFUSED),
        (500, ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (503, ErrorCode.PROVIDER_ERROR, Reason.TOOL_FAILED),
        (504, ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT),
        (304, ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE),
    ],
)
async def test_each_status_is_one_of_the_error_codes(status: int, code: ErrorCode, reason: Reason) -> None:
    async with service(answering(status=status)) as svc:
        failed = await svc.failure(svc.tool())
        assert (failed.error.code, failed.error.reason, failed.http_status) == (code, reason, status)
        assert failed.error.message.startswith(f"tool 'deals' got {status}")


@pytest.mark.requirement("runtime_http.statuses")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"message": "no such deal"}', "no such deal"),
        (b'{"error": {"message": "bad", "details": [{"path": "a.b", "problem": "is odd"}]}}', "bad; a.b: is odd"),
        (b'{"error": "invalid_grant", "error_description": "expired"}', "expired"),
        (b'{"title": "Bad", "detail": "Worse"}', "Worse"),
        (b'{"detail": [{"loc": ["body", "x"], "msg": "required"}]}', "['body', 'x']: required"),
        (b'{"errors": ["one", "two", 3]}', "one; two"),
        (b'["list"]', None),
        (b"{}", None),
        (b"{broken", "{broken"),
    ],
)
async def test_the_message_holds_the_words_of_the_other_side(body: bytes, words: str | None) -> None:
    async with service(answering(body, 400, content_type="application/json")) as svc:
        message = (await svc.failure(svc.tool())).error.message
        start = "tool 'deals' got 400 Bad Request"
        end = "; correct the arguments; the same call cannot work later"
        assert message == start + (f": {words}" if words else "") + end


@pytest.mark.requirement("runtime_http.statuses")
async def test_an_explanation_in_bytes_is_only_measured() -> None:
    async with service(answering(b"\x89PNG", 400, content_type="image/png")) as svc:
        failed = await svc.failure(svc.tool())
        assert "400 Bad Request: (4 bytes of image/png);" in failed.error.message


@pytest.mark.requirement("runtime_http.statuses")
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
async def test_a_long_explanation_is_cut_to_4096_bytes(content_type: str) -> None:
    body = b'{"message": "' + b"x" * 20_000 + b'"}'
    async with service(answering(body, 400, content_type=content_type)) as svc:
        error = (await svc.failure(svc.tool())).error
        assert error.details is not None
        assert len(error.details["explanation"]) == 4_096
        assert len(error.message) < 5_000


@pytest.mark.requirement("runtime_http.statuses")
async def test_a_short_explanation_is_kept_whole() -> None:
    async with service(answering(b'{"allowed": [1]}', 422, content_type="application/json")) as svc:
        error = (await svc.failure(svc.tool())).error
        assert error.details == {"reason": "request_refused", "explanation": {"allowed": [1]}}


@pytest.mark.requirement("runtime_http.retry_after")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "-7"}, 0.0),
        ({"retry-after": format_datetime(AT + timedelta(seconds=90), usegmt=True)}, 90.0),
        ({"retry-after": "Sat, 31 Jan 2026 12:01:00 -0000"}, 60.0),
        ({"retry-after": "Sat, 31 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"ratelimit-reset": "12"}, 12.0),
        ({"x-ratelimit-reset": str(int(AT.timestamp()) + 30)}, 30.0),
        ({"x-ratelimit-reset": str((int(AT.timestamp()) + 30) * 1000)}, 30.0),
        ({"x-ratelimit-reset": "1000000000"}, 0.0),
        ({"x-ratelimit-reset-after": "0.5"}, 0.5),
        ({}, None),
    ],
)
def test_the_wait_is_read_from_the_customary_headers(headers: Any, seconds: float | None) -> None:
    assert retry_after(headers, AT) == seconds


@pytest.mark.requirement("runtime_http.retry_after")
@pytest.mark.parametrize(("status", "wait"), [(429, 3.0), (503, 3.0), (400, None)])
async def test_only_what_may_work_later_says_when(status: int, wait: float | None) -> None:
    async with service(answering(status=status, retry_after="3")) as svc:
        assert (await svc.failure(svc.tool())).error.retry_after_s == wait


@pytest.mark.requirement("runtime_http.metadata")
@pytest.mark.parametrize("status", [200, 404])
async def test_only_allow_listed_headers_are_kept(status: int) -> None:
    shown = {
        "content-type": "text/plain; charset=utf-8",
        "idempotent-replayed": "true",
        "link": "<x>; rel=next",
        "ratelimit-limit": "5",
        "x-ratelimit-remaining": "4",
        "x-request-id": "r1",
    }
    hidden = {"set-cookie": "sid=1", "x-internal": "y", "www-authenticate": "Bearer"}
    async with service(lambda _: web.Response(status=status, headers={**shown, **hidden})) as svc:
        found = await svc.run(svc.tool()) if status == 200 else await svc.failure(svc.tool())
        assert found.metadata == {"headers": shown}


@pytest.mark.requirement("runtime_http.network")
async def test_a_connection_that_breaks_is_a_network_error() -> None:
    async with serving_raw(raw_answer(b"")) as port, service(ports=(port,)) as svc:
        failed = await svc.failure(svc.tool(url=f"http://127.0.0.1:{port}/", provider=None))
        assert (failed.error.code, failed.error.reason) == (ErrorCode.NETWORK_ERROR, Reason.TOOL_FAILED)


@pytest.mark.requirement("runtime_http.network")
async def test_a_silent_service_is_a_timeout() -> None:
    async with serving_raw(silent) as port, service(ports=(port,)) as svc:
        tool = svc.tool(url=f"http://127.0.0.1:{port}/", provider=None, timeout_s=0.05)
        failed = await svc.failure(tool)
        assert (failed.error.code, failed.error.reason) == (ErrorCode.TIMEOUT, Reason.TOOL_TIMEOUT)


@pytest.mark.requirement("runtime_http.network")
async def test_an_oversized_answer_is_a_bad_response() -> None:
    async with service(answering(b"x" * 2_000, content_type="text/plain"), max_bytes=1_000) as svc:
        failed = await svc.failure(svc.tool())
        assert (failed.error.code, failed.error.reason) == (ErrorCode.PROVIDER_ERROR, Reason.BAD_RESPONSE)


@pytest.mark.requirement("runtime_http.network")
async def test_an_address_that_the_policy_denies_is_not_called() -> None:
    async with service() as svc:
        failed = await svc.failure(svc.tool(url="http://169.254.169.254/latest", provider=None))
        assert (failed.error.code, failed.error.reason) == (ErrorCode.POLICY_DENIED, Reason.SSRF_BLOCKED)


@pytest.mark.requirement("runtime_http.redirects")
async def test_only_reading_methods_follow_redirects() -> None:
    def answer(seen: Seen) -> web.Response:
        if seen.path == "/new":
            return web.json_response({"arrived": seen.method})
        return web.Response(status=301, headers={"location": "/new"})

    async with service(answer) as svc:
        assert (await svc.run(svc.tool("/old"))).output == {"arrived": "GET"}
        failed = await svc.failure(svc.tool("/old", method="POST"))
        assert (failed.error.code, failed.http_status) == (ErrorCode.PROVIDER_ERROR, 301)
        assert [seen.method for seen in svc.seen] == ["GET", "GET", "POST"]


@pytest.mark.requirement("effects.key")
@pytest.mark.parametrize(
    ("again", "fields", "code"),
    [
        (True, {"idempotency_key": "header:Idempotency-Key"}, "PROVIDER_ERROR"),
        (False, {"idempotency_key": "header:Idempotency-Key"}, "VALIDATION_ERROR"),
        (True, {}, "VALIDATION_ERROR"),
    ],
)
def test_a_conflict_with_the_first_request_of_a_keyed_call_is_no_refusal(again: bool, fields: Any, code: str):
    failure = status_failure(
        make_definition("pay", **fields), HttpResponse(409, {}, b"", "https://bank/"), AT, again=again
    )

    assert failure.error.code == code
    assert ("its first request is still being worked on" in failure.error.message) == (code == "PROVIDER_ERROR")
