"""A store and files with the names that the commands on the pages use, so that the commands can be run."""

import json
import sqlite3
from pathlib import Path
from typing import Any, Final

from toolcrib import AllocatedTool, Crib, ScriptedModel, WorkflowDefinition, code_tool
from toolcrib.contracts import AgentDefinition, AgentRequest, LLMConfig, NoDelete, ProviderDefinition, ReferenceSource
from toolcrib.llm import Message, ToolCall

MODEL: Final = "anthropic:claude-sonnet-4"
DOCUMENT: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "CRM", "version": "1"},
    "servers": [{"url": "https://crm.example"}],
    "paths": {
        "/deals": {"get": {"operationId": "crm_list_deals", "responses": {"200": {"description": "Deals."}}}},
        "/deals/{id}": {
            "patch": {
                "operationId": "crm_update_deal",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "A deal."}},
            }
        },
    },
}
FOLLOW_UP: Final[dict[str, Any]] = {
    "name": "follow-up",
    "input_schema": {
        "type": "object",
        "properties": {"company": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["company", "days"],
    },
    "steps": [
        {"name": "search", "tool": "search_deals", "input": {"company": "${input.company}"}},
        {"name": "report", "output": {"found": "${search.length}"}},
    ],
    "output": "${report}",
}
DESK: Final[dict[str, Any]] = {
    "name": "desk",
    "description": "Answers questions about deals.",
    "llm": {"model": "anthropic:claude-sonnet-4"},
    "tools": ["search_deals"],
}
NIGHTLY: Final[dict[str, Any]] = {
    "kind": "trigger",
    "name": "nightly",
    "when": {"kind": "cron", "cron": "0 6 * * mon-fri", "timezone": "Europe/Berlin"},
    "start": "search_deals",
    "input": {"company": "Acme"},
    "account": "robot",
}
APPLICATION: Final = """
from toolcrib import Crib, tool


@tool(side_effects="writes")
def refund(usd: float) -> str:
    return "done"


crib = Crib()
crib.add(refund)
"""
SOURCE: Final = 'def main(company: str):\n    return [{"id": "d1", "company": company}]\n'


def write_files(folder: Path) -> None:
    """The files that commands name."""
    (folder / "openapi.yaml").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    changed = json.loads(json.dumps(DOCUMENT))
    required = {"name": "force", "in": "query", "required": True, "schema": {"type": "boolean"}}
    changed["paths"]["/deals/{id}"]["patch"]["parameters"].append(required)
    (folder / "crm.yaml").write_text(json.dumps(changed), encoding="utf-8")
    (folder / "desk.yaml").write_text(json.dumps(DESK), encoding="utf-8")
    (folder / "follow-up.yaml").write_text(json.dumps(FOLLOW_UP), encoding="utf-8")
    (folder / "nightly.yaml").write_text(json.dumps(NIGHTLY), encoding="utf-8")
    provider = {"name": "crm", "base_url": "https://crm.example"}
    (folder / "provider.yaml").write_text(json.dumps(provider), encoding="utf-8")
    check = {"kind": "contains", "text": "Acme"}
    tasks = {"name": "deals", "tasks": [{"id": "one", "input": {"company": "Acme"}, "checks": [check]}]}
    (folder / "tasks.yaml").write_text(json.dumps(tasks), encoding="utf-8")
    (folder / "shorter.txt").write_text("Be short.", encoding="utf-8")
    (folder / "shop").mkdir()
    (folder / "shop" / "tools.py").write_text(APPLICATION, encoding="utf-8")
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL)")
    database.close()
    (folder / "definitions").mkdir()
    documents = {"follow-up.yaml": {"kind": "workflow", **FOLLOW_UP}}
    for name, document in documents.items():
        (folder / "definitions" / name).write_text(json.dumps(document), encoding="utf-8")


async def fill(store: str) -> dict[str, str]:
    """Save the definitions and make some runs; returns the ids by the words that stand for them."""
    call = Message("assistant", (ToolCall("c1", "search_deals", '{"company": "Acme"}'),))
    models = {MODEL: ScriptedModel([call, call, "One deal.", call, "One deal."])}
    async with Crib(store, models=models) as crib:
        for name in ("search_deals", "search", "find"):
            crib.add(code_tool(name, SOURCE, side_effects="reads", description="Deals of a company."))
        stages = ReferenceSource(name="deal_stages", values=({"id": "won", "label": "Won"},))
        await crib.imports.openapi(DOCUMENT, name="crm")
        crm = ProviderDefinition(name="crm", base_url="https://crm.example", reference_data=(stages,))
        await crib.save_provider(crm)
        desk = AgentDefinition(
            name="desk",
            llm=LLMConfig(model=MODEL),
            tools=(AllocatedTool(tool="search_deals"),),
            guardrails=(NoDelete(),),
        )
        await crib.agents.save(desk)
        crib.agentic_tool("deals", mode="agentic", model=MODEL, tools=["search_deals"])
        await crib.workflows.publish(WorkflowDefinition.model_validate(FOLLOW_UP))
        answer = await crib.executions.execute("desk", AgentRequest(message="Which deals has Acme?"))
        other = await crib.executions.execute("desk", AgentRequest(message="And now?"))
        instance = await crib.instances.start("follow-up", {"company": "Acme", "days": 30})
    return {
        "run": answer.run_id,
        "other": other.run_id,
        "conversation": answer.conversation_id or "",
        "instance": instance.run_id,
    }
