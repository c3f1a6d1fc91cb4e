"""Providers, connections and secrets from the command line."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from aiohttp import web
from typer.testing import CliRunner

from tests.twins import MASTER_KEYS
from tests.unit.cli.command import invalid, toolcrib
from tests.unit.net.servers import serving
from tests.unit.providers.authority import Authority
from toolcrib.infrastructure.secrets import new_master_key
from toolcrib.interfaces.cli.admin.providers import landing
from toolcrib.interfaces.cli.app import app

SECRET = "swordfish-0123456789"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'crib.db'}"


def run(*arguments: str, store: str, given: str | None = None, keys: str = MASTER_KEYS) -> Any:
    environment = {"TOOLCRIB_STORE": store, "TOOLCRIB_MASTER_KEYS": keys}
    return CliRunner().invoke(app, list(arguments), env=environment, input=given, catch_exceptions=False)


@pytest.mark.requirement("cli.secrets")
def test_a_secret_is_set_from_stdin_listed_without_its_value_rotated_and_removed(store: str) -> None:
    assert run("secret", "set", "KEY", store=store, given=f"{SECRET}\n").stdout == (
        "secret KEY of scope realm has version 1\n"
    )
    run("secret", "set", "KEY", "--scope", "org", store=store, given=SECRET)
    listed = run("secret", "list", store=store)
    assert [line.split()[:3] for line in listed.stdout.splitlines()[1:]] == [["KEY", "realm", "1"], ["KEY", "org", "1"]]
    told = json.loads(run("secret", "list", "--json", store=store).stdout)
    assert [entry["scope"] for entry in told] == ["realm", "org"]
    newer = f"{new_master_key('k2')},{MASTER_KEYS}"
    assert run("secret", "rotate", store=store, keys=newer).stdout.startswith("2 sealed again")
    assert run("secret", "remove", "KEY", store=store).exit_code == 0
    gone = run("secret", "remove", "KEY", store=store)
    assert (gone.exit_code, "there is no secret 'KEY'" in gone.stderr) == (1, True)
    for done in (listed, gone):
        assert SECRET not in done.output


@pytest.mark.requirement("cli.secrets")
def test_a_secret_needs_master_keys_and_a_scope_that_is_one(store: str) -> None:
    none = run("secret", "set", "KEY", store=store, given=SECRET, keys="")
    assert (none.exit_code, "toolcrib secret new-key" in none.stderr) == (2, True)
    assert run("secret", "set", "KEY", "--scope", "galaxy", store=store, given=SECRET).exit_code == 2
    assert toolcrib("secret", "new-key", "k7").stdout.startswith("k7:")


@pytest.mark.requirement("cli.keys")
def test_keys_are_listed_by_id_and_revoked(store: str) -> None:
    text = run("key", "add", "--days", "3", store=store).stdout.strip()
    run("key", "add", store=store)
    told = json.loads(run("key", "list", "--json", store=store).stdout)
    assert [key["last_four"] == text[-4:] for key in told] == [True, False]
    assert text.split("_", 2)[2] not in run("key", "list", store=store).stdout
    key_id = text.split("_", 2)[1]
    assert run("key", "remove", key_id, store=store).stdout == f"key {key_id} is removed\n"
    assert run("key", "remove", key_id, store=store).exit_code == 1
    assert len(json.loads(run("key", "list", "--json", store=store).stdout)) == 1


PROVIDER = """
name: crm
base_url: https://api.test
auth: {kind: bearer, token: "${secret:CRM_TOKEN}"}
"""


@pytest.mark.requirement("cli.providers")
def test_a_provider_is_defined_from_a_file_listed_and_shown(store: str, tmp_path: Path) -> None:
    (tmp_path / "crm.yaml").write_text(PROVIDER)
    assert run("provider", "add", str(tmp_path / "crm.yaml"), store=store).stdout == "provider crm is saved\n"
    assert run("provider", "add", "-", store=store, given=PROVIDER.replace("crm", "erp")).exit_code == 0
    assert "https://api.test" in run("provider", "list", store=store).stdout
    told = json.loads(run("provider", "list", "--json", store=store).stdout)
    assert [each["name"] for each in told] == ["crm", "erp"]
    assert json.loads(run("provider", "show", "crm", store=store).stdout)["auth"]["token"] == "${secret:CRM_TOKEN}"
    assert run("provider", "show", "none", store=store).exit_code == 1


@pytest.mark.requirement("cli.providers")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PROVIDER.replace("${secret:CRM_TOKEN}", SECRET), "instead of a reference such as ${env:CRM_TOKEN}"),
        (PROVIDER.replace("token:", "tokn:"), "auth.bearer.token: Field required"),
        (PROVIDER + "  - [", "standard input:5: not YAML: "),
    ],
)
def test_a_definition_that_is_refused_is_not_repeated(store: str, text: str, problem: str) -> None:
    refused = run("provider", "add", "-", store=store, given=text)
    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr
    assert SECRET not in refused.output


@pytest.mark.requirement("cli.providers")
def test_a_file_that_cannot_be_read_is_named(store: str, tmp_path: Path) -> None:
    assert "cannot be read" in run("provider", "add", str(tmp_path / "none.yaml"), store=store).stderr


@pytest.mark.requirement("cli.providers")
def test_a_provider_that_is_not_reached_fails_its_test(store: str) -> None:
    local = "name: crm\nbase_url: http://127.0.0.1:9\n"
    run("provider", "add", "-", store=store, given=local)
    tried = run("provider", "test", "crm", store=store)
    assert (tried.exit_code, tried.stdout.startswith("reachable: unknown, authenticated: unknown: egress denied")) == (
        1,
        True,
    )
    assert json.loads(run("provider", "test", "crm", "--json", store=store).stdout)["reachable"] is None
    found = run("provider", "discover", "crm", store=store)
    assert (found.exit_code, "egress denied" in found.stderr) == (1, True)
    assert run("provider", "sync", "crm", store=store).exit_code == 2
    planned = run("provider", "schedule", "crm", "--every", "6h", store=store)
    assert (planned.exit_code, "cannot be asked what it offers" in planned.stderr) == (2, True)


@pytest.mark.requirement("cli.providers")
def test_a_schedule_is_set_shown_and_taken_away(store: str) -> None:
    run(
        "provider",
        "add",
        "-",
        store=store,
        given="name: greeter\nbase_url: grpc://127.0.0.1:9\nconnection: {kind: grpc}\n",
    )
    planned = run("provider", "schedule", "greeter", "--cron", "0 6 * * *", "--timezone", "Europe/Berlin", store=store)
    shown = json.loads(run("provider", "show", "greeter", store=store).stdout)
    failed = run("provider", "sync", "greeter", store=store)
    state = run("provider", "state", "greeter", store=store)

    assert planned.stdout.startswith("next: 20")
    assert shown["auto_discover"] == {"every_s": None, "cron": "0 6 * * *", "timezone": "Europe/Berlin"}
    assert failed.exit_code == 1
    assert "problem: egress denied" in state.stdout
    assert "(failed 1 times in a row)" in state.stdout
    assert "next: -" in run("provider", "schedule", "greeter", "--off", store=store).stdout
    for options in ((), ("--every", "1h", "--off"), ("--every", "soon"), ("--every", "0m")):
        assert run("provider", "schedule", "greeter", *options, store=store).exit_code == 2


@pytest.fixture
def authority() -> Any:
    """An authorization server in a thread of its own, since a command blocks the one that it runs in."""
    found, ready, loop = Authority(), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with serving(found.handle) as port:
            found.url = f"http://127.0.0.1:{port}"
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    yield found
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


@pytest.mark.requirement("cli.connect")
def test_a_person_connects_by_pasting_where_they_were_sent_and_disconnects(
    store: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = {
        "kind": "authorization_code",
        "authorization_url": f"{authority.url}/authorize",
        "token_url": f"{authority.url}/token",
        "client_id": "toolcrib",
    }
    provider = json.dumps({"name": "crm", "base_url": authority.url, "auth": auth})
    run("provider", "add", "-", store=store, given=provider)
    monkeypatch.setenv("TOOLCRIB_EGRESS_ALLOW", urlsplit(authority.url).netloc)
    opened: list[str] = []

    def browse(question: str, **_: Any) -> str:
        assert question == "URL that the browser was sent to"
        return authority.grant(opened[0])

    monkeypatch.setattr("typer.prompt", browse)

    def note(text: str, **_: Any) -> None:
        opened.append(text.removeprefix("open "))

    monkeypatch.setattr("builtins.print", note)
    assert run("provider", "connect", "crm", "--paste", store=store).exit_code == 0
    monkeypatch.undo()
    monkeypatch.setenv("TOOLCRIB_EGRESS_ALLOW", urlsplit(authority.url).netloc)
    assert opened[1] == "provider crm is connected for owner"
    assert run("provider", "connections", store=store).stdout.splitlines()[1].split() == ["crm", "owner", "connected"]
    assert json.loads(run("provider", "connections", "--json", store=store).stdout)[0]["refreshable"] is True
    gone = run("provider", "disconnect", "crm", store=store)
    assert (gone.exit_code, "its tokens may still work" in gone.stdout) == (1, True)

    def visit(text: str, **_: Any) -> None:
        page = authority.grant(text.removeprefix("open "))
        threading.Thread(target=urlopen, args=(page,)).start()

    monkeypatch.setattr("toolcrib.interfaces.cli.admin.providers.print", visit, raising=False)
    again = run("provider", "connect", "crm", "--json", store=store)
    gone = run("provider", "disconnect", "crm", "--json", store=store)
    assert invalid("provider connect", json.loads(again.stdout)) == []
    assert invalid("provider disconnect", json.loads(gone.stdout)) == []


@pytest.mark.requirement("cli.connect")
async def test_the_page_on_this_machine_lets_in_the_browser_with_the_right_state_only() -> None:
    async def visit(uri: str, line: str) -> str:
        parts = urlsplit(uri)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(f"{line}\r\nHost: x\r\n\r\n".encode())
        await writer.drain()
        answer = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
        return answer.partition("\r\n")[0]

    async with landing() as page:
        waiting = asyncio.ensure_future(page.arrival("right"))
        for line in (
            "GET /callback?state=wrong&code=1 HTTP/1.1",
            "GET /favicon.ico HTTP/1.1",
            "POST /callback HTTP/1.1",
        ):
            assert await visit(page.redirect_uri, line) == "HTTP/1.1 400 Bad Request"
        answer = await visit(page.redirect_uri, "GET /callback?code=1&state=right HTTP/1.1")
        assert answer == "HTTP/1.1 200 OK"
        assert await waiting == f"{page.redirect_uri}?code=1&state=right"


@pytest.mark.requirement("cli.providers")
@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("", 1, "reachable: yes, authenticated: unknown: it answers with status 404"),
        ("/me", 0, "reachable: yes, authenticated: yes: it answers with status 200"),
        ("/other", 1, "reachable: yes, authenticated: no: it answers with status 403"),
    ],
)
async def test_0_6_the_exit_status_is_0_only_if_the_credentials_are_known_to_be_accepted(
    store: str, path: str, status: int, said: str
) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        known = 200 if "authorization" in request.headers else 401
        return web.Response(status={"/me": known, "/other": 403}.get(request.path, 404))

    async with serving(answer) as port:
        auth = "{kind: bearer, token: '${env:TOOLCRIB_SECRET_T}'}"
        crm = f"name: crm\nbase_url: http://127.0.0.1:{port}\nauth: {auth}\n"
        around = {
            "TOOLCRIB_STORE": store,
            "TOOLCRIB_SECRET_T": "swordfish-0123456789",
            "TOOLCRIB_EGRESS_ALLOW": f"127.0.0.1:{port}",
        }
        wanted = f"connection: {{kind: http, test_path: {path}}}\n" if path else ""

        def command(*arguments: str, given: str | None = None) -> Any:
            return CliRunner().invoke(app, ["provider", *arguments], env=around, input=given, catch_exceptions=False)

        added = await asyncio.to_thread(command, "add", "-", given=crm + wanted)
        tried = await asyncio.to_thread(command, "test", "crm")

    assert added.exit_code == 0, added.output
    assert (tried.exit_code, tried.stdout.startswith(said)) == (status, True), tried.output
