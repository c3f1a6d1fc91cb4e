"""What the addresses of an agent answer besides tasks: its card, refusals, and clients of version 0.3."""

import sys
from typing import Any, cast

import httpx2
import pytest
from a2a.types import Message, Part, Role, SendMessageRequest
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
)

from tests.unit.a2a.client import a2a_client, address, said, task_from
from tests.unit.executions.house import agent
from tests.unit.openai_endpoint.served import Endpoint, endpoint
from tests.unit.server.client import checked
from toolcrib.interfaces.server import a2a

CARD = "/.well-known/agent-card.json"
V1 = {"A2A-Version": "1.0"}


def http(served: Endpoint, key: str = "owner") -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30)


def call(method: str, params: Any, number: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.requirement("a2a.card")
async def test_a_card_tells_where_and_how_an_agent_answers_and_nothing_of_its_inside() -> None:
    async with endpoint("Hi.") as served, http(served) as client:
        found = await client.get(address(served) + CARD)
        again = await client.get(address(served) + CARD, headers={"If-None-Match": found.headers["etag"]})

    card = found.json()
    assert (card["name"], card["version"]) == ("clerk", "1.0.0")
    assert {
        (each["protocolBinding"], each["protocolVersion"], each["url"]) for each in card["supportedInterfaces"]
    } == {(binding, version, address(served)) for binding in ("JSONRPC", "HTTP+JSON") for version in ("1.0", "0.3")}
    assert card["capabilities"]["streaming"] is True
    assert card["securitySchemes"]["key"]["httpAuthSecurityScheme"]["scheme"] == "Bearer"
    for hidden in ("You are the clerk.", "look", "pay", "scripted"):
        assert hidden not in found.text
    assert found.headers["cache-control"] == "private, max-age=60"
    assert found.headers["last-modified"].endswith("GMT")
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.requirement("a2a.card")
async def test_an_agent_that_a_key_may_not_execute_is_as_unknown_as_one_that_is_not_there() -> None:
    async with endpoint("Hi.") as served, http(served, "reader") as reader, http(served) as owner:
        hidden = await reader.get(address(served) + CARD)
        unknown = await owner.get(address(served, "nothing") + CARD)
        asked = await reader.post(address(served), json=call("SendMessage", {}), headers=V1)
        async with httpx2.AsyncClient(trust_env=False) as stranger:
            strange = await stranger.get(address(served) + CARD)
        elsewhere = await owner.get(address(served) + "/nowhere")

    assert [each.status_code for each in (hidden, unknown, asked, strange, elsewhere)] == [404, 404, 404, 401, 404]
    assert hidden.json()["detail"] == unknown.json()["detail"].replace("nothing", "clerk")


@pytest.mark.requirement("a2a.card")
async def test_the_card_of_the_host_is_that_of_the_only_agent() -> None:
    async with endpoint("Hi.") as served, http(served) as owner, http(served, "reader") as reader:
        host = address(served).removesuffix("/a2a/clerk") + CARD
        found, own = await owner.get(host), await owner.get(address(served) + CARD)
        none = await reader.get(host)
        await served.server.crib.save(agent("second"))
        several = await owner.get(host)

    assert (found.status_code, found.json()) == (200, own.json())
    assert "no agent" in checked(none, 404)["detail"]
    assert "more than one agent" in checked(several, 404)["detail"]


@pytest.mark.requirement("a2a.refusals")
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_what_we_do_not_do_is_refused_with_the_error_of_the_protocol(binding: str) -> None:
    async with endpoint() as served, a2a_client(served, binding=binding, streaming=False) as client:
        with pytest.raises(ContentTypeNotSupportedError, match="answers in text/plain"):
            await task_from(client, said("Hi", accepted_output_modes=["image/png"]))
        image = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(url="https://example.org/a.png")])
        with pytest.raises(ContentTypeNotSupportedError, match="parts/0 is of kind 'url'"):
            await task_from(client, SendMessageRequest(message=image))
        with pytest.raises(PushNotificationNotSupportedError):
            await task_from(client, said("Hi", task_push_notification_config={"url": "https://example.org/"}))
        with pytest.raises(InvalidParamsError, match="the message is empty"):
            await task_from(client, said(" "))
        with pytest.raises(InvalidParamsError):
            await task_from(client, said("Hi", history_length=-1))
        with pytest.raises(InvalidParamsError, match="conversation"):
            await task_from(client, said("Hi", context="elsewhere"))
        for task in ("run_nowhere", "../x"):
            with pytest.raises(TaskNotFoundError, match="has no task"):
                await task_from(client, said("Hi", task=task))
        assert served.model.requests == []


@pytest.mark.requirement("a2a.refusals")
async def test_other_methods_are_refused_and_an_unexpected_failure_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with endpoint() as served, http(served) as client:
        codes: dict[str, int] = {}
        for method, params in {
            "GetExtendedAgentCard": {},
            "CreateTaskPushNotificationConfig": {"taskId": "t", "url": "https://example.org/"},
            "GetTaskPushNotificationConfig": {"taskId": "t", "id": "p"},
            "ListTaskPushNotificationConfigs": {"taskId": "t"},
            "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "p"},
            "GetTask": {},
            "Dance": {},
        }.items():
            answer = await client.post(address(served), json=call(method, params), headers=V1)
            codes[method] = answer.json()["error"]["code"]

        async def fail(*_: object, **__: object) -> None:
            raise RuntimeError("the password is hunter2")

        monkeypatch.setattr(type(served.server.crib.executions), "submit", fail)
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}
        failed = await client.post(address(served), json=call("SendMessage", {"message": message}), headers=V1)

    assert codes == {
        "GetExtendedAgentCard": -32007,
        "CreateTaskPushNotificationConfig": -32003,
        "GetTaskPushNotificationConfig": -32003,
        "ListTaskPushNotificationConfigs": -32003,
        "DeleteTaskPushNotificationConfig": -32003,
        "GetTask": -32602,
        "Dance": -32601,
    }
    assert failed.json()["error"]["code"] == -32603
    assert "hunter2" not in failed.text
    assert "a request of A2A failed" in caplog.text


@pytest.mark.requirement("a2a.tasks")
async def test_clients_of_version_0_3_are_answered() -> None:
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "Which?"}]}
    async with endpoint("Red.", "Blue.") as served, http(served) as client:
        sent = await client.post(address(served), json=call("message/send", {"message": message}))
        task = sent.json()["result"]
        got = await client.post(address(served), json=call("tasks/get", {"id": task["id"]}))
        body = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "Which?"}]}}
        rest = await client.post(f"{address(served)}/v1/message:send", json=body)

    assert (task["kind"], task["status"]["state"], got.json()["result"]["id"]) == ("task", "completed", task["id"])
    assert task["artifacts"][0]["parts"][0]["text"] == "Red."
    assert rest.json()["task"]["artifacts"][0]["parts"][0]["text"] == "Blue."


@pytest.mark.requirement("a2a.stream")
async def test_a_stream_survives_the_client_that_leaves() -> None:
    async with endpoint("Red.") as served, a2a_client(served) as client:
        events = client.send_message(said("Which?"))
        first = await anext(events)
        await cast("Any", events).aclose()
        async for _ in served.server.crib.executions.follow(first.task.id, drive=True):
            pass
        ended = await served.server.crib.executions.respond(first.task.id)

    assert (ended.status, ended.response) == ("completed", "Red.")


@pytest.mark.requirement("packaging.extras")
async def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("toolcrib.interfaces.server.a2a.", "a2a."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(a2a, "protocol_routes", raising=False)
    monkeypatch.setitem(sys.modules, "a2a", None)
    async with endpoint("Hi.") as served, http(served) as client:
        refused = await client.get(address(served) + CARD)

    assert "pip install 'toolcrib[a2a]'" in checked(refused, 503)["detail"]
