"""What a user calls has an example in its docstring, and each example runs as it stands there.

An example is the indented block of a section `Example:`. It may await. It finds every name of `toolcrib` and
`toolcrib.contracts` (it imports those of `toolcrib.testing`), and what `prepare_names` makes: an open `crib` with a
clock that stands still; the tools `search_deals`, `update_deals`,
`send_offer` (a person approves it) and `print_label` (a client performs it); the agent `desk`, the agentic tool `deals`
and the workflow `move`; the provider `crm` with its list `stages`; an OpenAPI `document`, imported as `deals_api`, and
a `new_document` that changes it in a dangerous way. A plain `Crib()` is the prepared one. What an example adds is saved
afterwards, and none of its runs may fail.

A contract has its example in the docstring of its module, because its own docstring is a part of its JSON Schema.
"""

import ast
import inspect
import json
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from textwrap import dedent
from typing import Any, Final, NamedTuple, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

import toolcrib
from tests.twins import MASTER_KEYS
from toolcrib import Crib, EgressPolicy, ScriptedModel, contracts, testing, tool
from toolcrib.contracts import Json, JsonObject, Record
from toolcrib.core import export
from toolcrib.crib.api.acting import ActingCrib
from toolcrib.crib.api.definitions import Definer
from toolcrib.crib.runs.retention import Retention
from toolcrib.interfaces.adapters import langchain, openai_agents, openai_functions, pydantic_ai
from toolcrib.llm import Message, Request, ToolCall

pytestmark = pytest.mark.requirement("docs.docstrings")

MODEL: Final = "anthropic:claude-sonnet-4"
INTERNAL: Final = {
    "ActingCrib.authorize": "the beginning of each operation",
    "Approvals.decide_call": "called by `Crib.decide`",
    "Connections.holder_of": "the server's part of a redirect",
    "Connections.ticket": "the server's part of a redirect",
    "Conversations.begin": "called by the execution service",
    "Conversations.create": "called by the execution service",
    "Conversations.readable": "the part of `crib.queries`",
    "Conversations.settle": "called by the execution service",
    "Conversations.settle_turns": "the part of `crib.queries`",
    "Executions.follow_closely": "the server's form of `follow`",
    "Executions.run_for": "a check of other parts",
    "Executions.with_files": "adds the files of a request to its input, for `start`",
    "Prompts.of": "makes the part",
}
"""Public methods that other modules of the crib call, and users do not."""
HAVE_EXAMPLES: Final = {
    *("CribToolset", "drop_nulls", "function_tool", "lint_schema", "load", "lost_in_export", "skills_by_category"),
    *("tools", "translate_schema", "write_skills"),
}
"""What users call of the packages that `in_modules` lists."""
NOT_RUN: Final = {
    "Connections.finish": "an authorization server sends the address",
    "Imports.grpc": "asks a gRPC server",
    "Imports.mcp": "asks an MCP server",
    "Imports.sync": "asks the server of a provider again",
    "Settlements.settle": "a call that was cut off",
}
"""Examples that need a counterpart: they are compiled and not run."""
FAILING: Final = {"ToolLife.block", "reject"}
"""Examples whose runs fail, because that is what they show."""
SHOWN_BY: Final = {
    "ActingCrib.add_entities": "Imports.entities",
    "ActingCrib.pending_approvals": "Approvals.of_run",
    "Crib.close": "Crib",
    "Crib.open": "Crib",
    "ModelExchange": "capture_messages",
    "RecordMode": "record_models",
}
"""Short forms, and the name whose example shows them."""
REQUIRED: Final = {"in": "query", "required": True, "schema": {"type": "string"}}
"""Of a parameter: an operation that gets one breaks its callers."""


class Documented(NamedTuple):
    """Something that a user calls."""

    name: str
    examples: tuple[str, ...]


@tool(category="crm", side_effects="reads")
async def search_deals(company: str) -> list[dict[str, str]]:
    """Deals of a company."""
    return [{"id": "d1", "company": company}, {"id": "d2", "company": company}]


@tool(category="crm", side_effects="writes", idempotent=True)
async def update_deals(ids: list[str], stage: str) -> dict[str, int]:
    """Move deals to a stage."""
    return {"updated": len(ids)}


@tool(category="crm", side_effects="writes", requires_confirmation=True)
async def send_offer(deal: str) -> dict[str, str]:
    """Send the offer of a deal to its customer."""
    return {"sent": deal}


@tool(side_effects="reads", runs_on="client")
async def print_label(deal: str) -> Any:
    """Print the address label of a deal."""
    return {"label": deal}


def examples_of(docstring: str | None) -> tuple[str, ...]:
    """The blocks of the sections `Example:`, without their indentation."""
    found = re.findall(r"^Example:\n((?:    .*\n|\n)+)", inspect.cleandoc(docstring or "") + "\n", re.MULTILINE)
    return tuple(dedent(block) for block in found)


def exported() -> Iterator[Documented]:
    """Every name of `toolcrib` and of `toolcrib.testing`."""
    for name in (*toolcrib.__all__, *sorted(set(testing.__all__) - set(toolcrib.__all__))):
        value = getattr(toolcrib if name in toolcrib.__all__ else testing, name)
        if inspect.ismodule(value):
            continue  # an adapter, whose own names are shown
        if inspect.isclass(value) and issubclass(value, BaseModel | Record):
            blocks = examples_of(sys.modules[value.__module__].__doc__)
            yield Documented(name, tuple(block for block in blocks if re.search(rf"\b{name}\b", block)))
        else:
            yield Documented(name, examples_of(vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__))


def parts() -> Iterator[type]:
    """The classes behind `crib.approvals`, `crib.agents` and so on."""
    for value in vars(ActingCrib).values():
        if isinstance(value, cached_property):
            returned = get_type_hints(value.func)["return"]
            if value.func.__name__[0] != "_":
                yield get_origin(returned) or returned
    yield Retention


def methods() -> Iterator[Documented]:
    """The public methods of a crib, of its parts and of the handles."""
    handles = (toolcrib.Agent, toolcrib.AgenticTool, toolcrib.CompositeTool, toolcrib.WorkflowHandle)
    for owner in dict.fromkeys((Definer, ActingCrib, Crib, *parts(), *handles)):
        for name, value in vars(owner).items():
            function = getattr(value, "__func__", value)
            is_public = not name.startswith("_") or name == "__call__"
            if inspect.isfunction(function) and is_public and not getattr(function, "__isabstractmethod__", False):
                yield Documented(f"{owner.__name__}.{name}", examples_of(function.__doc__))


def in_modules() -> Iterator[Documented]:
    """The public functions and classes of exports and of adapters."""
    for module in (export, langchain, openai_agents, openai_functions, pydantic_ai):
        for name, value in {name: getattr(module, name) for name in getattr(module, "__all__", vars(module))}.items():
            is_own = getattr(value, "__module__", "").startswith(module.__name__) and not name.startswith("_")
            if is_own and name in HAVE_EXAMPLES:
                yield Documented(f"{module.__name__.removeprefix('toolcrib.')}.{name}", examples_of(value.__doc__))


def modules() -> Iterator[Documented]:
    """The modules of a crib and its parts, which need not have an example."""
    for name in dict.fromkeys(part.__module__ for part in (Crib, *parts())):
        yield Documented(name.removeprefix("toolcrib."), examples_of(sys.modules[name].__doc__))


CALLED: Final = [one for one in (*exported(), *methods(), *in_modules()) if one.name not in INTERNAL]
EXAMPLES: Final = [
    pytest.param(one.name, block, id=f"{one.name}-{place}" if place else one.name)
    for one in (*CALLED, *modules())
    for place, block in enumerate(one.examples)
]


def answer(request: Request) -> Message | str:
    """What the model of the examples says."""
    if request.output_name == "plan":
        reading = [
            {"words": "Update all", "use": "request"},
            {"words": "Acme Corp", "use": "condition", "value": "Acme Corp"},
            {"words": "deals", "use": "request"},
            {"words": "to Negotiation", "use": "change", "value": "Negotiation"},
        ]
        search = {"input": {"company": "Acme Corp"}}
        update = {"for_each": "${search_deals}", "input": {"ids": ["${item.id}"], "stage": "Negotiation"}}
        return json.dumps({"reading": reading, "reasoning": "…", "search_deals": search, "update_deals": update})
    if request.output_schema is not None:
        return json.dumps({"summary": "Moved 2 deals."})
    last = request.messages[-1]
    offered = {each.name for each in request.tools.tools}
    if last.text and "search_deals" in offered:
        return Message("assistant", (ToolCall("a", "search_deals", '{"company": "Acme"}'),))
    if last.text and "print_label" in offered:
        return Message("assistant", (ToolCall("a", "print_label", '{"deal": "d1"}'),))
    return "Acme has two deals."


def make_crib(environment: Mapping[str, str]) -> Crib:
    """A crib in memory with a scripted model; nothing leaves the process."""
    models = {MODEL: ScriptedModel(answer), "openai:gpt-5": ScriptedModel(answer)}
    clock = testing.FrozenClock()
    return Crib("memory://", models=models, environment=environment, egress=EgressPolicy(hosts=()), clock=clock)


def openapi_of(parameters: Json) -> JsonObject:
    """An OpenAPI document with one operation."""
    operation = {"operationId": "list_deals", "parameters": parameters, "responses": {"200": {"description": "Deals."}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Deals", "version": "1"},
        "servers": [{"url": "https://deals.example"}],
        "paths": {"/deals": {"get": operation}},
    }


async def prepare_names(crib: Crib) -> dict[str, Any]:
    """The names that an example finds."""
    crib.add(search_deals, update_deals, send_offer, print_label)
    stages = toolcrib.ReferenceSource(name="stages", values=({"id": "won", "label": "Won"},))
    crm = contracts.ProviderDefinition(name="crm", base_url="https://api.crm.example", reference_data=(stages,))
    await crib.save_provider(crm)
    document, new_document = (openapi_of(parameters) for parameters in ([], [{"name": "stage", **REQUIRED}]))
    await crib.imports.openapi(document, name="deals_api")
    names = {name: getattr(contracts, name) for name in contracts.__all__}
    names |= {name: getattr(toolcrib, name) for name in toolcrib.__all__}
    company = {"type": "object", "properties": {"company": {"type": "string"}}, "required": ["company"]}
    steps: list[toolcrib.WorkflowStep | dict[str, Any]] = [
        {"name": "deals", "tool": "search_deals", "input": {"company": "${input.company}"}},
        {"name": "moved", "tool": "update_deals", "input": {"ids": "${deals[*].id}", "stage": "Won"}},
    ]
    chosen = ["search_deals", "update_deals"]
    return names | {
        "__name__": "example",
        "crib": crib,
        "search_deals": search_deals,
        "update_deals": update_deals,
        "desk": crib.agent("desk", model=MODEL, tools=["search_deals"]),
        "deals": crib.agentic_tool("deals", mode="deterministic", model=MODEL, steps=chosen),
        "move": crib.workflow("move", input_schema=company, steps=steps),
        "document": document,
        "new_document": new_document,
    }


async def run(block: str, names: dict[str, Any]) -> None:
    """Run a block, which may await."""
    pending = eval(compile(block, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(pending):
        await pending


def prepare_environment(folder: Path) -> Mapping[str, str]:
    """Variables: the address of a small database, master keys, the store of other cribs."""
    with sqlite3.connect(folder / "shop.db") as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT NOT NULL)")
    database.close()
    return {
        "SHOP_DATABASE_URL": f"sqlite:///{folder}/shop.db",
        "TOOLCRIB_MASTER_KEYS": MASTER_KEYS,
        "TOOLCRIB_STORE": "memory://",
    }


@pytest.mark.parametrize(("name", "block"), EXAMPLES)
async def test_an_example_of_a_docstring_runs(
    name: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile(block, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if name in NOT_RUN:
        return
    environment = prepare_environment(tmp_path)
    monkeypatch.chdir(tmp_path)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    async with make_crib(environment) as crib:
        names = await prepare_names(crib)
        await run(block.replace("Crib()", "crib"), names)
        for made in {one for one in (*names.values(), crib) if isinstance(one, Crib)}:
            await made.open()
            failed = await made.store.journal.runs("default", status="failed")
            assert name in FAILING or [found.error for found in failed] == []
            await made.close()


def test_everything_that_a_user_calls_has_an_example() -> None:
    shown = {one.name for one in CALLED if one.examples}
    assert [one.name for one in CALLED if SHOWN_BY.get(one.name, one.name) not in shown] == []


def test_the_lists_of_exceptions_are_short_and_name_what_exists() -> None:
    names = {one.name for one in (*exported(), *methods())}
    assert INTERNAL.keys() | NOT_RUN.keys() | SHOWN_BY.keys() <= names
    assert len(NOT_RUN) <= 5
