"""Attacks on the one way in: secrets that try to get out, tools and callers that try to break the envelope."""

import asyncio
import base64
from typing import Any, Unpack
from urllib.parse import quote

import pytest

from tests.twins import Behaviour, Rig, echo, make_context, make_tool
from tests.twins.builders import ToolChanges
from toolcrib.contracts import (
    Attachment,
    ClientResult,
    ErrorCode,
    Principal,
    Reason,
    RetryPolicy,
    SecretReference,
    ToolEnvelope,
)
from toolcrib.core.executor import CallFailed, Dispatch, Outcome, error
from toolcrib.infrastructure.secrets import EnvironmentSecrets, Safe, ScopedSecrets, Vault
from toolcrib.infrastructure.store import MemoryStore

SECRET = "sk-very/secret=value+0123456789"
TOKEN = "token-that-the-runtime-fetched"
KEY = SecretReference(name="key", reference="${env:KEY}")


def holder(behaviour: Behaviour, **changes: Unpack[ToolChanges]) -> Rig:
    """One tool that gets the secret."""
    changes["secrets"] = (KEY,)
    return Rig(make_tool(**changes), behaviour=behaviour, secrets={"${env:KEY}": SECRET})


def told(rig: Rig, envelope: ToolEnvelope) -> str:
    """All that leaves the executor."""
    journal = [*rig.journal.intents, *rig.journal.requests, *rig.journal.handed]
    return "\n".join(model.model_dump_json() for model in (envelope, *journal))


def spellings() -> list[Any]:
    data = SECRET.encode()
    return [
        SECRET,
        {"deep": [{SECRET: f"Bearer {SECRET}."}]},
        quote(SECRET, safe=""),
        data.hex(),
        base64.b64encode(data).decode(),
        base64.b64encode(b"user:" + data).decode(),
    ]


@pytest.mark.requirement("executor.secrets")
@pytest.mark.parametrize("echo", spellings(), ids=["plain", "nested", "url", "hex", "base64", "basic"])
@pytest.mark.parametrize("place", ["output", "metadata", "error", "details", "crash", "attachment"])
async def test_a_secret_that_a_tool_echoes_is_taken_out_everywhere(echo: Any, place: str):
    def behaviour(dispatch: Dispatch) -> Outcome:
        assert dispatch.auth == {"key": SECRET}
        failure = error(ErrorCode.UNKNOWN, Reason.TOOL_FAILED, f"said {echo}")
        match place:
            case "output":
                return Outcome(echo)
            case "metadata":
                return Outcome(1, metadata={"header": echo})
            case "attachment":
                return Outcome(1, attachments=(Attachment(kind="image", url=f"https://a.b/?key={echo}"),))
            case "error":
                raise CallFailed(failure)
            case "details":
                raise CallFailed(failure.model_copy(update={"details": {"body": echo}}), metadata={"header": echo})
            case _:
                raise ValueError(echo)

    rig = holder(behaviour)

    text = told(rig, await rig.run())

    data = SECRET.encode()
    for form in (SECRET[:12], quote(SECRET, safe=""), data.hex(), base64.b64encode(data).decode()):
        assert form not in text
    assert "[secret]" in text


@pytest.mark.requirement("executor.secrets")
@pytest.mark.parametrize("before", range(1940, 2001, 4))
async def test_no_part_of_a_secret_is_left_where_a_message_is_cut(before: int):
    def behaviour(dispatch: Dispatch) -> Outcome:
        raise ValueError("x" * before + SECRET)

    rig = holder(behaviour)

    assert SECRET[:4] not in told(rig, await rig.run())


@pytest.mark.requirement("executor.secrets")
async def test_no_part_of_a_secret_is_left_where_an_output_is_cut_nor_in_the_blob():
    rig = holder(lambda dispatch: Outcome("x" * 40 + SECRET + "y" * 100), max_output_bytes=50)

    envelope = await rig.run()

    assert SECRET[:4] not in told(rig, envelope)
    [whole] = envelope.attachments
    assert b"secret=value" not in await rig.store.blobs.get("default", whole.url.removeprefix("blob:sha256:"))


@pytest.mark.requirement("executor.secrets")
async def test_tokens_that_a_runtime_fetched_are_taken_out_of_successes_and_failures():
    def fail(dispatch: Dispatch) -> Outcome:
        raise CallFailed(error(ErrorCode.AUTH_REQUIRED, Reason.REQUEST_REFUSED, f"bad {TOKEN}"), secrets=(TOKEN,))

    rig = holder(lambda dispatch: Outcome([TOKEN, SECRET], secrets=(TOKEN,)))
    success = await rig.run()
    rig.dispatcher.behaviour = fail
    failure = await rig.run()

    assert success.output == ["[secret]", "[secret]"]
    assert failure.error is not None
    assert failure.error.message == "bad [secret]"


@pytest.mark.requirement("executor.secrets")
async def test_a_path_into_the_response_does_not_reach_the_secret():
    rig = holder(lambda dispatch: Outcome({"echo": {"key": SECRET}}), select="$.echo.key")

    assert (await rig.run()).output == "[secret]"


@pytest.mark.requirement("executor.secrets", "executor.isolation")
async def test_a_tool_cannot_smuggle_the_secret_out_through_its_arguments():
    def behaviour(dispatch: Dispatch) -> Outcome:
        dispatch.input["list"].append(dispatch.auth["key"])
        dispatch.input["key"] = dispatch.auth["key"]
        return Outcome(1)

    rig = holder(behaviour)

    assert SECRET not in told(rig, await rig.run(arguments={"list": []}))


@pytest.mark.requirement("executor.secrets", "executor.client")
async def test_a_client_gets_no_secret_and_cannot_bring_one_back():
    rig = holder(lambda dispatch: Outcome({"key": dispatch.auth["key"]}), runs_on="client")
    rig.journal.perform = lambda prepared: ClientResult(output=SECRET, metadata={"key": SECRET})

    assert SECRET not in told(rig, await rig.run())


@pytest.mark.requirement("executor.secrets", "executor.cache")
async def test_the_cache_holds_no_secret_and_serves_no_other_principal():
    rig = holder(lambda dispatch: Outcome(dispatch.context.principal.id + SECRET), cache="forever")
    alice = make_context(principal=Principal(id="alice"))
    bob = make_context(principal=Principal(id="bob"))

    answers = [await rig.run(context=context) for context in (alice, bob, alice)]

    assert [answer.output for answer in answers] == ["alice[secret]", "bob[secret]", "alice[secret]"]
    assert [answer.cached for answer in answers] == [False, False, True]


@pytest.mark.requirement("executor.cache")
async def test_the_cache_never_serves_another_realm():
    tools = (make_tool(cache="forever", realm="one"), make_tool(cache="forever", realm="two"))
    rig = Rig(*tools, behaviour=lambda dispatch: Outcome(dispatch.tool.realm))
    contexts = [make_context(principal=Principal(id="same", realm=realm)) for realm in ("one", "two", "one")]

    answers = [await rig.run(context=context) for context in contexts]

    assert [(answer.output, answer.cached) for answer in answers] == [("one", False), ("two", False), ("one", True)]


@pytest.mark.requirement("executor.missing_secret")
async def test_a_literal_where_a_reference_should_be_is_refused_and_not_repeated():
    pasted = SecretReference(name="key", reference=SECRET)
    vault = ScopedSecrets(EnvironmentSecrets({}, ("*",)), Vault(Safe(MemoryStore().sealed, None)))
    rig = Rig(make_tool(secrets=(pasted,)), vault=vault)

    envelope = await rig.run()

    assert envelope.error is not None
    assert envelope.error.code is ErrorCode.AUTH_REQUIRED
    assert envelope.error.reason is Reason.MISSING_SECRET
    assert SECRET not in told(rig, envelope)
    assert rig.untouched


@pytest.mark.requirement("executor.one_envelope", "executor.resolve")
@pytest.mark.parametrize("name", ["\ud800", "x" * 1_000_000, "", "a\0b", "../../etc/passwd", "${env:KEY}"])
async def test_a_hostile_name_is_an_unknown_tool(name: str):
    envelope = await Rig(make_tool()).run(name, version="\udfff")

    assert envelope.status == "denied"
    assert ToolEnvelope.model_validate_json(envelope.model_dump_json()) == envelope
    assert envelope.error is not None
    assert len(envelope.error.message) < 300


@pytest.mark.requirement("executor.failures", "executor.lanes_cancelled")
async def test_a_tool_that_cancels_itself_does_not_cancel_the_run():
    async def behaviour(dispatch: Dispatch) -> Outcome:
        inner = asyncio.get_running_loop().create_future()
        inner.cancel()
        return Outcome(await inner)

    rig = Rig(make_tool(sequential=True), behaviour=behaviour)

    envelope = await rig.run()

    assert envelope.error is not None
    assert envelope.error.reason is Reason.CANCELLED
    rig.dispatcher.behaviour = echo
    assert (await rig.run()).ok


@pytest.mark.requirement("executor.retries", "executor.timeout")
async def test_an_endless_retry_after_does_not_hold_a_call():
    def behaviour(dispatch: Dispatch) -> Outcome:
        limited = error(ErrorCode.RATE_LIMIT, Reason.RATE_LIMITED, "wait")
        raise CallFailed(limited.model_copy(update={"retry_after_s": 1e308}))

    rig = Rig(make_tool(retry=RetryPolicy(count=10)), behaviour=behaviour)

    assert (await rig.run()).attempts == 1
    assert rig.clock.naps == []
