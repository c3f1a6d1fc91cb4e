"""`toolcrib apply`: reading, planning and applying projects, on SQLite."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import toolcrib
from toolcrib import Crib, tool
from toolcrib.contracts import Conflict
from toolcrib.contracts.projects import PlannedChange, ProjectPlan
from toolcrib.crib.project import InvalidProject, Project, prepare

SHOP = """\
kind: provider
name: crm
base_url: https://crm.example
---
kind: tool
name: get_deal
version: 1.0.0
side_effects: reads
input_schema: {type: object, properties: {id: {type: string}}, required: [id]}
implementation: {kind: http, provider: crm, method: GET, url: "/deals/{id}"}
"""
FLOWS = """\
kind: workflow
name: look
input_schema: {type: object, properties: {id: {type: string}}, required: [id]}
steps:
  - name: deal
    tool: get_deal
    input: {id: "${input.id}"}
---
kind: agent
name: desk
llm: {model: "anthropic:claude-sonnet-4"}
prompt_fragments: [tone]
tools: [get_deal]
---
kind: fragment
name: tone
text: Be brief.
---
kind: account
name: bot
grants: ["ai://tools/crm/*/execute"]
---
kind: condition
name: is_won
parameters: [stage]
expression: "${stage == 'Won'}"
---
kind: handler
name: deals.find
tool: get_deal
"""
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Deals", "version": "1"},
    "servers": [{"url": "https://deals.example"}],
    "paths": {"/deals": {"get": {"operationId": "list_deals", "responses": {}}}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "shop"
    (project / "flows").mkdir(parents=True)
    (project / "shop.yaml").write_text(SHOP)
    (project / "flows" / "flows.yaml").write_text(FLOWS)
    return project


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crib.db"


def names(store: str) -> list[str]:
    listed = toolcrib("tool", "list", "--status", "all", "--json", store=store).stdout
    return [each["definition"]["name"] for each in json.loads(listed)]


def applied(folder: Path, store: str, *options: str) -> Any:
    done = toolcrib("apply", folder, "--yes", "--json", *options, store=store)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def actions(plan: Any) -> dict[str, str]:
    return {f"{each['kind']}/{each['name']}": each["action"] for each in plan["changes"]}


@pytest.mark.requirement("projects.plan", "projects.apply")
def test_a_folder_is_planned_applied_and_then_unchanged(folder: Path, store: str) -> None:
    planned = toolcrib("apply", folder, "--plan", store=store)
    assert planned.exit_code == 2
    assert "+ tool get_deal@1.0.0 (shop.yaml:5)" in planned.stdout
    assert planned.stdout.endswith("8 to create, 0 to change, 0 to remove, 0 unchanged\n")
    assert names(store) == []

    assert set(actions(applied(folder, store)).values()) == {"create"}
    assert names(store) == ["desk", "get_deal", "look"]
    again = toolcrib("apply", folder, "--plan", store=store)
    assert (again.exit_code, again.stdout) == (0, "no changes: project 'shop' is as the store has it\n")


@pytest.mark.requirement("projects.plan")
def test_a_dangerous_change_is_named_with_those_who_depend_on_it(folder: Path, store: str) -> None:
    applied(folder, store)
    (folder / "shop.yaml").write_text(SHOP.replace("GET", "POST").replace("crm.example", "other.example"))
    plan = json.loads(toolcrib("apply", folder, "--plan", "--json", store=store).stdout)
    changed = {each["name"]: each for each in plan["changes"] if each["action"] == "change"}

    assert {"place": "implementation.method", "before": "GET", "after": "POST"} in changed["get_deal"]["fields"]
    assert "effect changing" in changed["get_deal"]["dangers"][0]
    assert "workflow look@1.0.0" in changed["get_deal"]["dangers"][1]
    assert changed["crm"]["dangers"] == ["its tools are called in another way", "used by tool get_deal"]
    shown = toolcrib("apply", folder, "--plan", store=store).stdout
    assert '    implementation.method: "GET" -> "POST"\n' in shown
    assert "    dangerous: used by " in shown


@pytest.mark.requirement("projects.owned")
def test_what_has_no_document_any_more_is_removed_and_what_others_made_stays(folder: Path, store: str) -> None:
    applied(folder, store)

    @tool(side_effects="reads")
    def by_hand() -> int:
        """Made by hand."""
        return 1

    async def add() -> None:
        async with Crib(store) as crib:
            crib.add(by_hand)
            await crib.open()

    asyncio.run(add())
    (folder / "flows" / "flows.yaml").unlink()
    plan = applied(folder, store)
    removed = {each["name"] for each in plan["changes"] if each["action"] == "remove"}
    assert removed == {"look", "desk", "tone", "bot", "is_won", "deals.find"}
    assert names(store) == ["by_hand", "get_deal"]
    (folder / "shop.yaml").write_text(SHOP.partition("---")[0])
    assert actions(applied(folder, store)) == {"provider/crm": "unchanged", "tool/get_deal": "remove"}


@pytest.mark.requirement("projects.owned")
def test_another_project_takes_over_only_when_it_adopts(folder: Path, store: str, tmp_path: Path) -> None:
    applied(folder, store)
    other = tmp_path / "other"
    other.mkdir()
    (other / "crm.yaml").write_text(SHOP.partition("---")[0])
    refused = toolcrib("apply", other, "--yes", store=store)
    assert refused.exit_code == 2
    assert "crm.yaml:2: error: provider 'crm': it belongs to the project 'shop'" in refused.stderr
    applied(other, store, "--adopt")
    (other / "crm.yaml").write_text("kind: project\nname: other\n")
    assert actions(applied(other, store)) == {"provider/crm": "remove"}


@pytest.mark.requirement("projects.read")
def test_all_problems_are_told_at_once_with_their_lines(folder: Path, store: str) -> None:
    (folder / "bad.yaml").write_text(
        "kind: agnt\nname: a\n---\nkind: agent\nname: b\nllm: {model: 'anthropic:claude-sonnet-4', temprature: 1}\n"
        "---\nkind: tool\nname: c\nimplementation: {kind: http, methd: GET, url: 'https://x.example'}\n"
        "---\nkind: provider\nname: crm\n---\nname: d\nsteps: []\n---\nkind: fragment\nname: e\nname: f\ntext: x\n"
        "---\nkind: workflow\nname: get_deal\nversion: 2.0.0\nsteps: [{name: s, tool: get_deal}]\n---\n- 1\n"
        "---\nkind: tool\nname: g\nlife_cycle: gone\nimplementation: {kind: http, method: GET, url: 'https://x.example'}\n"
    )
    (folder / "broken.json").write_text('{"kind": [}')
    refused = toolcrib("apply", folder, "--yes", store=store)

    assert (refused.exit_code, refused.stdout) == (2, "")
    for said in (
        "bad.yaml:1: error: there is no kind 'agnt'; did you mean 'agent'?",
        "bad.yaml:6: error: agent 'b': there is no field 'llm.temprature'; did you mean 'temperature'?",
        "bad.yaml:10: error: tool 'c': there is no field 'implementation.methd'; did you mean 'method'?",
        "bad.yaml:15: error: the document has no kind; add kind: workflow",
        "bad.yaml:20: error: 'name' stands twice in one mapping",
        "bad.yaml:28: error: a document must be a mapping",
        "bad.yaml:32: error: tool 'g': life_cycle needs a status",
        "broken.json:1: error: it is not YAML",
    ):
        assert said in refused.stderr
    assert "crm" in refused.stderr
    assert not Path(store.removeprefix("sqlite:///")).exists()


@pytest.mark.requirement("projects.read", "projects.rules")
def test_problems_of_names_are_told_with_lines_and_nothing_is_written(folder: Path, store: str) -> None:
    (folder / "more.yaml").write_text(
        "kind: workflow\nname: other\nsteps:\n  - name: s\n    tool: get_dea\n---\n"
        "kind: agent\nname: clerk\nllm: {model: 'anthropic:claude-sonnet-4'}\nprompt_fragments: [tonne]\n---\n"
        "kind: function\nname: double\napplication: shop:crib\n"
    )
    refused = toolcrib("apply", folder, "--yes", store=store)

    assert refused.exit_code == 2
    assert "more.yaml:5: error: workflow 'other'" in refused.stderr
    assert "agent 'clerk'" in refused.stderr
    assert "apply with --app shop:crib, or start toolcrib worker shop:crib first" in refused.stderr
    assert names(store) == []


@pytest.mark.requirement("projects.apply")
def test_an_openapi_document_beside_the_file_is_imported_and_removed_with_it(folder: Path, store: str) -> None:
    (folder / "deals.json").write_text(json.dumps(OPENAPI))
    (folder / "import.yaml").write_text("kind: import\nname: deals\nopenapi: deals.json\n")
    assert actions(applied(folder, store))["tool/list_deals"] == "create"
    assert "create" not in actions(applied(folder, store)).values()
    (folder / "outside.yaml").write_text("kind: import\nname: others\nopenapi: ../deals.json\n")
    assert "is outside of the project's folder" in toolcrib("apply", folder, "--yes", store=store).stderr
    (folder / "outside.yaml").unlink()
    (folder / "import.yaml").unlink()
    refused = toolcrib("apply", folder, "--yes", store=store)
    assert "name it in a document with kind: import" in refused.stderr
    (folder / "deals.json").unlink()
    assert actions(applied(folder, store))["tool/list_deals"] == "remove"


@pytest.mark.requirement("projects.rules")
def test_a_python_function_is_taken_from_the_application_that_the_person_names(
    folder: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "applied_app.py").write_text(
        "from toolcrib import Crib, tool\n\n@tool(side_effects='reads')\ndef double(number: int) -> int:\n"
        '    """Double."""\n    return number * 2\n\ncrib = Crib.from_settings()\ncrib.add(double)\n'
    )
    (folder / "function.yaml").write_text("kind: function\nname: double\napplication: applied_app:crib\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    refused = toolcrib("apply", folder, "--yes", store=store)
    assert (refused.exit_code, "applied_app" in sys.modules) == (2, False)

    plan = applied(folder, store, "--app", "applied_app:crib")
    assert actions(plan)["tool/double"] == "create"
    assert actions(applied(folder, store))["tool/double"] == "unchanged"
    (folder / "function.yaml").write_text("kind: function\nname: doubel\napplication: applied_app:crib\n")
    wrong = toolcrib("apply", folder, "--yes", "--app", "applied_app:crib", store=store)
    assert "did you mean 'double'?" in wrong.stderr


@pytest.mark.requirement("projects.needs")
def test_secrets_keys_and_budgets_are_needs_and_have_no_values(folder: Path, store: str) -> None:
    (folder / "needs.yaml").write_text(
        "kind: secret\nname: CRM_TOKEN\n---\nkind: key\nname: bot\nscopes: ['ai://tools/crm/*']\n---\n"
        "kind: budget\nname: all\ncap: realm 50 usd/day\n"
    )
    needs = applied(folder, store)["needs"]
    assert [each["present"] for each in needs] == [False, False, False]
    assert needs[0]["message"].endswith("toolcrib secret set CRM_TOKEN")
    toolcrib("key", "add", "--principal", "bot", "--scope", "ai://tools/crm/*", store=store)
    plan = toolcrib("apply", folder, "--plan", "--json", store=store, TOOLCRIB_BUDGETS="realm 50 usd/day")
    assert [each["present"] for each in json.loads(plan.stdout)["needs"]] == [False, True, True]


@pytest.mark.requirement("projects.apply")
def test_a_script_must_say_yes(folder: Path, store: str) -> None:
    refused = toolcrib("apply", folder, store=store)
    assert (refused.exit_code, "no terminal is there to ask; add --yes" in refused.stderr) == (2, True)
    assert names(store) == []


@pytest.mark.requirement("projects.apply")
async def test_a_plan_of_an_older_store_is_refused(folder: Path, store: str) -> None:
    async with Crib(store) as crib, Crib(store) as other:
        project = Project.read(folder)
        first, second = await prepare(crib, project), await prepare(other, project)
        done = await asyncio.gather(first.apply(crib), second.apply(other), return_exceptions=True)
        applied_once, refused = sorted(done, key=lambda each: isinstance(each, Conflict))
        assert isinstance(applied_once, ProjectPlan)
        assert isinstance(refused, Conflict)
        assert "nothing was saved, so try again" in str(refused)
        await other.refresh()
        assert not (await prepare(other, project)).is_needed


@pytest.mark.requirement("projects.apply", "projects.owned")
async def test_each_store_applies_and_removes(folder: Path, store_url: str) -> None:
    async with Crib(store_url) as crib:
        assert (await (await prepare(crib, Project.read(folder))).apply(crib)).counts()["create"] == 8
        assert not (await prepare(crib, Project.read(folder))).is_needed
        (folder / "flows" / "flows.yaml").unlink()
        done = await (await prepare(crib, Project.read(folder))).apply(crib)
        assert done.counts() == {"create": 0, "change": 0, "remove": 6, "unchanged": 2}
        assert list(crib.registry.names("default")) == ["get_deal"]
        assert not (await prepare(crib, Project.read(folder))).is_needed


@pytest.mark.requirement("projects.read")
def test_a_folder_without_documents_is_named(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.yaml").write_text("- 1")
    empty = toolcrib("apply", tmp_path, "--plan", store="memory://")
    assert (empty.exit_code, "there are no definitions in" in empty.stderr) == (1, True)


@pytest.mark.requirement("projects.rules")
def test_a_life_cycle_is_part_of_a_document(folder: Path, store: str) -> None:
    (folder / "shop.yaml").write_text(SHOP + "life_cycle: {status: deprecated, message: Slow.}\n")
    applied(folder, store)
    shown = json.loads(toolcrib("tool", "show", "get_deal", store=store).stdout)
    assert (shown["status"], shown["status_message"]) == ("deprecated", "Slow.")
    assert "change" not in actions(applied(folder, store)).values()
    (folder / "shop.yaml").write_text(SHOP + "life_cycle: {status: blocked}\n")
    refused = toolcrib("apply", folder, "--plan", store=store)
    assert "workflow 'look'" in refused.stderr  # it needs a tool that would be blocked
    (folder / "flows" / "flows.yaml").unlink()
    plan = json.loads(toolcrib("apply", folder, "--plan", "--json", store=store).stdout)
    (changed,) = [each for each in plan["changes"] if each["name"] == "get_deal"]
    assert changed["dangers"][0] == "every call is denied from now on"
    (folder / "shop.yaml").write_text(SHOP + "life_cycle: {status: active}\n")
    applied(folder, store)
    assert json.loads(toolcrib("tool", "show", "get_deal", store=store).stdout)["status"] == "active"


@pytest.mark.requirement("projects.read")
def test_a_project_in_python_raises_all_its_faults(folder: Path) -> None:
    (folder / "bad.yaml").write_text("kind: fragment\nname: x\n---\nkind: fragment\nname: y\ntxt: a\n")
    with pytest.raises(InvalidProject) as refused:
        Project.read(folder)
    assert [str(each) for each in refused.value.faults] == [
        "bad.yaml:1: fragment 'x': text is missing; add it",
        "bad.yaml:4: fragment 'y': text is missing; add it",
        "bad.yaml:6: fragment 'y': there is no field 'txt'; did you mean 'text'?",
    ]


@pytest.mark.requirement("projects.plan")
def test_a_plan_is_dangerous_if_one_of_its_changes_is():
    harmless = PlannedChange(action="create", kind="tool", name="look")
    harmful = PlannedChange(action="remove", kind="tool", name="pay", dangers=("workflow 'orders' calls it",))

    assert not ProjectPlan(project="shop", changes=(harmless,)).is_dangerous
    assert ProjectPlan(project="shop", changes=(harmless, harmful)).is_dangerous
