"""The files of a new project: tools in YAML and Python, an agent, a workflow, and a test that needs no key."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from toolcrib.contracts import InvalidInput
from toolcrib.crib.project.editor_schema import SCHEMA_FILE, project_schema

_SCHEMA: Final = f"# yaml-language-server: $schema=../{SCHEMA_FILE}\n"
STARTER_FILES: Final[Mapping[str, str]] = {
    ".gitignore": "*.db\n*.db-*\n*-blobs/\n*-pepper\n*-api-key\n__pycache__/\n.pytest_cache/\n.env\n",
    "toolcrib.toml": '# Settings of this project; `toolcrib settings` lists all.\nstore = "sqlite:///toolcrib.db"\n',
    "shop.py": '''"""The application: Python functions as tools, and the crib that serves them."""

from toolcrib import Crib, tool

PRICES = {"hat": 20.0, "scarf": 15.0}


@tool(side_effects="reads")
def price_of(item: str, count: int = 1) -> float:
    """The price of some items of one kind."""
    return PRICES[item] * count


crib = Crib.from_settings()
crib.add(price_of)
''',
    "definitions/project.yaml": _SCHEMA + "kind: project\nname: shop\ndescription: A shop with a quote and a clerk.\n",
    "definitions/tools.yaml": _SCHEMA
    + """\
# A tool in YAML: it picks one of several calls by its arguments, without a model.
kind: tool
name: quote
description: The price of an item, or of a dozen of them.
side_effects: reads
input_schema:
  type: object
  properties:
    item: {type: string, enum: [hat, scarf]}
    dozen: {type: boolean, default: false}
  required: [item]
implementation:
  kind: composite
  routes:
    - id: dozen
      when: "${input.dozen}"
      tool: price_of
      input: {item: "${input.item}", count: 12}
    - id: one
      tool: price_of
      input: {item: "${input.item}"}
---
# A Python function of the application; see shop.py.
kind: function
name: price_of
application: shop:crib
""",
    "definitions/agent.yaml": _SCHEMA
    + """\
kind: agent
name: clerk
description: Answers questions about prices.
llm: {model: "anthropic:claude-sonnet-4"}
limits: {allow_unpriced: true}  # to limit costs by the model's price: pip install 'toolcrib[prices]'
system_prompt: You are a clerk. Use your tools to answer questions about prices.
tools: [price_of]
""",
    "definitions/workflow.yaml": _SCHEMA
    + """\
kind: workflow
name: order
description: The price of an order.
input_schema:
  type: object
  properties:
    item: {type: string}
    count: {type: integer, minimum: 1}
  required: [item, count]
steps:
  - name: price
    tool: price_of
    input: {item: "${input.item}", count: "${input.count}"}
""",
    "tests/test_shop.py": '''"""The project in a store in memory, with a scripted model: no key and no network."""

import asyncio
import sys
from pathlib import Path

from toolcrib import Crib, ScriptedModel
from toolcrib.crib.project import Project, prepare

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from shop import price_of  # noqa: E402


async def ask_and_order() -> tuple[object, object, object]:
    model = ScriptedModel(["A hat costs 20."])
    async with Crib("memory://", models={"anthropic:claude-sonnet-4": model}) as crib:
        crib.add(price_of)
        await (await prepare(crib, Project.read(ROOT / "definitions"))).apply(crib)
        quote = await crib.call("quote", item="hat", dozen=True)
        order = await crib.invoke("order", {"item": "scarf", "count": 2})
        answer = await crib.invoke("clerk", {"message": "What does a hat cost?"})
        return quote.output, order.output, answer.output


def test_the_project_quotes_orders_and_answers() -> None:
    quote, order, answer = asyncio.run(ask_and_order())
    assert quote == 240.0
    assert order == {"price": 30.0}
    assert answer == "A hat costs 20."
''',
}
"""Text by relative path."""


def start_project(folder: Path) -> list[str]:
    """Write the files of a new project.

    Args:
        folder: Is made if it is not there; what else is in it stays.

    Returns:
        The paths that were written.

    Raises:
        InvalidInput: A file of the project is there already, or the folder cannot be written; nothing was written.
    """
    files = {**STARTER_FILES, SCHEMA_FILE: f"{json.dumps(project_schema(), indent=2)}\n"}
    present = [path for path in files if (folder / path).exists()]
    if present:
        raise InvalidInput(f"{folder / present[0]} is there already; choose an empty folder: toolcrib init FOLDER")
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise InvalidInput(f"{folder} cannot be written: {problem.strerror}; name another folder") from problem
    return list(files)
