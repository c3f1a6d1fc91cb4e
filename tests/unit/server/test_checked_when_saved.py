"""Definitions that cannot work are refused when they are saved, with everything that is wrong at once."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.twins import make_definition
from tests.unit.cli.command import toolcrib
from tests.unit.server.client import Server, body_of, serving
from toolcrib import Crib
from toolcrib.contracts import InvalidDefinition, JsonObject, ProviderDefinition
from toolcrib.kinds.http.shape import HttpImplementation

LLM: JsonObject = {"model": "scripted:free"}
AGENTIC: JsonObject = {"name": "finder", "mode": "agentic", "llm": LLM, "tools": [{"tool": "search"}]}
FIXED: JsonObject = {
    "name": "finder",
    "mode": "deterministic",
    "llm": LLM,
    "steps": [{"id": "search", "tool": "search"}],
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with serving(f"sqlite:///{tmp_path}/crib.db") as started:
        yield started


def problems_of(refused: JsonObject) -> dict[str, str]:
    found = refused["details"]["problems"]
    return {problem["path"]: problem["problem"] for problem in found}


@pytest.mark.requirement("agentic.placeholders")
@pytest.mark.parametrize(
    ("placeholder", "said"),
    [
        (
            "user_task.x",
            "'{{user_task.x}}' at column 1 reads a field of 'user_task', which is text; write '{{user_task}}'",
        ),
        ("user_task.__class__", "reads a field of 'user_task', which is text"),
        ("documentation.a.b", "reads a field of 'documentation', which is text"),
        ("reference_data.stages.x", "reads a field of 'reference_data.stages', which is text"),
        ("input.tsk", "reads a parameter that there is not; did you mean 'task'? the tool has: task"),
        ("input.note", "reads 'note', which may be left out; make it required, or give it a default"),
    ],
)
async def test_finding_12_a_placeholder_that_need_not_have_a_value_is_refused(
    server: Server, placeholder: str, said: str
):
    parameters = {"task": {"type": "string"}, "note": {"type": "string"}}
    schema = {"type": "object", "properties": parameters, "required": ["task"]}
    lists = {"reference_data": [{"name": "stages", "values": [{"id": "a", "label": "A"}]}]}
    body = {**AGENTIC, "context": lists, "system_prompt": f"{{{{{placeholder}}}}}"}
    if placeholder == "input.note":
        body["input_schema"] = schema
    refused = await server.post("/agentic-tools", body, status=422)

    assert said in problems_of(refused)["/system_prompt"]


@pytest.mark.requirement("agentic.placeholders")
async def test_finding_12_fields_that_are_always_there_may_be_read(server: Server):
    parameters = {"task": {"type": "string"}, "note": {"type": "string", "default": "none"}}
    schema = {"type": "object", "properties": parameters, "required": ["task"]}
    prompt = "{{input.task}} {{input.note}} {{user_task}}"
    await server.post("/agentic-tools", {**AGENTIC, "input_schema": schema, "system_prompt": prompt}, status=201)


@pytest.mark.requirement("agentic.something_to_work_with")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({**FIXED, "steps": []}, "mode 'deterministic' needs steps; name at least one"),
        ({**AGENTIC, "tools": []}, "mode 'agentic' needs tools; name at least one"),
    ],
)
async def test_finding_13_a_tool_with_nothing_to_work_with_is_saved_as_a_draft_only(
    server: Server, body: JsonObject, said: str
):
    refused = await server.post("/agentic-tools", body, status=422)
    kept = await server.post("/agentic-tools", {**body, "status": "draft"}, status=201)
    activated = await server.client.patch("/api/v1/agentic-tools/finder", json={"status": "active"})

    assert said in refused["detail"]
    assert kept["status"] == "draft"
    assert (activated.status_code, said in activated.text) == (422, True)


@pytest.mark.requirement("registry.provider_there")
async def test_0_11_a_tool_names_a_provider_that_there_is(server: Server):
    await server.post("/providers", {"name": "crm", "base_url": "https://crm.example"}, status=201)
    there = HttpImplementation(method="GET", url="/deals", provider="crm")
    missing = there.model_copy(update={"provider": "crn"})
    refused = await server.post("/ai/tools", body_of(make_definition("rows", implementation=missing)), status=422)
    disabled = make_definition("later", implementation=missing, enabled=False)
    await server.post("/ai/tools", body_of(disabled), status=201)
    await server.post("/ai/tools", body_of(make_definition("rows", implementation=there)), status=201)

    [(path, problem)] = problems_of(refused).items()
    assert path == "/implementation/provider"
    assert "there is no provider 'crn' in realm 'default'; did you mean 'crm'? available: crm" in problem


@pytest.mark.requirement("registry.provider_there")
async def test_0_11_a_provider_that_another_process_has_saved_is_there(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/crib.db"
    async with Crib(store) as one, Crib(store) as other:
        await other.registry.refresh("default")
        await one.save_provider(ProviderDefinition(name="crm", base_url="https://crm.example"))
        implementation = HttpImplementation(method="GET", url="/deals", provider="crm")
        await other.save(make_definition("rows", implementation=implementation))


AGENT: JsonObject = {
    "name": "desk",
    "llm": LLM,
    "tols": [],
    "max_tools_in_context": "many",
    "tools": [{"tool": "serch"}, {"tool": "search"}],
    "delegates": ["nobody"],
    "prompt_fragments": ["house_style"],
    "response_format": "structured",
}
WRONG = {
    "/tols": "there is no field 'tols'; did you mean 'tools'?",
    "/max_tools_in_context": "max_tools_in_context: Input should be a valid integer",
    "/prompt_fragments/0": "there is no prompt fragment 'house_style'",
    "/response_format": "there is no response_schema",
    "/delegates/0": "nobody",
    "/tools/0/tool": "serch",
}


def held_against(found: dict[str, str], wanted: dict[str, str]) -> None:
    assert found.keys() == wanted.keys()
    assert {path: text for path, text in wanted.items() if text not in found[path]} == {}


@pytest.mark.requirement("agents.all_problems")
async def test_a_field_inside_of_a_field_of_an_agent_is_suggested_too(server: Server):
    body = {"name": "desk", "llm": {"model": "scripted:m", "temprature": 0.2}, "tools": [{"tol": "search"}]}
    told = problems_of(await server.post("/ai/agents", body, status=422))

    assert told["/llm/temprature"] == "there is no field 'llm.temprature'; did you mean 'temperature'?"
    assert told["/tools/0/tol"] == "there is no field 'tools.0.tol'; did you mean 'tool'?"


@pytest.mark.requirement("agents.all_problems")
async def test_an_agent_s_mistakes_of_shape_and_names_are_told_together_over_rest_and_in_python(server: Server):
    body = {**AGENT, "tols": "x"}
    body.pop("tools")
    shape = problems_of(await server.post("/ai/agents", {**AGENT, "tols": "x"}, status=422))
    names = problems_of(
        await server.post(
            "/ai/agents", {k: v for k, v in AGENT.items() if k not in ("tols", "max_tools_in_context")}, 422
        )
    )
    with pytest.raises(InvalidDefinition) as raised:
        await server.crib.agents.save(AGENT)

    without_tools = {path: text for path, text in WRONG.items() if not path.startswith("/tools")}
    held_against(shape, without_tools)  # `tols` may have been meant as `tools`
    held_against(names, {path: text for path, text in WRONG.items() if path not in ("/tols", "/max_tools_in_context")})
    held_against({str(each["path"]): str(each["problem"]) for each in raised.value.problems}, without_tools)


@pytest.mark.requirement("agents.all_problems")
async def test_an_agent_s_mistakes_are_told_by_line_on_the_command_line(tmp_path: Path):
    file = tmp_path / "desk.yaml"
    file.write_text(
        "name: desk\nllm: {model: 'anthropic:claude-sonnet-4'}\nmax_tools_in_context: many\n"
        "tools:\n  - tool: serch\ndelegates:\n  - nobody\n"
    )
    refused = await asyncio.to_thread(toolcrib, "agent", "add", file, store=f"sqlite:///{tmp_path}/crib.db")

    assert refused.exit_code == 2
    lines = [line.partition(": error: ")[0].rpartition(":")[2] for line in refused.stderr.splitlines()]
    assert lines == ["3", "5", "7"]
    assert all(text in refused.stderr for text in ("/max_tools_in_context: ", "/tools/0/tool: ", "/delegates/0: "))


@pytest.mark.requirement("agents.all_problems")
async def test_a_tool_s_mistakes_are_told_together(server: Server):
    broken: dict[str, Any] = {
        "version": "one",
        "category": "a/b",
        "select": "$[",
        "cache": "ttl",
        "input_schema": {"type": "strin"},
        "implementation": HttpImplementation(method="GET", url="/deals", provider="none"),
    }
    found = problems_of(await server.post("/ai/tools", body_of(make_definition("rows", **broken)), status=422))

    assert found.keys() >= {"/version", "/category", "/select", "/cache", "/input_schema", "/implementation/provider"}


WORKFLOW: JsonObject = {
    "name": "follow_up",
    "input_schema": {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]},
    "steps": [
        {"name": "found", "tool": "search", "input": {"company": "${input.compny}"}, "tiemout_s": 3},
        {"name": "again", "tool": "serch", "input": {"company": "${input.company}"}},
        {"name": "changed", "tool": "update", "depends_on": ["nothing"], "input": {"stage": "${input.company}"}},
        {"name": "waits", "wait": {"seconds": 5}, "timeout_s": "long"},
    ],
}
EXPECTED = {
    "/steps/0/tiemout_s": "there is no field 'tiemout_s' here",
    "/steps/3/timeout_s": "must be",
    "/steps/0/input/company": "compny",
    "/steps/1/tool": "serch",
    "/steps/2/depends_on/0": "there is no step 'nothing'",
}


@pytest.mark.requirement("workflows.all_problems")
async def test_a_workflow_s_mistakes_of_shape_names_and_expressions_are_told_together(server: Server, tmp_path: Path):
    checked = await server.post("/ai/workflows/validate", WORKFLOW)
    refused = problems_of(await server.post("/ai/workflows/follow_up/publish", {"definition": WORKFLOW}, status=422))
    graph = await server.crib.workflows.check(WORKFLOW)
    file = tmp_path / "follow_up.json"
    file.write_text(json.dumps(WORKFLOW, indent=1))
    said = await asyncio.to_thread(toolcrib, "workflow", "check", file, store=f"sqlite:///{tmp_path}/crib.db")

    held_against({each["path"]: each["message"] for each in checked["problems"]}, EXPECTED)
    held_against(refused, EXPECTED)
    held_against({each.path: each.message for each in graph.problems}, EXPECTED)
    assert said.exit_code == 1
    assert all(path in said.stdout for path in EXPECTED)


@pytest.mark.requirement("workflows.all_problems")
async def test_what_is_wrong_in_form_makes_no_further_problems(server: Server):
    steps: list[JsonObject] = [
        {"name": "found", "tool": 5, "input": {"company": "${input.company}"}},
        {"name": "each", "for_each": 3, "tool": "search", "input": {"company": "${item.name}"}},
        {"name": "reads", "tool": "update", "input": {"stage": "${found.stage}"}},
    ]
    graph = await server.crib.workflows.check({**WORKFLOW, "steps": steps})

    assert {problem.path for problem in graph.problems if problem.is_error} == {"/steps/0/tool", "/steps/1/for_each"}


@pytest.mark.requirement("workflow_agents.last_tool")
async def test_f10_reading_the_last_tool_of_an_agent_that_may_call_nothing_is_told(server: Server):
    await server.post("/ai/agents", {"name": "desk", "llm": LLM, "tools": [{"tool": "search"}]}, status=201)

    async def told(text: str, **fields: Any) -> list[tuple[str, str, str | None]]:
        asks = {"name": "asks", "agent": "desk", "input": {"message": "go"}}
        tells = {"name": "tells", "tool": "update", "input": {"stage": text}, **fields}
        graph = await server.crib.workflows.check({"name": "flow", "steps": [asks, tells]})
        return [(each.path, each.message, each.suggestion) for each in graph.problems]

    [(path, message, suggestion)] = await told("${asks.last_tool.name}")
    assert (path, suggestion) == ("/steps/1/input/stage", "write ?. to get null then")
    assert message.endswith("has no value if no call of 'asks' succeeds")
    assert await told("${asks.last_tool?.name ?? 'none'}") == []
    assert await told("${asks.last_tool.name}", condition="${asks.last_tool != null}") == []
