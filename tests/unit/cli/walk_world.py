"""A store and files that have what every command needs, and the server of a model."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.docs import commands_world
from tests.unit.agents.crm import MODEL, Crm, read_plan
from tests.unit.cli.test_settling import ask_first, send
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import Conflict

WAITING: Final[dict[str, Any]] = {
    "name": "sums",
    "steps": [
        {"name": "paid", "wait": {"signal": "paid"}},
        {"name": "sign", "approval": {"message": "Continue?"}},
        {"name": "report", "output": {"sum": 6}},
    ],
    "output": "${report}",
}
FILES: Final[dict[str, Any]] = {
    "sums.yaml": WAITING,
    "is-won.yaml": {"name": "is_won", "parameters": ["stage"], "expression": "${stage == 'Won'}"},
    "crm-server.yaml": {"kind": "mcp_server", "name": "crm", "tools": ["crm.*"]},
    "nightly.yaml": {
        "kind": "trigger",
        "name": "nightly",
        "when": {"kind": "cron", "cron": "0 6 * * *"},
        "start": "search_deals",
        "input": {"company": "Acme"},
        "account": "robot",
    },
    "find.yaml": {"kind": "handler", "name": "deals.find", "tool": "search_deals"},
    "quote.yaml": {
        "kind": "tool",
        "name": "quote",
        "description": "Quotes a price.",
        "implementation": {"kind": "http", "method": "GET", "url": "https://shop.example/quote"},
        "side_effects": "reads",
    },
}


@tool(side_effects="reads", max_output_bytes=1000)
async def every_deal() -> list[dict[str, object]]:
    """More than fits."""
    return [{"id": number, "name": f"deal {number}"} for number in range(400)]


async def fill(store: str) -> dict[str, str]:
    """Definitions and runs; returns ids by the words that stand for them."""
    ids = await commands_world.fill(store)
    asking = {**read_plan(), "question": {"text": "Which one?", "choices": [{"label": "Both", "outcome": "Two."}]}}
    async with Crib(store, models={MODEL: ScriptedModel([orjson.dumps(asking).decode()])}) as crib:
        crib.add(*Crm(1).tools, ask_first, send, every_deal)
        crib.agentic_tool("mover", mode="deterministic", model=MODEL, steps=["search_deals", "update_deals"])
        ids["ASKS"] = (await crib.invoke("mover", {"task": "Move Acme's deals to Negotiation"})).run_id
        with pytest.raises(Conflict):
            await crib.call("ask_first", {"text": "hello"})
        [found] = (await crib.approvals.page()).items
        ids["UNSURE"] = found.approval_id
        sent = await crib.call("send", {"text": "hello"})
        ids["SENT"] = str(sent.run_id)
        [step] = (await crib.trace(ids["SENT"])).model_dump()["steps"]
        ids["PLACE"] = step["position"]
        cut = await crib.call("every_deal")
        ids["CUT"] = str(cut.run_id)
        [kept] = await crib.executions.attachments(ids["CUT"])
        ids["DIGEST"] = str(kept.digest)
        await crib.workflows.publish(WAITING)
        for name in ("APPROVED", "REJECTED", "CANCELLED", "SIGNALLED"):
            begun = await crib.instances.start("sums", {})
            ids[name] = begun.run_id
            [asked] = (await crib.approvals.page(run_id=begun.run_id)).items
            ids[f"APR_{name}"] = asked.approval_id
    return {name.upper(): value for name, value in ids.items()}


def write_files(folder: Path, *, model: str) -> None:
    """The files that commands name.

    Args:
        folder: Where to.
        model: The address of a server of the chat API.
    """
    commands_world.write_files(folder)
    llm = {"model": "openai-compatible:local", "base_url": model, "api_key_env": "TOOLCRIB_SECRET_MODEL"}
    agent = {"name": "speaker", "llm": llm, "system_prompt": "You answer."}
    for name, content in {**FILES, "speaker.yaml": agent}.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    changed = json.loads((folder / "crm.yaml").read_text(encoding="utf-8"))
    required = {"name": "reason", "in": "query", "required": True, "schema": {"type": "string"}}
    changed["paths"]["/deals/{id}"]["patch"]["parameters"].append(required)
    (folder / "crm-3.yaml").write_text(json.dumps(changed), encoding="utf-8")
    (folder / "simple").mkdir()
    (folder / "simple" / "tone.yaml").write_text("kind: fragment\nname: tone\ntext: Be kind.\n", encoding="utf-8")
    (folder / "models").mkdir()
    (folder / "models" / "qwen2.5-coder-1.5b.gguf").write_bytes(b"")
    (folder / "tone.md").write_text("Be kind.", encoding="utf-8")
    (folder / "total.py").write_text("def main():\n    return 1\n", encoding="utf-8")
    (folder / "api.graphql").write_text("type Query { version: String }", encoding="utf-8")


def prepare(folder: Path, *, model: str) -> dict[str, str]:
    """Write the files, and fill the store `crib.db`; returns the ids."""
    write_files(folder, model=model)
    with sqlite3.connect(folder / "shop.db"):
        pass
    return asyncio.run(fill(f"sqlite:///{folder / 'crib.db'}"))
