"""Deprecated and blocked tools, and whom a tool concerns."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.twins import make_definition
from toolcrib import Crib, ScriptedModel, tool
from toolcrib.contracts import (
    AllocatedTool,
    ErrorRule,
    JsonSchema,
    NotFound,
    ProviderDefinition,
    ReferenceSource,
    ToolDefinition,
)
from toolcrib.kinds.code.shape import CodeImplementation
from toolcrib.kinds.composite.shape import CompositeImplementation, CompositeRoute
from toolcrib.kinds.http.shape import HttpImplementation
from toolcrib.llm import Message, ToolCall

MODEL = "scripted:m"
STAGE: JsonSchema = {"type": "object", "properties": {"stage": {"type": "string"}, "note": {"type": "string"}}}


@tool(side_effects="reads")
async def search(company: str = "") -> list[str]:
    """Find deals."""
    return [company]


@tool(side_effects="reads")
async def find(company: str = "") -> list[str]:
    """Find deals quickly."""
    return [company]


def crib_with(url: str = "memory://", *answers: Any) -> Crib:
    return Crib(url, models={MODEL: ScriptedModel(answers or ["done"])})


def composite(name: str, tool: str, **route: Any) -> ToolDefinition:
    routes = (CompositeRoute(id="only", tool=tool, **route),)
    return make_definition(name, input_schema=STAGE, implementation=CompositeImplementation(routes=routes))


def http(name: str, schema: JsonSchema = STAGE, **changes: Any) -> ToolDefinition:
    implementation = HttpImplementation(method="GET", url="https://crm.test/deals")
    return make_definition(name, input_schema=schema, implementation=implementation, **changes)


@pytest.mark.requirement("crib.life_cycle")
async def test_who_saves_something_bound_to_a_deprecated_tool_is_warned():
    async with crib_with() as crib:
        crib.add(search, find)
        sunset = datetime(2999, 1, 31, tzinfo=UTC)
        await crib.lifecycle.deprecate("search@1.0.0", message="Slow.", sunset=sunset, replacement="find")
        expected = "tool 'search@1.0.0' is deprecated: Slow; its sunset is on 2999-01-31; use 'find' instead"

        saved = await crib.save(composite("both", "search"))
        assert saved.warnings == (expected,)
        assert tuple(await crib.lifecycle.warnings(composite("both", "search"))) == (expected,)
        assert (await crib.save(composite("quick", "find"))).warnings == ()
        assert crib.registry.require("default", "both").warnings == ()


@pytest.mark.requirement("crib.life_cycle")
async def test_a_run_says_once_what_is_deprecated_and_goes_on_also_after_the_sunset():
    async with crib_with() as crib:
        crib.add(search)
        agent = crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["search"])
        late = crib.clock.now() - timedelta(days=3, minutes=1)
        await crib.lifecycle.deprecate("search", sunset=late)
        result = await agent("x")
        called = await crib.invoke("search", {})

    expected = f"tool 'search@1.0.0' is deprecated; its sunset was on {late:%Y-%m-%d} and is 3 days overdue"
    assert result.summary.warnings == (expected,)
    assert called.summary.warnings == (expected,)
    assert called.summary.status == "completed"


@pytest.mark.requirement("crib.life_cycle")
async def test_a_tool_that_another_process_has_blocked_is_denied_inside_of_runs(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'crib.db'}"
    async with crib_with(url) as crib, Crib(url) as other:
        crib.add(search)
        await crib.save(composite("front", "search", input={}))
        await crib.save(composite("outer", "front", input={}))
        assert (await crib.call("outer")).error is None
        await other.refresh()
        await other.lifecycle.block("search", message="Leaks.")

        failed = [await crib.call(name) for name in ("search", "front", "outer")]

    errors = [envelope.error for envelope in failed]
    assert [(error.code, error.reason) for error in errors if error] == [("POLICY_DENIED", "tool_blocked")] * 3


@pytest.mark.requirement("crib.life_cycle")
async def test_a_blocked_tool_is_brought_back_and_a_replacement_must_exist():
    async with crib_with() as crib:
        crib.add(search)
        await crib.open()
        with pytest.raises(NotFound, match="no tool 'fnd'"):
            await crib.lifecycle.deprecate("search", replacement="fnd")
        await crib.lifecycle.block("search")
        await crib.lifecycle.activate("search")

        assert (await crib.call("search")).error is None


@pytest.mark.requirement("crib.impact")
async def test_everything_that_is_bound_is_listed_with_its_path_and_whether_it_still_fits():
    async with crib_with() as crib:
        await crib.save(http("crm_search"))
        await crib.save(http("crm_search", version="2.0.0"))
        await crib.save(composite("front", "crm_search@^1"))
        await crib.save(
            make_definition(
                "script", implementation=CodeImplementation(source="def main(): return 1", tools=("front",))
            )
        )
        await crib.save(http("other", error_handling=(ErrorRule(when="5xx", action="fallback", tool="crm_search"),)))
        await crib.save_provider(
            ProviderDefinition(
                name="crm",
                base_url="https://crm.test",
                reference_data=(ReferenceSource(name="stages", tool="crm_search"),),
            )
        )
        for name, tools in (("by_pattern", "crm_*"), ("by_group", "group:utility"), ("asks", "script")):
            crib.agentic_tool(name, mode="agentic", model=MODEL, tools=[AllocatedTool(tool=tools)])
        await crib.open()

        new = await crib.lifecycle.impact("crm_search")
        old = await crib.lifecycle.impact("crm_search@1.0.0")
        nothing = await crib.lifecycle.impact("asks")

    rows = {each.name: (each.kind, each.reference, each.satisfied, each.path) for each in new.dependents}
    assert rows == {
        "by_group@1.0.0": ("agentic", "group:utility", True, ("by_group", "crm_search")),
        "by_pattern@1.0.0": ("agentic", "crm_*", True, ("by_pattern", "crm_search")),
        "crm": ("provider", "crm_search", True, ("crm", "crm_search")),
        "front@1.0.0": ("composite", "crm_search@^1", False, ("front", "crm_search")),
        "other@1.0.0": ("http", "crm_search", True, ("other", "crm_search")),
        "asks@1.0.0": ("agentic", "script", False, ("asks", "script", "front", "crm_search")),
        "script@1.0.0": ("code", "front", False, ("script", "front", "crm_search")),
    }
    assert [each.name for each in new.dependents if each.direct] == [
        "by_group@1.0.0",
        "by_pattern@1.0.0",
        "crm",
        "front@1.0.0",
        "other@1.0.0",
    ]
    assert {each.name for each in old.dependents if each.satisfied} >= {"front@1.0.0", "script@1.0.0", "asks@1.0.0"}
    assert (new.tool, old.tool, new.proposed) == ("crm_search@2.0.0", "crm_search@1.0.0", None)
    assert nothing.dependents == ()


@pytest.mark.requirement("crib.impact")
async def test_runs_that_wait_are_listed_with_the_revision_that_they_have_pinned():
    look = Message("assistant", (ToolCall("a", "act", "{}"),))

    @tool(requires_confirmation=True)
    async def act() -> str:
        """Act."""
        return "acted"

    async with crib_with("memory://", look, "done") as crib:
        crib.add(act)
        waiting = await crib.agentic_tool("agent", mode="agentic", model=MODEL, tools=["act"])("x")
        before = crib.registry.require("default", "act").content_hash
        await crib.save(act.definition.model_copy(update={"description": "Act now."}))
        bound = await crib.lifecycle.impact("act")
        itself = await crib.lifecycle.impact("agent")

    assert [(run.run_id, run.tool, run.status, run.content_hash) for run in bound.runs] == [
        (waiting.run_id, "agent@1.0.0", "awaiting_approval", before)
    ]
    assert bound.content_hash != before
    assert [run.run_id for run in itself.runs] == [waiting.run_id]


NEEDED: JsonSchema = {**STAGE, "required": ["stage"]}
LONGER: JsonSchema = {"type": "object", "properties": {**STAGE["properties"], "owner": {"type": "string"}}}
SHORTER: JsonSchema = {"type": "object", "properties": {"stage": {"type": "string", "maxLength": 3}, "note": {}}}
GONE: JsonSchema = {"type": "object", "properties": {"stage": {"type": "string"}}}


@pytest.mark.requirement("crib.impact")
@pytest.mark.parametrize(
    ("schema", "route", "verdict"),
    [
        (LONGER, {"input": {"stage": "won"}}, "unaffected"),
        (NEEDED, {"input": {"stage": "won"}}, "unaffected"),
        (NEEDED, {"input": {"note": "x"}}, "breaks"),
        (NEEDED, {"input": {"note": "x"}, "defaults": {"stage": "won"}}, "unaffected"),
        (GONE, {"input": {"note": "x"}}, "breaks"),
        (GONE, {"input": {"stage": "won"}}, "unaffected"),
        (SHORTER, {"input": {"stage": "won"}}, "may_break"),
        (SHORTER, {"input": {"note": "x"}}, "unaffected"),
        (GONE, {}, "may_break"),
    ],
)
async def test_a_change_is_held_against_what_a_composite_sends(schema: JsonSchema, route: Any, verdict: str):
    async with crib_with() as crib:
        await crib.save(http("deals"))
        await crib.save(composite("front", "deals", **route))
        report = await crib.lifecycle.impact("deals", proposed=http("deals", schema))

    [found] = report.dependents
    assert found.verdict == verdict
    assert report.proposed is not None


@pytest.mark.requirement("crib.impact")
async def test_a_change_may_break_what_a_model_or_code_sends_and_nobody_who_is_bound_to_another_version():
    async with crib_with() as crib:
        await crib.save(http("deals"))
        await crib.save(http("deals", version="2.0.0"))
        await crib.save(
            make_definition(
                "script", implementation=CodeImplementation(source="def main(): return 1", tools=("deals",))
            )
        )
        await crib.save(composite("front", "deals@^1"))
        await crib.save(composite("outer", "script"))
        report = await crib.lifecycle.impact("deals", proposed=http("deals", version="2.0.0", side_effects="writes"))

    assert {each.name: each.verdict for each in report.dependents} == {
        "front@1.0.0": "unaffected",
        "outer@1.0.0": "may_break",
        "script@1.0.0": "may_break",
    }


@pytest.mark.requirement("crib.impact")
async def test_what_a_provider_proposes_is_what_the_verdicts_are_about():
    def document(*parameters: Any) -> Any:
        operation = {"operationId": "deals", "parameters": list(parameters), "responses": {"200": {"description": ""}}}
        servers = [{"url": "https://crm.test"}]
        info = {"title": "C", "version": "1"}
        return {"openapi": "3.1.0", "info": info, "servers": servers, "paths": {"/deals": {"get": operation}}}

    stage = {"name": "stage", "in": "query", "schema": {"type": "string"}}
    async with crib_with() as crib:
        await crib.imports.openapi(document(stage), name="crm")
        await crib.save(composite("front", "deals", input={"stage": "won"}))
        await crib.imports.openapi(document(), name="crm")
        report = await crib.lifecycle.impact("deals")

    assert report.proposed is not None
    assert report.proposed.worst == "breaking"
    assert [each.verdict for each in report.dependents] == ["breaks"]
