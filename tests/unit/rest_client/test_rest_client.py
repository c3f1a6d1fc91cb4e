"""The clients of the REST API against a real server over a socket."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rest_client.served import client_of, served
from tests.unit.server.client import http_tool
from toolcrib.client import AsyncClient, Client, ServerProblem, ServerUnreachable
from toolcrib.client.transport import ApiRequest, ClientOptions, Transport
from toolcrib.contracts import AgentDefinition, InvalidInput, InvalidSettings, LLMConfig, RunEvent, StreamDone
from tools import rest_client
from tools.docs.operations import document
from tools.rest_client import Schemas, operations_of, sources

ROOT = Path(__file__).parents[3]
DESK = AgentDefinition(name="desk", llm=LLMConfig(model="scripted:free"))
FLOW = {"name": "find", "steps": [{"name": "look", "tool": "search", "input": {"company": "${input.company}"}}]}


@pytest.mark.requirement("rest_client.written")
def test_the_modules_are_what_the_generator_writes() -> None:
    stale = [str(path) for path, source in sources().items() if (ROOT / path).read_text(encoding="utf-8") != source]
    assert stale == [], "run `python -m tools.rest_client`"


@pytest.mark.requirement("rest_client.written")
def test_every_operation_of_the_document_is_a_method_of_both_clients() -> None:
    found = list(operations_of(Schemas(document()["components"]["schemas"])))
    left_out = {
        operation["operationId"]
        for methods in document()["paths"].values()
        for operation in methods.values()
        if operation["tags"][-1] in rest_client.LEFT_OUT or operation["operationId"] == "receive_webhook"
    }
    count = sum(len(methods) for methods in document()["paths"].values())
    assert len(found) == count - len(left_out)
    client = Client("http://127.0.0.1:1", api_key="k")
    for made in found:
        for each in (client, AsyncClient("http://127.0.0.1:1", api_key="k")):
            assert callable(getattr(getattr(each, made.group), made.name))
    client.close()


@pytest.mark.requirement("rest_client.operations")
async def test_tools_are_created_listed_called_and_removed(tmp_path: Path) -> None:
    async with client_of(f"sqlite:///{tmp_path}/crib.db") as client:
        created = await client.tools.create(http_tool("crm_deals", description="Find deals of the CRM."))
        changed = await client.tools.change("crm_deals", {"title": "Deals"}, if_match=created.revision)
        with pytest.raises(ServerProblem, match="read it again") as stale:
            await client.tools.change("crm_deals", {"title": "Late"}, if_match=created.revision)
        pages = [await client.tools.list(limit=2)]
        names = [tool.definition.name async for tool in client.tools.each(limit=2)]
        read = await client.tools.list_revisions("crm_deals")
        answer = await client.tools.invoke("search", params={"company": "Acme"})
        envelope = await client.tools.execute("search", params={"company": "Acme"})
        validity = await client.tools.validate_call("search", params={"compny": "Acme"})
        await client.tools.remove("crm_deals")

        assert (changed.revision, stale.value.status, stale.value.code) == (2, 409, "conflict")
        assert pages[0].next == names[1]
        assert {"assistant", "crm_deals", "deals", "pick", "search", "update"} <= set(names)
        assert [revision.revision for revision in read.items] == [1, 2]
        assert (answer.success, answer.data) == (True, [{"name": "Acme"}])
        assert envelope.status == "success"
        assert not validity.valid
        assert "crm_deals" not in [tool.definition.name async for tool in client.tools.each()]


@pytest.mark.requirement("rest_client.operations")
async def test_agents_workflows_approvals_and_named_things_are_reached() -> None:
    async with served() as (_, url), AsyncClient(url, api_key="owner") as client:
        await client.agents.create(DESK)
        answer = await client.agents.execute("desk", message="Hello")
        await client.agents.continue_conversation(answer.conversation_id or "", message="And?")
        talk = await client.conversations.get(answer.conversation_id or "")
        await client.workflows.publish("find", definition=FLOW)
        instance = await client.workflows.run("find", input={"company": "Acme"})
        fork = await client.runs.fork(instance.run_id)
        diff = await client.runs.diff(instance.run_id, fork.run_id)
        await client.agents.save_fragment("tone", text="Be brief.")
        waiting = await client.tools.invoke("update", params={"stage": "Won"})
        [approval] = [each async for each in client.approvals.each(status="waiting")]
        async with AsyncClient(url, api_key="boss") as boss:
            decided = await boss.approvals.decide(approval.approval_id, approved=True)
        runs = [run async for run in client.runs.each(limit=2)]
        bundle = await client.runs.get_bundle(instance.run_id)

        assert answer.status == "completed"
        assert len(talk.turns) == 2
        assert instance.status == "completed"
        assert (diff.before.run_id, diff.after.run_id) == (instance.run_id, fork.run_id)
        assert (await client.agents.get_fragment("tone")).text == "Be brief."
        assert (waiting.meta.status, decided.status) == ("awaiting_approval", "approved")
        assert {run.run_id for run in runs} >= {instance.run_id, fork.run_id}
        assert bundle.startswith(b"PK")
        assert (await client.server.health()).status == "ok"
        assert await client.request("GET", "/api/v1/approvals", query={"limit": 1})


@pytest.mark.requirement("rest_client.operations")
async def test_streams_are_typed_events() -> None:
    async with client_of() as client:
        await client.agents.create(DESK)
        events = [event async for event in client.agents.execute_streaming("desk", message="Hi")]
        last = events[-1]
        assert isinstance(last, StreamDone)
        again = [event async for event in client.runs.stream(last.result.run_id)]
        journal = [event async for event in client.runs.stream_events(last.result.run_id)]
        assert again[-1] == last
        assert isinstance(journal[0], RunEvent)
        assert isinstance(journal[-1], StreamDone)


@pytest.mark.requirement("rest_client.operations")
async def test_the_synchronous_client_does_the_same_in_threads() -> None:
    async with served() as (_, url):

        def use() -> tuple[Any, list[str], str]:
            with Client(url, api_key="owner") as client:
                answer = client.tools.invoke("search", params={"company": "Acme"})
                names = [tool.definition.name for tool in client.tools.each(limit=2)]
                events = list(client.runs.stream(answer.meta.run_id))
                return answer.data, names, events[-1].type

        data, names, last = await asyncio.to_thread(use)
    assert (data, last) == ([{"name": "Acme"}], "done")
    assert "search" in names


@pytest.mark.requirement("rest_client.problems")
async def test_a_refusal_has_what_the_problem_document_says() -> None:
    async with client_of() as client:
        with pytest.raises(ServerProblem, match="did you mean 'search'") as missing:
            await client.tools.get("serch")
        with pytest.raises(ServerProblem) as invalid:
            await client.tools.create({"name": "x y"})
        with pytest.raises(ServerProblem, match="no agent 'none'") as stream:
            [event async for event in client.agents.execute_streaming("none", message="Hi")]
    found = missing.value
    assert (found.status, found.code, found.title) == (404, "not_found", "Not found")
    assert (found.type, found.instance, found.reason) == (
        "troubleshooting.html#not_found",
        "/api/v1/ai/tools/serch",
        None,
    )
    assert "body.name" in [each["path"] for each in invalid.value.details["problems"]]
    assert stream.value.status == 404


@pytest.mark.requirement("rest_client.problems")
async def test_no_answer_and_bad_settings_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncClient("http://127.0.0.1:1", api_key="k", retries=0) as client:
        with pytest.raises(ServerUnreachable, match="check the address"):
            await client.tools.list()
        with pytest.raises(ServerUnreachable, match="check the address"):
            [event async for event in client.runs.stream("run_1")]
    monkeypatch.delenv("TOOLCRIB_URL", raising=False)
    with pytest.raises(InvalidSettings, match="TOOLCRIB_URL"):
        AsyncClient()
    with pytest.raises(InvalidInput, match="give the server's address"):
        AsyncClient("localhost", api_key="k")


class _Cutting:
    """An address whose connections end after so many bytes of the answer, the first times."""

    def __init__(self, port: int, cuts: list[int]) -> None:
        self._port = port
        self._cuts = cuts
        self.requests = list[bytes]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[16:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
        body = await reader.readexactly(length)
        self.requests.append(head + body)
        upstream, sending = await asyncio.open_connection("127.0.0.1", self._port)
        sending.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body)
        left = self._cuts.pop(0) if self._cuts else sys.maxsize
        while left > 0 and (piece := await upstream.read(min(left, 65536))):
            writer.write(piece)
            left -= len(piece)
        await writer.drain()
        writer.close()
        sending.close()


async def _patient(_seconds: float) -> None:
    await asyncio.sleep(0)


async def _cut(url: str, cuts: list[int]) -> tuple[_Cutting, asyncio.Server, Transport]:
    proxy = _Cutting(int(url.rpartition(":")[2]), cuts)
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    return proxy, listening, Transport(ClientOptions(url=address, api_key="owner"), _patient)


@pytest.mark.requirement("rest_client.repetition")
async def test_a_request_whose_answer_is_cut_is_sent_again_with_its_key_and_has_one_run() -> None:
    async with served() as (server, url):
        proxy, listening, transport = await _cut(url, [0, 150])
        client = AsyncClient.around(transport)
        async with listening, client:
            answer = await client.tools.invoke("search", params={"company": "Acme"})
        keys = {line for head in proxy.requests for line in head.split(b"\r\n") if line.startswith(b"Idempotency-Key")}
        runs = (await server.get("/executions"))["items"]
    assert answer.data == [{"name": "Acme"}]
    assert len(proxy.requests) == 3
    assert len(keys) == 1
    assert len(runs) == 1


@pytest.mark.requirement("rest_client.repetition")
async def test_a_stream_that_is_cut_continues_after_its_last_message() -> None:
    async with served() as (_, url), AsyncClient(url, api_key="owner") as direct:
        run = await direct.tools.invoke("deals", params={"task": "Find Acme's deals"})
        whole = [event async for event in direct.runs.stream(run.meta.run_id)]
        proxy, listening, transport = await _cut(url, [700])
        async with listening, AsyncClient.around(transport) as client:
            pieces = [event async for event in client.runs.stream(run.meta.run_id)]
    assert pieces == whole
    assert len(proxy.requests) == 2
    assert b"Last-Event-ID" in proxy.requests[1]


@pytest.mark.requirement("rest_client.repetition")
async def test_options_can_differ_for_some_requests() -> None:
    async with client_of() as client, client.with_options(timeout_s=0.000001, retries=0) as hasty:
        with pytest.raises(ServerUnreachable, match="no answer in time"):
            await hasty.tools.list()
        assert (await client.tools.list()).items


@pytest.mark.requirement("rest_client.light")
def test_the_client_imports_no_server_and_no_crib() -> None:
    program = (
        "import sys, toolcrib.client as c; c.Client('http://127.0.0.1:1', api_key='k').close(); "
        "print([m for m in sys.modules if m.partition('.')[0] in {'fastapi', 'uvicorn', 'starlette', 'sqlalchemy'}])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.requirement("rest_client.operations")
def test_both_clients_have_the_same_methods_and_parameters() -> None:
    for group in ("tools", "runs", "agents"):
        one: Any = getattr(AsyncClient("http://127.0.0.1:1", api_key="k"), group).__class__
        with Client("http://127.0.0.1:1", api_key="k") as client:
            other: Any = getattr(client, group).__class__
        methods = {name for name in dir(one) if not name.startswith("_")}
        assert methods == {name for name in dir(other) if not name.startswith("_")}
        for name in methods:
            assert (
                inspect.signature(getattr(one, name)).parameters.keys()
                == inspect.signature(getattr(other, name)).parameters.keys()
            )


@pytest.mark.requirement("rest_client.problems")
async def test_an_answer_that_is_no_problem_document_is_told_by_its_status() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 418 Teapot\r\nContent-Length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        transport = Transport(ClientOptions(url=f"http://127.0.0.1:{port}", api_key="k"))
        with pytest.raises(ServerProblem, match="status 418") as told:
            await transport.send(dict, ApiRequest(method="GET", path="/"))
        await transport.close()
    assert (told.value.code, told.value.details) == ("server_problem", {})


class Requests:
    """Takes the requests of a client's methods in place of its transport."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    async def send(self, kind: Any, request: Any) -> None:
        del kind
        self.sent.append((request.method, request.path))

    async def each(self, kind: Any, request: Any, cursor: str, limit: int | None = None) -> AsyncGenerator[None]:
        del cursor, limit
        await self.send(kind, request)
        for nothing in ():
            yield nothing

    async def stream(self, kind: Any, request: Any) -> AsyncGenerator[None]:
        await self.send(kind, request)
        for nothing in ():
            yield nothing


def sent_by_methods() -> dict[tuple[str, str], tuple[str, str]]:
    """Method and path of the request of each method, by its group and name."""
    operations = operations_of(Schemas(document()["components"]["schemas"]))
    return {(each.group, each.name): (each.method, each.path) for each in operations}


def _required(method: Any) -> dict[str, Any]:
    parameters = inspect.signature(method).parameters.values()
    return {each.name: "x" for each in parameters if each.default is inspect.Parameter.empty}


@pytest.mark.requirement("rest_client.operations")
async def test_every_method_of_the_asynchronous_client_sends_its_operation() -> None:
    made = {
        (one.group, one.name): (one.method, one.path)
        for one in operations_of(Schemas(document()["components"]["schemas"]))
    }
    known = set(made.values())
    groups = sorted({group for group, _ in made})
    client = AsyncClient("http://127.0.0.1:1", api_key="k")
    requests = Requests()
    for group in groups:
        api = getattr(client, group)
        api._transport = requests
        for name in sorted(each for each in dir(api) if not each.startswith("_")):
            method = getattr(api, name)
            answer = method(**_required(method))
            if inspect.isasyncgen(answer):
                assert [each async for each in answer] == []
            else:
                await answer
            assert requests.sent[-1] == made.get((group, name), requests.sent[-1])
    assert set(requests.sent) == known
    await client.close()


@pytest.mark.requirement("rest_client.operations")
def test_every_method_of_the_synchronous_client_sends_its_operation() -> None:
    made = {
        (one.group, one.name): (one.method, one.path)
        for one in operations_of(Schemas(document()["components"]["schemas"]))
    }
    requests = Requests()
    with Client("http://127.0.0.1:1", api_key="k") as client:
        for group in sorted({group for group, _ in made}):
            api = getattr(client, group)
            api._api._transport = requests
            for name in sorted(each for each in dir(api) if not each.startswith("_")):
                method = getattr(api, name)
                answer = method(**_required(method))
                if answer is not None:
                    assert list(answer) == []
                assert requests.sent[-1] == made.get((group, name), requests.sent[-1])
    assert set(requests.sent) == set(made.values())
