"""The CRM's part: its tools, one run of one task on a fresh copy of its data, and the judge of what the data then says.

The judge reads the CRM's own tables and its audit. What a run reports counts only where the task asks for an answer.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from benchmarks.live.outcome import Outcome, Task, Verdict
from examples.crm.demo import CREDENTIAL, Crm, running_crm
from toolcrib import AgenticContext, Crib, DefinitionOptions, EgressPolicy, Limits, LLMConfig, ReferenceSource, Result
from toolcrib.contracts import BearerAuth
from toolcrib.kinds.http.shape import ToolOverride
from toolcrib.llm import LanguageModel

_FOLDER = Path(__file__).parent
_TASKS = (_FOLDER / "crm_tasks.yaml", _FOLDER / "crm_wordings.yaml")
_VIEW = """
    CREATE TEMP VIEW deal AS
    SELECT deals.id AS id, deals.name AS name, companies.name AS company, stages.label AS stage,
        pipelines.label AS pipeline, owners.name AS owner, amount_cents / 100.0 AS amount, close_date
    FROM deals JOIN companies ON companies.id = company_id JOIN stages ON stages.id = stage_id
        JOIN pipelines ON pipelines.id = deals.pipeline_id LEFT JOIN owners ON owners.id = deals.owner_id
"""
_LISTS = (
    ReferenceSource(name="stages", tool="list_pipelines", items="$.results[*].stages[*]", applies_to=("stage",)),
    ReferenceSource(name="owners", tool="list_owners", items="$.results[*]", label="name", applies_to=("owner_id",)),
    ReferenceSource(name="pipelines", tool="list_pipelines", items="$.results[*]", applies_to=("pipeline",)),
)
_TOOLS: Mapping[str, tuple[str, ...]] = {
    "create": ("search_companies", "create_deal"),
    "": ("search_deals", "batch_update_deals"),
}


def crm_tasks() -> list[Task]:
    """All tasks."""
    return [Task(system="crm", **entry) for file in _TASKS for entry in yaml.safe_load(file.read_text())]


async def run_crm(task: Task, model: LanguageModel, *, seed: int, folder: Path) -> Outcome:
    """Carry out one task on a fresh copy of the data.

    Args:
        task: What to do.
        model: Who plans.
        seed: Of the model's sampling.
        folder: Where the data's original is kept and its copy is made.
    """
    base, db = folder / "crm.db", folder / "copy.db"
    if not base.exists():
        async with running_crm(base, log=folder / "crm.log"):
            pass
    shutil.copyfile(base, db)
    async with running_crm(db, log=folder / "crm.log", rate="500/1") as crm:
        crib = Crib(
            "memory://",
            models={model.name: model},
            egress=EgressPolicy(allow=(urlsplit(crm.url).netloc,)),
            environment={**os.environ, "CRM_TOKEN": crm.token},
            definitions=DefinitionOptions(released=("CRM_TOKEN",)),
        )
        async with crib:
            result = await _run(crib, crm, task, LLMConfig(model=model.name, extra={"seed": seed}))
    verdict = judge(task, base, db, result.summary.output_or_partial)
    return Outcome.of(task, seed, result, verdict)


async def _run(crib: Crib, crm: Crm, task: Task, llm: LLMConfig) -> Result:
    await crib.imports.openapi(
        f"{crm.url}/openapi.json",
        name="crm",
        base_url=crm.url,
        accept=True,  # its port is another one each time
        auth=BearerAuth(token=CREDENTIAL),
        overrides={name: ToolOverride(side_effects="reads") for name in ("search_deals", "search_companies")},
    )
    steps = _TOOLS.get(task.kind, _TOOLS[""])
    tool = crib.agentic_tool(
        "crm-agent",
        mode="deterministic",
        model=llm,
        steps=list(steps),
        description="Works on the deals of a CRM.",
        context=AgenticContext(reference_data=_LISTS),
        limits=Limits(timeout_s=1800),  # a busy machine shall end no run
    )
    return await tool(task.task)


def judge(task: Task, before: Path, after: Path, output: Any) -> Verdict:
    """What became of the data, held against what the task means."""
    with closing(_opened(before)) as old, closing(_opened(after)) as new:
        changes = {(row[0], row[1]): row[2] for row in new.execute("SELECT deal_id, property, new FROM audit")}
        if task.kind == "create":
            return _judge_created(task, old, new)
        wanted = _wanted(task, old) if task.kind == "change" else {}
        wrong = sum(changes[place] != wanted.get(place) for place in changes)
        missing = sum(place not in changes for place in wanted)
        if wrong or missing:
            return Verdict(success=False, wrong_writes=wrong, problem=f"{wrong} wrong, {missing} missing")
        if task.kind == "read":
            count = old.execute(f"SELECT count(*) FROM deal WHERE {task.count}").fetchone()[0]
            told = str(count) in _numbers(json.dumps(output))
            return Verdict(success=told, problem="" if told else f"{count} is not in the answer")
        return Verdict(success=True)


def _wanted(task: Task, old: sqlite3.Connection) -> dict[tuple[int, str], str]:
    """The audit that the task means: new value by deal and property, for those that differ."""
    wanted: dict[tuple[int, str], str] = {}
    for name, value in task.set.items():
        column, stored = {"stage": "stage", "owner": "owner_id", "close_date": "close_date"}[name], str(value)
        rows = old.execute(
            f"SELECT id, pipeline FROM deal WHERE ({task.where}) AND {name} IS NOT ?", (value,)
        ).fetchall()
        for deal, pipeline in rows:
            if name == "stage":
                sql = (
                    "SELECT stages.id FROM stages JOIN pipelines ON pipelines.id = pipeline_id "
                    "WHERE stages.label = ? AND pipelines.label = ?"
                )
                stored = old.execute(sql, (value, pipeline)).fetchone()[0]
            elif name == "owner":
                stored = str(old.execute("SELECT id FROM owners WHERE name = ?", (value,)).fetchone()[0])
            wanted[deal, column] = stored
    if not wanted:
        raise ValueError(f"task {task.id} means no deal of the data, so it would prove nothing")
    return wanted


def _judge_created(task: Task, old: sqlite3.Connection, new: sqlite3.Connection) -> Verdict:
    known = {row[0] for row in old.execute("SELECT id FROM deals")}
    touched = {row[0] for row in new.execute("SELECT deal_id FROM audit")}
    names = ", ".join(task.set)
    rows = {row[0]: tuple(row[1:]) for row in new.execute(f"SELECT id, {names} FROM deal")}
    made = [rows.get(deal) for deal in touched]
    wanted = tuple(task.set.values())
    wrong = len(touched & known) + sum(row != wanted for row in made)
    success = not wrong and made == [wanted]
    return Verdict(success=success, wrong_writes=wrong, problem="" if success else f"made {made}, wanted {wanted}")


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(_VIEW)
    return connection


def _numbers(text: str) -> list[str]:
    return "".join(letter if letter.isdigit() else " " for letter in text.replace(",", "")).split()
