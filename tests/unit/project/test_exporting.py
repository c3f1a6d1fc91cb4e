"""`toolcrib export`: the inverse of apply, with random catalogues."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, tool
from toolcrib.contracts import (
    AgentDefinition,
    BearerAuth,
    CronSource,
    LLMConfig,
    McpServerDefinition,
    PromptFragment,
    ProviderDefinition,
    ServiceAccount,
    ToolDefinition,
    TriggerDefinition,
)
from toolcrib.contracts.projects import ProjectKind
from toolcrib.contracts.workflows import ConditionBinding, StepRegistration
from toolcrib.crib.project import Project, prepare, project_files, write_files
from toolcrib.crib.project.planning import SHOWN
from toolcrib.kinds.http.shape import HttpBody, HttpImplementation

pytestmark = pytest.mark.requirement("projects.export")

NEVER_EXPORTED = {"project", "secret", "key", "budget", "function", "import"}
"""What a store does not have as a document: names of what it needs, and what is exported as the tools that it made."""
EXPORTED = {f"{kind}s" for kind in set(get_args(ProjectKind)) - NEVER_EXPORTED - {"blob"}}
"""The folders of an export; blobs come with gRPC tools only (`test_kinds.py`)."""
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), include_characters="\n\t"), max_size=40)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.sampled_from(["2026-01-31", "yes", "1e3", "0o7", "~"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


TEMPLATES = st.fixed_dictionaries(
    {"data": st.lists(VALUES | st.just({"deep": {"$argument": "id"}}), max_size=3), "$set": VALUES}
)


@st.composite
def http_tools(draw: st.DrawFn) -> list[ToolDefinition]:
    made: list[ToolDefinition] = []
    for number in range(draw(st.integers(1, 4))):
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {"id": {"type": "string", "description": draw(TEXTS), "default": draw(TEXTS)}},
        }
        made += [
            ToolDefinition(
                name=f"tool_{number}",
                version=version,
                description=draw(TEXTS),
                tags=tuple(draw(st.lists(st.sampled_from(["a", "b-c"]), unique=True))),
                usage=draw(st.none() | TEXTS),
                metadata=draw(st.dictionaries(st.sampled_from(["owner", "$ref", "a b"]), VALUES, max_size=2)),
                input_schema=schema,
                side_effects=draw(st.sampled_from(["reads", "writes"])),
                timeout_s=draw(st.sampled_from([60.0, 1.5])),
                implementation=HttpImplementation(
                    provider="crm",
                    method=draw(st.sampled_from(["GET", "POST"])),
                    url="/deals",
                    headers=draw(st.sampled_from([{}, {"X-Api-Version": "2", "X-Lang": "nö"}])),
                    body=draw(st.none() | st.builds(HttpBody, template=TEMPLATES)),
                ),
            )
            for version in draw(st.sampled_from([("1.0.0",), ("1.0.0", "2.0.0")]))
        ]
    return made


@tool(side_effects="reads")
def double(number: int) -> int:
    """Double a number."""
    return number * 2


async def fill(crib: Crib, tools: list[ToolDefinition], text: str, value: Any) -> None:
    """A catalogue with a document of every kind."""
    auth = BearerAuth(token="${secret:CRM_TOKEN}")
    await crib.save_provider(ProviderDefinition(name="crm", base_url="https://crm.example", auth=auth))
    for definition in tools:
        await crib.save(definition)
    crib.add(double)
    names = [definition.name for definition in tools]
    await crib.fragments.save(PromptFragment(name="tone", text=f"x{text}"))
    await crib.accounts.save(ServiceAccount(name="bot", description=text, grants=("ai://tools/crm/*/execute",)))
    await crib.conditions.save(ConditionBinding(name="won", parameters=("stage",), expression="${stage == 'Won'}"))
    await crib.steps.save(StepRegistration(name="find", tool=names[0]))
    llm = LLMConfig(model="anthropic:claude-sonnet-4")
    desk = {"name": "desk", "llm": llm, "tools": names, "description": text, "prompt_fragments": ["tone"]}
    await crib.agents.save(AgentDefinition.model_validate(desk))
    crib.agentic_tool("helper", mode="agentic", model="anthropic:claude-sonnet-4", tools=[names[0]])
    await crib.open()
    steps = [{"name": "s", "tool": names[0], "input": {"id": text}}]
    shown = {"type": "object", "properties": {"v": {"default": value}}}
    await crib.workflows.publish({"name": "flow", "description": text, "input_schema": shown, "steps": steps})
    offered = {"name": "words", "title": text, "tools": ["tool_*", "tag:a"], "excluded_tools": [names[0]]}
    await crib.mcp_servers.save(McpServerDefinition.model_validate(offered))
    await crib.triggers.save(
        TriggerDefinition(
            name="nightly",
            description=text,
            when=CronSource(cron="0 6 * * mon-fri", timezone="Europe/Berlin"),
            start="flow",
            input={"v": value},
            account="bot",
            enabled=value is not None,
        )
    )
    await crib.lifecycle.deprecate(f"{tools[-1].name}@{tools[-1].version}", message="Slow.")


async def rows(crib: Crib) -> set[tuple[Any, ...]]:
    found: dict[tuple[str, str, str], Any] = {}
    for kind in SHOWN:
        for row in await crib.store.definitions.revisions(kind, "default"):
            found[kind, row.name, row.version] = (row.content_hash, row.status, row.status_message)
    return {(*key, *value) for key, value in found.items()}


@given(http_tools(), TEXTS, VALUES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_exported_makes_an_empty_store_equal(tools: list[ToolDefinition], text: str, value: Any) -> None:
    async def there_and_back(folder: Path) -> None:
        async with Crib("memory://") as first, Crib("memory://") as second:
            await fill(first, tools, text, value)
            files = await project_files(first)
            assert {path.partition("/")[0] for path in files} == EXPORTED
            write_files(folder, files)
            project = Project.read(folder)
            done = await (await prepare(second, project)).apply(second)
            assert {change.action for change in done.changes} == {"create"}
            assert await rows(second) == await rows(first)
            assert await project_files(second) == files
            assert not (await prepare(second, project)).plan.to_do

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(there_and_back(Path(folder)))


def test_a_second_export_changes_little_and_removes_only_its_own_files(tmp_path: Path) -> None:
    store, folder = f"sqlite:///{tmp_path}/crib.db", tmp_path / "out"

    async def save(*texts: str) -> None:
        async with Crib(store) as crib:
            for number, text in enumerate(texts):
                await crib.fragments.save(PromptFragment(name=f"f{number}", text=text))

    asyncio.run(save("One\ntwo.", "Three."))
    done = toolcrib("export", folder, "--json", store=store)
    assert json.loads(done.stdout) == {"written": ["fragments/f0.yaml", "fragments/f1.yaml"], "removed": []}
    text = "# Written by toolcrib export.\nkind: fragment\nname: f0\ntext: |-\n  One\n  two.\n"
    assert (folder / "fragments" / "f0.yaml").read_text() == text

    async def remove() -> None:
        async with Crib(store) as crib:
            await crib.fragments.remove("f1")

    asyncio.run(remove())
    (folder / "fragments" / "mine.yaml").write_text("kind: fragment\nname: mine\ntext: x\n")
    again = toolcrib("export", folder, store=store)
    assert (again.exit_code, again.stdout) == (0, "wrote 1 file\nremoved fragments/f1.yaml\n")
    assert sorted(file.name for file in (folder / "fragments").iterdir()) == ["f0.yaml", "mine.yaml"]
    (folder / "fragments" / "f0.yaml").write_text("kind: fragment\n")
    refused = toolcrib("export", folder, store=store)
    assert (refused.exit_code, "was not written by an export" in refused.stderr) == (2, True)
