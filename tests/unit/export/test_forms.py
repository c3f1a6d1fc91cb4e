"""Forms of export: strictness, responses, Gemini, TypeScript and Agent Skills, judged by the vendors' packages."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from google.genai import types as google
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from tests.twins import make_definition, make_tool
from toolcrib import AgenticStep, Crib, LLMConfig
from toolcrib.agents import agentic_definition
from toolcrib.contracts import Example, InvalidInput, JsonObject, JsonSchema
from toolcrib.core.export import FORMATS, export_tools, lost_in_export, skills_by_category, write_skills
from toolcrib.interfaces.cli.tools.tools import Form

MOVE: JsonSchema = {
    "type": "object",
    "properties": {
        "deal": {"type": "string", "description": "Id of the deal"},
        "stage": {"enum": ["won", "lost"]},
        "note": {"type": "string", "maxLength": 80},
    },
    "required": ["deal", "stage"],
    "additionalProperties": False,
}
CLOSED: JsonSchema = {**MOVE, "properties": {"deal": {"type": "string"}}, "required": ["deal"]}
MAP: JsonSchema = {"type": "object", "properties": {"x": {"type": "object"}}, "additionalProperties": False}


def revision(name: str = "move_deal", **changes: Any) -> Any:
    fields = {"name": name, "description": "Move a deal.", "input_schema": MOVE, "category": "crm", **changes}
    return make_tool().model_copy(update={"name": name, "definition": make_definition().model_copy(update=fields)})


def exported(form: Any, **changes: Any) -> Any:
    return export_tools([revision(**changes)], form)[0]


@pytest.mark.requirement("authoring.portable")
def test_a_strict_function_says_so_and_requires_all():
    function = exported("openai_strict")["function"]

    assert function["strict"] is True
    assert function["parameters"]["required"] == ["deal", "stage", "note"]
    assert "maxLength: 80" in function["parameters"]["properties"]["note"]["description"]


@pytest.mark.requirement("authoring.portable")
def test_a_function_that_has_no_strict_form_is_exported_without_strictness():
    function = exported("openai_strict", input_schema=MAP)["function"]

    assert (function["strict"], function["parameters"]) == (False, MAP)
    assert any(
        "additionalProperties: false" in lost
        for lost in lost_in_export(revision(input_schema=MAP).definition, "openai_strict")
    )


@pytest.mark.requirement("authoring.portable")
@pytest.mark.parametrize(("schema", "strict"), [(MOVE, False), (CLOSED, True)], ids=["optional", "all required"])
def test_a_function_of_the_responses_api_is_strict_only_if_nothing_changes(schema: JsonSchema, strict: bool):
    tool = exported("openai_responses", input_schema=schema)

    assert TypeAdapter(FunctionToolParam).validate_python(tool) == tool
    assert (tool["strict"], tool["parameters"]["required"]) == (strict, schema["required"])


@pytest.mark.requirement("authoring.portable")
def test_gemini_gets_a_declaration_without_parameters_if_there_are_none():
    assert "parameters" not in exported("gemini", input_schema={"type": "object"})
    declaration = google.FunctionDeclaration.model_validate(exported("gemini"))
    assert declaration.parameters is not None
    assert declaration.parameters.required == ["deal", "stage"]


@pytest.mark.requirement("authoring.portable")
@pytest.mark.parametrize(
    ("form", "lost"),
    [("universal", 0), ("mcp", 0), ("openai", 0), ("openai_strict", 1), ("gemini", 0), ("anthropic", 0)],
)
def test_what_an_export_loses_is_listed(form: Any, lost: int):
    assert len(lost_in_export(revision().definition, form)) == lost


@pytest.mark.requirement("authoring.export")
def test_a_prompt_gets_the_declaration_of_a_function():
    returns: JsonSchema = {"type": "object", "properties": {"moved": {"type": "boolean"}}, "required": ["moved"]}
    tool = exported("typescript", name="delete", output_schema=returns)

    assert tool["name"] == "delete"
    assert tool["declaration"].startswith("/**\n * Use this tool to move a deal.")
    assert tool["declaration"].endswith(
        'declare function delete_(deal: string, stage: "won" | "lost", note?: string): {moved: boolean};'
    )


def read_skill(text: str) -> tuple[JsonObject, str]:
    _, front, body = text.split("---\n", 2)
    return yaml.safe_load(front), body


@pytest.mark.requirement("authoring.skills")
def test_a_skill_has_a_name_and_a_description_that_the_format_takes():
    skill = exported("skill", name="crm.moveDeal", description="Move: a #deal.\nNow " + "x" * 2000)
    fields, _ = read_skill(skill["files"]["SKILL.md"])

    assert fields.keys() == {"name", "description"}
    assert fields["name"] == skill["name"] == "crm-move-deal"
    assert len(fields["description"]) == 1024
    assert json.loads(skill["files"]["references/tool.json"])["input_schema"] == MOVE


@pytest.mark.requirement("authoring.skills")
def test_a_skill_calls_the_tool_with_arguments_that_survive_the_shell():
    arguments = {"deal": "O'Hara & $HOME", "stage": "won"}
    skill = exported("skill", examples=(Example(scenario="A deal is won", input=arguments),))
    commands = [shlex.split(code) for code in re.findall(r"```sh\n(.*?)```", skill["files"]["SKILL.md"], re.DOTALL)]

    assert commands[0] == [
        "toolcrib",
        "tool",
        "call",
        "move_deal",
        "--input",
        json.dumps(arguments, separators=(",", ":")),
    ]
    assert "$TOOLCRIB_URL/api/v1/ai/tools/move_deal/execute" in commands[1]
    assert json.loads(commands[1][-1]) == {"params": arguments}


@pytest.mark.requirement("authoring.skills")
def test_a_skill_without_examples_shows_arguments_from_the_schema_or_none():
    assert '--input \'{"deal":' in exported("skill")["files"]["SKILL.md"]
    unknown: JsonSchema = {
        "type": "object",
        "properties": {"x": {"type": "string", "pattern": "^q$"}},
        "required": ["x"],
    }
    assert "--input '{}'" in exported("skill", input_schema=unknown)["files"]["SKILL.md"]


@pytest.mark.requirement("authoring.skills")
def test_a_category_is_one_skill_with_a_reference_for_each_tool(tmp_path: Path):
    skills = skills_by_category([revision("move_deal"), revision("find_deal"), revision("send", category="mail")])
    fields, body = read_skill(skills[0]["files"]["SKILL.md"])

    assert [skill["name"] for skill in skills] == ["crm", "mail"]
    assert "find_deal, move_deal" in fields["description"]
    assert body.index("## find_deal") < body.index("## move_deal")
    written = write_skills(skills, tmp_path)
    assert written == [tmp_path / "crm" / "SKILL.md", tmp_path / "mail" / "SKILL.md"]
    linked = re.findall(r"\]\((references/.*?)\)", written[0].read_text())
    assert linked
    assert all((tmp_path / "crm" / path).is_file() for path in linked)


@pytest.mark.requirement("authoring.skills")
@pytest.mark.parametrize(
    "skill",
    [
        {"name": "../up", "files": {"SKILL.md": ""}},
        {"name": "Up", "files": {"SKILL.md": ""}},
        {"name": 3, "files": {}},
        {"name": "up", "files": {"../SKILL.md": ""}},
        {"name": "up", "files": {"/SKILL.md": ""}},
    ],
    ids=str,
)
def test_a_skill_is_not_written_outside_of_its_folder(skill: JsonObject, tmp_path: Path):
    with pytest.raises(InvalidInput, match="skill"):
        write_skills([{"name": "good", "files": {"SKILL.md": ""}}, skill], tmp_path / "skills")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("authoring.skills")
async def test_a_crib_exports_skills_by_name():
    async with Crib("memory://") as crib:
        await crib.save(revision().definition)
        [skill] = await crib.export("move_deal", form="skill")

    assert (skill["name"], set(skill["files"])) == ("move-deal", {"SKILL.md", "references/tool.json"})


@pytest.mark.requirement("authoring.export")
@pytest.mark.parametrize("form", FORMATS)
def test_no_form_shows_the_model_inside_an_agentic_tool(form: Any):
    steps = [AgenticStep(id="search", tool="search_deals")]
    llm = LLMConfig(model="scripted:hidden-model")
    definition = agentic_definition("desk", mode="deterministic", llm=llm, steps=steps, description="Manage deals.")
    [described] = export_tools([make_tool().model_copy(update={"name": "desk", "definition": definition})], form)

    text = json.dumps(described)
    assert "Use this tool to manage deals." in text
    assert [word for word in ("hidden-model", "scripted", "search_deals", "system_prompt") if word in text] == []


@pytest.mark.requirement("authoring.export")
def test_the_command_line_has_every_form():
    choices, *_ = get_args(Form)

    assert get_args(choices) == FORMATS
