"""The demonstration under fire: the CRM as a process of its own, and a deterministic tool that updates its deals."""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from examples.crm.__main__ import main as serve_crm
from examples.crm.document import load_document
from examples.crm.planner import NAME, planner
from examples.crm.store import Store as CrmDatabase
from examples.crm.verify import verify_stage_change
from tests.chaos.crashing import CrashPoint, crashing
from tests.chaos.processes import announced
from toolcrib import AgenticContext, Crib, EgressPolicy, ReferenceSource, SharingOptions
from toolcrib.contracts import Json, JsonSchema
from toolcrib.infrastructure.store import open_store
from toolcrib.kinds.http.shape import ToolOverride

COMPANY, STAGE = "Acme Corp", "Negotiation"
LEASE_S = 0.2
REPORT: JsonSchema = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "deals_affected": {"type": "integer"}},
    "required": ["summary", "deals_affected"],
    "additionalProperties": False,
}

DOCUMENT = load_document()


@dataclass(frozen=True, slots=True)
class Place:
    """Where one run happens: the folder of both databases, and how the CRM is reached."""

    folder: Path
    url: str
    token: str

    @property
    def database(self) -> Path:
        """The CRM's file."""
        return self.folder / "crm.db"


def populate(folder: Path) -> None:
    """Make a folder with the CRM's file, to be copied."""
    folder.mkdir()
    CrmDatabase(folder / "crm.db", seed=7).close()


@asynccontextmanager
async def crm(template: Path, folder: Path) -> AsyncGenerator[Place]:
    """A CRM with fresh data, as a process of its own; the folder is made."""
    await asyncio.to_thread(shutil.copytree, template, folder)
    async with announced(serve_crm, "--db", str(folder / "crm.db"), "--rate", "100000/1") as line:
        address = json.loads(line)
        yield Place(folder, address["url"], address["token"])


def _crib(place: Place, point: CrashPoint | None = None) -> Crib:
    store = open_store(f"sqlite:///{place.folder}/crib.db")
    return Crib(
        store if point is None else crashing(store, point),
        models={f"scripted:{NAME}": planner()},
        environment={"CRM_TOKEN": place.token},
        egress=EgressPolicy(allow=(urlsplit(place.url).netloc,)),
        sharing=SharingOptions(lease_s=LEASE_S),
    )


async def update_deals(place: Place, point: CrashPoint | None = None) -> Json:
    """The demonstration from its beginning."""
    async with _crib(place, point) as crib:
        searching = {"search_deals": ToolOverride(side_effects="reads")}
        await crib.imports.openapi(DOCUMENT, name="crm", base_url=place.url, overrides=searching)
        stages = ReferenceSource(
            name="stages", tool="list_pipelines", items="$.results[0].stages[*]", applies_to=("stage",)
        )
        deals = crib.agentic_tool(
            "deal-manager",
            mode="deterministic",
            model=f"scripted:{NAME}",
            steps=["search_deals", "batch_update_deals"],
            context=AgenticContext(reference_data=(stages,)),
            result_schema=REPORT,
        )
        result = await deals(f"Update all {COMPANY} deals to {STAGE}")
        return result.summary.model_dump(mode="json")


async def resume(place: Place, run_id: str) -> Json:
    """What any process does after a crash; it knows nothing but the store and the credentials."""
    async with _crib(place) as crib:
        result = await crib.resume(run_id)
        return result.summary.model_dump(mode="json")


def state(place: Place) -> Any:
    """The deals, and whether all of the company's and only they were changed, once each."""
    verdict = verify_stage_change(place.database, company=COMPANY, stage=STAGE)
    with closing(sqlite3.connect(place.database)) as connection:
        deals = connection.execute("SELECT id, stage_id, revision FROM deals ORDER BY id").fetchall()
    return verdict.as_json(), deals


def updates(place: Place) -> list[tuple[str, str]]:
    """Body and key of every update that the CRM got."""
    sql = "SELECT body_sha256, idempotency_key FROM request_log WHERE operation = 'batch_update_deals' ORDER BY seq"
    with closing(sqlite3.connect(place.database)) as connection:
        return connection.execute(sql).fetchall()
