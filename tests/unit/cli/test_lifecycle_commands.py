"""The life of tools at a terminal."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.cli.command import toolcrib
from toolcrib import Crib, ScriptedModel
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute

pytestmark = pytest.mark.requirement("cli.life_cycle")


def document(*parameters: Any) -> dict[str, Any]:
    operation = {"operationId": "deals", "parameters": list(parameters), "responses": {"200": {"description": ""}}}
    servers = [{"url": "https://crm.example.org"}]
    info = {"title": "C", "version": "1"}
    return {"openapi": "3.1.0", "info": info, "servers": servers, "paths": {"/deals": {"get": operation}}}


STAGE = {"name": "stage", "in": "query", "schema": {"type": "string"}}


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'crib.db'}"

    async def fill() -> None:
        async with Crib(url, models={"m:1": ScriptedModel([])}) as crib:
            await crib.imports.openapi(document(STAGE), name="crm")
            route = CompositeRoute(id="only", tool="deals", input={"stage": "won"})
            await crib.save(make_definition("front", implementation=CompositeImplementation(routes=(route,))))

    asyncio.run(fill())
    return url


def said(*command: str | Path, store: str, status: int = 0) -> str:
    done = toolcrib(*command, "--store", store)
    assert done.exit_code == status, done.stderr
    return " ".join(done.stdout.split())


def test_the_list_has_deprecated_and_blocked_tools_only_if_it_is_asked_for_them(store: str) -> None:
    def names(*options: str) -> list[str]:
        listed = json.loads(said("tool", "list", "--json", *options, store=store))
        return [each["definition"]["name"] for each in listed]

    everything = names()
    for state, command in (("deprecated", "deprecate"), ("blocked", "block")):
        said("tool", command, "deals", store=store)

        assert names() == [name for name in everything if name != "deals"]
        assert names("--status", state) == ["deals"]
        assert names("--status", "all") == everything


def test_a_tool_is_deprecated_blocked_and_brought_back(store: str) -> None:
    deprecated = said(
        *("tool", "deprecate", "deals@1.0.0", "--message", "Old.", "--sunset", "2999-01-31", "--replacement", "front"),
        store=store,
    )
    blocked = said("tool", "block", "deals", "--message", "Leaks.", store=store)
    active = json.loads(said("tool", "activate", "deals", "--json", store=store))

    assert deprecated == "tool 'deals@1.0.0' is deprecated: Old; its sunset is on 2999-01-31; use 'front' instead"
    assert blocked == "tool 'deals@1.0.0' is blocked: Leaks; calls of it are denied"
    assert (active["status"], active["status_message"]) == ("active", None)
    assert said("tool", "activate", "deals", store=store) == "tool 'deals@1.0.0' is active, in revision 1"
    said("tool", "block", "delas", store=store, status=1)


def test_what_a_provider_wants_to_change_is_shown_and_decided(store: str, tmp_path: Path) -> None:
    file = tmp_path / "crm.json"
    file.write_text(json.dumps(document()))
    held = said("tool", "import", file, "--name", "crm", store=store)
    review = said("tool", "review", "deals", store=store)
    impact = said("tool", "impact", "deals", store=store)
    whole = json.loads(said("tool", "review", "deals", "--json", store=store))

    assert "deals held provider 'crm' offers it changed, breaking: stage was removed" in held
    assert "breaking input stage was removed" in review
    assert "decide: toolcrib tool accept|reject deals" in review
    assert "front@1.0.0 composite deals yes breaks" in impact
    assert whole["proposal"]["change"]["differences"][0]["place"] == "stage"

    assert said("tool", "reject", "deals", store=store).startswith("tool 'deals@1.0.0' is active")
    assert said("tool", "review", "deals", store=store) == "no change of deals waits for a person"
    said("tool", "accept", "deals", store=store, status=1)
    taken = said("tool", "import", file, "--name", "crm", "--accept-changes", store=store)
    assert "deals changed breaking: stage was removed" in taken


def test_a_proposal_is_accepted_in_place_of_a_persons_own(store: str, tmp_path: Path) -> None:
    async def edit() -> None:
        async with Crib(store) as crib:
            definition = crib.registry.require("default", "deals").definition
            await crib.save(definition.model_copy(update={"description": "Ours."}))

    asyncio.run(edit())
    file = tmp_path / "crm.json"
    file.write_text(json.dumps(document(STAGE, {**STAGE, "name": "owner"})))

    assert "deals kept a person has changed it" in said("tool", "import", file, "--name", "crm", store=store)
    assert "accepting replaces that" in said("tool", "review", "deals", store=store)
    assert said("tool", "accept", "deals", store=store) == "tool 'deals@1.0.0' is active, in revision 3"


def test_whom_a_tool_concerns_is_listed(store: str) -> None:
    assert "front@1.0.0 composite deals yes" in said("tool", "impact", "deals", store=store)
    assert said("tool", "impact", "front", store=store) == "nothing is bound to front@1.0.0"
    report = json.loads(said("tool", "impact", "deals@1.0.0", "--json", store=store))
    assert [each["name"] for each in report["dependents"]] == ["front@1.0.0"]


@pytest.mark.requirement("workflow_impact.reports")
def test_who_changes_a_tool_is_told_which_workflows_that_concerns(store: str, tmp_path: Path) -> None:
    async def publish() -> None:
        async with Crib(store) as crib:
            await crib.workflows.publish({"name": "report", "steps": [{"name": "all", "tool": "deals"}]})

    asyncio.run(publish())
    file = tmp_path / "crm.json"
    file.write_text(json.dumps(document()))

    warning = "Warning: tool 'deals' does not work any more in 1 workflow, look at the graph: report"
    assert said("tool", "block", "deals", store=store).endswith(warning)
    said("tool", "activate", "deals", store=store)
    assert "Warning" not in said("tool", "import", file, "--name", "crm", store=store)
    held = "Warning: tool 'deals' is used as it was in 1 workflow, until it is published again: report"
    assert said("tool", "accept", "deals", store=store).endswith(held)
