"""Tools as Agent Skills: folders with a `SKILL.md` that tells an agent what a tool is for and how to call it.

A skill has no code and no address: it names the command of the command line, and the route of a server whose address
and key are in the environment. https://agentskills.io/specification
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import orjson

from toolcrib.contracts import InvalidInput, JsonObject, ToolDefinition, ToolRevision
from toolcrib.core.export.descriptions import describe
from toolcrib.core.export.names import export_names
from toolcrib.llm.base.messages import Tool, ToolExample
from toolcrib.llm.text.examples import examples_of
from toolcrib.llm.text.functions import ToolFunction

_LONGEST_DESCRIPTION: Final = 1024
"""Characters that the format takes."""
_NAME: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*")
_CALLING: Final = """\
## How to call

With the command line, where the store or the server is configured:

```sh
{command}
```

Over REST, with the address of the server in `TOOLCRIB_URL` and a key in `TOOLCRIB_API_KEY`:

```sh
{request}
```

The arguments must match `input_schema` in [{reference}]({reference}). Both answer with JSON. If the call failed, its
`error` has a code, and a message that says what to correct. If the call waits for a person, tell the user, and do not
repeat it.
"""


def skill_of(definition: ToolDefinition, name: str) -> JsonObject:
    """A tool as an Agent Skill.

    Args:
        definition: The tool.
        name: Its name in exports.

    Returns:
        `name`: of the folder; `files`: texts by their paths in it.
    """
    folder = name.replace("_", "-")
    text = describe(definition)
    summary = f"{definition.title or folder}: {definition.description}" if definition.description else text
    body = f"# {definition.title or folder}\n\n{text}\n\n{_calling(definition, 'references/tool.json')}"
    files = {"SKILL.md": _front_matter(folder, summary) + body, "references/tool.json": _reference(definition)}
    return {"name": folder, "files": files}


def skills_by_category(tools: Iterable[ToolRevision]) -> list[JsonObject]:
    """One Agent Skill for each category, in the shape of `skill_of`, for toolboxes with many small tools.

    Args:
        tools: What is to be described.

    Example:
        from toolcrib.core.export import skills_by_category, write_skills

        write_skills(skills_by_category(crib.registry.current("default")), "skills")
    """
    ordered = sorted(tools, key=lambda tool: tool.name)
    categories = export_names(sorted({tool.definition.category for tool in ordered}))
    return [
        _skill_of_category(
            shown.replace("_", "-"), [one.definition for one in ordered if one.definition.category == own]
        )
        for own, shown in categories.items()
    ]


def write_skills(skills: Iterable[JsonObject], folder: str | Path) -> list[Path]:
    """Write Agent Skills below a folder, over those of the same names, and return the paths of their `SKILL.md`.

    Args:
        skills: As `crib.export(form="skill")` or `skills_by_category` made them.
        folder: For example `.claude/skills`; it is created if it does not exist.

    Raises:
        InvalidInput: The name of a skill, or a path in it, would lead out of the folder. Nothing is written.

    Example:
        from toolcrib.core.export import write_skills

        write_skills(await crib.export("search_deals", form="skill"), "skills")
    """
    contents: list[tuple[Path, str]] = []
    for skill in skills:
        name, files = skill["name"], skill["files"]
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise InvalidInput(
                f"{name!r} is not a valid skill name; use at most 64 lower-case letters, digits and hyphens"
            )
        for path, text in files.items():
            if Path(path).is_absolute() or ".." in Path(path).parts:
                raise InvalidInput(f"skill {name!r} has the path {path!r}; use paths inside its folder")
            contents.append((Path(folder) / name / path, text))
    for place, text in contents:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return [place for place, _ in contents if place.name == "SKILL.md"]


def _skill_of_category(folder: str, definitions: Sequence[ToolDefinition]) -> JsonObject:
    listed = ", ".join(definition.title or definition.name for definition in definitions)
    parts = [f"# {folder.replace('-', ' ').capitalize()}"]
    files: dict[str, str] = {}
    for definition in definitions:
        path = f"references/{definition.name}.json"
        parts.append(f"## {definition.name}\n\n{describe(definition)}\n\n#{_calling(definition, path)}".rstrip())
        files[path] = _reference(definition)
    summary = f"Tools of the category {folder}: {listed}. Use it when one of them is needed."
    return {"name": folder, "files": {"SKILL.md": _front_matter(folder, summary) + "\n\n".join(parts) + "\n", **files}}


def _front_matter(folder: str, summary: str) -> str:
    import yaml  # noqa: PLC0415 - heavy, and needed by skills only

    words = " ".join(summary.split())
    short = words if len(words) <= _LONGEST_DESCRIPTION else f"{words[: _LONGEST_DESCRIPTION - 1]}…"
    fields = {"name": folder, "description": short}
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=10_000)}---\n\n"


def _calling(definition: ToolDefinition, reference: str) -> str:
    arguments = _example(definition)
    given = shlex.quote(orjson.dumps(arguments).decode())
    body = shlex.quote(orjson.dumps({"params": arguments}).decode())
    name = shlex.quote(definition.name)
    request = (
        f'curl --request POST "$TOOLCRIB_URL/api/v1/ai/tools/"{name}/execute \\\n'
        '  --header "Authorization: Bearer $TOOLCRIB_API_KEY" --header "Content-Type: application/json" \\\n'
        f"  --data {body}"
    )
    return _CALLING.format(command=f"toolcrib tool call {name} --input {given}", request=request, reference=reference)


def _example(definition: ToolDefinition) -> JsonObject:
    """Arguments of a call: the author's first example, or one made from the schema; none if it does not tell."""
    written = tuple(ToolExample(example.input, example.scenario) for example in definition.examples)
    tool = Tool(definition.name, "", {"type": "object", "properties": {}, **definition.input_schema}, examples=written)
    nothing: JsonObject = {}
    return next((found.arguments for found in examples_of(ToolFunction(tool, definition.name))), nothing)


def _reference(definition: ToolDefinition) -> str:
    facts = {
        "name": definition.name,
        "side_effects": definition.side_effects,
        "requires_confirmation": definition.requires_confirmation,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
    }
    return orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode() + "\n"
