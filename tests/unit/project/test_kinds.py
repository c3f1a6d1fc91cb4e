"""Documents of every kind, on SQLite: applied, used, exported, and applied to an empty store, which is equal then."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from aiohttp import web

from tests.unit.a2a.other_agent import other_agent
from tests.unit.graphql.server import Api, api_server, crm_import
from tests.unit.grpc.server import Crm, crm_server
from tests.unit.mcp_client.server import running
from tests.unit.net.servers import serving
from toolcrib import Crib, EgressPolicy, ScriptedModel, tool
from toolcrib.contracts import ClientResult
from toolcrib.crib.project import InvalidProject, Project, prepare, project_files, write_files
from toolcrib.infrastructure.secrets import new_master_key
from toolcrib.kinds.a2a.commands import A2aSource
from toolcrib.kinds.entity.importer.engines import open_engine

pytestmark = pytest.mark.requirement("projects.kinds")

MODEL = "anthropic:claude-sonnet-4"
ROUTES = """\
kind: tool
name: look
description: Looks a word up.
side_effects: reads
input_schema: {type: object, properties: {word: {type: string}}, required: [word]}
implementation:
  kind: composite
  routes:
    - {id: short, when: "${input.word == 'a'}", tool: spell, input: {word: letter}}
    - {id: other, tool: spell}
---
"""
SPELL = """\
kind: tool
name: spell
side_effects: none
mcp: {show_as: resource, uri: "words://{word}/spelling", mime_type: text/plain}
input_schema: {type: object, properties: {word: {type: string}}, required: [word]}
implementation:
  kind: code
  source: |
    def main(word):
        return "-".join(word)
---
"""


@dataclass
class Place:
    """Where projects are applied: an own store for each, and the servers that their tools may reach."""

    folder: Path
    ports: tuple[int, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    answers: tuple[Any, ...] = ()

    @asynccontextmanager
    async def crib(self, name: str) -> AsyncGenerator[Crib]:
        """A crib on a SQLite store of this name."""
        async with Crib(
            f"sqlite:///{self.folder}/{name}.db",
            egress=EgressPolicy(allow=tuple(f"127.0.0.1:{port}" for port in self.ports)),
            environment=dict(self.environment),
            models={MODEL: ScriptedModel(list(self.answers))},
        ) as crib:
            yield crib

    async def apply(self, crib: Crib, text: str) -> None:
        """Make the crib's store equal to some documents."""
        folder = self.folder / "written"
        folder.mkdir(exist_ok=True)
        (folder / "all.yaml").write_text(text)
        prepared = await prepare(crib, Project.read(folder))
        await prepared.apply(crib)
        assert not (await prepare(crib, Project.read(folder))).plan.to_do

    @asynccontextmanager
    async def copied(self, crib: Crib) -> AsyncGenerator[Crib]:
        """A crib on an empty store to which the export of another was applied; both are equal."""
        files = await project_files(crib)
        write_files(self.folder / "exported", files)
        project = Project.read(self.folder / "exported")
        async with self.crib("copy") as copy:
            done = await (await prepare(copy, project)).apply(copy)
            assert {change.action for change in done.changes} == {"create"}
            assert await rows(copy) == await rows(crib)
            assert await project_files(copy) == files
            assert not (await prepare(copy, project)).is_needed
            yield copy


async def rows(crib: Crib) -> set[tuple[str, ...]]:
    """What a store has: kind, name, version, content hash and life-cycle state."""
    kinds: Sequence[Any] = (
        "mcp_server",
        "trigger",
        "provider",
        "fragment",
        "account",
        "condition",
        "tool",
        "workflow_step",
    )
    found = [each for kind in kinds for each in await crib.store.definitions.revisions(kind, "default")]
    return {(each.kind, each.name, each.version, each.content_hash, each.status) for each in found}


async def output(crib: Crib, name: str, **arguments: Any) -> Any:
    """Of a call that succeeds."""
    envelope = await crib.call(name, arguments)
    assert envelope.error is None, envelope.error
    return envelope.output


async def test_http_tools_and_providers_with_a_secret_by_reference(tmp_path: Path) -> None:
    sent: list[str | None] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        sent.append(request.headers.get("authorization"))
        return web.json_response({"path": request.path})

    async with serving(answer) as port:
        keys = (("TOOLCRIB_MASTER_KEYS", new_master_key("k1")),)
        place = Place(tmp_path, (port,), keys)
        text = (
            f'kind: provider\nname: crm\nbase_url: "http://127.0.0.1:{port}"\n'
            'auth: {kind: bearer, token: "${secret:CRM_TOKEN}"}\n---\nkind: secret\nname: CRM_TOKEN\n---\n'
            "kind: tool\nname: get_deal\nside_effects: reads\n"
            "input_schema: {type: object, properties: {id: {type: string}}, required: [id]}\n"
            'implementation:\n  {kind: http, provider: crm, method: GET, url: "/deals/{id}",\n'
            "   parameters: [{name: id, argument: id, place: path, style: simple}]}\n"
        )
        async with place.crib("first") as first:
            await place.apply(first, text)
            async with place.copied(first) as copy:
                await copy.secrets.set("CRM_TOKEN", "s3cr3t-token")
                assert await output(copy, "get_deal", id="d1") == {"path": "/deals/d1"}
                assert "s3cr3t" not in "".join((await project_files(copy)).values())
        assert sent == ["Bearer s3cr3t-token"]


async def test_mcp_tools(tmp_path: Path) -> None:
    async with running() as server:
        place = Place(tmp_path, (server.port,))
        async with place.crib("first") as first:
            await first.imports.mcp(server.url, name="there")
            async with place.copied(first) as copy:
                assert await output(copy, "look", what="x") == 'look: {"what":"x"}'


async def test_agents_of_other_systems(tmp_path: Path) -> None:
    async with other_agent() as server:
        place = Place(tmp_path, (server.port,))
        async with place.crib("first") as first:
            imported = await first.imports.read(A2aSource(name="there", url=server.url))
            async with place.copied(first) as copy:
                answer = await output(copy, imported.tools[0].name, message="just say it")
    assert answer["text"] == "Said."


async def test_graphql_tools(tmp_path: Path) -> None:
    async with api_server(Api()) as port:
        place = Place(tmp_path, (port,))
        async with place.crib("first") as first:
            await first.imports.adopt(crm_import(port), accept=True)
            async with place.copied(first) as copy:
                assert await output(copy, "echo", text="hello") == "hello"


async def test_grpc_tools_with_their_descriptors(tmp_path: Path) -> None:
    async with crm_server(Crm()) as port:
        place = Place(tmp_path, (port,))
        async with place.crib("first") as first:
            await first.imports.grpc(f"grpc://127.0.0.1:{port}", name="crm")
            async with place.copied(first) as copy:
                assert (await output(copy, "DealService_GetDeal", id="7"))["display_name"] == "Acme"
            blob = next((tmp_path / "exported" / "blobs").iterdir())
            blob.write_text(f"kind: blob\nname: {'a' * 64}\nbase64: eA==\n")
            async with place.crib("third") as third:
                with pytest.raises(InvalidProject, match="its bytes have the digest 2d7116"):
                    await prepare(third, Project.read(tmp_path / "exported"))


async def test_tools_of_a_database(tmp_path: Path) -> None:
    (tmp_path / "shop.sqlite").touch()
    url = f"sqlite:///{tmp_path}/shop.sqlite"
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE hats (id integer PRIMARY KEY, colour text)"))
    engine.dispose()
    place = Place(tmp_path, environment=(("URL", url),))
    async with place.crib("first") as first:
        await first.imports.database(name="shop", url="${env:URL}")
        async with place.copied(first) as copy:
            made = await output(copy, "create_hat", colour="red")
            assert (await output(copy, "get_hat", id=made["id"]))["colour"] == "red"


async def test_code_and_composite_tools_and_how_mcp_clients_see_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.crib("first") as first:
        await place.apply(first, ROUTES + SPELL)
        async with place.copied(first) as copy:
            assert [await output(copy, "look", word=word) for word in ("a", "it")] == ["l-e-t-t-e-r", "i-t"]
            offer = copy.registry.require("default", "spell").definition.mcp
            assert offer == first.registry.require("default", "spell").definition.mcp
            assert offer is not None
            assert (offer.show_as, offer.uri) == ("resource", "words://{word}/spelling")


async def test_tools_that_a_client_performs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.crib("first") as first:
        await place.apply(first, SPELL.replace("side_effects: none", "side_effects: none\nruns_on: client"))
        async with place.copied(first) as copy:
            waiting = await copy.invoke("spell", {"word": "it"}, as_call=True)
            [handed] = await copy.pending_handoffs(waiting.run_id)
            assert handed.output == "i-t"
            await copy.return_client_result(waiting.run_id, "call", ClientResult(output="shown"))
            [envelope] = (await copy.resume(waiting.run_id)).envelopes
            assert envelope.output == "shown"


async def test_agentic_tools(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.crib("first") as first:
        await place.apply(first, SPELL)
        first.agentic_tool("speller", mode="agentic", model=MODEL, tools=["spell"])
        first.agentic_tool("fixed", mode="deterministic", model=MODEL, steps=["spell"])
        await first.open()
        async with place.copied(first) as copy:
            assert copy.registry.require("default", "speller").definition.implementation.kind == "agentic"


@tool(side_effects="reads")
def double(number: int) -> int:
    """Double a number."""
    return number * 2


async def test_python_functions_that_the_application_has_bound(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.crib("first") as first:
        first.add(double)
        await first.open()
        async with place.copied(first) as copy:
            assert copy.registry.require("default", "double").definition.implementation.kind == "python"
            copy.add(double)
            await copy.open()
            assert await output(copy, "double", number=4) == 8
            assert await rows(copy) == await rows(first)


async def test_agents_with_fragments_guardrails_and_accounts(tmp_path: Path) -> None:
    text = (
        f"kind: agent\nname: clerk\nversion: 1.2.0\nllm: {{model: '{MODEL}', temperature: 0.0}}\n"
        "tools: [spell@^1]\nprompt_fragments: [tone]\nguardrails: [{type: max_cost, usd: 0.5}]\nprincipal_ref: bot\n"
        "---\nkind: fragment\nname: tone\ntext: |\n  Be brief.\n  Be kind.\n"
        "---\nkind: account\nname: bot\ngrants: ['ai://tools/*/execute', 'ai://tools/*/*/execute']\n---\n"
    )
    place = Place(tmp_path, answers=("It is i-t.",))
    async with place.crib("first") as first:
        await place.apply(first, text + SPELL)
        async with place.copied(first) as copy:
            assert (await copy.invoke("clerk", {"message": "Spell it."})).output == "It is i-t."


async def test_workflows_with_conditions_and_step_handlers(tmp_path: Path) -> None:
    text = (
        "kind: workflow\nname: order\ninput_schema: {type: object, properties: {word: {type: string}}}\n"
        "steps:\n  - {name: one, handler_ref: words.spell, input: {word: '${input.word}'}}\n"
        "  - {name: two, tool: spell, input: {word: '${one}'},\n"
        "     condition: {ref: is_short, input: {word: '${input.word}'}}}\n"
        "---\nkind: condition\nname: is_short\nparameters: [word]\nexpression: \"${word == 'it'}\"\n"
        "---\nkind: handler\nname: words.spell\ntool: spell\n---\n"
    )
    place = Place(tmp_path)
    async with place.crib("first") as first:
        await place.apply(first, text + SPELL)
        async with place.copied(first) as copy:
            assert (await copy.invoke("order", {"word": "it"})).output == {"two": "i---t"}


async def test_virtual_mcp_servers_are_applied_exported_and_removed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    text = "kind: mcp_server\nname: words\ntitle: Words\ntools: [spell, 'tag:words']\noffer: search\n---\n"
    async with place.crib("first") as first:
        await place.apply(first, text + SPELL)
        async with place.copied(first) as copy:
            server = await copy.mcp_servers.get("words")
        await place.apply(first, SPELL)
        left = await first.mcp_servers.list()
    assert (server.tools, server.offer, server.excluded_tools) == (("spell", "tag:words"), "search", ())
    assert left == []


async def test_triggers_are_applied_exported_and_removed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    text = (
        "kind: account\nname: robot\ngrants: ['ai://tools/*']\n---\nkind: trigger\nname: nightly\n"
        "when: {kind: cron, cron: '0 6 * * mon-fri', timezone: Europe/Berlin}\n"
        "start: spell\ninput: {word: '${event.scheduled_at}'}\naccount: robot\n---\n"
    )
    async with place.crib("first") as first:
        await place.apply(first, text + SPELL)
        async with place.copied(first) as copy:
            state = await copy.triggers.state("nightly")
        await place.apply(first, SPELL)
        left = await first.triggers.list()
    assert state.next_at is not None
    assert left == []


async def test_keys_and_budgets_are_needs_and_not_exported(tmp_path: Path) -> None:
    place = Place(tmp_path)
    text = "kind: key\nname: bot\nscopes: ['ai://tools/*']\n---\nkind: budget\nname: all\ncap: realm 50 usd/day\n---\n"
    async with place.crib("first") as first:
        await place.apply(first, text + SPELL)
        async with place.copied(first):
            assert list(await project_files(first)) == ["tools/spell.yaml"]


async def test_deprecated_and_blocked_versions(tmp_path: Path) -> None:
    place = Place(tmp_path)
    newer = SPELL.replace("name: spell", "name: spell\nversion: 2.0.0")
    async with place.crib("first") as first:
        await place.apply(first, SPELL + newer)
        await first.lifecycle.deprecate("spell@1.0.0", message="Slow.", replacement="spell@^2")
        await first.lifecycle.block("spell@2.0.0", message="Wrong.")
        async with place.copied(first) as copy:
            known: list[tuple[Any, ...]] = []
            for version in ("1.0.0", "2.0.0"):
                found = copy.registry.require("default", f"spell@{version}")
                known.append((found.status, found.status_message, found.replacement))
            assert known == [("deprecated", "Slow.", "spell@^2"), ("blocked", "Wrong.", None)]
