"""The Python on the pages about kinds of tools runs as it stands there, given an open crib and what is named here."""

import ast
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, String, Table, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.pool import StaticPool

from toolcrib import Crib, DefinitionOptions, EgressPolicy, ScriptedModel, tool
from toolcrib.contracts import Json, ToolcribError
from toolcrib.contracts.workflows import WorkflowStep
from toolcrib.crib.container.plugins import Plugins
from toolcrib.llm import Message, ToolCall

pytestmark = pytest.mark.requirement("docs.snippets")

DOCS = Path(__file__).parents[2] / "docs"


@tool(side_effects="reads")
async def search_deals(company: str = "", stage: str = "", limit: int = 5) -> list[dict[str, Any]]:
    """Deals of a company or in a stage."""
    return [{"name": company or stage, "days_open": 40, "limit": limit}]


@tool(side_effects="reads")
async def search_people(text: str) -> dict[str, list[str]]:
    """People by name."""
    return {"items": [text]}


@tool(side_effects="writes")
async def write_note(deal: str, text: str) -> dict[str, str]:
    """Writes to the owner of a deal."""
    return {"deal": deal, "text": text}


@tool(side_effects="reads", runs_on="client")
async def choose(question: str) -> Any:
    """Lets the person choose."""
    return {"ask": question}


DOCUMENT: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Example", "version": "1"},
    "servers": [{"url": "https://api.example.com"}],
    "paths": {"/deals": {"get": {"operationId": "list_deals", "responses": {"200": {"description": "Deals."}}}}},
}


def snippets(page: str) -> list[str]:
    """The Python blocks of a page."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


async def run(snippet: str, names: dict[str, Any]) -> None:
    """Run a block, which may await, and keep the names that it makes."""
    code = compile(snippet, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    pending = eval(code, names)
    if inspect.iscoroutine(pending):
        await pending


async def shown(page: str, crib: Crib, **given: Any) -> dict[str, Any]:
    """The names that the blocks of a page make, one after the other."""
    names: dict[str, Any] = {"__name__": page, "crib": crib, **given}
    for snippet in snippets(page):
        await run(snippet, names)
    return names


async def test_the_composite_of_its_page_calls_what_its_rules_say():
    async with Crib("memory://") as crib:
        crib.add(search_deals, search_people)
        names = await shown("composite-tools", crib)
        people = await crib.call("find", kind="person", text="Ann")

    assert names["result"].output == [{"name": "Acme", "days_open": 40, "limit": 10}]
    assert people.output == ["Ann"]
    assert names["ErrorRule"](when="5xx", action="fallback", tool="search_archive")


async def test_a_model_that_writes_its_calls_answers_in_the_format_of_its_page():
    said = ["```tool\nreturn search_deals('Acme');\n```", "```tool\nfinalResponse()\n```", '```json\n{"deals": 1}\n```']
    async with Crib("memory://", models={"ollama:gemma3:4b": ScriptedModel(said)}) as crib:
        crib.add(search_deals)
        names = await shown("text-protocol", crib)

    assert names["used"].output == {"deals": 1}


async def test_the_agents_of_their_page_answer_and_are_saved():
    looks = Message("assistant", (ToolCall("a", "search_deals", '{"company": "Acme"}'),))
    model = ScriptedModel([looks, "One.", "That one.", '{"company": "Acme", "amount": 5}', "An open one.", "Two."])
    async with Crib("memory://", models={"anthropic:claude-sonnet-4": model}) as crib:
        crib.add(search_people)
        await crib.workflows.draft({"name": "restock", "steps": [{"name": "look", "output": 1}]}, authored_by="scribe")
        names = await shown("agents", crib, search_deals=search_deals)
        restock = await crib.workflows.get("restock")

    assert (names["answer"].output, names["again"].output) == ("One.", "That one.")
    assert names["deal"] == names["Deal"](company="Acme", amount=5)
    assert names["seen"].output == "An open one."
    assert (names["state"].status, names["done"].output) == ("queued", "Two.")
    assert restock.revision == 1
    assert names["saved"].definition.side_effects == "reads"
    assert [found.availability for found in await crib.agents.tools("deal-researcher")] == ["shown", "shown"]


async def test_the_agent_of_the_page_about_conversations_remembers():
    model = ScriptedModel(lambda request: f"You said: {request.messages[0].text}")
    async with Crib("memory://", models={"scripted:model": model}) as crib:
        names = await shown("conversations", crib)

    assert names["again"].output == "You said: I am Ann. I live in Bonn."
    assert (names["conversation"].title, len(names["turns"])) == ("I am Ann", 2)


async def test_the_agent_of_the_page_about_executions_answers_and_fills_its_handle():
    looks = Message("assistant", (ToolCall("a", "search_deals", '{"company": "Acme"}'),))
    models = {"scripted:clerk": ScriptedModel([looks, "One.", looks, "One."], name="clerk")}
    async with Crib("memory://", models=models) as crib:
        crib.add(search_deals)
        names = await shown("executions", crib)

    assert names["answer"].output == "One."
    assert names["answer"].handles["found"][0]["name"] == "Acme"


async def test_the_client_of_the_page_about_client_tools_brings_its_results():
    asks = Message("assistant", (ToolCall("a", "choose", '{"question": "Which?"}'),))
    async with Crib("memory://", models={"scripted:chooser": ScriptedModel([asks, "Red."], name="chooser")}) as crib:
        crib.add(choose)
        names = await shown("client-tools", crib)

    assert names["waiting"].status == "awaiting_client"
    assert names["answer"].response == "Red."


async def test_the_workflow_of_its_page_runs_and_its_vocabulary_is_kept():
    async with Crib("memory://") as crib:
        crib.add(search_deals, write_note)
        names = await shown("workflows", crib)
        said = [step.name for step in await crib.steps.list()], [each.name for each in await crib.conditions.list()]

    assert (names["instance"].status, names["instance"].output) == ("completed", {"found": 1, "failed": 0})
    assert names["greeting"].output == "hello Ann"
    assert said == (["notes.write"], ["is_old"])


def test_the_steps_on_the_page_about_workflows_are_steps():
    page = (DOCS / "workflows.md").read_text(encoding="utf-8")
    steps = [json.loads(line) for line in re.findall(r'^    (\{"name": .*\})$', page, re.MULTILINE)]

    assert [WorkflowStep.model_validate(step).kind for step in steps] == ["wait", "wait", "wait", "approval", "agent"]


async def test_the_code_of_its_page_runs_in_a_sandbox():
    async with Crib("memory://") as crib:
        crib.add(search_deals)
        await shown("code-tools", crib)
        envelope = await crib.call("overdue", days=30)

    assert envelope.output == {"count": 1, "names": ["open"]}


async def test_the_definitions_of_the_page_about_http_can_be_saved():
    async with Crib("memory://") as crib:
        names = await shown("http", crib)
        await crib.save_provider(names["crm"])
        await crib.save(names["update_deal"])
        exported = await crib.export()

    assert {tool["name"] for tool in exported} == {"http_get", "http_request", "update_deal", "wget"}


async def test_the_document_of_the_page_about_openapi_becomes_tools():
    async with Crib("memory://") as crib:
        names = await shown("openapi", crib, document=DOCUMENT)

    assert [each.name for each in names["api"].tools] == ["list_deals"]


async def test_the_lists_of_the_page_about_reference_data_are_declared():
    async with Crib("memory://") as crib:
        await shown("reference-data", crib)
        declared = await crib.reference_data.list()

    assert [(each.provider, each.name) for each in declared] == [("crm", "deal_stages")]


async def test_the_classes_of_the_page_about_entities_become_tools():
    class Base(DeclarativeBase):
        pass

    class Customer(Base):
        __tablename__ = "customers"
        id: Mapped[int] = mapped_column(primary_key=True)

    tags_table = Table("tags", Base.metadata, Column("name", String(20), primary_key=True))
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    given = {"Base": Base, "Customer": Customer, "tags_table": tags_table, "engine": engine}
    async with Crib("memory://") as crib:
        await shown("entities", crib, **given)
        Base.metadata.create_all(engine)
        made = await crib.call("create_order", status="open", total="12.50", placed="2026-01-31T10:00:00")
        found = await crib.call("search_orders", filter="status eq 'open' and total gt 10")
        exported = await crib.export()
    engine.dispose()

    assert made.ok, made.error
    assert found.output["items"] == [made.output]
    assert {"search_orders", "update_order", "get_customer", "create_tag"} < {tool["name"] for tool in exported}
    assert "delete_order" not in {tool["name"] for tool in exported}


async def test_the_application_of_the_page_about_the_server_is_made():
    async with Crib("memory://") as crib:
        names = await shown("server", crib, pepper=b"p" * 32)

    assert "/api/v1/ai/tools" in names["app"].openapi()["paths"]


async def test_the_plugin_of_its_page_is_called():
    async with Crib("memory://") as crib:
        names = await shown("plugins", crib)
    async with Crib(
        "memory://", definitions=DefinitionOptions(plugins=Plugins(makers={"ledger": names["Ledger"]}))
    ) as crib:
        crib.add(names["book"])
        envelope = await crib.call("book", amount=12)

    assert envelope.output == {"booked": 12, "book": "main"}
    assert names["provider"].api_key_env == "ACME_KEY"


@pytest.mark.parametrize("snippet", snippets("grpc"), ids=["services", "control plane"])
async def test_the_imports_of_the_page_about_grpc_go_out_under_the_egress_policy(snippet: str):
    released: dict[str, str] = dict.fromkeys(("CRM_TOKEN", "HELIX_CLIENT_ID", "HELIX_CLIENT_SECRET"), "a secret")
    async with Crib("memory://", egress=EgressPolicy(hosts=()), environment=released) as crib:
        with pytest.raises(ToolcribError, match="egress denied"):
            await run(snippet, {"crib": crib})
