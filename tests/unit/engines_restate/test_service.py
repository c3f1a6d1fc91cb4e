"""What a worker tells Restate of itself, and whom it hears."""

import json
from typing import Any

import pytest
from restate.exceptions import RetryableError

from tests.unit.engines_restate.plant import Plant
from toolcrib.contracts import Unavailable
from toolcrib.core.engines.restate import RestateOptions, service
from toolcrib.core.engines.restate.drives import DriveOutcome
from toolcrib.core.engines.restate.service import make_app

pytestmark = pytest.mark.requirement("restate.workers")

KEY = "publickeyv1_w7YHemBctH5Ck2nQRQ47iBBqhNHy4FV7t2Usbye2A6f"
MANIFEST = b"application/vnd.restate.endpointmanifest.v4+json"


async def discover(options: RestateOptions) -> tuple[int, bytes]:
    """What a worker answers that is asked what it serves."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"accept", MANIFEST)]
    scope = {"type": "http", "http_version": "2", "path": "/restate/v1/discover", "headers": headers}
    await make_app(Plant().drives.drive, options)(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


async def test_a_worker_serves_one_object_with_the_time_outs_of_the_settings():
    status, body = await discover(RestateOptions(inactivity_s=61, abort_s=7200, retention_s=60, max_retry_s=12))
    (service,) = json.loads(body)["services"]
    assert (status, service["name"], service["ty"]) == (200, "ToolcribRun", "VIRTUAL_OBJECT")
    assert [(handler["name"], handler["ty"]) for handler in service["handlers"]] == [("drive", "SHARED")]
    assert (service["inactivityTimeout"], service["abortTimeout"]) == (61_000, 7_200_000)
    assert (service["journalRetention"], service["idempotencyRetention"]) == (60_000, 60_000)
    assert service["retryPolicyMaxInterval"] == 12_000


async def test_with_identity_keys_nobody_is_heard_who_did_not_sign():
    assert (await discover(RestateOptions(identity_keys=(KEY,))))[0] == 401


@pytest.mark.requirement("restate.unable", "restate.holds_ids")
@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Unavailable("the store is away"), "the store is away"),
        (ValueError("the secret is swordfish"), "driving the run failed with ValueError; the worker's log tells more"),
    ],
)
async def test_restate_is_told_to_try_again_and_not_what_was_worked_on(failure: Exception, told: str):
    async def fail(run_id: str) -> DriveOutcome:
        raise failure

    with pytest.raises(RetryableError) as refused:
        await service.step(fail, "run_1")
    assert refused.value.message == told
