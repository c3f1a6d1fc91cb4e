"""Whole prompts over REST: what a past run has sent, and what a tool would send."""

from typing import Any

import orjson
import pytest

from tests.unit.server.client import Server
from toolcrib import ScriptedModel
from toolcrib.contracts import JsonObject, ModelStarted
from toolcrib.llm import Message, Request, ToolCall, encode_messages, hash_request


class Searching:
    """A model that calls `search` once, and then answers."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Message | str:
        self.requests.append(request)
        if len(request.messages) > 1:
            return "Acme has one deal."
        return Message("assistant", (ToolCall("c1", "search", '{"company": "Acme"}'),))


@pytest.mark.requirement("views.sent_prompts")
async def test_the_whole_request_of_a_past_model_call_is_the_one_that_was_sent(server: Server):
    searching = Searching()
    server.crib.agentic_tool(
        "finder", mode="agentic", model=_given(server, "scripted:find", searching), tools=["search"]
    )
    done = await server.post("/ai/tools/finder/invoke", {"params": {"task": "find Acme's deals"}})
    run_id = done["meta"]["run_id"]

    found = await server.get(f"/executions/{run_id}/prompts/t2.llm")

    sent = searching.requests[1]
    assert found["system"] == sent.system
    assert found["messages"] == orjson.loads(encode_messages(sent.messages))["messages"]
    assert [part["type"] for message in found["messages"] for part in message["parts"]] == [
        "text", "tool_call", "tool_result"
    ]  # fmt: skip
    assert [tool["name"] for tool in found["tools"]] == [tool.name for tool in sent.tools.tools]
    assert (found["run_id"], found["position"], found["purpose"]) == (run_id, "t2.llm", "result_review")
    assert found["tokens"]["total"] == sum(found["tokens"][part] for part in ("system", "messages", "tools"))
    assert "estimate" in found["tokens"]["method"]
    assert len(searching.requests) == 2
    events = await server.crib.store.journal.events(run_id)
    hashes = [entry.event.request_hash for entry in events if isinstance(entry.event, ModelStarted)]
    assert hashes == [hash_request("scripted:find", request) for request in searching.requests]


@pytest.mark.requirement("views.sent_prompts")
async def test_a_position_without_a_model_call_is_refused_with_those_that_there_are(server: Server):
    done = await server.post("/ai/tools/assistant/invoke", {"params": {"task": "find"}})
    refused = await server.get(f"/executions/{done['meta']['run_id']}/prompts/t9.llm", status=404)
    assert "it has: t1.llm" in refused["detail"]

    call = await server.post("/ai/tools/search/invoke", {"params": {"company": "Acme"}})
    refused = await server.get(f"/executions/{call['meta']['run_id']}/prompts/t1.llm", status=404)
    assert "no model call of its own" in refused["detail"]


@pytest.mark.requirement("views.sent_prompts")
async def test_prompts_of_others_are_not_told(server: Server):
    done = await server.post("/ai/tools/assistant/invoke", {"params": {"task": "find"}})
    async with server.client_of("reader") as reader, server.client_of("stranger") as stranger:
        path = f"/api/v1/executions/{done['meta']['run_id']}/prompts/t1.llm"
        assert (await reader.get(path)).status_code == 403
        assert (await stranger.get(path)).status_code == 404


def _given(server: Server, reference: str, script: Any) -> str:
    """Have the crib's models answer a reference from a script."""
    model = ScriptedModel(script, name=reference.partition(":")[2])
    server.crib.models.substitute(lambda llm, choose: model if llm.model == reference else choose())
    return reference


DRAFT: JsonObject = {
    "name": "new_tool",
    "mode": "agentic",
    "llm": {"model": "scripted:free"},
    "system_prompt": "Tools:\n{{available_tools}}\nTask: {{user_task}}\nLike: {{example_queries}}",
    "tools": [{"tool": "search"}],
    "context": {"example_queries": ["Find Acme"]},
}
"""An agentic tool that is not saved."""


@pytest.mark.requirement("views.rendered_prompts")
async def test_a_prompt_is_rendered_with_its_length_and_no_model_is_asked(server: Server):
    asked = ScriptedModel(["nothing"], name="free")
    server.crib.models.substitute(lambda llm, choose: asked if llm.model == "scripted:free" else choose())

    found = await server.post("/agentic-tools/render-prompt", {"params": {"task": "find Acme"}, "definition": DRAFT})

    assert asked.requests == []
    assert (await server.get("/executions"))["items"] == []
    await server.get("/agentic-tools/new_tool", status=404)
    prompt = found["prompt"]
    assert prompt["system"] == "Tools:\n- search: Find deals.\nTask: find Acme\nLike: - Find Acme"
    assert [tool["name"] for tool in prompt["tools"]] == ["search"]
    assert prompt["messages"] == [{"role": "user", "parts": [{"type": "text", "text": "find Acme"}]}]
    assert prompt["tokens"]["system"] == -(-len(prompt["system"]) // 4)
    assert prompt["tokens"]["total"] > prompt["tokens"]["system"] + prompt["tokens"]["messages"]
    assert prompt["input_cost_usd"] == 0
    assert found["problems"] == []


@pytest.mark.requirement("views.rendered_prompts")
async def test_the_rendered_prompt_is_the_one_that_a_run_sends(server: Server):
    for name, position in (("assistant", "t1.llm"), ("deals", "plan")):
        rendered = await server.post(f"/agentic-tools/{name}/render-prompt", {"params": {"task": "find Acme's deals"}})
        done = await server.post(f"/ai/tools/{name}/invoke", {"params": {"task": "find Acme's deals"}})
        sent = await server.get(f"/executions/{done['meta']['run_id']}/prompts/{position}")

        assert rendered["prompt"] == {field: sent[field] for field in rendered["prompt"]}


@pytest.mark.requirement("views.rendered_prompts")
async def test_a_limit_on_costs_does_not_keep_a_prompt_from_being_rendered(server: Server):
    limits = {"max_cost_usd": 0.0001, "allow_unpriced": True}
    body = {"params": {"task": "find"}, "limits": limits, "llm": {"model": "openai:gpt-4o"}}

    found = await server.post("/agentic-tools/assistant/render-prompt", body)

    assert found["prompt"]["model"] == "openai:gpt-4o"
    assert 0 < found["prompt"]["input_cost_usd"] < 0.1


@pytest.mark.requirement("views.rendered_prompts")
async def test_a_prompt_that_cannot_be_rendered_says_why(server: Server):
    body = {"params": {"task": "find"}, "system_prompt": "{{user_tsk}} {{available_tools}}"}

    found = await server.post("/agentic-tools/assistant/render-prompt", body)

    assert found["prompt"] is None
    assert "user_tsk" in found["problems"][0]
    used = {each["name"]: (each["used"], each["characters"]) for each in found["placeholders"]}
    assert (used["available_tools"], used["documentation"]) == ((True, None), (False, None))
    broken = await server.post("/agentic-tools/assistant/render-prompt", body | {"system_prompt": "{{"})
    assert not any(each["used"] for each in broken["placeholders"])


@pytest.mark.requirement("views.placeholders")
async def test_placeholders_are_listed_with_the_present_length_of_their_values(server: Server):
    stages = [{"id": "won", "label": "Won"}, {"id": "lost", "label": "Lost"}]
    context = {"reference_data": [{"name": "stages", "values": stages}], "documentation": "Deals close in EUR."}
    await server.post("/agentic-tools", DRAFT | {"context": context, "system_prompt": "{{reference_data.stages}}"}, 201)

    found = {each["name"]: each for each in (await server.get("/agentic-tools/new_tool/placeholders"))["items"]}

    assert found["documentation"]["characters"] == len("Deals close in EUR.")
    assert (found["documentation"]["used"], found["documentation"]["tokens"]) == (False, 5)
    assert found["reference_data.stages"]["preview"] == "won = Won; lost = Lost"
    assert (found["reference_data.stages"]["used"], found["reference_data"]["used"]) == (True, False)
    assert found["user_task"]["characters"] is found["execution_history"]["tokens"] is None
    assert all(each["description"] for each in found.values())


@pytest.mark.requirement("views.rendered_prompts")
async def test_reference_data_that_cannot_be_read_is_a_problem_of_the_prompt(server: Server):
    context = {"reference_data": [{"name": "stages", "tool": "search", "input": {"company": "Broken"}}]}

    found = await server.post(
        "/agentic-tools/render-prompt", {"params": {"task": "find"}, "definition": DRAFT | {"context": context}}
    )

    assert found["prompt"] is None
    assert "stages" in " ".join(found["problems"])


@pytest.mark.requirement("views.unsaved_tests", "server.prompts")
async def test_a_prompt_is_tested_with_steps_tools_and_context_that_are_not_saved(server: Server):
    before = await server.get("/agentic-tools/assistant")
    body = {
        "params": {"task": "find"},
        "tools": [{"tool": "search"}, {"tool": "update"}],
        "context": {"documentation": "Deals close in EUR."},
        "system_prompt": "{{documentation}} {{available_tools}}",
    }

    found = await server.post("/agentic-tools/assistant/test-prompt", body)

    assert found["system_prompt"] == "Deals close in EUR. - search: Find deals.\n- update: Change deals."
    assert found["answer"] == "nothing to do"
    steps = {"params": {"task": "find Acme's deals"}, "steps": [{"id": "search", "tool": "search"}]}
    planned = await server.post("/agentic-tools/deals/test-prompt", steps)
    assert [call["input"] for call in planned["calls"]] == [{"company": "Acme"}]
    assert await server.get("/agentic-tools/assistant") == before


@pytest.mark.requirement("views.unsaved_tests")
async def test_the_prompt_of_a_tool_that_is_not_saved_at_all_is_tested(server: Server):
    bare = {key: value for key, value in DRAFT.items() if key != "system_prompt"}

    found = await server.post("/agentic-tools/test-prompt", {"params": {"task": "find Acme"}, "definition": bare})

    assert "search" in found["system_prompt"]
    assert (found["answer"], found["problems"]) == ("nothing to do", [])
    await server.get("/agentic-tools/new_tool", status=404)


@pytest.mark.requirement("views.unsaved_tests", "server.grants", "server.local_models")
async def test_who_may_not_write_a_tool_may_not_try_one(server: Server):
    body = {"params": {"task": "find"}, "definition": DRAFT}
    async with server.client_of("reader") as reader:
        for path in ("test-prompt", "render-prompt"):
            assert (await reader.post(f"/api/v1/agentic-tools/{path}", json=body)).status_code == 403
        assert (await reader.get("/api/v1/agentic-tools/assistant/placeholders")).status_code == 403
    local = body | {"definition": DRAFT | {"llm": {"model": "ollama:llama3"}}}
    await server.post("/agentic-tools/test-prompt", local, 403)
