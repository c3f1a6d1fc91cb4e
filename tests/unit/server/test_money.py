"""What runs cost, as every door tells it: unknown is null, totals are sums of their lines, tokens include delegates."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.cli.command import toolcrib
from tests.unit.server.client import Server, serving
from toolcrib import Crib, Limits, ScriptedModel
from toolcrib.contracts import AgentDefinition, JsonObject, LLMConfig, ModelError
from toolcrib.llm import Cost, Message, Request, Response, TokenUsage, ToolCall, assistant

ONE: Final = TokenUsage(100, 20)
"""Of each answer."""
MILLION: Final = Decimal(1_000_000)


class Priced(ScriptedModel):
    """A model with a price: 2.50 US dollars a million tokens read, 10 a million written; or none, or not for all."""

    def __init__(self, script: Any, *, known: bool = True, lacks: tuple[str, ...] = ()) -> None:
        super().__init__(script)
        self._known = known
        self._lacks = lacks

    def cost(self, usage: TokenUsage, at: datetime) -> Cost:
        if not self._known:
            return Cost(None, "unknown: nobody sells it")
        usd = (usage.input * Decimal("2.5") + usage.output * 10) / MILLION
        return Cost(usd, "a table", self._lacks if usage.more else ())


def said(message: str | Message, usage: TokenUsage = ONE) -> Response:
    whole = assistant(message) if isinstance(message, str) else message
    stop = "tool_calls" if whole.calls else "end"
    return Response(whole, stop, stop, usage, "m", "id")


def _says(message: str, usage: TokenUsage = ONE) -> Callable[[Request], Response]:
    return lambda _: said(message, usage)


def calls(name: str, **arguments: str) -> Response:
    return said(Message("assistant", (ToolCall(f"call_{name}", name, json.dumps(arguments)),)))


@asynccontextmanager
async def priced(
    folder: Path, *, models: Callable[[], dict[str, ScriptedModel]], define: Callable[[Crib], None]
) -> AsyncGenerator[Server]:
    """A server on SQLite with more models, and with what is defined of them."""

    def make(*given: Any, **more: Any) -> Crib:
        return Crib(*given, **{**more, "models": {**more["models"], **models()}})

    async with serving(f"sqlite:///{folder / 'crib.db'}", make_crib=make) as server:
        define(server.crib)
        yield server


async def done_of(server: Server, run_id: str) -> JsonObject:
    """The result in the `done` message of a run's stream."""
    stream = await server.client.get(f"/api/v1/executions/{run_id}/events/stream")
    blocks = [block for block in stream.text.split("\n\n") if "event: done" in block]
    return json.loads(blocks[-1].partition("data: ")[2])["result"]


async def shown(folder: Path, *command: str) -> str:
    """What a command prints of the server's store."""
    url = f"sqlite:///{folder / 'crib.db'}"
    found = await asyncio.to_thread(toolcrib, *command, store=url, COLUMNS="200")
    return found.stdout


@pytest.mark.requirement("costs.unknown")
async def test_an_unknown_cost_is_shown_as_unknown_and_never_as_nothing(tmp_path: Path) -> None:
    """Finding: `GET /executions` gave 0.0, `toolcrib run list` $0, and the stream's end 0.0 beside `cost_unknown`."""

    def define(crib: Crib) -> None:
        crib.agent("desk", model="scripted:new", limits=Limits(max_cost_usd=None))
        crib.agentic_tool(
            "finder", mode="agentic", model="scripted:new", tools=["search"], limits=Limits(max_cost_usd=None)
        )

    def models() -> dict[str, ScriptedModel]:
        return {"scripted:new": Priced(_says("Two."), known=False)}

    async with priced(tmp_path, models=models, define=define) as server:
        answer = await server.post("/ai/agents/desk/execute", {"message": "How many?"})
        found = await server.post("/agentic-tools/invoke", {"tool": "finder", "params": {"task": "find"}})
        listed = (await server.get("/executions"))["items"]
        single = [await server.get(f"/executions/{item['run_id']}") for item in listed]
        executions = (await server.get("/agentic-tools/finder/executions"))["items"]
        detail = await server.get(f"/agentic-tools/finder/executions/{executions[0]['execution_id']}")
        done = [await done_of(server, item["run_id"]) for item in listed]

    assert (answer["cost_usd"], answer["cost_unknown"]) == (None, True)
    assert (found["meta"]["total_cost"], found["meta"]["cost_unknown"]) == (None, True)
    assert [(item["cost_usd"], item["cost_unknown"]) for item in (*listed, *done)] == [(None, True)] * 4
    assert all(item.get("cost_usd", item.get("total_cost")) is None for item in single)
    assert [(item["total_cost"], item["cost_unknown"]) for item in (*executions, detail)] == [(None, True)] * 2
    assert detail["cost_breakdown"]["total_cost_usd"] is None
    assert detail["cost_breakdown"]["cost_unknown"]
    rows = await shown(tmp_path, "run", "list")
    assert rows.count("unknown") == 2
    assert "$0" not in rows


@pytest.mark.requirement("costs.unknown")
async def test_what_is_not_priced_makes_a_lower_bound_of_a_run_and_of_its_parents(tmp_path: Path) -> None:
    """A search without a price is named with its call; the agent above says that its own cost is a lower bound."""
    searched = TokenUsage(100, 20, more={"web_search": 1})

    def define(crib: Crib) -> None:
        scout = crib.agent("scout", model="scripted:scout", description="Looks things up.")
        crib.agent("desk", model="scripted:desk", delegates=[scout])

    def models() -> dict[str, ScriptedModel]:
        return {
            "scripted:scout": Priced(_says("Rain.", searched), lacks=("web_search",)),
            "scripted:desk": Priced([calls("scout", message="Weather?"), said("Rain.")]),
        }

    async with priced(tmp_path, models=models, define=define) as server:
        answer = await server.post("/ai/agents/desk/execute", {"message": "Weather?"})
        trace = (await server.get(f"/executions/{answer['run_id']}"))["trace"]
        listed = (await server.get("/executions"))["items"]

    nested = next(step for step in trace["steps"] if step["type"] == "tool_call")["child"]
    assert [line["not_priced"] for line in nested["cost_breakdown"]["llm_calls"]] == [["web_search"]]
    assert [(one["cost"], one["cost_unknown"]) for one in (trace, nested)] == [(0.00135, True), (0.00045, True)]
    assert (answer["cost_usd"], answer["cost_unknown"]) == (0.00135, True)
    assert all(item["cost_unknown"] for item in listed)
    rows = await shown(tmp_path, "run", "list")
    assert rows.count("or more") == len(listed)


@pytest.mark.requirement("costs.tokens")
async def test_tokens_include_those_of_delegates_as_costs_do(tmp_path: Path) -> None:
    """Finding: 480 tokens were used; `AgentResponse.tokens`, the trace and the conversation said 240."""

    def define(crib: Crib) -> None:
        clerk = crib.agent("clerk", model="scripted:clerk", description="Knows.")
        crib.agent("boss", model="scripted:boss", delegates=[clerk])

    def models() -> dict[str, ScriptedModel]:
        return {
            "scripted:clerk": Priced([calls("search", company="Acme"), said("One.")]),
            "scripted:boss": Priced([calls("clerk", message="How many?"), said("One.")]),
        }

    async with priced(tmp_path, models=models, define=define) as server:
        answer = await server.post("/ai/agents/boss/execute", {"message": "How many?"})
        trace = (await server.get(f"/executions/{answer['run_id']}"))["trace"]
        conversation = await server.get(f"/ai/conversations/{answer['conversation_id']}")
        run = next(item for item in (await server.get("/executions"))["items"] if item["run_id"] == answer["run_id"])
        done = await done_of(server, answer["run_id"])

    assert (answer["tokens"], trace["tokens"], trace["cost_breakdown"]["total_tokens"]) == (480, 480, 480)
    assert (
        conversation["conversation"]["tokens"],
        conversation["turns"][0]["tokens"],
        run["tokens"],
        done["tokens"],
    ) == (480, 480, 480, 480)
    assert answer["usage"]["input_tokens"] + answer["usage"]["output_tokens"] == 240
    assert answer["cost_usd"] == pytest.approx(4 * 0.00045)


async def _hang(_: Request) -> Response:
    await asyncio.sleep(3600)
    raise AssertionError


def _cut(_: Request) -> ModelError:
    return ModelError("stream_cut", "the connection broke")


Script = Callable[[Request], Awaitable[Response] | ModelError]


@pytest.mark.requirement("costs.lines")
@pytest.mark.parametrize("script", [_hang, _cut])
async def test_a_call_that_was_cut_off_is_an_estimate_with_bounds_apart_from_the_bill(
    tmp_path: Path, script: Script
) -> None:
    """Finding: the total was 0.0447 where its lines added up to 0.00225: the reservation stood in the bill."""
    answers = iter([calls("search", company="Acme")])

    def define(crib: Crib) -> None:
        crib.agent("desk", model="scripted:desk", tools=["search"], limits=Limits(timeout_s=1.0))

    def models() -> dict[str, ScriptedModel]:
        def answer(request: Request) -> Awaitable[Response] | Response | ModelError:
            return next(answers, None) or script(request)

        return {"scripted:desk": Priced(answer)}

    async with priced(tmp_path, models=models, define=define) as server:
        answer = await server.post("/ai/agents/desk/execute", {"message": "How many?"})
        trace = (await server.get(f"/executions/{answer['run_id']}"))["trace"]
        run = next(item for item in (await server.get("/executions"))["items"] if item["run_id"] == answer["run_id"])
        done = await done_of(server, answer["run_id"])

    costs = trace["cost_breakdown"]
    assert costs["total_cost_usd"] == lines_of(costs) == 0.00045
    assert (trace["cost"], answer["cost_usd"], run["cost_usd"], done["cost_usd"]) == (0.00045,) * 4
    assert costs["cut_off"]
    for lost in costs["cut_off"]:
        assert (lost["position"], lost["name"], lost["lower_usd"]) == ("t2.llm", "scripted:script", 0)
        assert lost["upper_usd"] > 0.04
    assert trace["cut_off"] == {"lower_usd": 0, "upper_usd": pytest.approx(sum_of(costs["cut_off"], "upper_usd"))}
    assert "at most, apart from the cost" in await shown(tmp_path, "run", "trace", answer["run_id"])


def sum_of(lines: Sequence[JsonObject], name: str) -> float:
    return float(sum(Decimal(str(line[name])) for line in lines if line[name] is not None))


def lines_of(costs: JsonObject) -> float:
    return sum_of([*costs["llm_calls"], *costs["action_calls"]], "cost_usd")


def _desk_with(limit: str) -> Callable[[Crib], None]:
    def define(crib: Crib) -> None:
        crib.agent("desk", model="scripted:desk", tools=["search"], limits=Limits(max_cost_usd=Decimal(limit)))

    return define


@pytest.mark.requirement("costs.narrowed")
async def test_a_limit_that_the_worst_case_does_not_fit_into_narrows_the_answer_first(tmp_path: Path) -> None:
    """Finding: `max_cost_usd` 0.02 refused a run of 0.009 before its first call, by 4,000 output tokens."""
    model = Priced([calls("search", company="Acme"), said("One.")])

    async with priced(tmp_path, models=lambda: {"scripted:desk": model}, define=_desk_with("0.02")) as server:
        answer = await server.post("/ai/agents/desk/execute", {"message": "How many?"})
        events = await server.get(f"/executions/{answer['run_id']}/events")
        replayed = await server.crib.replay(answer["run_id"])

    assert (answer["status"], answer["response"]) == ("completed", "One.")
    asked = [request.max_tokens or 0 for request in model.requests]
    assert all(1024 <= most < 4000 for most in asked)
    facts = [
        item["event"]["decision"]["inputs"] for item in events["items"] if item["event"]["type"] == "model_started"
    ]
    assert [fact["output_tokens"] for fact in facts] == asked
    assert [fact["narrowed_from"] for fact in facts] == [4000, 4000]
    assert all(fact["cost_usd"] + fact["spent_usd"] <= 0.02 for fact in facts)
    assert replayed.same


@pytest.mark.requirement("costs.narrowed")
async def test_a_request_is_refused_if_not_even_the_least_answer_fits(tmp_path: Path) -> None:
    """1,024 tokens of output cost 0.01024 US dollars."""
    model = Priced([said("One.")])

    async with priced(tmp_path, models=lambda: {"scripted:desk": model}, define=_desk_with("0.01")) as server:
        answer = await server.post("/ai/agents/desk/execute", {"message": "How many?"})

    assert (answer["stop_reason"], model.requests) == ("max_cost", [])


@pytest.mark.requirement("costs.narrowed")
async def test_a_plan_and_an_answer_with_a_schema_are_never_narrowed(tmp_path: Path) -> None:
    """They would be of no use if they were cut short."""
    model = Priced([said("One.")])
    limits = Limits(max_cost_usd=Decimal("0.02"))

    def define(crib: Crib) -> None:
        crib.agentic_tool("planned", mode="deterministic", model="scripted:desk", steps=["search"], limits=limits)
        crib.agent("form", model="scripted:desk", response_schema={"type": "object"}, limits=limits)

    async with priced(tmp_path, models=lambda: {"scripted:desk": model}, define=define) as server:
        planned = await server.post("/agentic-tools/invoke", {"tool": "planned", "params": {"task": "find"}})
        form = await server.post("/ai/agents/form/execute", {"message": "How many?"})

    assert [planned["meta"]["stop_reason"], form["stop_reason"]] == ["max_cost", "max_cost"]
    assert model.requests == []


_AGENT: Final[JsonObject] = {"name": "desk", "description": "Answers.", "llm": {"model": "scripted:new"}}
_TOOL: Final[JsonObject] = {**_AGENT, "name": "finder", "mode": "agentic", "tools": [{"tool": "search"}]}
_FLOW: Final[JsonObject] = {
    "name": "flow",
    "description": "Asks the desk.",
    "input_schema": {"type": "object"},
    "steps": [{"name": "ask", "agent": "desk", "input": {"message": "How many?"}}],
}


def _unpriced() -> dict[str, ScriptedModel]:
    return {"scripted:new": Priced(_says("Two."), known=False)}


def _nothing(_: Crib) -> None:
    """No definition of its own."""


@pytest.mark.requirement("costs.saved")
@pytest.mark.parametrize(("path", "body"), [("/ai/agents", _AGENT), ("/agentic-tools", _TOOL)])
async def test_a_cost_limit_for_a_model_without_a_price_is_refused_when_it_is_saved(
    tmp_path: Path, path: str, body: JsonObject
) -> None:
    """Finding: an unknown model was saved without a word, and its `max_cost_usd` did not apply."""
    async with priced(tmp_path, models=_unpriced, define=_nothing) as server:
        refused = await server.post(path, {**body, "limits": {"max_cost_usd": "0.5"}}, status=422)
        allowed = {"max_cost_usd": "0.5", "allow_unpriced": True}
        await server.post(path, {**body, "limits": allowed}, status=201)

    message = refused["detail"]
    assert "has a cost limit of 0.5 US dollars" in message
    assert "'scripted:new' has no known price (unknown: nobody sells it)" in message
    assert "limits.allow_unpriced" in message


@pytest.mark.requirement("costs.saved")
async def test_a_cost_limit_of_a_workflow_is_held_against_the_models_of_its_agents(tmp_path: Path) -> None:
    """An agent without a limit of its own is within the workflow's, which would not hold."""

    def define(crib: Crib) -> None:
        crib.agent("desk", model="scripted:new", limits=Limits(max_cost_usd=None))

    async with priced(tmp_path, models=_unpriced, define=define) as server:
        await server.get("/ai/agents")
        limits = [{"max_cost_usd": "0.5"}, {"max_cost_usd": "0.5", "allow_unpriced": True}, {}]
        refused, allowed, default = [
            await server.post("/ai/workflows/validate", {**_FLOW, "limits": each}) for each in limits
        ]

    assert [refused["valid"], allowed["valid"], default["valid"]] == [False, True, True]
    assert "the model of 'desk', which it calls, 'scripted:new' has no known price" in json.dumps(refused)


@pytest.mark.requirement("costs.saved")
async def test_the_default_limit_is_told_for_a_model_without_a_price(tmp_path: Path) -> None:
    """Whoever has set no limit is told that the default one does not hold, also in Python."""
    async with priced(tmp_path, models=_unpriced, define=_nothing) as server:
        saved = await server.post("/ai/agents", _AGENT, status=201)
        quiet = await server.post(
            "/ai/agents", {**_AGENT, "name": "quiet", "limits": {"max_cost_usd": None}}, status=201
        )

    assert ["cost limit of 1.00" in warning for warning in saved["warnings"]] == [True]
    assert quiet["warnings"] == []


@pytest.mark.requirement("costs.saved")
async def test_a_model_that_its_provider_does_not_have_is_refused_under_the_default_limit(tmp_path: Path) -> None:
    """Finding: `openai:gpt-99` was saved; a model on this machine has no bill, and is saved without a word."""
    environment = {"OPENAI_API_KEY": "k"}

    async with serving(f"sqlite:///{tmp_path / 'crib.db'}", environment=environment) as server:
        refused = await server.post("/ai/agents", {**_AGENT, "llm": {"model": "openai:gpt-99"}}, status=422)
        own = await server.crib.agents.save(AgentDefinition(name="own", llm=LLMConfig(model="ollama:mine")))

    assert "'openai:gpt-99' has no known price" in refused["detail"]
    assert own.warnings == ()
