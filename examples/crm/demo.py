"""The demonstration: a foreign CRM becomes tools, and an agentic tool changes its data, all of it and only it.

    toolcrib demo crm

It starts the CRM as a process of its own, imports its OpenAPI document over HTTP, defines the agentic tool
`deal-manager` with two steps, runs one task and judges the CRM's database afterwards. Copy from `make_deal_manager`.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from examples.crm.planner import NAME, planner, read_task
from examples.crm.verify import StageVerdict, verify_stage_change
from examples.models import check_model
from toolcrib import (
    AgenticContext,
    AgenticTool,
    Crib,
    DefinitionOptions,
    EgressPolicy,
    ReferenceSource,
    Result,
    ScriptedModel,
)
from toolcrib.contracts import BearerAuth, Trace, Unavailable
from toolcrib.kinds.http.shape import ToolOverride

TASK = "Update all Acme Corp deals to Negotiation"
SCRIPTED = f"scripted:{NAME}"
"""The model that needs no key: rules for this one kind of task."""

CREDENTIAL = "${env:CRM_TOKEN}"
"""Where the CRM's token is found, at each call; the token itself is in no definition, envelope or log."""

_SERVER = Path(__file__).parent / "server.py"
_START_S = 60.0
"""The longest that the CRM may take to make and fill its database."""
_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "What was done, in one or two sentences."},
        "deals_affected": {"type": ["integer", "null"], "description": "Deals that were changed; null if unknown."},
    },
    "required": ["summary", "deals_affected"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Crm:
    """The running CRM."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the demonstration came to."""

    result: Result
    trace: Trace
    model: str
    verdict: StageVerdict | None
    problem: str | None
    """Why there is no verdict."""

    @property
    def ok(self) -> bool:
        """Whether the run completed and the data is right."""
        return self.result.ok and self.verdict is not None and self.verdict.all_and_only


async def demonstrate(
    task: str,
    *,
    folder: Path,
    db: Path | None = None,
    store: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    script: ScriptedModel | None = None,
    rate: str = "50/1",
) -> Outcome:
    """Run a task against a CRM and judge what became of its data.

    Args:
        task: What to do, in plain words.
        folder: Where files go that are not named.
        db: The CRM's database; made and filled if there is none.
        store: URL of the journal.
        model: A real model; null for the scripted one.
        base_url: Address of the model's server.
        script: Another scripted planner.
        rate: How many requests the CRM allows, as N/SECONDS.

    Raises:
        InvalidSettings: The model is unknown or its key missing; nothing was started or written.
        ToolcribError: The CRM could not be started or imported.
    """
    check_model(model, base_url, scripted=SCRIPTED)
    db = db or folder / "crm.db"
    async with running_crm(db, log=folder / "crm.log", rate=rate) as crm:
        crib = Crib(
            store or f"sqlite:///{folder / 'toolcrib.db'}",
            models={SCRIPTED: script or planner()},
            egress=EgressPolicy(allow=(urlsplit(crm.url).netloc,)),
            environment={**os.environ, "CRM_TOKEN": crm.token},
            definitions=DefinitionOptions(released=("CRM_TOKEN",)),
        )
        async with crib:
            deal_manager = await make_deal_manager(crib, crm, model=model or SCRIPTED, base_url=base_url)
            result = await deal_manager(task)
            trace = await crib.trace(result.run_id)
    verdict, problem = judge(db, task)
    return Outcome(result, trace, model or SCRIPTED, verdict, problem)


async def make_deal_manager(crib: Crib, crm: Crm, *, model: str, base_url: str | None = None) -> AgenticTool:
    """Make the CRM's operations tools, and of two of them an agentic tool that takes tasks in plain words."""
    await crib.imports.openapi(
        f"{crm.url}/openapi.json",
        name="crm",
        base_url=crm.url,
        accept=True,  # its port is another one each time
        auth=BearerAuth(token=CREDENTIAL),
        overrides={"search_deals": ToolOverride(side_effects="reads")},
    )
    stages = ReferenceSource(
        name="stages", tool="list_pipelines", items="$.results[*].stages[*]", applies_to=("stage",)
    )
    return crib.agentic_tool(
        "deal-manager",
        mode="deterministic",
        model=model,
        base_url=base_url,
        steps=["search_deals", "batch_update_deals"],
        description="Changes the deals of a company in the CRM.",
        context=AgenticContext(reference_data=(stages,)),
        result_schema=_ANSWER,
    )


def judge(db: Path, task: str) -> tuple[StageVerdict | None, str | None]:
    """What the CRM's database says, whatever the run reported; else why it says nothing."""
    change = read_task(task)
    if change is None:
        return None, "the check does not understand how this task is worded"
    try:
        return verify_stage_change(db, company=change.company, stage=change.stage), None
    except LookupError as missing:
        return None, str(missing)


@asynccontextmanager
async def running_crm(db: Path, *, log: Path, rate: str = "50/1") -> AsyncGenerator[Crm]:
    """The CRM as a process on the loopback address, with a token of its own; it ends with the block or with us.

    Raises:
        Unavailable: It did not start.
    """
    options = ("--db", str(db), "--rate", rate, "--exit-with-parent")
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(_SERVER), *options, stdin=PIPE, stdout=PIPE, stderr=errors
        )
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process was started without pipes")
    try:
        async with asyncio.timeout(_START_S):
            announced = await process.stdout.readline()
        if not announced:
            raise Unavailable(f"the CRM did not start: {_end_of(log)}")
        yield Crm(**json.loads(announced))
    finally:
        process.stdin.close()
        await process.wait()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace").strip()[-500:]
