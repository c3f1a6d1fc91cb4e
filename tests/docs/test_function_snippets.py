"""The Python on the pages about runs, rules and evaluations runs as it stands there, and what it defines is called."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
import yaml
from a2a.types import TaskState

from tests.docs.test_docstrings import make_crib, prepare_environment, prepare_names, search_deals
from tests.docs.test_snippets import run, shown, snippets
from tests.docs.test_walkthroughs import PAGES as FOLLOWED
from tests.unit.executions.house import agent
from tests.unit.openai_endpoint.served import endpoint
from tests.unit.rest_client.served import served
from toolcrib import Crib, EgressPolicy, tool
from toolcrib.contracts import EvaluationDataset, ToolcribError, TriggerDefinition
from toolcrib.core.policy import GuardedCall, Objection
from tools.docs import pages

pytestmark = pytest.mark.requirement("docs.snippets")

ROOT: Final = Path(__file__).parents[2]


@pytest.fixture
async def crib(tmp_path: Path) -> AsyncIterator[Crib]:
    """A crib with the tools, agents and scripted models of the docstrings' examples."""
    async with make_crib(prepare_environment(tmp_path)) as made:
        await prepare_names(made)
        yield made


async def test_an_agentic_tool_is_asked_and_becomes_a_workflow(crib: Crib) -> None:
    names: dict[str, Any] = {"crib": crib, "deals": crib.agentic_tool("moves", **_MOVES)}
    for snippet in snippets("agentic-tools"):
        await run(snippet.replace('"deals"', '"moves"').replace("Globex deals to Rafael", "Acme"), names)
    assert names["result"].run_id
    assert (await crib.workflows.get(names["definition"].name)).revision == 1


_MOVES: Final[dict[str, Any]] = {
    "mode": "deterministic",
    "model": "anthropic:claude-sonnet-4",
    "steps": ["search_deals", "update_deals"],
}


async def test_two_versions_are_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    @tool(name="order-desk", version="1.0.0", side_effects="reads")
    def old(number: int) -> str:
        return "open" if number == 7 else "unknown"

    @tool(name="order-desk", version="1.1.0", side_effects="reads")
    def new(number: int) -> str:
        return "open"

    task = {"id": "eight", "input": {"number": 8}, "checks": [{"kind": "exact", "value": "open"}]}
    async with Crib("memory://") as crib:
        crib.add(old, new)
        names = await shown("evaluations", crib)
        await names["compare"](crib, EvaluationDataset.model_validate({"name": "orders", "tasks": [task]}))
    assert capsys.readouterr().out == "[('eight', 'improvement')]\n"


async def test_a_run_is_forked_replayed_and_recorded(crib: Crib, capsys: pytest.CaptureFixture[str]) -> None:
    desk = crib.agent("asked", model="anthropic:claude-sonnet-4", tools=["search_deals"])
    answer = await desk("Which deals has Acme?")
    forks = await shown("forks", crib)
    await run(snippets("forks")[0].replace('"turn:3"', '"turn:2"'), forks)
    await forks["what_if"](crib, answer.run_id)
    replays = await shown("replay", crib)
    await replays["check"](crib, answer.run_id)
    recorded = await replays["again"](crib, answer.run_id)
    async with recorded:
        assert isinstance(recorded, Crib)
    assert "event" not in capsys.readouterr().out, "the replay diverged"


async def test_a_guardrail_of_ones_own_asks(crib: Crib) -> None:
    names = await shown("guardrails", crib)
    check = names["make"]({"most": 10})
    revision = cast("Any", SimpleNamespace(ref="pay@1.0.0"))
    within, above = (
        GuardedCall(tool=revision, arguments={"amount": amount}, realm="default", principal="ann") for amount in (5, 50)
    )
    assert check(within) is None
    assert check(above) == Objection("more than 10", outcome="ask", facts={"most": 10})
    assert [rule.type for rule in names["rules"]][:2] == ["max_cost", "no_delete"]


async def test_old_runs_are_deleted(crib: Crib, capsys: pytest.CaptureFixture[str]) -> None:
    names = await shown("retention", crib)
    await names["tidy"](crib)
    assert capsys.readouterr().out == "0 runs, 0 bytes of blobs\n"


async def test_an_answer_is_streamed(crib: Crib, capsys: pytest.CaptureFixture[str]) -> None:
    desk = crib.agent("asked", model="anthropic:claude-sonnet-4")
    names = await shown("streaming", crib, desk=desk)
    assert capsys.readouterr().out == "Acme has two deals."
    assert names["result"].output == "Acme has two deals."
    run_id = await names["desk"].submit("Which deals has Acme?")
    await names["show"](crib, run_id)
    assert capsys.readouterr().out == "Acme has two deals."


async def test_a_change_is_rehearsed(crib: Crib) -> None:
    @tool(side_effects="writes")
    def refund(usd: float) -> str:
        return f"{usd}"

    crib.add(refund)
    names = await shown("upgrading", crib)
    definition = search_deals.definition
    assert await names["safe_to_save"](crib, definition) is True


async def test_the_application_of_the_page_about_deployment_has_its_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLCRIB_STORE", "memory://")
    async with Crib("memory://") as crib:
        names = await shown("deployment", crib)
    async with names["crib"] as made:
        assert (await made.call("double", number=2)).output == 4


async def test_the_import_of_the_page_about_graphql_goes_out_under_the_egress_policy() -> None:
    call, shape = snippets("graphql")
    async with Crib("memory://", egress=EgressPolicy(hosts=())) as crib:
        with pytest.raises(ToolcribError, match="egress denied"):
            await run(call, {"crib": crib})
        await run(shape, {})


async def test_the_page_about_a2a_asks_an_agent_with_the_client_and_imports_another() -> None:
    ask, bring = snippets("a2a")
    async with endpoint("Two.", definition=agent("desk", tools=())) as served:
        names: dict[str, Any] = {"server": served.base_url.removesuffix("/v1"), "key": "owner"}
        await run(ask, names)
    async with Crib("memory://", egress=EgressPolicy(hosts=())) as crib:
        with pytest.raises(ToolcribError, match="egress denied"):
            await run(bring, {"crib": crib})
    assert names["event"].status_update.status.state == TaskState.TASK_STATE_COMPLETED


async def test_the_client_of_its_page_calls_a_tool_follows_it_and_meets_a_problem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (block,) = snippets("clients")
    async with served() as (server, url):
        server.crib.add(search_deals)
        names: dict[str, Any] = {}
        await run(block.replace("http://127.0.0.1:8700", url).replace("tcb_...", "owner"), names)
        await names["main"]()
    first, *events, listed, problem = capsys.readouterr().out.splitlines()
    run_id = first.split()[-1]
    assert first == f"True [{{'id': 'd1', 'company': 'Acme'}}, {{'id': 'd2', 'company': 'Acme'}}] {run_id}"
    assert events == ["tool_call_start", "tool_call_end", "done"]
    assert listed.startswith(f"{run_id} ")
    assert problem.startswith("404 not_found ")


async def test_the_queries_of_their_page_find_what_they_say(crib: Crib) -> None:
    desk = crib.agent("asked", model="anthropic:claude-sonnet-4", tools=["search_deals"])
    answered = await desk("Which deals has Acme?")
    (block,) = snippets("queries")
    names = await shown("queries", crib)
    assert (names["page"].items, names["failed"]) == ([], 0)
    await run(block.replace("'max_cost'", "'final_answer'").replace("'failed'", "'completed'"), names)
    assert [found.run_id for found in names["page"].items] == [answered.run_id]
    assert names["failed"] >= 1


async def test_the_methods_of_the_page_about_python_functions_become_tools() -> None:
    async with Crib("memory://") as crib:
        names = await shown("python-tools", crib)
        account = names["Account"]()
        names["use"](crib, account)
        paid = await crib.call("top_up", amount=5)
        converted = await crib.call("convert", amount=10, currency="USD")
    assert (paid.output, account.balance) == ({"balance": 5}, 5)
    assert converted.output == pytest.approx(11)


async def test_the_triggers_of_their_page_are_saved(crib: Crib) -> None:
    names = await shown("triggers", crib)
    await names["review_every_morning"](crib)
    crib.add(tool(name="review", side_effects="none")(_publish), tool(name="publish", side_effects="writes")(_publish))
    await crib.refresh()
    text = (ROOT / "docs" / "triggers.md").read_text(encoding="utf-8")
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        fields = {name: value for name, value in yaml.safe_load(block).items() if name != "kind"}
        await crib.triggers.save(TriggerDefinition.model_validate(fields))
    assert [each.name for each in await crib.triggers.list()] == ["after-review", "deal-won", "nightly"]


def _publish(text: str) -> str:
    return text


def test_every_page_with_python_is_run_by_a_test() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")}
    of_pages = re.compile(r'(?:shown|snippets)\("([a-z0-9-]+)"')
    named = {f"{page}.md" for text in sources.values() for page in of_pages.findall(text)}
    of_tests = re.compile(r'"docs(?:/|" / ")([a-z0-9/-]+\.md)"')
    own = {page for text in sources.values() for page in of_tests.findall(text)}
    with_python = {path for path, text in pages.pages(ROOT).items() if "\n```python" in text}
    assert with_python - named - own - FOLLOWED.keys() == set(), "run the blocks of these pages"
